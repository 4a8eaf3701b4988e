//! A node on a simulated machine, without sockets: statements in, rows as text out.

use std::path::Path;
use std::pin::Pin;

use cluster::Timeouts;
use cluster::operations::compaction::Inputs;
use cluster::operations::tables::Selection;
use cluster::operations::{compaction, state, tables};
use cql::{Answer, ClientState, CqlError, CqlResult, QueryOptions, ResultSet};
use env::Random;
use env::sim::{DATA, Sim};
use server::coordinator::RequestCoordinator;
use storage::{EngineOptions, commitlog};

use crate::machine;

/// One run of the node.
pub struct SimNode<'a> {
    sim: &'a Sim,
    coordinator: RequestCoordinator,
}

impl<'a> SimNode<'a> {
    /// Starts the node on what is on the machine's disk.
    pub fn open(sim: &'a Sim) -> Self {
        let env = sim.env();
        let dice = sim.dice();
        let options = EngineOptions {
            commitlog: commitlog::Options {
                segment_size: 256 << 10,
                total_space: 4 << 20,
                ..commitlog::Options::default()
            },
            shards: 1 << dice.below(4),
            memtable_bytes: 4 << 20,
            chunk_cache_bytes: 64 << 10,
            column_index_size: Some(512),
            tombstone_failure_threshold: 100_000,
            tombstone_warn_threshold: 1000,
            ..EngineOptions::with_small_budgets(Path::new(DATA))
        };
        let long = std::time::Duration::from_secs(3600);
        let timeouts = Timeouts { read: long, range: long, write: long, truncate: long, ..Timeouts::default() };
        let services = machine::start(&env, options, 4, timeouts);
        let (of_range, conditional, serial, figures, sampled, observation, unacknowledged) = Default::default();
        Self {
            sim,
            coordinator: RequestCoordinator {
                services,
                trace: None,
                of_range,
                conditional,
                serial,
                figures,
                sampled,
                observation,
                leaves_wait: false,
                unacknowledged,
            },
        }
    }

    /// The clock of expiry.
    pub fn now(&self) -> u32 {
        self.coordinator.services.node.env.clock.now_seconds()
    }

    fn run(&self, text: &str, options: &QueryOptions) -> Answer {
        let answer = self.sim.block_on(self.answer(text, options.clone()));
        answer.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    async fn answer(&self, text: &str, options: QueryOptions) -> Result<Answer, CqlError> {
        let schema = self.coordinator.services.node.schema();
        let prepared = cql::prepare(text, Some("model"), &schema)?;
        let options = QueryOptions { protocol_version: 5, ..options };
        cql::execute(&prepared, &[], &options, &ClientState::default(), &self.coordinator).await
    }

    /// Executes a statement that must succeed.
    pub fn execute(&self, text: &str) -> Answer {
        self.run(text, &QueryOptions::default())
    }

    /// A statement that the caller polls while the machine runs and dies; gives whether it
    /// succeeded.
    pub fn begin<'n>(&'n self, text: &'n str) -> Pin<Box<dyn Future<Output = bool> + 'n>> {
        Box::pin(async move { self.answer(text, QueryOptions::default()).await.is_ok() })
    }

    /// All rows of a query, page by page; values as text.
    pub fn query(&self, text: &str, mut options: QueryOptions) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        loop {
            let CqlResult::Rows(page) = self.run(text, &options).result else { panic!("{text} gives rows") };
            if let Some(size) = options.page_size {
                assert!(page.row_count <= size, "{text}: a page of {} rows, wanted {size}", page.row_count);
            }
            rows.extend(texts(&page));
            match page.paging_state {
                Some(state) => options.paging_state = Some(state.into()),
                None => return rows,
            }
        }
    }

    /// Flushes all tables of the model.
    pub fn flush(&self) {
        let node = &self.coordinator.services.node;
        let model = Selection { keyspaces: &["model".to_owned()], tables: &[] };
        self.sim.block_on(tables::flush(node, model)).expect("a sound disk");
    }

    /// Compacts all tables of the model.
    pub fn compact(&self) {
        let node = &self.coordinator.services.node;
        let model = Selection { keyspaces: &["model".to_owned()], tables: &[] };
        self.sim.block_on(compaction::compact(node, model, Inputs::All { split: false })).expect("a sound disk");
    }

    /// Drains the node, as SIGTERM does, and ends the process.
    pub fn drain(&self) {
        let node = &self.coordinator.services.node;
        self.sim.block_on(state::drain(node)).expect("a sound disk");
        self.sim.kill();
    }
}

fn texts(page: &ResultSet) -> Vec<Vec<String>> {
    let mut cursor = stdx::Cursor::new(&page.rows);
    let mut rows = Vec::new();
    for _ in 0..page.row_count {
        let mut row = Vec::new();
        for column in &page.metadata.columns {
            let value = cursor.int_bytes().expect("the rows are whole");
            row.push(value.map_or_else(|| "null".to_owned(), |value| types::literal::to_text(&column.ty, value)));
        }
        rows.push(row);
    }
    assert!(cursor.is_empty(), "nothing follows the rows");
    rows
}
