//! Mutations of a peer that are refused: those whose schema is one of the future, by their reason,
//! and deletions that replicas of Cassandra fail at. Nothing of such a message is kept.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use internode::Verb;
use internode::payload::read_request::ReadRequest;
use membership::{Request, RequestFailure};
use rows::codec::encode_mutation;
use rows::{Cell, ClusteringPrefix, DeletionTime, Mutation, PartitionRange, PartitionUpdate, ReadCommand, Row, Slice};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableId, TableMetadata};
use types::composite::KEY_BYTES_MAX;
use types::{CqlType, FailureReason};

use crate::testing::SimRing;
use crate::testing::views::{create_on, keyspace_with_view};

/// The table `ks.t` under another id, or with a further column.
fn of_the_future(table: &TableMetadata, id: Option<TableId>, column: Option<&str>) -> Arc<TableMetadata> {
    let mut specs = table.specs();
    specs.extend(column.map(|name| ColumnSpec {
        name: name.to_owned(),
        kind: ColumnKind::Regular,
        position: 0,
        ty: CqlType::Int,
        reversed: false,
    }));
    let (id, params) = (id.unwrap_or(table.id), table.params.clone());
    let dropped = Default::default();
    let made = TableMetadata::new(id, "ks", "t", table.kind, table.flags, params, specs, dropped, None);
    Arc::new(made)
}

/// A row with a value in a column.
fn row(table: &Arc<TableMetadata>, k: i32, column: &str) -> Mutation {
    let bytes = |number: i32| Bytes::copy_from_slice(&number.to_be_bytes());
    let mut update = PartitionUpdate::new(Arc::clone(table), table.decorate(bytes(k)));
    let mut row = Row::new([Some(bytes(1))].into_iter().collect());
    let id = table.column_by_name(column).expect("a column of the table").id;
    row.add_cell(Cell::live(id, 10, bytes(5)));
    update.add_row(row);
    Mutation::of(update)
}

#[test]
fn what_is_of_a_schema_of_the_future_is_refused_by_its_reason() {
    let ring = SimRing::new(71, &["dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    let schema = ring.node(1).schema();
    let table = schema.table("ks", "t").expect("created");
    let messenger = ring.node(0).messenger().expect("it has joined").clone();
    let ask = |verb: Verb, payload: Vec<u8>| {
        let request = Request::new(verb, payload, Duration::from_secs(5));
        ring.world.block_on(messenger.request(ring.address(1), request)).map(|_| ())
    };
    let write = |mutation: &Mutation| {
        let mut payload = Vec::new();
        encode_mutation(&mut payload, mutation);
        ask(Verb::MutationReq, payload)
    };
    let incompatible = Err(RequestFailure::Failed(FailureReason::IncompatibleSchema));
    let (unknown, wider) =
        (of_the_future(table, Some(TableId([9; 16])), None), of_the_future(table, None, Some("future")));
    assert_eq!(write(&row(&unknown, 1, "v")), incompatible);
    assert_eq!(write(&row(&wider, 1, "future")), incompatible);
    let mut both = row(table, 1, "v");
    both.updates.extend(row(&unknown, 1, "v").updates);
    assert_eq!(write(&both), incompatible);
    assert_eq!(ring.stored(1, "ks", 1), [], "nothing of these is kept");
    let read = |table: &Arc<TableMetadata>| {
        let key = PartitionRange::Key(table.decorate(Bytes::copy_from_slice(&1_i32.to_be_bytes())));
        let command = ReadCommand { now: 1, ..ReadCommand::whole(table, key) };
        let request = ReadRequest::of(&command);
        ask(request.verb(), request.encode())
    };
    assert_eq!([&unknown, &wider].map(read), [incompatible, incompatible]);
    // the wider table without its new column is the table as it is
    assert_eq!(write(&row(&wider, 1, "v")), Ok(()));
    assert_eq!(ring.stored(1, "ks", 1), [(1, 5)]);
    assert_eq!(read(table), Ok(()));
}

/// `DELETE … AND c < null`, bound by a client of a coordinator of Cassandra.
#[test]
fn a_range_that_ends_at_null_is_refused() {
    let ring = SimRing::new(72, &["dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    let schema = ring.node(1).schema();
    let table = schema.table("ks", "t").expect("created");
    let messenger = ring.node(0).messenger().expect("it has joined").clone();
    let delete = |end: Option<i32>| {
        let bytes = |number: i32| Bytes::copy_from_slice(&number.to_be_bytes());
        let mut update = PartitionUpdate::new(Arc::clone(table), table.decorate(bytes(1)));
        let end = ClusteringPrefix::end([end.map(bytes)].into_iter().collect(), false);
        let slice = Slice { start: ClusteringPrefix::bottom(), end };
        update.range_deletions.push((slice, DeletionTime { marked_for_delete_at: 20, local_deletion_time: 1 }));
        let mut payload = Vec::new();
        encode_mutation(&mut payload, &Mutation::of(update));
        let request = Request::new(Verb::MutationReq, payload, Duration::from_secs(5));
        ring.world.block_on(messenger.request(ring.address(1), request)).map(|_| ())
    };
    assert_eq!(delete(None), Err(RequestFailure::Failed(FailureReason::Unknown)));
    assert_eq!(delete(Some(5)), Ok(()));
}

/// A replica of Cassandra makes rows of views without looking at the length of their keys.
#[test]
fn a_row_of_a_view_that_no_file_can_hold_is_left_out() {
    let ring = SimRing::new(73, &["dc1", "dc1"]);
    create_on(&ring, &keyspace_with_view("2"));
    let schema = ring.node(1).schema();
    let messenger = ring.node(0).messenger().expect("it has joined").clone();
    let write = |name: &str| {
        let table = schema.table("ks", name).expect("created");
        let key = table.decorate(Bytes::from(vec![0; KEY_BYTES_MAX + 1]));
        let mut payload = Vec::new();
        encode_mutation(&mut payload, &Mutation::of(PartitionUpdate::new(Arc::clone(table), key)));
        let request = Request::new(Verb::MutationReq, payload, Duration::from_secs(5));
        ring.world.block_on(messenger.request(ring.address(1), request)).map(|_| ())
    };
    assert_eq!([write("t"), write("by_v")], [Err(RequestFailure::Failed(FailureReason::Unknown)), Ok(())]);
}
