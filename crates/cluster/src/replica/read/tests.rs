//! Where reads of made-up rows run, and when they end.

use std::sync::Mutex;

use rows::{Liveness, Unfiltered};
use storage::EngineOptions;

use super::*;
use crate::node::{Node, Timeouts};
use crate::testing;

/// So many rows of one partition.
struct Made {
    head: bool,
    rows: u64,
}

impl PartitionStream for Made {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = PartitionHead::new(
            types::DecoratedKey::new(bytes::Bytes::from_static(b"key")),
            rows::DeletionTime::LIVE,
            None,
        );
        Ok(std::mem::take(&mut self.head).then_some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if self.rows == 0 {
            return Ok(None);
        }
        self.rows -= 1;
        let mut row = Row::new(rows::ClusteringValues::new());
        row.liveness = Liveness::new(1);
        Ok(Some(Unfiltered::Row(row)))
    }
}

struct Fixture {
    node: Arc<Node>,
    runtime: tokio::runtime::Runtime,
    /// The modes of all attempts.
    attempts: Arc<Mutex<Vec<ReadMode>>>,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        let (engine, _) =
            storage::open(&env, EngineOptions::with_small_budgets(directory.path())).expect("an empty directory opens");
        let identity = testing::alone("127.0.0.1:9042".parse().expect("an address"), 4);
        let node = Node::open(engine, identity, Timeouts::default()).expect("a new node");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { node, runtime, attempts: Arc::default(), _directory: directory }
    }

    /// Counts the rows of a partition that has so many; `stored`: an attempt on the worker meets
    /// the disk first.
    fn read(&self, key: &'static [u8], rows: u64, stored: bool) -> Result<u64, ReadOutcome<ReadError>> {
        let table = crate::identity::local_table(&self.node.engine);
        let key = types::DecoratedKey::new(bytes::Bytes::from_static(key));
        let attempts = Arc::clone(&self.attempts);
        let open = move |_: &ReadCommand, context: &ReadContext| -> Result<Box<dyn PartitionStream>, ReadError> {
            attempts.lock().expect("no panic").push(context.mode);
            if stored && context.mode == ReadMode::Inline {
                return Err(ReadError::WouldBlock);
            }
            Ok(Box::new(Made { head: true, rows }))
        };
        let request = ReadRequest {
            commands: vec![ReadCommand::whole(&table, PartitionRange::Key(key))],
            trace: None,
            wanted_rows: None,
            open: Some(Arc::new(open)),
            results: None,
            measures: false,
        };
        let count = |stream: &mut dyn PartitionStream| {
            stream.next_partition()?;
            let mut count = 0;
            while stream.next_unfiltered()?.is_some() {
                count += 1;
            }
            Ok(count)
        };
        let limit = self.node.read_limit(&request.commands);
        let figures = ReadFigures::default();
        self.runtime.block_on(self.node.replica.read(request, limit, &figures, count))
    }

    fn attempts(&self) -> Vec<ReadMode> {
        std::mem::take(&mut *self.attempts.lock().expect("no panic"))
    }
}

use ReadMode::{Background, Inline};

#[test]
fn what_was_long_begins_in_the_background_the_next_time() {
    let fixture = Fixture::new();
    assert_eq!(fixture.read(b"small", 10, false), Ok(10));
    assert_eq!(fixture.attempts(), [Inline]);
    assert_eq!(fixture.read(b"large", 5_000, false), Ok(5_000));
    assert_eq!(fixture.attempts(), [Inline, Background]);
    assert_eq!(fixture.read(b"large", 5_000, false), Ok(5_000));
    assert_eq!(fixture.attempts(), [Background]);
    assert_eq!(fixture.read(b"small", 10, false), Ok(10));
    assert_eq!(fixture.attempts(), [Inline]);
    for _ in 0..3 {
        assert_eq!(fixture.read(b"large", 5, false), Ok(5));
    }
    assert_eq!(fixture.attempts(), [Background; 3]);
    assert_eq!(fixture.read(b"large", 5, false), Ok(5));
    assert_eq!(fixture.attempts(), [Inline]);
}

#[test]
fn what_waits_for_the_disk_is_no_long_read_until_it_passes_many_rows() {
    let fixture = Fixture::new();
    assert_eq!(fixture.read(b"cold", 10, true), Ok(10));
    assert_eq!(fixture.attempts(), [Inline, Background]);
    assert_eq!(fixture.read(b"cold", 1_500, true), Ok(1_500));
    assert_eq!(fixture.attempts(), [Inline, Background]);
    assert_eq!(fixture.read(b"cold", 3_000, true), Ok(3_000));
    assert_eq!(fixture.attempts(), [Inline, Background, Background]);
    assert_eq!(fixture.read(b"cold", 3_000, true), Ok(3_000));
    assert_eq!(fixture.attempts(), [Background]);
}

#[test]
fn a_read_ends_with_its_time() {
    let fixture = Fixture::new();
    let short = Timeouts { read: Duration::from_millis(50), ..Timeouts::default() };
    fixture.node.set_timeouts(short);
    let ended = fixture.read(b"endless", u64::MAX, false);
    assert!(matches!(ended, Err(ReadOutcome::TimedOut | ReadOutcome::Failed(ReadError::TimedOut))), "{ended:?}");
    // the thread is free again: its read has ended, too
    fixture.node.set_timeouts(Timeouts::default());
    assert_eq!(fixture.read(b"endless", 5_000, false), Ok(5_000));
}
