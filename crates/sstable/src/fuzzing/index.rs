//! The tries of `Partitions.db` and `Rows.db`, and `Index.db` with `Summary.db`: lookups, floors,
//! walks both ways.

use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{DeletionTimeForm, EncodingStats};
use rows::{Bound, ClusteringPrefix};
use stdx::Cursor;
use types::{DecoratedKey, Token};

use crate::index::big_index::{BigIndex, KeyOrder};
use crate::index::partition_index::PartitionIndex;
use crate::index::row_index::RowIndexEntry;
use crate::index::{Blocks, PartitionPosition};
use crate::index_file::{Access, IndexFile};
use crate::read_schema::ReadSchema;
use crate::statistics::HeaderComponent;

/// Entries that a walk passes. Nodes may share children, so that few bytes stand for very many
/// entries: whoever reads along a walk must see that keys or blocks do not go on as they must.
const STEPS_MAX: usize = 2000;
/// Rows.db is asked for so many of the entries that Partitions.db names.
const ROW_INDEXES_MAX: usize = 8;

/// `u16` length of Rows.db, Rows.db, Partitions.db.
pub fn partition_index(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let (rows, partitions) = rest.split_at((u16::from_be_bytes(*length) as usize).min(rest.len()));
    let rows = IndexFile::from(rows.to_vec());
    let Ok(index) = PartitionIndex::open(&IndexFile::from(partitions.to_vec())) else { return };
    let mut row_indexes = 0;
    let mut entry_of = |position: PartitionPosition| {
        if let PartitionPosition::Rows(position) = position
            && row_indexes < ROW_INDEXES_MAX
        {
            row_indexes += 1;
            walk_blocks(&rows, position, partitions);
        }
    };
    for key in partitions.chunks(12).take(64) {
        if let Ok(Some(position)) = index.candidate(key, key[0], Access::WAITING) {
            entry_of(position);
        }
        let Ok(mut cursor) = index.cursor_from(key, Access::WAITING) else { continue };
        while_some(4, || cursor.next().ok().flatten(), &mut entry_of);
    }
    if let Ok(mut cursor) = index.cursor(Access::WAITING) {
        while_some(STEPS_MAX, || cursor.next().ok().flatten(), &mut entry_of);
    }
}

/// `u16` position of an entry, Rows.db.
pub fn row_index(data: &[u8]) {
    let Some((position, rows)) = data.split_first_chunk::<2>() else { return };
    walk_blocks(&IndexFile::from(rows.to_vec()), u64::from(u16::from_be_bytes(*position)), rows);
}

fn walk_blocks(rows: &IndexFile, position: u64, keys: &[u8]) {
    let Ok((key, entry)) = RowIndexEntry::read(rows, position, Access::WAITING) else { return };
    let bytes = rows.bytes(position, 2 + key.len(), Access::WAITING).expect("in memory");
    assert!(Cursor::new(&bytes).short_bytes().ok() == Some(&key[..]));
    let mut cursor = entry.cursor(Access::WAITING);
    for key in keys.chunks(7).take(32) {
        if let Ok(Some(_)) = cursor.floor(key) {
            let _ = cursor.next();
            let _ = cursor.previous();
        }
    }
    if let Ok(Some(_)) = cursor.first() {
        while_some(STEPS_MAX, || cursor.next().ok().flatten(), &mut drop);
    }
    if let Ok(Some(_)) = cursor.end() {
        while_some(STEPS_MAX, || cursor.previous().ok().flatten(), &mut drop);
    }
}

/// `u16` length of Summary.db, Summary.db, Index.db; rows have one clustering column of bytes.
pub fn big_index(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let (summary, index) = rest.split_at((u16::from_be_bytes(*length) as usize).min(rest.len()));
    let (summary, index) = (Bytes::copy_from_slice(summary), Bytes::copy_from_slice(index));
    let schema = schema_of_bytes();
    for form in [DeletionTimeForm::Unsigned, DeletionTimeForm::Signed] {
        for summary in [Some(&summary), None] {
            let Ok((opened, _)) = BigIndex::open(&index.clone().into(), summary, KeyOrder::Murmur3, form, 2) else {
                continue;
            };
            walk_big(&opened, &index, &schema);
        }
    }
}

fn schema_of_bytes() -> Arc<ReadSchema> {
    let component = HeaderComponent {
        stats: EncodingStats::default(),
        deletion_times: DeletionTimeForm::Unsigned,
        key_type: "BytesType".to_owned(),
        clustering: vec!["BytesType".to_owned()],
        statics: Vec::new(),
        regulars: Vec::new(),
    };
    let table = Arc::new(component.table("ks", "t").expect("known types"));
    let header = component.resolve(&table).expect("its own table");
    Arc::new(ReadSchema { table, header, rewriting: None, caches_keys: false })
}

fn walk_big(index: &BigIndex, file: &[u8], schema: &Arc<ReadSchema>) {
    let mut row_indexes = 0;
    let mut entry_of = |position: PartitionPosition| {
        if let PartitionPosition::Rows(position) = position
            && row_indexes < ROW_INDEXES_MAX
        {
            row_indexes += 1;
            if let Ok((_, found)) = index.row_index(position, schema, Access::WAITING) {
                walk_row_index(found.blocks, schema);
            }
        }
    };
    for key in file.chunks(12).take(64) {
        let key = DecoratedKey::new(Bytes::copy_from_slice(key));
        let _ = index.find(&key, Access::WAITING).map(|found| found.map(&mut entry_of));
        for start in [(key.token, Some(&key)), (Token(key.token.0 / 2), None)] {
            let Ok(mut cursor) = index.cursor_from(start.0, start.1, Access::WAITING) else { continue };
            while_some(4, || cursor.next().ok().flatten(), &mut entry_of);
        }
    }
    let mut cursor = index.cursor(Access::WAITING);
    while_some(STEPS_MAX, || cursor.next().ok().flatten(), &mut entry_of);
}

fn walk_row_index(mut blocks: Blocks, schema: &ReadSchema) {
    for byte in [0, 7, 0x61, 0xff] {
        let bound: Bound = ClusteringPrefix::start([Some(Bytes::from(vec![byte; 4]))].into_iter().collect(), true);
        let _ = blocks.first_behind(&bound, schema);
        let _ = (blocks.next(), blocks.previous());
        let _ = blocks.last_before(&bound, schema);
    }
    if let Ok(Some(_)) = blocks.end() {
        while_some(STEPS_MAX, || blocks.previous().ok().flatten(), &mut drop);
    }
    if let Ok(Some(_)) = blocks.first() {
        while_some(STEPS_MAX, || blocks.next().ok().flatten(), &mut drop);
    }
}

fn while_some<T>(limit: usize, mut next: impl FnMut() -> Option<T>, each: &mut impl FnMut(T)) {
    for _ in 0..limit {
        let Some(found) = next() else { return };
        each(found);
    }
}
