//! Rows and markers against a header, both of any bytes: in the framing of Data.db and of messages.

use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{
    CodecError, Decoded, DeletionTimeForm, EncodedCell, Framing, Header, RowVisitor, ShowOutcome, decode_static_row,
    decode_unfiltered, encode_marker, encode_row, find_starts, get_deletion_time, get_encoded_row, pass_rows_before,
    peek_unfiltered, show_encoded_row,
};
use rows::{ClusteringPrefix, ClusteringValues, ColumnData, Liveness, Unfiltered};
use schema::{ClusteringComparator, TableMetadata};
use stdx::Cursor;

use crate::statistics::HeaderComponent;

/// `u16` length of a serialization header, the header, then rows as Data.db or a message has them.
pub fn rows(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let (header, rows) = rest.split_at((u16::from_be_bytes(*length) as usize).min(rest.len()));
    let Ok(component) = HeaderComponent::read(header) else { return };
    let Ok(table) = component.table("ks", "t") else { return };
    let table = Arc::new(table);
    let Ok(header) = component.resolve(&table).map(Arc::new) else { return };
    let rows = Bytes::copy_from_slice(rows);
    partition(&rows, &header, &table);
    for on_disk in [true, false] {
        unfiltereds(&rows, 0, &header, on_disk, &table);
        let _ = decode_static_row(&rows, 0, &header, on_disk);
    }
}

/// As Data.db begins: key, deletion, static row, rows.
fn partition(rows: &Bytes, header: &Arc<Header>, table: &TableMetadata) {
    let mut cursor = Cursor::new(rows);
    if cursor.short_bytes().is_err() || get_deletion_time(&mut cursor, DeletionTimeForm::Unsigned).is_err() {
        return;
    }
    let mut offset = cursor.position();
    if !header.statics.is_empty() {
        let Ok((_, next)) = decode_static_row(rows, offset, header, true) else { return };
        offset = next;
    }
    unfiltereds(rows, offset, header, true, table);
}

fn unfiltereds(buffer: &Bytes, start: usize, header: &Arc<Header>, on_disk: bool, table: &TableMetadata) {
    let mut offset = start;
    let mut last: Option<ClusteringPrefix> = None;
    loop {
        let peeked = on_disk.then(|| peek_unfiltered(buffer, offset, header));
        let decoded = decode_unfiltered(buffer, offset, header, on_disk);
        let Ok((decoded, next)) = decoded else {
            assert!(!matches!(decoded, Err(CodecError::Truncated)) || offset <= buffer.len());
            return;
        };
        assert!(next > offset && next <= buffer.len(), "decoding stands still or leaves the buffer");
        let unfiltered = match decoded {
            Decoded::EndOfPartition => return,
            Decoded::Row(row) => Unfiltered::Row(row),
            Decoded::Marker(marker) => Unfiltered::Marker(marker),
        };
        let here = ClusteringPrefix { kind: unfiltered.kind(), values: unfiltered.values().clone() };
        if let Some(peeked) = peeked {
            let peeked = peeked.expect("what decodes can be peeked at").expect("it is no end of a partition");
            assert_eq!(peeked.kind, here.kind);
            assert!(peeked.values.iter().copied().eq(here.values.iter().map(|value| value.as_deref())));
            assert!(peeked.end > offset);
        }
        if on_disk && header.holds_rows_of(header) {
            visit(buffer, offset, header, &unfiltered);
        }
        encode(&unfiltered, header);
        compare(last.as_ref(), &here, &table.comparator, buffer, offset, header, on_disk);
        last = Some(here);
        offset = next;
    }
}

/// The parts of a row that is shown without being decoded.
#[derive(Default)]
struct Shown {
    liveness: Option<Liveness>,
    cells: usize,
}

impl RowVisitor for Shown {
    fn begin(&mut self, _clustering: &ClusteringValues, liveness: &Liveness) {
        self.liveness = Some(*liveness);
    }

    fn cell(&mut self, _cell: EncodedCell<'_>) {
        self.cells += 1;
    }
}

/// A row that may stay as it is encoded shows the liveness and as many cells as it has decoded,
/// taken or where it lies; of others nothing is shown.
fn visit(buffer: &Bytes, offset: usize, header: &Arc<Header>, decoded: &Unfiltered) {
    let mut at_once = Shown::default();
    let looked = show_encoded_row(buffer, offset, header, &mut at_once);
    let Ok((Some(encoded), end)) = get_encoded_row(buffer, offset, header) else {
        let is_row = matches!(looked, Ok((ShowOutcome::ShownRow | ShowOutcome::EndOfPartition, _)));
        assert!(!is_row && at_once.liveness.is_none(), "{looked:?} is shown of what has to be decoded");
        return;
    };
    assert_eq!(looked, Ok((ShowOutcome::ShownRow, end)));
    let Unfiltered::Row(row) = decoded else { panic!("a marker is taken for a row") };
    let mut shown = Shown::default();
    encoded.visit(&mut shown).expect("a row that was inspected can be shown");
    let cells = row.columns.iter().map(|data| match data {
        ColumnData::Simple(_) => 1,
        ColumnData::Complex(complex) => complex.cells.len(),
    });
    assert_eq!((shown.liveness, shown.cells), (Some(row.liveness), cells.sum()));
    assert_eq!((at_once.liveness, at_once.cells), (shown.liveness, shown.cells));
}

/// Encodes what was decoded: that must be possible.
fn encode(unfiltered: &Unfiltered, header: &Header) {
    let mut out = Vec::new();
    for framing in [Framing::Message, Framing::Disk { previous_size: 7 }] {
        match unfiltered {
            Unfiltered::Row(row) => encode_row(&mut out, row, false, header, framing),
            Unfiltered::Marker(marker) => encode_marker(&mut out, marker, header, framing),
        }
    }
}

/// Values that are not of their type are compared somehow; the order does not depend on the side
/// from which it is asked.
fn compare(
    last: Option<&ClusteringPrefix>,
    here: &ClusteringPrefix,
    comparator: &ClusteringComparator,
    buffer: &Bytes,
    offset: usize,
    header: &Header,
    on_disk: bool,
) {
    assert!(here.compare(here, comparator).is_eq());
    let Some(last) = last else { return };
    assert_eq!(last.compare(here, comparator), here.compare(last, comparator).reverse());
    if on_disk {
        let _ = pass_rows_before(buffer, offset, header, comparator, last, u32::MAX);
        let mut starts = 0;
        let found = find_starts(buffer, offset, usize::MAX, header, |_| starts += 1);
        assert!(starts > 0 || found.is_err() || found.is_ok_and(|(found, _)| found.is_end));
    }
}
