//! Tests: the merge of replicas equals that of a naive twin that knows all data of all replicas,
//! however small the portions are, and each replica that is given what it lacks equals the merge.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use schema::table::ColumnSpec;
use schema::{ColumnId, ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::*;
use crate::command::RingBound;
use crate::live::TombstoneLimits;
use crate::range_tombstones::markers;
use crate::{
    Bound, Cell, ClusteringPrefix, ColumnData, DataLimits, DeletionTime, LiveRows, Liveness, PartitionRange,
    RangeTombstoneList, Row, Slice,
};

const NOW: u32 = 1_000;
const ROWS: u32 = 12;
const KEYS: u32 = 4;

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let int = || Arc::new(CqlType::Int);
    let columns = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int),
        spec("c", ColumnKind::Clustering, CqlType::Int),
        spec("a", ColumnKind::Regular, CqlType::Int),
        spec("b", ColumnKind::Regular, CqlType::Int),
        spec("m", ColumnKind::Regular, CqlType::Map { key: int(), value: int(), frozen: false }),
        spec("s", ColumnKind::Static, CqlType::Int),
    ];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(TableId([1; 16]), "k", "t", kind, flags, params, columns, BTreeMap::new(), None))
}

fn id(table: &TableMetadata, name: &str) -> ColumnId {
    let all = table.statics.iter().chain(&table.regulars);
    all.into_iter().find(|column| column.name.as_str() == name).expect("a column of the table").id
}

fn int(value: u32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn clustering(value: u32) -> ClusteringValues {
    [Some(int(value))].into_iter().collect()
}

fn key(number: u32) -> DecoratedKey {
    DecoratedKey::new(int(number))
}

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(end)) as u32
    }
}

/// A change to one partition. Each timestamp stands for one value, as if one client had written it.
fn drawn(table: &Arc<TableMetadata>, dice: &mut Dice) -> PartitionUpdate {
    let mut update = PartitionUpdate::new(Arc::clone(table), key(dice.below(KEYS)));
    let timestamp = i64::from(dice.below(40)) + 1;
    let deletion = DeletionTime::new(timestamp, 900 + timestamp as u32);
    let cell = |name: &str| Cell::live(id(table, name), timestamp, int(timestamp as u32));
    let mut row = Row::new(clustering(dice.below(ROWS)));
    match dice.below(20) {
        0 => update.deletion = deletion,
        1 => {
            let columns = vec![ColumnData::Simple(cell("s"))];
            update.add_static(Row { columns, ..Row::new(ClusteringValues::new()) });
            return update;
        }
        2..5 => {
            let (a, b) = (dice.below(ROWS), dice.below(ROWS));
            let start = Bound::start(clustering(a.min(b)), dice.below(2) == 0);
            let end = Bound::end(clustering(a.max(b)), dice.below(2) == 0);
            let slice = Slice { start, end };
            if !slice.is_empty(&table.comparator) {
                update.range_deletions.push((slice, deletion));
            }
            return update;
        }
        5 => row.deletion = deletion,
        6 => row.add_cell(Cell::tombstone(id(table, "a"), timestamp, deletion.local_deletion_time)),
        7 => row.add_complex_deletion(id(table, "m"), deletion),
        8..10 => row.add_complex_cell(table, cell("m").at(int(dice.below(3)))),
        10 => row.add_cell(Cell { ttl: 5, local_deletion_time: NOW - 500 + timestamp as u32 * 20, ..cell("b") }),
        11..14 => row.add_cell(cell("b")),
        _ => {
            row.liveness = Liveness::new(timestamp);
            row.add_cell(cell("a"));
        }
    }
    if !row.is_empty() {
        update.add_row(row);
    }
    update
}

/// All data of a replica.
#[derive(Clone)]
struct Replica {
    table: Arc<TableMetadata>,
    partitions: BTreeMap<DecoratedKey, PartitionUpdate>,
}

type Partition = (PartitionHead, Vec<Unfiltered>);

impl Replica {
    fn apply(&mut self, update: PartitionUpdate) {
        match self.partitions.get_mut(&update.key) {
            Some(partition) => partition.merge([update]),
            None => drop(self.partitions.insert(update.key.clone(), update)),
        }
    }

    /// A partition as a read of these slices gives it.
    fn partition(&self, update: &PartitionUpdate, slice: &Slice, reversed: bool) -> Option<Partition> {
        let comparator = &self.table.comparator;
        let mut ranges = RangeTombstoneList::new();
        for (range, deletion) in &update.range_deletions {
            if deletion.supersedes(&update.deletion) {
                ranges.insert(comparator, range.clone(), *deletion);
            }
        }
        let of_row = |row: &Row| {
            let at = crate::range_tombstones::position_key(comparator, &ClusteringPrefix::row(row.clustering.clone()));
            let mut row = row.clone();
            let own = row.deletion;
            row.drop_shadowed(&own);
            row.apply_deletion(&update.deletion.merge(ranges.deletion_at(&at)));
            (!row.is_empty()).then_some(Unfiltered::Row(row))
        };
        let rows = update.rows.iter().filter(|row| slice.contains(&row.clustering, comparator));
        let mut items: Vec<Unfiltered> = rows.filter_map(of_row).collect();
        items.extend(markers(&ranges.within(comparator, slice)).into_iter().map(Unfiltered::Marker));
        items.sort_by(|a, b| a.compare(b, comparator));
        if reversed {
            items.reverse();
        }
        let mut static_row = update.static_row.clone();
        if let Some(row) = &mut static_row {
            row.apply_deletion(&update.deletion);
        }
        let static_row = static_row.filter(|row| !row.is_empty());
        let is_empty = items.is_empty() && static_row.is_none() && update.deletion.is_live();
        (!is_empty).then(|| (PartitionHead::new(update.key.clone(), update.deletion, static_row), items))
    }

    /// The answer to a read, cut at its limits.
    fn answer(&self, range: &PartitionRange, slice: &Slice, reversed: bool, limits: DataLimits) -> Vec<Partition> {
        let wanted = self.partitions.values().filter(|update| range.contains(&update.key));
        let (mut answer, mut left) = (Vec::new(), limits.rows);
        for (head, items) in wanted.filter_map(|update| self.partition(update, slice, reversed)) {
            if left == 0 {
                break;
            }
            let (mut kept, mut live, mut open) = (Vec::new(), 0, None);
            for item in items {
                if live >= left.min(limits.per_partition) {
                    break;
                }
                match &item {
                    Unfiltered::Row(row) => live += u32::from(row.is_live(NOW)),
                    Unfiltered::Marker(marker) => open = if reversed { marker.close } else { marker.open },
                }
                kept.push(item);
            }
            if let (Some(open), Some(Unfiltered::Row(row))) = (open, kept.last()) {
                let position = match reversed {
                    false => Bound::end(row.clustering.clone(), true),
                    true => Bound::start(row.clustering.clone(), true),
                };
                let (close, open) = if reversed { (None, Some(open)) } else { (Some(open), None) };
                kept.push(Unfiltered::Marker(crate::RangeTombstoneMarker { position, close, open }));
            }
            let of_static = head.static_row.as_ref().is_some_and(|row| row.is_live(NOW));
            left -= live.max(u32::from(of_static));
            answer.push((head, kept));
        }
        answer
    }
}

struct Given {
    partitions: std::vec::IntoIter<Partition>,
    current: std::vec::IntoIter<Unfiltered>,
}

impl PartitionStream for Given {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some((head, items)) = self.partitions.next() else { return Ok(None) };
        self.current = items.into_iter();
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.current.next())
    }
}

fn replay(partitions: Vec<Partition>) -> Replay {
    Arc::new(move || Box::new(Given { partitions: partitions.clone().into_iter(), current: Vec::new().into_iter() }))
}

/// A read: how many live rows are wanted, and how large portions are.
struct Reading {
    reversed: bool,
    wanted: usize,
    limits: DataLimits,
    table: Arc<TableMetadata>,
}

impl Reading {
    /// The rows that a client sees of a stream: keys with live rows, up to the number that is
    /// wanted.
    fn seen(&self, stream: &mut dyn PartitionStream) -> Result<Vec<(DecoratedKey, Row)>, ReadError> {
        let mut live = LiveRows::new(stream, Arc::clone(&self.table), NOW, TombstoneLimits::NONE);
        let mut seen = Vec::new();
        while let Some(partition) = live.next_partition()? {
            seen.extend(partition.static_row.map(|row| (partition.key.clone(), row)));
            for _ in 0..self.limits.per_partition {
                if seen.len() >= self.wanted {
                    return Ok(seen);
                }
                let Some(row) = live.next_row()? else { break };
                seen.push((partition.key.clone(), row));
            }
        }
        Ok(seen)
    }

    /// Reads the answers of all replicas and asks for more as long as something lacks. Gives what a
    /// client sees, what each replica lacks, and how often was asked.
    #[allow(clippy::type_complexity)]
    fn read(&self, replicas: &[Replica]) -> (Vec<(DecoratedKey, Row)>, Vec<Vec<PartitionUpdate>>, usize) {
        let all = PartitionRange::all();
        let first = |replica: &Replica| {
            let mut answers = Answers::new(&self.table, NOW);
            let portion = replica.answer(&all, &Slice::all(), self.reversed, self.limits);
            answers.add_partitions(replay(portion), &all, self.limits).expect("it is sound");
            answers
        };
        let mut answers: Vec<Answers> = replicas.iter().map(first).collect();
        for asked in 0.. {
            let mut merge = ReplicaMerge::new(&self.table, &answers, self.reversed, &ColumnFilter::All);
            match self.seen(&mut merge) {
                Ok(seen) => return (seen, merge.differences(), asked),
                Err(error) => assert_eq!(error, ReadError::WouldBlock),
            }
            assert!(!merge.further_reads().is_empty(), "a read that ends early says what it lacks");
            for lack in merge.further_reads() {
                self.ask(replicas, &mut answers, lack);
            }
        }
        unreachable!("a read ends");
    }

    fn ask(&self, replicas: &[Replica], answers: &mut [Answers], lack: &FurtherRead) {
        match lack {
            FurtherRead::Rows { replica, key, after } => {
                let slice = match self.reversed {
                    false => Slice { start: Bound::start(after.clone(), false), end: Bound::top() },
                    true => Slice { start: Bound::bottom(), end: Bound::end(after.clone(), false) },
                };
                let range = PartitionRange::Key(key.clone());
                let portion = replicas[*replica].answer(&range, &slice, self.reversed, self.limits);
                answers[*replica].add_rows(replay(portion), key, self.limits).expect("it is sound");
            }
            FurtherRead::Partitions { replica, after } => {
                let start = RingBound::Key { key: after.clone(), inclusive: false };
                let range = PartitionRange::Range { start, end: RingBound::Open };
                let portion = replicas[*replica].answer(&range, &Slice::all(), self.reversed, self.limits);
                answers[*replica].add_partitions(replay(portion), &range, self.limits).expect("it is sound");
            }
        }
    }
}

fn replicas(seed: u64) -> (Vec<Replica>, Replica) {
    let table = table();
    let empty = Replica { table: Arc::clone(&table), partitions: BTreeMap::new() };
    let mut dice = Dice(seed);
    let (mut replicas, mut all) = (vec![empty.clone(); 3], empty);
    for _ in 0..dice.below(60) {
        let update = drawn(&table, &mut dice);
        if update.is_empty() {
            continue;
        }
        all.apply(update.clone());
        let which = dice.below(7) + 1;
        (0..3).filter(|replica| which >> replica & 1 == 1).for_each(|replica| replicas[replica].apply(update.clone()));
    }
    (replicas, all)
}

#[test]
fn short_portions_read_as_much_as_a_twin_that_knows_everything() {
    let mut asked_in_all = 0;
    for seed in 0..250 {
        let (replicas, all) = replicas(seed);
        let mut dice = Dice(seed ^ 0x5eed);
        let limits = DataLimits {
            rows: 1 + dice.below(6),
            per_partition: [u32::MAX, 1 + dice.below(4)][dice.below(2) as usize],
        };
        let (reversed, wanted) = (dice.below(2) == 0, 1 + dice.below(30) as usize);
        let reading = Reading { reversed, wanted, limits, table: Arc::clone(&all.table) };
        let (seen, _, asked) = reading.read(&replicas);
        let everything = all.answer(&PartitionRange::all(), &Slice::all(), reversed, DataLimits::NONE);
        let mut twin = replay(everything)();
        assert_eq!(seen, reading.seen(&mut *twin).expect("it is in memory"), "seed {seed}");
        asked_in_all += asked;
    }
    assert!(asked_in_all > 50, "portions end before reads do");
}

#[test]
fn replicas_that_are_given_what_they_lack_are_equal() {
    for seed in 0..250 {
        let (mut replicas, all) = replicas(seed);
        let (reversed, limits) = (seed % 2 == 0, DataLimits { rows: 3, per_partition: u32::MAX });
        let reading = Reading { reversed, wanted: usize::MAX, limits, table: Arc::clone(&all.table) };
        let (_, differences, _) = reading.read(&replicas);
        for (replica, updates) in replicas.iter_mut().zip(differences) {
            updates.into_iter().for_each(|update| replica.apply(update));
        }
        let whole = |replica: &Replica| replica.answer(&PartitionRange::all(), &Slice::all(), false, DataLimits::NONE);
        for replica in &replicas {
            assert_eq!(whole(replica), whole(&all), "seed {seed}");
        }
        let (_, again, _) = reading.read(&replicas);
        assert!(again.iter().all(Vec::is_empty), "seed {seed}: equal replicas lack nothing: {again:?}");
    }
}

#[test]
fn a_read_that_stops_within_its_portions_asks_for_nothing() {
    let table = table();
    let mut replica = Replica { table: Arc::clone(&table), partitions: BTreeMap::new() };
    for number in 0..5 {
        let mut update = PartitionUpdate::new(Arc::clone(&table), key(1));
        update.add_row(Row { liveness: Liveness::new(1), ..Row::new(clustering(number)) });
        replica.apply(update);
    }
    let limits = DataLimits { rows: 3, per_partition: u32::MAX };
    let reading = Reading { reversed: false, wanted: 3, limits, table };
    let (seen, differences, asked) = reading.read(&[replica.clone(), replica]);
    assert_eq!((seen.len(), asked), (3, 0));
    assert!(differences.iter().all(Vec::is_empty));
}

/// The known case of a short read: the first replica's rows within the limit were deleted on the
/// second one.
#[test]
fn rows_that_another_replica_deleted_do_not_make_a_read_short() {
    let table = table();
    let empty = Replica { table: Arc::clone(&table), partitions: BTreeMap::new() };
    let (mut stale, mut fresh) = (empty.clone(), empty);
    for number in 0..4 {
        let mut update = PartitionUpdate::new(Arc::clone(&table), key(1));
        update.add_row(Row { liveness: Liveness::new(1), ..Row::new(clustering(number)) });
        stale.apply(update.clone());
        fresh.apply(update);
    }
    let mut deletion = PartitionUpdate::new(Arc::clone(&table), key(1));
    deletion.range_deletions.push((Slice::of_prefix(clustering(0)), DeletionTime::new(5, 5)));
    fresh.apply(deletion);
    let limits = DataLimits { rows: 1, per_partition: u32::MAX };
    let reading = Reading { reversed: false, wanted: 1, limits, table };
    let (seen, differences, asked) = reading.read(&[stale, fresh]);
    let clusterings: Vec<_> = seen.into_iter().map(|(_, row)| row.clustering).collect();
    assert_eq!((clusterings, asked), (vec![clustering(1)], 1));
    assert_eq!((differences[0].len(), differences[1].len()), (1, 0));
    assert_eq!(differences[0][0].range_deletions.len(), 1);
}

/// A replica sends a cell of a column that was not queried without its value. Such a cell must not
/// come back to anybody.
#[test]
fn columns_that_were_not_queried_are_not_repaired() {
    let table = table();
    let (a, b, m) = (id(&table, "a"), id(&table, "b"), id(&table, "m"));
    let mut update = PartitionUpdate::new(Arc::clone(&table), key(1));
    let mut row = Row { liveness: Liveness::new(7), ..Row::new(clustering(1)) };
    row.add_cell(Cell::live(a, 7, int(7)));
    row.add_cell(Cell::live(b, 8, Bytes::new()));
    row.add_complex_deletion(m, DeletionTime::new(6, 6));
    row.add_complex_cell(&table, Cell::live(m, 7, Bytes::new()).at(int(1)));
    update.add_row(row);
    let head = PartitionHead::new(key(1), DeletionTime::LIVE, None);
    let full = vec![(head, update.rows.iter().cloned().map(Unfiltered::Row).collect())];
    let answers: Vec<Answers> = [full, Vec::new()]
        .map(|portion| {
            let mut answers = Answers::new(&table, NOW);
            answers.add_partitions(replay(portion), &PartitionRange::all(), DataLimits::NONE).expect("it is sound");
            answers
        })
        .into();
    let mut merge = ReplicaMerge::new(&table, &answers, false, &ColumnFilter::Some(Arc::from([a])));
    while merge.next_partition().expect("it is in memory").is_some() {
        while merge.next_unfiltered().expect("it is in memory").is_some() {}
    }
    let differences = merge.differences();
    let lacking = &differences[1][0].rows[0];
    assert_eq!(lacking.liveness, Liveness::new(7));
    assert_eq!(lacking.column(a), Some(&ColumnData::Simple(Cell::live(a, 7, int(7)))));
    assert_eq!(lacking.column(b), None);
    let Some(ColumnData::Complex(complex)) = lacking.column(m) else { panic!("the deletion is repaired") };
    assert_eq!((complex.deletion, complex.cells.len()), (DeletionTime::new(6, 6), 0));
}

#[test]
fn whoever_reads_answers_copies_nothing_of_them() {
    let table = table();
    let portion = replay(vec![(PartitionHead::new(key(1), DeletionTime::LIVE, None), Vec::new())]);
    let mut answers = Answers::new(&table, NOW);
    answers.add_partitions(Arc::clone(&portion), &PartitionRange::all(), DataLimits::NONE).expect("it is sound");
    let mut answers = vec![answers; 2];
    let merge = ReplicaMerge::new(&table, &answers, false, &ColumnFilter::All);
    assert_eq!(Arc::strong_count(&portion), 2, "that of this test and that of all answers");
    drop(merge);
    // an answer that goes on has its own
    let further = replay(vec![(PartitionHead::new(key(1), DeletionTime::LIVE, None), Vec::new())]);
    answers[0].add_rows(further, &key(1), DataLimits::NONE).expect("it is sound");
    assert_eq!(Arc::strong_count(&portion), 3);
}

#[test]
fn an_answer_with_partitions_that_were_not_asked_for_is_refused() {
    let table = table();
    let head = |number| PartitionHead::new(key(number), DeletionTime::LIVE, None);
    let portion = || replay(vec![(head(1), Vec::new())]);
    let mut answers = Answers::new(&table, NOW);
    assert!(answers.add_partitions(portion(), &PartitionRange::Key(key(2)), DataLimits::NONE).is_err());
    assert!(answers.add_partitions(portion(), &PartitionRange::Key(key(1)), DataLimits::NONE).is_ok());
    let twice = replay(vec![(head(1), Vec::new()), (head(1), Vec::new())]);
    assert!(answers.add_partitions(twice, &PartitionRange::all(), DataLimits::NONE).is_err());
}
