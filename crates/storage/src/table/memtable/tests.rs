//! A memtable against a naive twin: the same updates in a plain list, read by looking at
//! everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rows::{
    Bound, Cell, ClusteringValues, ColumnFilter, DataLimits, DeletionTime, Liveness, MergeStream, PartitionRange,
    PartitionStream, PartitionUpdate, ReadCommand, Row, Slice, Slices, Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::Memtable;
use super::read::{BATCH_BYTES, BATCH_ROWS, MemtableStream};
use super::replaced::NOTES_MAX;

fn table(reversed: bool) -> Arc<TableMetadata> {
    table_of(CqlType::Int, reversed)
}

/// A table whose values are of this type.
fn table_of(ty: CqlType, reversed: bool) -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty, reversed| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int, false),
        spec("c", ColumnKind::Clustering, CqlType::Int, reversed),
        spec("v", ColumnKind::Regular, ty, false),
    ];
    let (flags, params) = (TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(
        TableId([1; 16]),
        "k",
        "t",
        TableKind::Regular,
        flags,
        params,
        specs,
        BTreeMap::new(),
        None,
    ))
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn clustering(value: i32) -> ClusteringValues {
    [Some(int(value))].into_iter().collect()
}

/// A small generator: tests need no good one, only the same one each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: i32) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % sides as u64) as i32
    }
}

/// Clusterings of the twin's table.
const SPAN: i32 = 700;

#[derive(Default)]
struct Twin {
    rows: Vec<(i32, i64, i32)>,
    ranges: Vec<(i32, i32, i64)>,
}

impl Twin {
    /// A random update, of some rows or of a deleted range. The twin has it too.
    fn draw(&mut self, table: &Arc<TableMetadata>, dice: &mut Dice) -> PartitionUpdate {
        let mut update = PartitionUpdate::new(Arc::clone(table), key());
        let timestamp = 1 + i64::from(dice.roll(400));
        if dice.roll(4) == 0 {
            let (a, b) = (dice.roll(SPAN), dice.roll(60));
            let (from, to) = (a, a + b);
            let is_reversed = table.comparator.columns.first().is_some_and(|(_, reversed)| *reversed);
            let (first, last) = if is_reversed { (to, from) } else { (from, to) };
            let slice = Slice { start: Bound::start(clustering(first), true), end: Bound::end(clustering(last), true) };
            update.range_deletions.push((slice, DeletionTime::new(timestamp, 5)));
            self.ranges.push((from, to, timestamp));
        } else {
            let v = table.column_by_name("v").expect("v").id;
            for _ in 0..=dice.roll(3) {
                let (c, value) = (dice.roll(SPAN), dice.roll(1000));
                let mut row = Row::new(clustering(c));
                row.liveness = Liveness::new(timestamp);
                row.add_cell(Cell::live(v, timestamp, int(value)));
                update.add_row(row);
                self.rows.push((c, timestamp, value));
            }
        }
        update
    }

    /// Clustering to (timestamp, value) of what is not deleted.
    fn alive(&self) -> BTreeMap<i32, (i64, i32)> {
        let mut alive: BTreeMap<i32, (i64, i32)> = BTreeMap::new();
        for (c, timestamp, value) in &self.rows {
            let deleted = self.ranges.iter().any(|(from, to, at)| from <= c && c <= to && timestamp <= at);
            let entry = alive.entry(*c).or_insert((i64::MIN, 0));
            if !deleted && (*timestamp, value.to_be_bytes()) > (entry.0, entry.1.to_be_bytes()) {
                *entry = (*timestamp, *value);
            }
        }
        alive.retain(|_, (timestamp, _)| *timestamp != i64::MIN);
        alive
    }
}

fn write(memtable: &Memtable, update: &PartitionUpdate) {
    memtable.enter_to_write().expect("not frozen").apply(update, None);
}

fn key() -> DecoratedKey {
    DecoratedKey::new(int(1))
}

fn command(table: &Arc<TableMetadata>, slices: Slices, reversed: bool) -> ReadCommand {
    ReadCommand {
        table: Arc::clone(table),
        range: PartitionRange::Key(key()),
        slices,
        reversed,
        columns: ColumnFilter::All,
        now: 1000,
        limits: DataLimits::NONE,
        indexes: Vec::new(),
    }
}

/// Rows of a read as (clustering, timestamp, value); checks that markers are well formed and rows
/// in order.
fn read(memtables: &[Arc<Memtable>], command: &ReadCommand) -> Vec<(i32, (i64, i32))> {
    read_with(memtables, command, || ())
}

/// Does the work of `read`, and calls `between` behind each step of it.
fn read_with(memtables: &[Arc<Memtable>], command: &ReadCommand, mut between: impl FnMut()) -> Vec<(i32, (i64, i32))> {
    let streams = memtables.iter().map(|memtable| -> Box<dyn PartitionStream> {
        Box::new(MemtableStream::new(vec![Arc::clone(memtable)], command))
    });
    let mut stream = MergeStream::boxed(&command.table, streams.collect(), command.reversed);
    let mut rows = Vec::new();
    if stream.next_partition().expect("memory").is_none() {
        return rows;
    }
    between();
    let mut open: Option<DeletionTime> = None;
    let mut last: Option<Unfiltered> = None;
    while let Some(unfiltered) = stream.next_unfiltered().expect("memory") {
        between();
        if let Some(last) = &last {
            let order = last.compare(&unfiltered, &command.table.comparator);
            assert_eq!(order, if command.reversed { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less });
        }
        match &unfiltered {
            Unfiltered::Marker(marker) => {
                let (left, entered) =
                    if command.reversed { (marker.open, marker.close) } else { (marker.close, marker.open) };
                assert_eq!(left, open);
                open = entered;
            }
            Unfiltered::Row(row) => {
                let Some(rows::ColumnData::Simple(cell)) = row.columns.first() else { panic!("v is simple and there") };
                assert!(open.is_none_or(|open| !open.deletes(cell.timestamp)), "a shadowed row was given");
                let number = |bytes: &Bytes| i32::from_be_bytes(bytes[..].try_into().expect("an int"));
                let clustering = row.clustering[0].as_ref().expect("a clustering");
                rows.push((number(clustering), (cell.timestamp, number(&cell.value))));
            }
        }
        last = Some(unfiltered);
    }
    assert_eq!(open, None, "an open range tombstone is closed");
    assert!(stream.next_partition().expect("memory").is_none());
    rows
}

#[test]
fn a_memtable_reads_as_its_naive_twin() {
    (0..20).for_each(|seed| check_against_twin(seed, 1));
}

#[test]
fn merged_memtables_read_as_their_naive_twin() {
    (100..130).for_each(|seed| check_against_twin(seed, 2 + seed as usize % 4));
}

/// Random writes spread over some memtables, then slices of all sizes in both directions.
fn check_against_twin(seed: u64, sources: usize) {
    let desc = seed % 2 == 1;
    let table = table(desc);
    let memtables: Vec<_> = (0..sources).map(|_| Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000))).collect();
    let mut twin = Twin::default();
    let mut dice = Dice(seed);
    for _ in 0..600 {
        let update = twin.draw(&table, &mut dice);
        write(&memtables[dice.roll(sources as i32) as usize], &update);
    }
    let alive = twin.alive();
    for _ in 0..30 {
        let (a, b) = (dice.roll(SPAN), dice.roll(SPAN));
        let (from, to) = (a.min(b), a.max(b));
        let (first, last) = if desc { (to, from) } else { (from, to) };
        let slice = Slice { start: Bound::start(clustering(first), true), end: Bound::end(clustering(last), false) };
        let inside = |c: &i32| if desc { *c > from && *c <= to } else { *c >= from && *c < to };
        let mut expected: Vec<_> = alive.iter().filter(|(c, _)| inside(c)).map(|(c, found)| (*c, *found)).collect();
        if desc {
            expected.reverse();
        }
        let slices = Slices::normalized(vec![slice], &table.comparator);
        assert_eq!(read(&memtables, &command(&table, slices.clone(), false)), expected, "seed {seed}");
        expected.reverse();
        assert_eq!(read(&memtables, &command(&table, slices, true)), expected, "seed {seed} reversed");
    }
    let everything = read(&memtables, &command(&table, Slices::all(), false));
    assert_eq!(everything.len(), alive.len());
}

/// The write comes between the head and the rows. What a batch changes in one partition is seen
/// whole or not at all, as in Cassandra.
#[test]
fn a_small_partition_is_read_as_it_was_at_one_moment() {
    let table = table(false);
    let replacement = |timestamp: i64| {
        let mut update = PartitionUpdate::new(Arc::clone(&table), key());
        update.deletion = DeletionTime::new(timestamp - 1, 5);
        for c in [1, 5] {
            let mut row = Row::new(clustering(c));
            row.liveness = Liveness::new(timestamp);
            update.add_row(row);
        }
        update
    };
    let two_rows = Slices::from(vec![Slice::of_prefix(clustering(1)), Slice::of_prefix(clustering(5))]);
    for (slices, reversed) in
        [(Slices::all(), false), (Slices::all(), true), (two_rows.clone(), false), (two_rows, true)]
    {
        let memtable = Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000));
        write(&memtable, &replacement(10));
        let mut stream = MemtableStream::new(vec![Arc::clone(&memtable)], &command(&table, slices, reversed));
        let head = stream.next_partition().expect("memory").expect("it was written");
        write(&memtable, &replacement(20));
        let mut seen = vec![head.deletion.marked_for_delete_at + 1];
        while let Some(Unfiltered::Row(row)) = stream.next_unfiltered().expect("memory") {
            seen.push(row.liveness.timestamp);
        }
        assert_eq!(seen, [10, 10, 10]);
    }
}

/// The first entry of a read with many slices takes no more bytes than any other.
#[test]
fn slices_of_large_rows_are_taken_one_after_the_other() {
    let table = table_of(CqlType::Blob, false);
    let column = table.column_by_name("v").expect("there").id;
    let rows = |timestamp: i64| {
        let mut update = PartitionUpdate::new(Arc::clone(&table), key());
        for c in 0..3 {
            let mut row = Row::new(clustering(c));
            row.add_cell(Cell::live(column, timestamp, vec![1_u8; BATCH_BYTES * 2 / 3].into()));
            row.liveness = Liveness::new(timestamp);
            update.add_row(row);
        }
        update
    };
    let memtable = Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000));
    write(&memtable, &rows(10));
    let slices = Slices::from((0..3).map(|c| Slice::of_prefix(clustering(c))).collect::<Vec<_>>());
    let mut stream = MemtableStream::new(vec![Arc::clone(&memtable)], &command(&table, slices, false));
    stream.next_partition().expect("memory").expect("it was written");
    write(&memtable, &rows(20));
    assert_eq!(memtable.enter().watched.notes(), 3, "not all rows were taken, so the read goes on");
    let mut seen = Vec::new();
    while let Some(Unfiltered::Row(row)) = stream.next_unfiltered().expect("memory") {
        seen.push(row.liveness.timestamp);
    }
    assert_eq!(seen, [10, 10, 10]);
}

/// A read of three entries and more, with random writes between any two of its steps, sees the
/// partition as it was at its first entry. The last of the slices is too large for one entry, and
/// stands at the begin of a read backwards.
#[test]
fn a_large_partition_is_read_as_it_was_at_one_moment() {
    const PARTS: [(i32, i32); 3] = [(0, 99), (101, 140), (300, 640)];
    for seed in 0..20 {
        let desc = seed % 2 == 1;
        let table = table(desc);
        let memtable = Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000));
        let (mut twin, mut dice) = (Twin::default(), Dice(seed));
        let mut write_some = |twin: &mut Twin, count: i32| {
            (0..count).for_each(|_| write(&memtable, &twin.draw(&table, &mut dice)));
        };
        let slice = |(from, to): (i32, i32)| {
            let (first, last) = if desc { (to, from) } else { (from, to) };
            Slice { start: Bound::start(clustering(first), true), end: Bound::end(clustering(last), true) }
        };
        let parts = Slices::normalized(PARTS.map(slice).to_vec(), &table.comparator);
        write_some(&mut twin, 1200);
        for (is_whole, reversed) in [(true, false), (true, true), (false, false), (false, true)] {
            let is_wanted = |c: i32| is_whole || PARTS.iter().any(|(from, to)| *from <= c && c <= *to);
            let mut expected: Vec<_> = twin.alive().into_iter().filter(|(c, _)| is_wanted(*c)).collect();
            if desc != reversed {
                expected.reverse();
            }
            let slices = if is_whole { Slices::all() } else { parts.clone() };
            let command = command(&table, slices, reversed);
            let seen = read_with(&[Arc::clone(&memtable)], &command, || write_some(&mut twin, 1));
            assert_eq!(seen, expected, "seed {seed}, whole {is_whole}, reversed {reversed}");
        }
    }
}

/// Tombstones that are passed where they stand are those of the first entry, too.
#[test]
fn tombstones_are_passed_as_they_were_at_one_moment() {
    for seed in 0..40 {
        let table = table(false);
        let memtable = Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000));
        let (mut dice, mut timestamp) = (Dice(seed), 0);
        // clustering to whether there is a row; otherwise there is a tombstone
        let mut twin: BTreeMap<i32, bool> = BTreeMap::new();
        let mut write_some = |twin: &mut BTreeMap<i32, bool>, count: i32| {
            for _ in 0..count {
                timestamp += 1;
                let (c, is_alive) = (dice.roll(2000), dice.roll(40) == 0);
                let mut row = Row::new(clustering(c));
                match is_alive {
                    true => row.liveness = Liveness::new(timestamp),
                    false => row.deletion = DeletionTime::new(timestamp, 5),
                }
                let mut update = PartitionUpdate::new(Arc::clone(&table), key());
                update.add_row(row);
                write(&memtable, &update);
                twin.insert(c, is_alive);
            }
        };
        write_some(&mut twin, 3000);
        for reversed in [false, true] {
            let tombstones = twin.values().filter(|is_alive| !**is_alive).count();
            let rows = twin.len() - tombstones;
            let command = command(&table, Slices::all(), reversed);
            let mut stream = MemtableStream::new(vec![Arc::clone(&memtable)], &command);
            stream.next_partition().expect("memory").expect("it was written");
            let mut seen = (0, 0);
            loop {
                write_some(&mut twin, 2);
                let passed = stream.pass_tombstones(300).expect("memory");
                seen.1 += passed as usize;
                if passed > 0 {
                    continue;
                }
                match stream.next_unfiltered().expect("memory") {
                    Some(Unfiltered::Row(row)) if row.liveness.is_empty() => seen.1 += 1,
                    Some(_) => seen.0 += 1,
                    None => break,
                }
            }
            assert_eq!(seen, (rows, tombstones), "seed {seed}, reversed {reversed}");
        }
    }
}

/// Notes for a read have a bound. The read goes on with what is there; once it has ended nothing is
/// noted any more.
#[test]
fn a_read_that_is_away_for_too_long_goes_on_with_what_is_there() {
    let table = table(false);
    let memtable = Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000));
    let rows = |timestamp: i64| {
        for c in 0..BATCH_ROWS as i32 * 2 {
            let mut update = PartitionUpdate::new(Arc::clone(&table), key());
            let mut row = Row::new(clustering(c));
            row.liveness = Liveness::new(timestamp);
            update.add_row(row);
            write(&memtable, &update);
        }
    };
    rows(1);
    let mut stream = MemtableStream::new(vec![Arc::clone(&memtable)], &command(&table, Slices::all(), false));
    stream.next_partition().expect("memory").expect("it was written");
    (2..20).for_each(rows);
    assert_eq!(memtable.enter().watched.notes(), NOTES_MAX);
    let mut seen = Vec::new();
    while let Some(Unfiltered::Row(row)) = stream.next_unfiltered().expect("memory") {
        seen.push(row.liveness.timestamp);
    }
    let expected: Vec<i64> = [1, 19].into_iter().flat_map(|timestamp| [timestamp; BATCH_ROWS]).collect();
    assert_eq!(seen, expected);
    drop(stream);
    rows(20);
    assert!(memtable.enter().watched.is_empty());
}

/// A merge may go on for long with its other sources, or with partitions of theirs, once a memtable
/// has given its part.
#[test]
fn a_partition_that_was_read_is_not_watched_any_more() {
    let table = table(false);
    let memtable = Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000));
    let (mut twin, mut dice) = (Twin::default(), Dice(7));
    let mut write_some = |count: i32| (0..count).for_each(|_| write(&memtable, &twin.draw(&table, &mut dice)));
    write_some(2000);
    for is_read_to_its_end in [true, false] {
        let mut stream = MemtableStream::new(vec![Arc::clone(&memtable)], &command(&table, Slices::all(), false));
        stream.next_partition().expect("memory").expect("it was written");
        write_some(1);
        assert!(!memtable.enter().watched.is_empty());
        if is_read_to_its_end {
            while stream.next_unfiltered().expect("memory").is_some() {}
        } else {
            assert!(stream.next_partition().expect("memory").is_none());
        }
        write_some(1);
        assert!(memtable.enter().watched.is_empty(), "read to its end: {is_read_to_its_end}");
    }
}

/// A copy of the deleted ranges is large, and is made anew for the reads that have begun since the
/// last one.
#[test]
fn notes_of_deleted_ranges_have_a_bound() {
    let table = table(false);
    let memtable = Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000));
    let delete = |c: i32, timestamp: i64| {
        let mut update = PartitionUpdate::new(Arc::clone(&table), key());
        let slice = Slice { start: Bound::start(clustering(c), true), end: Bound::end(clustering(c), true) };
        update.range_deletions.push((slice, DeletionTime::new(timestamp, 5)));
        write(&memtable, &update);
    };
    (0..500).for_each(|c| delete(2 * c, 1));
    let begin = |timestamp: i64| {
        let mut stream = MemtableStream::new(vec![Arc::clone(&memtable)], &command(&table, Slices::all(), false));
        stream.next_partition().expect("memory").expect("it was written");
        delete(998, timestamp);
        stream
    };
    let mut reads: Vec<MemtableStream> = (2..102).map(begin).collect();
    assert!(memtable.enter().watched.notes() < reads.len() / 2);
    let mut last = reads.pop().expect("a hundred reads");
    let mut newest = 0_i64;
    while let Some(unfiltered) = last.next_unfiltered().expect("memory") {
        if let Unfiltered::Marker(marker) = unfiltered {
            newest = newest.max(marker.open.map_or(0, |open| open.marked_for_delete_at));
        }
    }
    assert_eq!(newest, 100, "the last copy is kept");
}

/// A read whose first entry has what it wants makes no write dearer.
#[test]
fn a_read_that_has_what_it_wants_is_not_watched_for() {
    let table = table(false);
    let memtable = Arc::new(Memtable::new(Arc::clone(&table), 1_000_000_000));
    let (mut twin, mut dice) = (Twin::default(), Dice(7));
    (0..2000).for_each(|_| write(&memtable, &twin.draw(&table, &mut dice)));
    let watches = |limit: u32| {
        let limits = DataLimits { rows: limit, ..DataLimits::NONE };
        let command = ReadCommand { limits, ..command(&table, Slices::all(), false) };
        let mut stream = MemtableStream::new(vec![Arc::clone(&memtable)], &command);
        stream.next_partition().expect("memory").expect("it was written");
        !memtable.enter().watched.is_empty()
    };
    assert_eq!((watches(10), watches(BATCH_ROWS as u32), watches(BATCH_ROWS as u32 + 1)), (false, false, true));
}
