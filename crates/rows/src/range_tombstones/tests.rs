//! Tests: range tombstones equal those that Cassandra keeps of the same deletions, and those of a
//! naive twin that looks at all of them.

use bytes::Bytes;
use schema::ClusteringComparator;
use types::CqlType;

use super::*;
use crate::Bound;

fn comparator() -> ClusteringComparator {
    ClusteringComparator { columns: vec![(CqlType::Int, false), (CqlType::Int, true)].into() }
}

fn plain() -> ClusteringComparator {
    ClusteringComparator { columns: vec![(CqlType::Int, false), (CqlType::Int, false)].into() }
}

fn values(values: &[i32]) -> ClusteringValues {
    values.iter().map(|value| Some(Bytes::copy_from_slice(&value.to_be_bytes()))).collect()
}

/// Reads `1:2`.
fn parsed(text: &str) -> ClusteringValues {
    let numbers: Vec<i32> =
        text.split(':').filter(|part| !part.is_empty()).map(|part| part.parse().expect("a number")).collect();
    values(&numbers)
}

/// Reads `[1,5)@3`.
fn interval(text: &str) -> (Slice, DeletionTime) {
    let (range, timestamp) = text.split_once('@').expect("a timestamp");
    let (low, high) = range[1..range.len() - 1].split_once(',').expect("two bounds");
    // an open end includes everything
    let included = |bracket: char, bound: &str| bound.is_empty() || range.contains(bracket);
    let start = Bound::start(parsed(low), included('[', low));
    let end = Bound::end(parsed(high), included(']', high));
    (Slice { start, end }, DeletionTime::new(timestamp.parse().expect("a number"), 7))
}

fn shown(tombstone: &RangeTombstone) -> String {
    let text = |bound: &Bound| {
        let number = |value: &Option<Bytes>| {
            let bytes = value.as_ref().expect("a value");
            i32::from_be_bytes(bytes[..].try_into().expect("four bytes")).to_string()
        };
        bound.values.iter().map(number).collect::<Vec<_>>().join(":")
    };
    let Slice { start, end } = &tombstone.slice;
    let open = if start.kind == PrefixKind::InclStartBound && !start.values.is_empty() { '[' } else { '(' };
    let close = if end.kind == PrefixKind::InclEndBound && !end.values.is_empty() { ']' } else { ')' };
    format!("{open}{},{}{close}@{}", text(start), text(end), tombstone.deletion.marked_for_delete_at)
}

fn listed(comparator: &ClusteringComparator, ranges: &[(Slice, DeletionTime)]) -> RangeTombstoneList {
    let mut list = RangeTombstoneList::new();
    ranges.iter().for_each(|(slice, deletion)| list.insert(comparator, slice.clone(), *deletion));
    list
}

/// The result that Cassandra keeps, with touching ranges of one timestamp joined. Cassandra keeps
/// them apart by the second of the deletion.
fn joined(expected: &str) -> String {
    let mut joined: Vec<RangeTombstone> = Vec::new();
    for (slice, deletion) in expected.split(' ').map(interval) {
        let start_key = position_key(&plain(), &slice.start);
        let meets = |last: &&mut RangeTombstone| {
            last.deletion == deletion && position_key(&plain(), &last.slice.end) == start_key
        };
        match joined.last_mut().filter(meets) {
            Some(last) => last.slice.end = slice.end,
            None => joined.push(RangeTombstone { slice, deletion }),
        }
    }
    joined.iter().map(shown).collect::<Vec<_>>().join(" ")
}

#[test]
fn overlaps_are_cut_as_cassandra_cuts_them() {
    let text = include_str!("../../testdata/range_tombstones.txt");
    let cases = text.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for case in cases {
        let (given, expected) = case.split_once(" = ").expect("a case");
        let ranges: Vec<_> = given.split(' ').map(interval).collect();
        let list = listed(&plain(), &ranges);
        let found: Vec<String> = list.intervals().map(|tombstone| shown(&tombstone)).collect();
        assert_eq!(found.join(" "), joined(expected), "{given}");
        // the order of arrival makes no difference
        let turned: Vec<_> = ranges.into_iter().rev().collect();
        assert_eq!(listed(&plain(), &turned), list, "{given}, from behind");
        count += 1;
    }
    assert!(count >= 200, "only {count} cases");
}

/// A small random generator. A good one is not needed, only the same numbers in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: i32) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % sides as u64) as i32
    }

    fn bound(&mut self) -> (ClusteringValues, bool) {
        let numbers = [self.roll(5), self.roll(5)];
        (values(&numbers[..self.roll(3) as usize]), self.roll(2) == 0)
    }

    fn slice(&mut self) -> Slice {
        let (start, end) = (self.bound(), self.bound());
        Slice { start: Bound::start(start.0, start.1), end: Bound::end(end.0, end.1) }
    }
}

fn every_row() -> impl Iterator<Item = ClusteringValues> {
    (0..5).flat_map(|a| (0..5).map(move |b| values(&[a, b])))
}

/// The strongest deletion of all ranges that contain a row.
fn naive(ranges: &[(Slice, DeletionTime)], row: &ClusteringValues, comparator: &ClusteringComparator) -> DeletionTime {
    let holding = ranges.iter().filter(|(slice, _)| slice.contains(row, comparator));
    holding.fold(DeletionTime::LIVE, |strongest, (_, deletion)| strongest.merge(*deletion))
}

/// The deletion of each row, as the changes of a walk through a slice tell it.
fn walked(
    list: &RangeTombstoneList,
    slice: &Slice,
    comparator: &ClusteringComparator,
    reversed: bool,
) -> Vec<DeletionTime> {
    let (start, end) = (position_key(comparator, &slice.start), position_key(comparator, &slice.end));
    let mut rows: Vec<_> = every_row().filter(|row| slice.contains(row, comparator)).collect();
    rows.sort_by(|a, b| comparator.compare_values(a, b));
    if reversed {
        rows.reverse();
    }
    let mut changes = list.changes(&start, &end, reversed, usize::MAX).peekable();
    let mut open = list.deletion_on_entry(&start, &end, reversed);
    let key = |row: &ClusteringValues| prefix_key(comparator, row, PrefixKind::Clustering);
    let deletions = rows.iter().map(|row| {
        while let Some(change) = changes.next_if(|change| (change.key < key(row)) != reversed) {
            assert_ne!(change.next, open, "a cut where nothing changes");
            open = change.next;
        }
        open
    });
    let mut deletions: Vec<_> = deletions.collect();
    if reversed {
        deletions.reverse();
    }
    deletions
}

#[test]
fn any_deletions_hold_where_a_naive_twin_says() {
    let comparator = comparator();
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut ranges = Vec::new();
        let mut list = RangeTombstoneList::new();
        for _ in 0..dice.roll(12) + 1 {
            let deletion = DeletionTime::new(i64::from(dice.roll(6)), dice.roll(3) as u32);
            ranges.push((dice.slice(), deletion));
            let (slice, deletion) = ranges.last().expect("it was just put there").clone();
            list.insert(&comparator, slice, deletion);
        }
        for row in every_row() {
            let key = prefix_key(&comparator, &row, PrefixKind::Clustering);
            assert_eq!(list.deletion_at(&key), naive(&ranges, &row, &comparator), "seed {seed}");
        }
        let deletions: Vec<_> = list.cuts.iter().map(|(_, cut)| cut.deletion).collect();
        assert!(deletions.windows(2).all(|pair| pair[0] != pair[1]), "seed {seed}: {deletions:?}");
        assert!(deletions.last().is_none_or(DeletionTime::is_live), "seed {seed}: {deletions:?}");
        for _ in 0..10 {
            let slice = dice.slice();
            let mut inside: Vec<_> = every_row().filter(|row| slice.contains(row, &comparator)).collect();
            inside.sort_by(|a, b| comparator.compare_values(a, b));
            let expected: Vec<_> = inside.iter().map(|row| naive(&ranges, row, &comparator)).collect();
            assert_eq!(walked(&list, &slice, &comparator, false), expected, "seed {seed}");
            assert_eq!(walked(&list, &slice, &comparator, true), expected, "seed {seed} reversed");
            let within: Vec<_> = list.within(&comparator, &slice).into_iter().map(|t| (t.slice, t.deletion)).collect();
            let clipped: Vec<_> = inside.iter().map(|row| naive(&within, row, &comparator)).collect();
            assert_eq!(clipped, expected, "seed {seed} clipped");
        }
    }
}

#[test]
fn cuts_that_are_passed_are_those_that_a_walk_meets() {
    let comparator = plain();
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let mut list = RangeTombstoneList::new();
        let count = [3, 60, 400][seed as usize % 3];
        let bound = |dice: &mut Dice| values(&[dice.roll(count), dice.roll(4)][..dice.roll(3) as usize]);
        for _ in 0..count {
            let (low, width) = (dice.roll(count), dice.roll(3));
            let slice =
                Slice { start: Bound::start(values(&[low]), true), end: Bound::end(values(&[low + width]), false) };
            list.insert(&comparator, slice, DeletionTime::new(i64::from(dice.roll(9)), 7));
        }
        for _ in 0..100 {
            let start = position_key(&comparator, &Bound::start(bound(&mut dice), true));
            let end = position_key(&comparator, &Bound::end(bound(&mut dice), true));
            let (limit, reversed) = (dice.roll(3 * count) as usize, dice.roll(2) == 0);
            let met: Vec<_> = list.changes(&start, &end, reversed, limit).collect();
            let last = met.last().map(|change| (&change.key, change.next));
            assert_eq!(list.pass(&start, &end, reversed, limit), (met.len(), last), "seed {seed}");
        }
    }
}
