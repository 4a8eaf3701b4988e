//! A node on a simulated machine, without sockets: statements in, rows as text out.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use cluster::operations::compaction::Inputs;
use cluster::operations::tables::Selection;
use cluster::operations::{compaction, state, tables};
use cluster::{IdentityOptions, Node, Timeouts};
use config::Config;
use cql::{Answer, ClientState, CqlResult, QueryOptions, ResultSet};
use env::Random;
use env::sim::{DATA, Sim};
use server::Services;
use server::coordinator::RequestCoordinator;
use storage::{EngineOptions, commitlog};

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
            ..EngineOptions::beneath(Path::new(DATA))
        };
        let (engine, _) = storage::open(&env, options).expect("a sound disk opens");
        let address: SocketAddr = "127.0.0.1:9042".parse().expect("an address");
        let identity = IdentityOptions {
            cluster_name: "model".into(),
            adopt_cluster_name: false,
            num_tokens: 4,
            adopt_tokens: false,
            initial_tokens: Vec::new(),
            listen: address,
            broadcast: address,
            native: address,
            place: None,
            joins: false,
        };
        let long = std::time::Duration::from_secs(3600);
        let timeouts = Timeouts { read: long, range: long, write: long, truncate: long, ..Timeouts::default() };
        let node = Node::open(engine, identity, timeouts).expect("a sound disk opens");
        let config = Config::load(None, &[], false).expect("the defaults");
        let services = Arc::new(Services::new(node, config, Arc::default(), 1 << 20, 1 << 20, Arc::default()));
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
        let schema = self.coordinator.services.node.schema();
        let prepared = cql::prepare(text, Some("model"), &schema).unwrap_or_else(|error| panic!("{text}: {error}"));
        let client = ClientState::default();
        let future = cql::execute(&prepared, &[], options, &client, &self.coordinator);
        self.sim.block_on(future).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Executes a statement that must succeed.
    pub fn execute(&self, text: &str, page_size: Option<u32>) -> Answer {
        self.run(text, &QueryOptions { page_size, protocol_version: 5, ..QueryOptions::default() })
    }

    /// All rows of a query, page by page; values as text.
    pub fn query(&self, text: &str, page_size: Option<u32>) -> Vec<Vec<String>> {
        let mut options = QueryOptions { page_size, protocol_version: 5, ..QueryOptions::default() };
        let mut rows = Vec::new();
        loop {
            let CqlResult::Rows(page) = self.run(text, &options).result else { panic!("{text} gives rows") };
            if let Some(size) = page_size {
                assert!(page.row_count <= size, "{text}: a page of {} rows, wanted {size}", page.row_count);
            }
            rows.extend(texts(&page));
            match page.paging_state {
                Some(state) => options.paging_state = Some(state.into()),
                None => return rows,
            }
        }
    }

    /// Flushes the table.
    pub fn flush(&self) {
        let node = &self.coordinator.services.node;
        let model = Selection { keyspaces: &["model".to_owned()], tables: &["t".to_owned()] };
        self.sim.block_on(tables::flush(node, model)).expect("a sound disk");
    }

    /// Compacts the table.
    pub fn compact(&self) {
        let node = &self.coordinator.services.node;
        let model = Selection { keyspaces: &["model".to_owned()], tables: &["t".to_owned()] };
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
