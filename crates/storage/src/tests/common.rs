//! The common parts of the models: integers as values, a keyspace of their own, deletions, the ends
//! of a machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use env::sim::{Sim, SimRandom};
use rows::{Bound, Cell, ClusteringValues, DeletionTime, Mutation, PartitionUpdate, Row, Slice};
use schema::{IndexKind, IndexMetadata, KeyspaceMetadata, Replication, TableMetadata};
use types::DecoratedKey;

use crate::{Engine, TableStore};

/// An `int` as it is stored.
pub fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// And back.
pub fn number(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// A keyspace with the table `t`, or with none yet.
pub fn keyspace(name: &str, table: Option<Arc<TableMetadata>>) -> KeyspaceMetadata {
    let options = BTreeMap::from([("replication_factor".to_owned(), "1".to_owned())]);
    let class = "org.apache.cassandra.locator.SimpleStrategy".to_owned();
    KeyspaceMetadata {
        name: name.to_owned(),
        durable_writes: true,
        replication: Replication { class, options },
        tables: table.into_iter().map(|table| (table.name.clone(), table)).collect(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: Default::default(),
        aggregates: Default::default(),
        is_virtual: false,
    }
}

/// `caching` of one of a few kinds.
pub fn caching(kind: u64) -> BTreeMap<String, String> {
    let rows = ["ALL", "1", "NONE", "3", "12"][(kind % 5) as usize];
    BTreeMap::from([("keys".to_owned(), "ALL".to_owned()), ("rows_per_partition".to_owned(), rows.to_owned())])
}

/// Capacities of the row cache in a model: room for everything, or for an entry or two.
pub const ROW_CACHES: [usize; 2] = [4 << 20, 3 << 10];

/// Deletes a row.
pub fn delete_row(update: &mut PartitionUpdate, clustering: ClusteringValues, deletion: DeletionTime) {
    let mut row = Row::new(clustering);
    row.deletion = deletion;
    update.add_row(row);
}

/// Deletes rows from one to another, both included.
pub fn delete_range(update: &mut PartitionUpdate, ends: [ClusteringValues; 2], deletion: DeletionTime) {
    let [from, to] = ends;
    let slice = Slice { start: Bound::start(from, true), end: Bound::end(to, true) };
    update.range_deletions.push((slice, deletion));
}

/// The host id of [`give_host_id`].
const HOST: [u8; 16] = [3; 16];

/// The node gets its host id, as a server gives it, with the timestamp `at` in microseconds. A node
/// without one cannot know which records of the log its SSTables have, and replays all of them.
pub fn give_host_id(sim: &Sim, engine: &Engine, at: i64) {
    let local = engine.schema().table("system", "local").cloned().expect("every node has it");
    let mut update = PartitionUpdate::new(Arc::clone(&local), DecoratedKey::new(Bytes::from_static(b"local")));
    let mut row = Row::new(ClusteringValues::new());
    let column = local.column_by_name("host_id").expect("the column").id;
    row.add_cell(Cell::live(column, at, Bytes::from_static(&HOST)));
    update.add_row(row);
    let applied = engine.apply(&[Mutation::of(update)]).expect("a sound disk takes writes");
    let position = applied.position.expect("the keyspace is durable");
    sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
    engine.set_host_id(HOST);
}

/// Has dropped tables removed, and waits for it.
pub fn remove(sim: &Sim, engine: &Engine, dropped: &[Arc<TableStore>]) {
    for store in dropped {
        let (sender, removed) = tokio::sync::oneshot::channel();
        engine.dropper.request(store, Some(Box::new(|result| drop(sender.send(result)))));
        sim.block_on(removed).expect("the node lives").expect("a sound disk removes");
    }
}

/// The machine dies: as often by a kill as by a power cut.
pub fn die(sim: &Sim, dice: &SimRandom) {
    if dice.chance(50) {
        sim.kill();
    } else {
        sim.power_cut();
    }
}

/// A legacy index.
pub fn index(name: &str, target: &str) -> IndexMetadata {
    let options = BTreeMap::from([("target".to_owned(), target.to_owned())]);
    IndexMetadata { name: name.to_owned(), kind: IndexKind::Composites, options }
}

/// A storage-attached index.
pub fn attached_index(name: &str, target: &str) -> IndexMetadata {
    let mut index = index(name, target);
    index.kind = IndexKind::Custom;
    index.options.insert("class_name".to_owned(), "sai".to_owned());
    index
}
