//! The entries of an index that a write to the base table adds and removes.
//!
//! Pure: from the row that the memtable had, and the row that it has now, follow rows of the
//! hidden table. The entry of a replaced value is deleted at the value's own timestamp, so that
//! the same value written later has an entry all the same. In an attached index only the entries
//! of replaced vectors are removed, because cells of one row may share any other entry. Rows that
//! a range or partition deletion shadows are not looked for: their entries stay and are stale
//! ([`crate::index::search`] finds them). See docs/notes/0006-indexes.md. Agrees with
//! `org.apache.cassandra.index.internal.CassandraIndex.indexerFor` and
//! `index.SecondaryIndexManager.WriteTimeTransaction`.

use std::collections::BTreeMap;

use bytes::Bytes;
use rows::{Cell, ClusteringValues, ColumnData, DeletionTime, Liveness, Row};
use schema::index::definition::{IndexDefinition, IndexPart};
use types::DecoratedKey;

/// Bytes of the longest value that has an entry: a longer one could not be a partition key. Writes
/// of such values are refused before.
const VALUE_SIZE_MAX: usize = u16::MAX as usize - 1;

/// Number of cells of a collection up to which they are looked through for a path.
const FEW_CELLS: usize = 16;

/// A row of an index's hidden table: an entry or the deletion of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The indexed value, as the partition key of the hidden table.
    pub key: DecoratedKey,
    /// The place of the row in the base, as a row of the hidden table.
    pub row: Row,
}

/// A row of the base table before a write and after it.
pub struct Change<'a> {
    /// The partition's key.
    pub key: &'a Bytes,
    /// The row before the write; None: the memtable had no such row.
    pub before: Option<&'a Row>,
    /// The row after the write.
    pub after: &'a Row,
    /// True: the row is the static one.
    pub is_static: bool,
}

/// Appends the entries that a change adds, and the deletions of those that it removes, to `out`.
/// `now`: seconds since 1970.
pub fn of_change(definition: &IndexDefinition, change: &Change<'_>, now: u32, out: &mut Vec<Entry>) {
    let is_of_static = definition.column.is_static();
    if change.before.is_some() {
        // a static row that comes again makes a partition of it alone live again; a legacy index
        // does not find it in Cassandra either
        let is_of_key = change.is_static && matches!(definition.part, IndexPart::PartitionKey(_));
        if change.is_static != is_of_static && !(is_of_key && definition.is_attached()) {
            return;
        }
    } else if change.is_static && !is_of_static && !matches!(definition.part, IndexPart::PartitionKey(_)) {
        return;
    }
    if definition.is_of_key() {
        of_key(definition, change, now, out);
        return;
    }
    let clustering = &change.after.clustering;
    let before = change.before.map(|row| cells(definition, row)).unwrap_or_default();
    let (before, after) = differing(before, cells(definition, change.after));
    let by_path = CellsByPath::of(before);
    for cell in after {
        if cell.is_live(now) && by_path.like(cell) != Some(cell) {
            add(definition, change.key, clustering, cell, out);
        }
    }
    if definition.is_attached() && definition.vectors.is_none() {
        // another cell of the row may have the same entry; the row that is read tells
        return;
    }
    let by_path = CellsByPath::of(after);
    for cell in before {
        let now_there = by_path.like(cell);
        let is_replaced = now_there.is_none_or(|other| !have_one_entry(definition, other, cell));
        if cell.is_live(now) && is_replaced {
            take_away(definition, change.key, clustering, cell, now, out);
        }
    }
}

/// The cells of a column in two versions of a row, without those that both begin with and those
/// that both end with. A write to a few elements of a large collection changes no others, and looks
/// for none of these.
pub fn differing<'c>(a: &'c [Cell], b: &'c [Cell]) -> (&'c [Cell], &'c [Cell]) {
    let first = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(first..).unwrap_or_default(), b.get(first..).unwrap_or_default());
    let last = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    (a.get(..a.len() - last).unwrap_or_default(), b.get(..b.len() - last).unwrap_or_default())
}

/// The cells of a column in one row, to be found by their paths. A writer looks for each cell of a
/// collection inside the door of its shard: if it passed all cells for each of them, a write to a
/// collection of 60,000 elements would hold up the other writers of the shard for seconds. The map
/// is by the bytes of paths, so that it does not matter in which order the cells stand: those of a
/// damaged file may not ascend.
pub enum CellsByPath<'c> {
    /// At most [`FEW_CELLS`].
    Few(&'c [Cell]),
    /// More.
    Many(BTreeMap<Option<&'c [u8]>, &'c Cell>),
}

impl<'c> CellsByPath<'c> {
    /// The cells, of which no two have the same path.
    pub fn of(cells: &'c [Cell]) -> Self {
        match cells.len() <= FEW_CELLS {
            true => Self::Few(cells),
            false => Self::Many(cells.iter().map(|cell| (cell.path.as_deref(), cell)).collect()),
        }
    }

    /// The cell with the path of another one, which is of another version of the row.
    pub fn like(&self, other: &Cell) -> Option<&'c Cell> {
        match self {
            Self::Few(cells) => cells.iter().find(|cell| cell.path == other.path),
            Self::Many(cells) => cells.get(&other.path.as_deref()).copied(),
        }
    }
}

/// Whether two cells of a row with the same path, or without one, have the same entry, written at
/// the same time. An index on the keys of a map does not have their values: two values that were
/// written under a key at the same time have one entry, which is not to be deleted with the value
/// that lost.
pub fn have_one_entry(definition: &IndexDefinition, a: &Cell, b: &Cell) -> bool {
    let have_one_term = definition.part == IndexPart::Keys || a.value == b.value;
    have_one_term && a.timestamp == b.timestamp && a.is_tombstone() == b.is_tombstone()
}

/// The deletion of the entry of a cell, for a caller that finds the cell shadowed.
pub fn of_shadowed(definition: &IndexDefinition, key: &Bytes, row: &Row, cell: &Cell, now: u32, out: &mut Vec<Entry>) {
    if cell.column == definition.column.id && !definition.is_of_key() && cell.is_live(now) {
        take_away(definition, key, &row.clustering, cell, now, out);
    }
}

/// The deletion of the entry that a row has in an index of the key, also where the row has expired;
/// None: the row never had one. The deletion hides every entry of the row that is not newer, so it
/// is for a caller that finds that a deletion covers all of them.
pub fn of_shadowed_row(definition: &IndexDefinition, key: &Bytes, row: &Row, now: u32) -> Option<Entry> {
    let timestamp = last_write(row, |cell| !cell.is_tombstone());
    if timestamp == rows::NO_TIMESTAMP {
        return None;
    }
    let value = value(definition, key, &row.clustering, None)?;
    Some(deletion_of(value, place(definition, key, &row.clustering, None), timestamp, now))
}

/// The cells of the indexed column.
pub fn cells<'r>(definition: &IndexDefinition, row: &'r Row) -> &'r [Cell] {
    match row.column(definition.column.id) {
        None => &[],
        Some(ColumnData::Simple(cell)) => std::slice::from_ref(cell),
        Some(ColumnData::Complex(complex)) => &complex.cells,
    }
}

/// Adds the entry of a key component, which is there as long as anything in its row may be. The
/// entry never expires. Otherwise an expired entry would hide the row's entry in an SSTable,
/// although the row may have cells without a TTL there, and a search would miss the row.
/// (Cassandra ends the entry with the TTL of the row's liveness, and misses such rows.) An expired
/// row leaves a stale entry behind.
fn of_key(definition: &IndexDefinition, change: &Change<'_>, now: u32, out: &mut Vec<Entry>) {
    let row = change.after;
    let Some(key) = value(definition, change.key, &row.clustering, None) else { return };
    let place = place(definition, change.key, &row.clustering, None);
    let timestamp = last_write(row, |cell| cell.is_live(now));
    if row.is_live(now) && timestamp != rows::NO_TIMESTAMP {
        let liveness = Liveness::new(timestamp);
        out.push(Entry { key: key.clone(), row: Row { liveness, ..Row::new(place.clone()) } });
    }
    if !row.deletion.is_live() && !definition.is_attached() {
        out.push(Entry { key, row: Row { deletion: row.deletion, ..Row::new(place) } });
    }
}

/// The greatest timestamp of a row's liveness and of the cells that count; [`rows::NO_TIMESTAMP`]
/// if it has neither.
fn last_write(row: &Row, counts: impl Fn(&Cell) -> bool) -> i64 {
    let cells = row.columns.iter().flat_map(|data| match data {
        ColumnData::Simple(cell) => std::slice::from_ref(cell),
        ColumnData::Complex(complex) => complex.cells.as_slice(),
    });
    cells.filter(|cell| counts(cell)).map(|cell| cell.timestamp).fold(row.liveness.timestamp, i64::max)
}

/// Adds the entry of a live cell. In an attached index cells of one row may share an entry (texts
/// that differ in case alone), so there it stays when one of them expires.
fn add(definition: &IndexDefinition, key: &Bytes, clustering: &ClusteringValues, cell: &Cell, out: &mut Vec<Entry>) {
    let Some(value) = value(definition, key, clustering, Some(cell)) else { return };
    let liveness = match definition.is_attached() {
        true => Liveness::new(cell.timestamp),
        false => Liveness::expiring(cell.timestamp, cell.ttl, cell.local_deletion_time),
    };
    let place = place(definition, key, clustering, cell.path.as_ref());
    out.push(Entry { key: value, row: Row { liveness, ..Row::new(place) } });
}

fn take_away(
    definition: &IndexDefinition,
    key: &Bytes,
    clustering: &ClusteringValues,
    cell: &Cell,
    now: u32,
    out: &mut Vec<Entry>,
) {
    let Some(value) = value(definition, key, clustering, Some(cell)) else { return };
    let place = place(definition, key, clustering, cell.path.as_ref());
    out.push(deletion_of(value, place, cell.timestamp, now));
}

/// The deletion of an entry that was written at a timestamp.
pub fn deletion_of(key: DecoratedKey, place: ClusteringValues, timestamp: i64, now: u32) -> Entry {
    Entry { key, row: Row { deletion: DeletionTime::new(timestamp, now), ..Row::new(place) } }
}

/// The indexed value as the partition key of the hidden table; None: it has no entry.
fn value(
    definition: &IndexDefinition,
    key: &Bytes,
    clustering: &ClusteringValues,
    cell: Option<&Cell>,
) -> Option<DecoratedKey> {
    let value = match definition.part {
        IndexPart::Value | IndexPart::Values | IndexPart::StaticCompact => cell?.value.clone(),
        IndexPart::Keys => cell?.path.clone()?,
        IndexPart::Entries => composite(cell?.path.as_ref()?, &cell?.value)?,
        IndexPart::Clustering(position) => clustering.get(position)?.clone()?,
        IndexPart::PartitionKey(position) => component(key, position)?,
    };
    (value.len() <= VALUE_SIZE_MAX && definition.has_entry_for(&value)).then(|| definition.term(value))
}

/// The term that a row, or the cell of one, has in an attached index; None: it has none.
pub fn term(
    definition: &IndexDefinition,
    key: &Bytes,
    clustering: Option<&ClusteringValues>,
    cell: Option<&Cell>,
) -> Option<DecoratedKey> {
    value(definition, key, clustering.unwrap_or(&ClusteringValues::new()), cell)
}

/// Two values as one value of a `CompositeType`; None: one is too long for it.
pub fn composite(first: &[u8], second: &[u8]) -> Option<Bytes> {
    let mut out = Vec::with_capacity(first.len() + second.len() + 6);
    for part in [first, second] {
        out.extend_from_slice(&u16::try_from(part.len()).ok()?.to_be_bytes());
        out.extend_from_slice(part);
        out.push(0);
    }
    Some(out.into())
}

/// A component of a composite value.
pub fn component(composite: &Bytes, position: usize) -> Option<Bytes> {
    let mut rest = composite.clone();
    for at in 0.. {
        let length = usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?));
        let part = rest.get(2..2 + length)?;
        if at == position {
            return Some(rest.slice_ref(part));
        }
        rest = rest.slice_ref(rest.get(3 + length..)?);
    }
    None
}

/// The clustering of an entry: the base's key, its clustering without the indexed column (unless
/// the term is another form of its value), and for values of a collection the cell's path. Missing
/// parts are null, such as the clustering for static columns.
fn place(
    definition: &IndexDefinition,
    key: &Bytes,
    clustering: &ClusteringValues,
    path: Option<&Bytes>,
) -> ClusteringValues {
    let width = definition.table.clustering.len();
    let mut place = ClusteringValues::with_capacity(width);
    place.push(Some(key.clone()));
    if definition.part != IndexPart::StaticCompact {
        let omitted = definition.omitted_clustering();
        let rest = clustering.iter().enumerate().filter(|(position, _)| Some(*position) != omitted);
        place.extend(rest.map(|(_, value)| value.clone()));
    }
    if definition.part == IndexPart::Values && place.len() + 1 == width {
        place.push(path.cloned());
    }
    place.resize(width, None);
    place
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use schema::table::ColumnSpec;
    use schema::{ColumnKind, IndexKind, IndexMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams};
    use types::CqlType;

    use super::*;

    /// A write to a set of many elements gives entries for what it changes, in a time that grows
    /// with the number of elements and not with its square: else this test would not end soon.
    #[test]
    fn a_large_set_has_entries_for_its_changes_alone() {
        const ELEMENTS: i32 = 60_000;
        let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
        let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: false };
        let specs = vec![spec("k", ColumnKind::PartitionKey, CqlType::Int), spec("w", ColumnKind::Regular, set)];
        let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
        let table = TableMetadata::new(TableId([1; 16]), "ks", "t", kind, flags, params, specs, BTreeMap::new(), None);
        let options = BTreeMap::from([("target".to_owned(), "w".to_owned())]);
        let index = IndexMetadata { name: "by_w".to_owned(), kind: IndexKind::Composites, options };
        let definition = IndexDefinition::of(&table, &index, false).expect("an index that is kept up");
        let int = |value: i32| Bytes::copy_from_slice(&value.to_be_bytes());
        let row = |timestamp: i64| {
            let mut row = Row::new(ClusteringValues::new());
            for element in 0..ELEMENTS {
                let cell = Cell::live(definition.column.id, timestamp, Bytes::new()).at(int(element));
                row.add_complex_cell(&table, cell);
            }
            row
        };
        let key = int(1);
        let changed = |before: &Row, after: &Row| {
            let mut out = Vec::new();
            let change = Change { key: &key, before: Some(before), after, is_static: false };
            of_change(&definition, &change, 1, &mut out);
            out
        };
        let before = row(5);
        let with = |element: i32, timestamp: i64| {
            let mut after = before.clone();
            let cell = Cell::live(definition.column.id, timestamp, Bytes::new()).at(int(element));
            after.add_complex_cell(&table, cell);
            changed(&before, &after).into_iter().map(|entry| (entry.key.key, entry.row)).collect::<Vec<_>>()
        };
        let place: ClusteringValues = [Some(key.clone())].into_iter().collect();
        let added = |at: i64| Row { liveness: Liveness::new(at), ..Row::new(place.clone()) };
        let taken = |at: i64| Row { deletion: DeletionTime::new(at, 1), ..Row::new(place.clone()) };
        assert_eq!(with(ELEMENTS, 6), [(int(ELEMENTS), added(6))], "behind all others");
        for element in [0, ELEMENTS / 2, ELEMENTS - 1] {
            assert_eq!(with(element, 6), [(int(element), added(6)), (int(element), taken(5))]);
        }
        assert!(with(7, 4).is_empty(), "an older write changes nothing");
        assert_eq!(changed(&before, &row(7)).len(), 2 * ELEMENTS as usize, "each is added and taken away");
    }

    #[test]
    fn composites_and_their_components() {
        let both = composite(b"key", b"value").unwrap();
        assert_eq!(component(&both, 0).as_deref(), Some(&b"key"[..]));
        assert_eq!(component(&both, 1).as_deref(), Some(&b"value"[..]));
        assert_eq!(component(&both, 2), None);
        assert_eq!(component(&both.slice(..7), 1), None);
    }
}
