//! A node of one in memory: every write is kept as it came, every read merges them all from the
//! start. The naive twin that statements are tested against.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rows::{
    ColumnFilter, DeletionTime, Mutation, PartitionHead, PartitionRange, PartitionStream, PartitionUpdate, ReadCommand,
    ReadError, Row, Unfiltered, WantedRows,
};
use schema::{KeyspaceMetadata, Replication, Schema, TableId, TableMetadata};
use types::DecoratedKey;

use crate::coordinator::CasPartition;
use crate::coordinator::{CasRequest, Coordinator, EXPIRATION_MAX, ReadOptions, SchemaChange, WriteOptions};
use crate::error::CqlError;
use crate::result::SchemaEvent;

/// Polls a future that never waits.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing in memory waits"),
    }
}

/// The node.
pub(super) struct Memory {
    pub schema: RefCell<Arc<Schema>>,
    writes: RefCell<BTreeMap<TableId, BTreeMap<DecoratedKey, Vec<PartitionUpdate>>>>,
    /// Microseconds.
    pub clock: Cell<i64>,
    /// The latest second at which data with a TTL may end.
    pub latest_expiration: Cell<u32>,
    /// The rows that the last read looked for among those of its commands.
    pub wanted_rows: RefCell<Option<Arc<WantedRows>>>,
    /// Lines about large batches, each with whether the batch was refused.
    pub large_batches: RefCell<Vec<(String, bool)>>,
}

impl Memory {
    /// With the keyspace that scripts run in.
    pub fn new() -> Self {
        let keyspace = KeyspaceMetadata {
            name: super::KEYSPACE.into(),
            durable_writes: true,
            replication: Replication {
                class: "org.apache.cassandra.locator.SimpleStrategy".into(),
                options: BTreeMap::from([("replication_factor".into(), "1".into())]),
            },
            tables: BTreeMap::new(),
            user_types: BTreeMap::new(),
            function_rows: Vec::new(),
            functions: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            is_virtual: false,
        };
        Self {
            schema: RefCell::new(Arc::new(Schema::default().with_keyspace(keyspace))),
            writes: RefCell::default(),
            clock: Cell::new(1_700_000_000_000_000),
            latest_expiration: Cell::new(EXPIRATION_MAX),
            wanted_rows: RefCell::default(),
            large_batches: RefCell::default(),
        }
    }

    fn tick(&self) -> i64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Makes shards of increments, as a node does.
    fn count(&self, update: &mut PartitionUpdate) {
        let command = ReadCommand {
            table: Arc::clone(&update.table),
            range: PartitionRange::Key(update.key.clone()),
            slices: rows::Slices::all(),
            reversed: false,
            columns: ColumnFilter::All,
            now: 0,
            limits: rows::DataLimits::NONE,
            indexes: Vec::new(),
        };
        let mut ready = Ready { partitions: self.partitions(&command).into_iter(), rows: Vec::new().into_iter() };
        let mut live = rows::LiveRows::new(&mut ready, Arc::clone(&update.table), 0, rows::live::TombstoneLimits::NONE);
        let (mut static_row, mut rows) = (None, Vec::new());
        if let Some(partition) = live.next_partition().expect("in memory") {
            static_row = partition.static_row;
            rows.extend(std::iter::from_fn(|| live.next_row().expect("in memory")));
        }
        rows::counter::settle(update, [7; 16], self.tick(), |clustering| match clustering {
            None => static_row.as_ref(),
            Some(wanted) => rows.iter().find(|row| row.clustering == *wanted),
        });
    }

    fn partitions(&self, command: &ReadCommand) -> Vec<(PartitionHead, Vec<Unfiltered>)> {
        let writes = self.writes.borrow();
        let Some(partitions) = writes.get(&command.table.id) else { return Vec::new() };
        let wanted = partitions.iter().filter(|(key, _)| match &command.range {
            PartitionRange::Key(one) => one == *key,
            range => range.contains(key),
        });
        wanted.map(|(key, updates)| merge(command, key, updates)).collect()
    }
}

fn merge(command: &ReadCommand, key: &DecoratedKey, updates: &[PartitionUpdate]) -> (PartitionHead, Vec<Unfiltered>) {
    let table = &command.table;
    let deletion = updates.iter().fold(DeletionTime::LIVE, |deletion, update| deletion.merge(update.deletion));
    let fetched = |mut row: Row| {
        if let ColumnFilter::Some(ids) = &command.columns {
            // a row without liveness is alive by its cells: those that are not fetched count too
            let alive = row.is_live(command.now);
            row.columns.retain(|data| ids.contains(&data.column()));
            if alive && !row.is_live(command.now) {
                row.liveness = rows::Liveness::new(0);
            }
        }
        row
    };
    let mut static_row: Option<Row> = None;
    let mut rows: Vec<Row> = Vec::new();
    for update in updates {
        if let Some(row) = &update.static_row {
            match &mut static_row {
                Some(old) => old.merge(row.clone(), table),
                None => static_row = Some(row.clone()),
            }
        }
        for row in &update.rows {
            match rows.iter_mut().find(|old| old.clustering == row.clustering) {
                Some(old) => old.merge(row.clone(), table),
                None => rows.push(row.clone()),
            }
        }
    }
    if let Some(row) = &mut static_row {
        row.apply_deletion(&deletion);
    }
    rows.sort_by(|a, b| table.comparator.compare_values(&a.clustering, &b.clustering));
    rows.retain(|row| command.slices.0.iter().any(|slice| slice.contains(&row.clustering, &table.comparator)));
    for row in &mut rows {
        row.apply_deletion(&deletion);
        for (slice, deletion) in updates.iter().flat_map(|update| &update.range_deletions) {
            if slice.contains(&row.clustering, &table.comparator) {
                row.apply_deletion(deletion);
            }
        }
    }
    rows.retain(|row| !row.is_empty());
    if command.reversed {
        rows.reverse();
    }
    let static_row = static_row.map(|row| {
        let mut row = fetched(row);
        row.liveness = rows::Liveness::EMPTY;
        row
    });
    let head = PartitionHead::new(key.clone(), deletion, static_row.filter(|row| !row.is_empty()));
    (head, rows.into_iter().map(|row| Unfiltered::Row(fetched(row))).collect())
}

/// Partitions that lie ready.
struct Ready {
    partitions: std::vec::IntoIter<(PartitionHead, Vec<Unfiltered>)>,
    rows: std::vec::IntoIter<Unfiltered>,
}

impl PartitionStream for Ready {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some((head, rows)) = self.partitions.next() else { return Ok(None) };
        self.rows = rows.into_iter();
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.rows.next())
    }
}

impl Coordinator for Memory {
    fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema.borrow())
    }

    fn now_micros(&self) -> i64 {
        self.tick()
    }

    fn latest_expiration(&self) -> u32 {
        self.latest_expiration.get()
    }

    fn report_large_batch(&self, line: &str, is_refused: bool) {
        self.large_batches.borrow_mut().push((line.to_owned(), is_refused));
    }

    fn next_timeuuid(&self) -> [u8; 16] {
        types::timeuuid::from_micros(self.tick(), 0x8123_0102_0304_0506)
    }

    fn random_uuid(&self) -> [u8; 16] {
        let mut uuid = [0x44; 16];
        uuid[8..].copy_from_slice(&self.tick().to_be_bytes());
        uuid[8] = 0x80;
        uuid
    }

    async fn mutate(&self, mutations: Vec<Mutation>, options: &WriteOptions) -> Result<(), CqlError> {
        for mut update in mutations.into_iter().flat_map(|mutation| mutation.updates) {
            if options.counters {
                self.count(&mut update);
            }
            for row in update.rows.iter().chain(&update.static_row) {
                assert!(row.columns.is_sorted_by_key(rows::ColumnData::column), "cells of a row are in order");
            }
            let mut writes = self.writes.borrow_mut();
            writes.entry(update.table.id).or_default().entry(update.key.clone()).or_default().push(update);
        }
        Ok(())
    }

    async fn compare_and_set<F>(&self, request: CasRequest, mut decide: F) -> Result<(), CqlError>
    where
        F: FnMut(CasPartition, i64) -> Result<Option<PartitionUpdate>, CqlError>,
    {
        // what is not asked for is left out by the reader, which must know whether anything stays
        // of a row
        let whole = ReadCommand { columns: ColumnFilter::All, ..request.command.clone() };
        let partitions = self.partitions(&whole);
        let found = CasPartition::read(
            &mut Ready { partitions: partitions.into_iter(), rows: Vec::new().into_iter() },
            &request,
        )?;
        let timestamp = found.timestamp(self.tick());
        // once as if another had come between
        drop(decide(found.clone(), timestamp));
        let Some(update) = decide(found, timestamp)? else { return Ok(()) };
        self.mutate(vec![Mutation::of(update)], &WriteOptions::default()).await
    }

    async fn read<T, F>(&self, commands: Vec<ReadCommand>, options: &ReadOptions, build: F) -> Result<T, CqlError>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        self.wanted_rows.borrow_mut().clone_from(&options.wanted_rows);
        let partitions: Vec<_> = commands.iter().flat_map(|command| self.partitions(command)).collect();
        let ready = || Ready { partitions: partitions.clone().into_iter(), rows: Vec::new().into_iter() };
        // once as if it had to be given up, then from scratch
        drop(build(&mut ready()));
        build(&mut ready())
    }

    async fn change_schema(&self, change: SchemaChange) -> Result<Option<SchemaEvent>, CqlError> {
        let Some((schema, event)) = (change.apply)(&self.schema())? else { return Ok(None) };
        *self.schema.borrow_mut() = Arc::new(schema);
        Ok(Some(event))
    }

    async fn truncate(&self, table: &Arc<TableMetadata>) -> Result<(), CqlError> {
        self.writes.borrow_mut().remove(&table.id);
        Ok(())
    }
}

impl crate::explain::ExplainCoordinator for Memory {}
