//! Tests: a source that breaks the order or leaves a range open fails the read.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::MergeStream;
use crate::{
    ClusteringPrefix, ClusteringValues, DeletionTime, Liveness, PartitionHead, PartitionStream, RangeTombstoneMarker,
    ReadError, Row, Unfiltered,
};

fn table() -> Arc<TableMetadata> {
    let column =
        |name: &str, kind| ColumnSpec { name: name.to_owned(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let specs = vec![column("k", ColumnKind::PartitionKey), column("c", ColumnKind::Clustering)];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(TableId([1; 16]), "k", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn clustering(value: i32) -> ClusteringValues {
    [Some(Bytes::copy_from_slice(&value.to_be_bytes()))].into_iter().collect()
}

fn row(value: i32) -> Unfiltered {
    Unfiltered::Row(Row { liveness: Liveness::new(1), ..Row::new(clustering(value)) })
}

fn opening(value: i32) -> Unfiltered {
    let position = ClusteringPrefix::start(clustering(value), true);
    Unfiltered::Marker(RangeTombstoneMarker { position, close: None, open: Some(DeletionTime::new(5, 5)) })
}

/// A stream of given partitions.
struct Given {
    partitions: std::vec::IntoIter<(&'static str, Vec<Unfiltered>)>,
    current: std::vec::IntoIter<Unfiltered>,
}

impl Given {
    fn boxed(partitions: Vec<(&'static str, Vec<Unfiltered>)>) -> Box<dyn PartitionStream> {
        Box::new(Self { partitions: partitions.into_iter(), current: Vec::new().into_iter() })
    }
}

impl PartitionStream for Given {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some((key, items)) = self.partitions.next() else { return Ok(None) };
        self.current = items.into_iter();
        let key = DecoratedKey::new(Bytes::from_static(key.as_bytes()));
        Ok(Some(PartitionHead::new(key, DeletionTime::LIVE, None)))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.current.next())
    }
}

/// Reads the merge of a sound source and another one to its end; gives the number of unfiltereds.
fn read(other: Vec<(&'static str, Vec<Unfiltered>)>, reversed: bool) -> Result<usize, ReadError> {
    let sound = if reversed { vec![row(9), row(1)] } else { vec![row(1), row(9)] };
    let (first, _) = keys();
    let streams = vec![Given::boxed(vec![(first, sound)]), Given::boxed(other)];
    let mut merge = MergeStream::new(table(), streams, reversed);
    let mut count = 0;
    while merge.next_partition()?.is_some() {
        while merge.next_unfiltered()?.is_some() {
            count += 1;
        }
    }
    Ok(count)
}

/// Two keys in the order of their tokens.
fn keys() -> (&'static str, &'static str) {
    let token = |key: &str| types::Token::of_key(key.as_bytes());
    if token("a") < token("b") { ("a", "b") } else { ("b", "a") }
}

fn refused(read: Result<usize, ReadError>, why: &str) {
    let Err(ReadError::Corrupt(corruption)) = read else { panic!("{why}: {read:?}") };
    assert!(corruption.what.contains(why), "{corruption}");
}

#[test]
fn sound_sources_are_merged() {
    let (first, second) = keys();
    let both = vec![(first, vec![row(1), row(5)]), (second, vec![row(1)])];
    assert_eq!(read(both, false), Ok(4));
    assert_eq!(read(vec![(first, vec![row(5), row(1)])], true), Ok(3));
}

/// A range that closes and one that opens may touch without being joined to a boundary: two
/// deletions of a memtable that meet behind a row.
#[test]
fn ranges_that_touch_are_merged() {
    let (first, _) = keys();
    let some = |deletion: i64| Some(DeletionTime::new(deletion, 5));
    let marker = |position, close, open| Unfiltered::Marker(RangeTombstoneMarker { position, close, open });
    let mut items = vec![
        marker(ClusteringPrefix::start(clustering(2), true), None, some(5)),
        marker(ClusteringPrefix::end(clustering(5), true), some(5), None),
        marker(ClusteringPrefix::start(clustering(5), false), None, some(7)),
        marker(ClusteringPrefix::end(clustering(8), true), some(7), None),
    ];
    assert_eq!(read(vec![(first, items.clone())], false), Ok(6));
    items.reverse();
    assert_eq!(read(vec![(first, items)], true), Ok(6));
}

#[test]
fn partitions_out_of_order_fail_the_read() {
    let (first, second) = keys();
    refused(read(vec![(second, vec![row(1)]), (first, vec![row(1)])], false), "do not ascend by key");
}

#[test]
fn a_range_that_stays_open_fails_the_read() {
    let (first, _) = keys();
    refused(read(vec![(first, vec![opening(3)])], false), "open at the end of its partition");
}

#[test]
#[cfg(debug_assertions)]
fn rows_out_of_order_fail_the_read() {
    let (first, _) = keys();
    refused(read(vec![(first, vec![row(5), row(2)])], false), "out of order");
    refused(read(vec![(first, vec![row(2), row(5)])], true), "out of order");
    refused(read(vec![(first, vec![row(5), row(5)])], false), "out of order");
}
