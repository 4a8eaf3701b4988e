//! Tests: rows and markers survive the way through their serial form.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::*;
use crate::{ClusteringPrefix, ColumnData, ComplexColumn, Mutation, PartitionUpdate, Slice};

fn table() -> Arc<TableMetadata> {
    table_of(TableId([7; 16]))
}

fn table_of(id: TableId) -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind, position, ty| ColumnSpec { name: name.to_owned(), kind, position, ty, reversed: false };
    let map = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(CqlType::Int), frozen: false };
    let specs = vec![
        spec("pk", ColumnKind::PartitionKey, 0, CqlType::Int),
        spec("c1", ColumnKind::Clustering, 0, CqlType::Int),
        spec("c2", ColumnKind::Clustering, 1, CqlType::Text),
        spec("s", ColumnKind::Static, 0, CqlType::Text),
        spec("a", ColumnKind::Regular, 0, CqlType::Int),
        spec("b", ColumnKind::Regular, 0, CqlType::Text),
        spec("m", ColumnKind::Regular, 0, map),
    ];
    let (flags, params) = (TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(id, "ks", "t", TableKind::Regular, flags, params, specs, BTreeMap::new(), None))
}

fn id(table: &TableMetadata, name: &str) -> schema::ColumnId {
    table.column_by_name(name).expect("the test's column").id
}

fn clustering(c1: i32, c2: &str) -> crate::ClusteringValues {
    [Some(Bytes::copy_from_slice(&c1.to_be_bytes())), Some(Bytes::copy_from_slice(c2.as_bytes()))].into_iter().collect()
}

fn sample_rows(table: &TableMetadata) -> Vec<Row> {
    let mut plain = Row::new(clustering(1, "x"));
    plain.liveness = Liveness::new(TIMESTAMP_EPOCH + 5);
    plain.add_cell(Cell::live(id(table, "a"), TIMESTAMP_EPOCH + 5, Bytes::from_static(&[0, 0, 0, 9])));
    plain.add_cell(Cell::live(id(table, "b"), TIMESTAMP_EPOCH + 6, Bytes::from_static(b"")));
    let mut dying = Row::new(clustering(2, ""));
    dying.liveness = Liveness::expiring(i64::MIN + 1, 60, DELETION_TIME_EPOCH + 60);
    dying.add_cell(Cell {
        ttl: 60,
        local_deletion_time: DELETION_TIME_EPOCH + 60,
        ..Cell::live(id(table, "b"), i64::MIN + 1, Bytes::from_static(b"soon"))
    });
    dying.add_cell(Cell::tombstone(id(table, "a"), i64::MAX, 5));
    let mut complex = Row::new(clustering(3, "y"));
    complex.deletion = DeletionTime::new(77, DELETION_TIME_EPOCH + 1);
    complex.add_complex_deletion(id(table, "m"), DeletionTime::new(99, DELETION_TIME_EPOCH));
    for (key, value) in [("k2", 2u8), ("k1", 1)] {
        let cell = Cell::live(id(table, "m"), 100, Bytes::copy_from_slice(&[0, 0, 0, value]));
        complex.add_complex_cell(table, cell.at(Bytes::copy_from_slice(key.as_bytes())));
    }
    vec![plain, dying, complex, Row::new(clustering(4, "z"))]
}

#[test]
fn rows_round_trip_on_disk_and_in_messages() {
    let table = table();
    let header = Header::for_table(&table, EncodingStats::default());
    for row in sample_rows(&table) {
        for (framing, on_disk) in [(Framing::Disk { previous_size: 300 }, true), (Framing::Message, false)] {
            let mut out = vec![0xaa];
            encode_row(&mut out, &row, false, &header, framing);
            let bytes = Bytes::from(out);
            let (decoded, end) = decode_unfiltered(&bytes, 1, &header, on_disk).expect("what was encoded decodes");
            assert_eq!((decoded, end), (Decoded::Row(row.clone()), bytes.len()));
            for cut in 1..bytes.len() {
                let result = decode_unfiltered(&bytes.slice(..cut), 1, &header, on_disk);
                assert_eq!(result, Err(CodecError::Truncated), "cut at {cut}");
            }
        }
    }
}

/// A reader could not tell where such a row ends.
#[test]
#[should_panic(expected = "a row has a value for each clustering column")]
fn a_row_without_all_clustering_values_is_not_written() {
    let table = table();
    let mut row = sample_rows(&table).swap_remove(0);
    row.clustering.pop();
    let header = Header::for_table(&table, EncodingStats::default());
    encode_row(&mut Vec::new(), &row, false, &header, Framing::Message);
}

#[test]
fn mutations_round_trip() {
    let table = table();
    let key = DecoratedKey::new(Bytes::from_static(&[0, 0, 0, 1]));
    let mut update = PartitionUpdate::new(Arc::clone(&table), key);
    update.deletion = DeletionTime::new(3, DELETION_TIME_EPOCH);
    let mut statics = Row::new(crate::ClusteringValues::new());
    statics.add_cell(Cell::live(id(&table, "s"), 4, Bytes::from_static(b"static")));
    update.add_static(statics);
    sample_rows(&table).into_iter().rev().filter(|row| !row.is_empty()).for_each(|row| update.add_row(row));
    let slice = Slice {
        start: ClusteringPrefix::start(clustering(1, "x").into_iter().take(1).collect(), true),
        end: ClusteringPrefix::end(clustering(9, "x"), false),
    };
    update.range_deletions.push((slice, DeletionTime::new(5, DELETION_TIME_EPOCH + 9)));
    let mutation = Mutation::of(update);
    let mut out = Vec::new();
    encode_mutation(&mut out, &mutation);
    let bytes = Bytes::from(out);
    let tables = |id: TableId| (id == table.id).then(|| Arc::clone(&table));
    assert_eq!(decode_mutation(&bytes, &tables), Ok(Some(mutation.clone())));
    assert_eq!(decode_mutation(&bytes, &|_| None), Ok(None));
    // one decoder reads updates with and without a static row, of other columns, and of a table
    // that is gone
    let mut other = mutation.clone();
    other.updates[0].static_row = None;
    other.updates[0].rows.truncate(1);
    let gone = Mutation::of(PartitionUpdate::new(table_of(TableId([8; 16])), mutation.key.clone()));
    let mut decoder = MutationDecoder::new(&tables);
    for wanted in [&mutation, &other, &other, &gone, &mutation, &gone, &mutation, &other] {
        let mut out = Vec::new();
        encode_mutation(&mut out, wanted);
        let expected = (wanted.updates[0].table.id == table.id).then(|| wanted.clone());
        assert_eq!(decoder.decode(&Bytes::from(out)), Ok(expected));
    }
    let head = MutationHead { updates: 1, table: table.id, key: &[0, 0, 0, 1] };
    assert_eq!(peek_mutation(&bytes), Ok(head));
    assert!((0..22).all(|cut| peek_mutation(&bytes[..cut]) == Err(CodecError::Truncated)));
    for cut in 0..bytes.len() {
        assert!(decode_mutation(&bytes.slice(..cut), &tables).is_err(), "cut at {cut}");
    }
}

/// Clients are refused such a key; a peer may send it.
#[test]
fn a_partition_key_that_no_file_can_hold_is_invalid() {
    let table = table();
    for (length, fits) in [(types::composite::KEY_BYTES_MAX, true), (types::composite::KEY_BYTES_MAX + 1, false)] {
        let key = DecoratedKey::new(Bytes::from(vec![b'k'; length]));
        let mutation = Mutation::of(PartitionUpdate::new(Arc::clone(&table), key));
        let mut out = Vec::new();
        encode_mutation(&mut out, &mutation);
        let expected =
            if fits { Ok(Some(mutation)) } else { Err(CodecError::Invalid("a partition key of 65536 bytes".into())) };
        assert_eq!(decode_mutation(&Bytes::from(out), &|_| Some(Arc::clone(&table))), expected);
    }
}

/// The columns of an update are named by whoever sends it. A row in memory has each of them once.
#[test]
fn a_row_with_a_column_twice_is_invalid() {
    let table = table();
    let mut row = Row::new(clustering(1, "x"));
    row.add_cell(Cell::tombstone(id(&table, "a"), 7, DELETION_TIME_EPOCH));
    row.add_cell(Cell::tombstone(id(&table, "b"), 8, DELETION_TIME_EPOCH));
    let mut update = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(Bytes::from_static(&[0, 0, 0, 1])));
    update.add_row(row);
    let mut out = Vec::new();
    encode_mutation(&mut out, &Mutation::of(update));
    let names = [2, 1, b'a', 1, b'b'];
    let at = out.windows(names.len()).position(|bytes| bytes == names).expect("the names of the columns");
    out[at + 4] = b'a';
    let result = decode_mutation(&Bytes::from(out), &|_| Some(Arc::clone(&table)));
    assert_eq!(result, Err(CodecError::Invalid("a row has a column twice".into())));
}

/// The cells of a collection come as a file or a peer has them.
#[test]
fn cells_of_a_collection_in_any_order_are_merged() {
    let table = table();
    let header = Header::for_table(&table, EncodingStats::default());
    let m = id(&table, "m");
    let cell = |key: &'static [u8]| Cell::live(m, 9, Bytes::from_static(&[0, 0, 0, 1])).at(Bytes::from_static(key));
    let mut row = Row::new(clustering(1, "x"));
    let complex = ComplexColumn { column: m, deletion: DeletionTime::LIVE, cells: vec![cell(b"k2"), cell(b"k1")] };
    row.columns.push(ColumnData::Complex(Box::new(complex)));
    let mut out = Vec::new();
    encode_row(&mut out, &row, false, &header, Framing::Message);
    let (decoded, _) = decode_unfiltered(&Bytes::from(out), 0, &header, false).expect("the order is not looked at");
    assert_eq!(decoded, Decoded::Row(row.clone()));
    let mut merged = row.clone();
    merged.merge(row, &table);
    let Some(ColumnData::Complex(complex)) = merged.column(m) else { panic!("the collection is gone") };
    assert!([b"k1", b"k2"].iter().all(|key| complex.cells.iter().any(|cell| cell.path.as_deref() == Some(&key[..]))));
}

#[test]
fn mutated_bytes_never_panic() {
    let table = table();
    let header = Header::for_table(&table, EncodingStats::default());
    for row in tombstones(&table) {
        let mut out = Vec::new();
        encode_row(&mut out, &row, false, &header, Framing::Disk { previous_size: 0 });
        for position in 0..out.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = out.clone();
                bytes[position] ^= flip;
                if let Ok(Some(seen)) = peek_tombstone(&bytes, 0, &header) {
                    let decoded = decode_unfiltered(&Bytes::copy_from_slice(&bytes), 0, &header, true);
                    let (decoded, end) = decoded.expect("what is seen to be a tombstone decodes");
                    assert_eq!((deleted(&decoded), end), (Some(seen.deleted), seen.position.end));
                }
                if let Ok((Decoded::Row(row), _)) = decode_unfiltered(&Bytes::from(bytes), 0, &header, true) {
                    assert!(row.columns.is_sorted_by_key(ColumnData::column));
                }
            }
        }
    }
}

#[test]
fn deletion_times_have_two_forms() {
    let late = DeletionTime::new(7, i32::MAX as u32 + 9);
    let negative = DeletionTime::new(-7, 5);
    let cases = [
        (DeletionTime::LIVE, DeletionTimeForm::Unsigned, vec![0x80], DeletionTime::LIVE),
        (late, DeletionTimeForm::Unsigned, vec![0, 0, 0, 0, 0, 0, 0, 7, 0x80, 0, 0, 8], late),
        (
            DeletionTime::LIVE,
            DeletionTimeForm::Signed,
            vec![0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0],
            DeletionTime::LIVE,
        ),
        // later times become the latest that the form can hold
        (
            late,
            DeletionTimeForm::Signed,
            vec![0x7f, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 7],
            DeletionTime::new(7, i32::MAX as u32 - 1),
        ),
        (
            negative,
            DeletionTimeForm::Signed,
            vec![0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf9],
            negative,
        ),
    ];
    for (deletion, form, bytes, read) in cases {
        assert!(form.can_hold(&deletion));
        let mut out = Vec::new();
        put_deletion_time(&mut out, &deletion, form);
        assert_eq!(out, bytes);
        assert_eq!(get_deletion_time(&mut stdx::Cursor::new(&bytes), form), Ok(read));
        assert!(get_deletion_time(&mut stdx::Cursor::new(&bytes[..bytes.len() - 1]), form).is_err());
    }
    assert!(!DeletionTimeForm::Unsigned.can_hold(&negative));
    // seconds that overflowed
    let bytes = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 7];
    let read = get_deletion_time(&mut stdx::Cursor::new(&bytes), DeletionTimeForm::Signed);
    assert_eq!(read, Ok(DeletionTime::new(7, crate::INVALID_DELETION_TIME)));
}

#[test]
fn signed_times_that_overflowed_are_invalid() {
    let table = table();
    let stats = EncodingStats { min_local_deletion_time: 100, ..EncodingStats::default() };
    let mut header = Header::for_table(&table, stats);
    let mut row = Row::new(clustering(1, "a"));
    row.deletion = DeletionTime::new(9, 0u32.wrapping_sub(100));
    let mut out = Vec::new();
    encode_row(&mut out, &row, false, &header, Framing::Message);
    let bytes = Bytes::from(out);
    let deletion = |header: &Header| match decode_unfiltered(&bytes, 0, header, false) {
        Ok((Decoded::Row(row), _)) => row.deletion.local_deletion_time,
        other => panic!("{other:?}"),
    };
    assert_eq!(deletion(&header), 0u32.wrapping_sub(100));
    header.deletion_times = DeletionTimeForm::Signed;
    assert_eq!(deletion(&header), crate::INVALID_DELETION_TIME);
}

/// A row as it is shown without being decoded.
#[derive(Default)]
struct Shown {
    row: Option<(crate::ClusteringValues, Liveness)>,
    cells: Vec<(i64, Option<Bytes>, Bytes)>,
}

impl RowVisitor for Shown {
    fn begin(&mut self, clustering: &crate::ClusteringValues, liveness: &Liveness) {
        self.row = Some((clustering.clone(), *liveness));
    }

    fn cell(&mut self, cell: EncodedCell<'_>) {
        let path = cell.path.map(Bytes::copy_from_slice);
        self.cells.push((cell.timestamp, path, Bytes::copy_from_slice(cell.value)));
    }
}

/// A row that is copied against other bases equals the row that is decoded and written. Rows that
/// may end are not copied.
#[test]
fn encoded_rows_are_copied_as_they_would_be_written() {
    let table = table();
    let from = Arc::new(Header::for_table(&table, EncodingStats::default()));
    let mut rows = sample_rows(&table);
    let mut collection = Row::new(clustering(5, "c"));
    collection.liveness = Liveness::new(TIMESTAMP_EPOCH + 9);
    for key in ["k1", "k2"] {
        let cell = Cell::live(id(&table, "m"), TIMESTAMP_EPOCH + 8, Bytes::from_static(&[0, 0, 0, 1]));
        collection.add_complex_cell(&table, cell.at(Bytes::copy_from_slice(key.as_bytes())));
    }
    rows.push(collection);
    let mut without_liveness = Row::new(clustering(6, "u"));
    without_liveness.add_cell(Cell::live(id(&table, "b"), TIMESTAMP_EPOCH + 3, Bytes::from_static(b"updated")));
    rows.push(without_liveness);
    let mut copied = Vec::new();
    for row in &rows {
        let mut out = vec![0xaa];
        encode_row(&mut out, row, false, &from, Framing::Disk { previous_size: 300 });
        let bytes = Bytes::from(out);
        for length in 1..bytes.len() {
            let cut = get_encoded_row(&bytes.slice(..length), 1, &from);
            assert!(matches!(cut, Err(CodecError::Truncated) | Ok((None, 1))));
            let mut shown = Shown::default();
            let of_cut = show_encoded_row(&bytes.slice(..length), 1, &from, &mut shown);
            assert!(
                matches!(of_cut, Err(CodecError::Truncated) | Ok((ShowOutcome::NotShown, 1))) && shown.row.is_none()
            );
        }
        let (encoded, end) = get_encoded_row(&bytes, 1, &from).expect("sound bytes");
        copied.push(encoded.is_some());
        let Some(encoded) = encoded else {
            let mut shown = Shown::default();
            assert_eq!(show_encoded_row(&bytes, 1, &from, &mut shown), Ok((ShowOutcome::NotShown, 1)));
            assert!(shown.row.is_none() && shown.cells.is_empty(), "nothing is shown of a row that is decoded");
            continue;
        };
        assert_eq!(end, bytes.len());
        assert_eq!(encoded.decode().as_ref(), Ok(row));
        let mut shown = Shown::default();
        encoded.visit(&mut shown).expect("inspected bytes");
        let mut at_once = Shown::default();
        assert_eq!(show_encoded_row(&bytes, 1, &from, &mut at_once), Ok((ShowOutcome::ShownRow, bytes.len())));
        assert_eq!((&at_once.row, &at_once.cells), (&shown.row, &shown.cells));
        let cell = |cell: &Cell| (cell.timestamp, cell.path.clone(), cell.value.clone());
        let cells = row.columns.iter().flat_map(|data| match data {
            ColumnData::Simple(simple) => vec![cell(simple)],
            ColumnData::Complex(complex) => complex.cells.iter().map(cell).collect(),
        });
        assert_eq!(shown.row, Some((row.clustering.clone(), row.liveness)));
        assert_eq!(shown.cells, cells.collect::<Vec<_>>());
        for min_timestamp in [TIMESTAMP_EPOCH, TIMESTAMP_EPOCH - 1, TIMESTAMP_EPOCH - 1_000_000, 0] {
            let to = Header::for_table(&table, EncodingStats { min_timestamp, ..from.stats });
            assert!(to.holds_rows_of(&from));
            let (mut plain, mut fast) = (Vec::new(), Vec::new());
            encode_row(&mut plain, row, false, &to, Framing::Disk { previous_size: 70_000 });
            encoded.encode(&mut fast, &to, 70_000);
            assert_eq!(fast, plain, "{row:?}");
        }
    }
    assert_eq!(copied, [true, false, false, false, true, true]);
}

fn deleted(decoded: &Decoded) -> Option<Deleted> {
    match decoded {
        Decoded::Row(row) => Some(Deleted::Row(row.deletion)),
        Decoded::Marker(marker) => Some(Deleted::Range { close: marker.close, open: marker.open }),
        Decoded::EndOfPartition => None,
    }
}

/// Tombstones, and rows that look like one but are not.
fn tombstones(table: &TableMetadata) -> Vec<Row> {
    let mut rows = sample_rows(table);
    for c1 in [5, 6] {
        let mut deleted = Row::new(clustering(c1, "deleted"));
        deleted.deletion = DeletionTime::new(TIMESTAMP_EPOCH + 9, DELETION_TIME_EPOCH + 9);
        rows.push(deleted);
    }
    let mut with_cell = rows[4].clone();
    with_cell.add_cell(Cell::tombstone(id(table, "a"), TIMESTAMP_EPOCH + 10, DELETION_TIME_EPOCH));
    let mut with_liveness = rows[4].clone();
    with_liveness.liveness = Liveness::new(TIMESTAMP_EPOCH + 10);
    rows.extend([with_cell, with_liveness]);
    rows
}

#[test]
fn tombstones_are_seen_where_they_stand() {
    let table = table();
    let header = Header::for_table(&table, EncodingStats::default());
    for row in tombstones(&table) {
        let is_tombstone = !row.deletion.is_live() && row.liveness.is_empty() && row.columns.is_empty();
        let wanted = is_tombstone.then_some(row.deletion);
        let mut message = Vec::new();
        encode_row(&mut message, &row, false, &header, Framing::Message);
        assert_eq!(deletion_of_row(&message, &header), wanted, "{row:?}");
        let mut out = vec![0xaa];
        encode_row(&mut out, &row, false, &header, Framing::Disk { previous_size: 300 });
        let seen = peek_tombstone(&out, 1, &header).expect("what was encoded is sound");
        assert_eq!(seen.as_ref().map(|seen| seen.deleted), wanted.map(Deleted::Row));
        let Some(seen) = seen else { continue };
        let values: crate::ClusteringValues =
            seen.position.values.iter().map(|value| value.map(Bytes::copy_from_slice)).collect();
        assert_eq!((values, seen.position.end), (row.clustering.clone(), out.len()));
        for cut in 1..out.len() {
            assert_eq!(peek_tombstone(&out[..cut], 1, &header), Err(CodecError::Truncated), "cut at {cut}");
        }
    }
}

/// A base beyond 2038 is a negative 32-bit number, extended to 64 bits: Cassandra refuses the same
/// bits as a positive one (VIntCoding.checkedCast).
#[test]
fn late_bases_are_written_as_negative_numbers() {
    for (seconds, length) in [(DELETION_TIME_EPOCH, 3), (DELETION_TIME_EPOCH + (1 << 31), 11), (u32::MAX - 1, 11)] {
        let stats = EncodingStats { min_local_deletion_time: seconds, ..EncodingStats::default() };
        let mut out = Vec::new();
        put_stats(&mut out, &stats);
        assert_eq!(out.len(), length, "{seconds}: {out:?}");
        assert_eq!(get_stats(&mut stdx::Cursor::new(&out)), Ok(stats));
    }
}
