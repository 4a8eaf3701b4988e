//! A node on a simulated machine, for the tests of this crate: nothing passes there that no test
//! asks for, neither time nor a job of the background.

mod ring;
pub(crate) mod views;

pub(crate) use ring::{SNITCH_RESET, SimRing, hintable, table};

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use env::sim::{DATA, Sim};
use rows::{Mutation, PartitionStream, ReadError};
use storage::commitlog::{self, SyncMode};
use storage::{EngineOptions, StorageError};

use crate::identity::IdentityOptions;
use crate::node::{Node, Timeouts};
use crate::system_rows::{self, SystemRow};

/// How long the commit log waits before it syncs.
pub(crate) const WINDOW: Duration = Duration::from_millis(30);

/// A machine and the node that runs there.
pub(crate) struct SimNode {
    pub sim: Sim,
    pub node: Arc<Node>,
}

impl SimNode {
    /// A node that has just been started for the first time, with this write timeout.
    pub fn new(write_timeout: Duration) -> Self {
        let sim = Sim::new(1);
        let node = open(&sim, write_timeout, commitlog::Options::default().mutation_size_max);
        Self { sim, node }
    }

    /// The machine loses its power, and with it what no sync has covered; the node starts again.
    pub fn after_power_cut(self) -> Self {
        self.after_power_cut_with(commitlog::Options::default().mutation_size_max)
    }

    /// As [`Self::after_power_cut`]; from now on the node takes mutations of so many bytes at most.
    pub fn after_power_cut_with(self, mutation_size_max: u32) -> Self {
        let Self { sim, node } = self;
        let timeout = node.timeouts().write;
        sim.power_cut();
        drop(node);
        let node = open(&sim, timeout, mutation_size_max);
        Self { sim, node }
    }

    /// Fills the buffer of the commit log with smaller and smaller records of roles, until there is
    /// no room for the smallest.
    pub fn fill_log(&self) {
        for size in [15 << 20, 1 << 20, 16 << 10, 256, 1] {
            let record = [self.role(1, size)];
            let refused = (0..1000).find_map(|_| self.node.engine.apply(&record).err());
            assert_eq!(refused, Some(StorageError::Busy), "records of {size} bytes");
        }
    }

    /// Live rows of a built-in table.
    pub fn count(&self, keyspace: &str, table: &str) -> usize {
        let schema = self.node.schema();
        let table = schema.table(keyspace, table).expect("a built-in table");
        system_rows::read(&self.node.engine, table, None).expect("readable").len()
    }

    /// A row of `system_auth.roles` (gc_grace: 90 days) under the key `k`, with so many bytes of
    /// text.
    pub fn role(&self, k: u8, bytes: usize) -> Mutation {
        let schema = self.node.schema();
        let roles = schema.table("system_auth", "roles").expect("a built-in table");
        let timestamp = self.node.clock.next_micros();
        SystemRow::new(roles, &[&[k]], &[], timestamp, None).set("salted_hash", Bytes::from(vec![b'x'; bytes])).finish()
    }
}

fn open(sim: &Sim, write_timeout: Duration, mutation_size_max: u32) -> Arc<Node> {
    let sync = SyncMode::Group(WINDOW);
    let commitlog = commitlog::Options { sync, mutation_size_max, ..commitlog::Options::default() };
    open_with(sim, commitlog, Timeouts { write: write_timeout, ..Timeouts::default() })
}

/// A node whose writes do not wait for a sync of the log, as in the stock configuration.
pub(crate) fn periodic(sim: &Sim) -> Arc<Node> {
    let sync = SyncMode::Periodic(Duration::from_secs(10));
    open_with(sim, commitlog::Options { sync, ..commitlog::Options::default() }, Timeouts::default())
}

fn open_with(sim: &Sim, commitlog: commitlog::Options, timeouts: Timeouts) -> Arc<Node> {
    let options = EngineOptions { commitlog, ..EngineOptions::with_small_budgets(Path::new(DATA)) };
    let (engine, _) = storage::open(&sim.env(), options).expect("a sound disk opens");
    let identity = alone("127.0.0.1:7000".parse().expect("an address"), 4);
    Node::open(engine, identity, timeouts).expect("a sound disk opens")
}

/// The identity of a new node that joins no ring.
pub(crate) fn alone(address: SocketAddr, num_tokens: u32) -> IdentityOptions {
    IdentityOptions {
        cluster_name: "Test Cluster".to_owned(),
        adopt_cluster_name: false,
        num_tokens,
        adopt_tokens: false,
        initial_tokens: Vec::new(),
        host_id: None,
        takes_place: false,
        listen: address,
        broadcast: address,
        native: address,
        place: None,
        joins: false,
    }
}

/// Writes a table `ks.strange` into the stored schema of a node that cannot be read.
pub(crate) fn store_unreadable_table(node: &Node) {
    node.engine.apply(&rows_of_unreadable_table(node)).expect("room");
}

/// The rows of a table `ks.strange` that cannot be read; its id is seven, sixteen times.
pub(crate) fn rows_of_unreadable_table(node: &Node) -> [Mutation; 2] {
    let micros = node.clock.next_micros();
    let row = |table: &str, clustering: &[&[u8]], name: &str, value: &[u8]| {
        let table = Arc::clone(node.schema().table("system_schema", table).expect("a built-in table"));
        SystemRow::new(&table, &[b"ks"], clustering, micros, None).set(name, value.to_vec()).finish()
    };
    let own = row("tables", &[b"strange"], "id", &[7; 16]);
    let of_key = row("columns", &[b"strange", b"k"], "kind", b"partition_key");
    [own, of_key]
}

/// Polls a future once.
pub(crate) fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The number of unfiltereds of a stream; builds what a read counts.
pub(crate) fn count_unfiltereds(stream: &mut dyn PartitionStream) -> Result<usize, ReadError> {
    let mut count = 0;
    while stream.next_partition()?.is_some() {
        while stream.next_unfiltered()?.is_some() {
            count += 1;
        }
    }
    Ok(count)
}
