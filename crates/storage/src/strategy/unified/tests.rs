//! The choices against a naive twin that keeps every set of overlapping SSTables as a list.

use types::Token;

use super::*;

/// A small generator (xorshift): the SSTables are the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound).expect("small")
    }

    fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len() as u64)]
    }
}

fn candidate(index: usize, first: i64, last: i64, max_timestamp: i64) -> Candidate {
    Candidate {
        index,
        size: 1 << 20,
        level: 0,
        first: Token(first),
        last: Token(last),
        min_timestamp: 0,
        max_timestamp,
        max_local_deletion_time: u32::MAX,
        droppable: 0.0,
        created: 0,
        coverage: None,
        compacting: false,
    }
}

/// As [`Sections::of`].
fn sections(candidates: &[Candidate]) -> Vec<Vec<Candidate>> {
    let mut sorted = candidates.to_vec();
    sorted.sort_by_key(|candidate| (candidate.first, candidate.last, candidate.index));
    let mut sections = Vec::new();
    let mut active: Vec<Candidate> = Vec::new();
    for candidate in sorted {
        if active.iter().any(|other| other.last < candidate.first) {
            sections.push(active.clone());
            active.retain(|other| other.last >= candidate.first);
        }
        active.push(candidate);
    }
    if !active.is_empty() {
        sections.push(active);
    }
    sections
}

fn meets(section: &[Candidate], target: &[Candidate]) -> bool {
    section.iter().any(|one| target.iter().any(|other| other.index == one.index))
}

/// As [`Sections::buckets`].
fn buckets(sections: &[Vec<Candidate>], threshold: usize, inclusion: Inclusion) -> Vec<Range<usize>> {
    let mut buckets = Vec::new();
    let (mut free_from, mut index) = (0, 0);
    while index < sections.len() {
        if sections[index].len() < threshold {
            index += 1;
            continue;
        }
        let (mut start, mut end) = (index, index + 1);
        if inclusion != Inclusion::None {
            let mut target = sections[index].clone();
            let include = |section: &[Candidate], target: &mut Vec<Candidate>| {
                if inclusion == Inclusion::Transitive {
                    target.extend_from_slice(section);
                }
            };
            while start > free_from && meets(&sections[start - 1], &target) {
                start -= 1;
                include(&sections[start], &mut target);
            }
            while end < sections.len() && meets(&sections[end], &target) {
                include(&sections[end], &mut target);
                end += 1;
            }
        }
        buckets.push(start..end);
        (free_from, index) = (end, end);
    }
    buckets
}

/// As [`super::of_bucket`].
fn of_bucket(sections: &[Vec<Candidate>], level: usize, options: &UnifiedOptions) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = sections.iter().flatten().copied().collect();
    all.sort_by_key(|candidate| (candidate.max_timestamp, candidate.index));
    all.dedup_by_key(|candidate| candidate.index);
    let limit = limit(sections.iter().map(Vec::len).max().unwrap_or(0), level, options);
    let mut chosen: Vec<Candidate> = Vec::new();
    for candidate in all {
        chosen.push(candidate);
        let count = |section: &Vec<Candidate>| section.iter().filter(|one| meets(&chosen, &[**one])).count();
        if sections.iter().any(|section| count(section) > limit) {
            chosen.pop();
            break;
        }
    }
    chosen
}

#[test]
fn choices_are_those_of_the_naive_twin() {
    let mut draw = Draw(31);
    let (mut limited, mut several) = (0, 0);
    for round in 0..3_000 {
        let (count, length) = (draw.below(20), draw.one_of(&[4, 12, 30]));
        let sstables: Vec<Candidate> = (0..count)
            .map(|place| {
                let (first, length) = (draw.below(40) as i64, draw.below(length) as i64);
                // the others are those of other levels
                candidate(2 * place + 1, first, first + length, draw.below(8) as i64)
            })
            .collect();
        let options = UnifiedOptions {
            scaling: vec![draw.one_of(&[2, 0, 1, -1, -3]), draw.one_of(&[2, 0, -2])],
            sstables_max: draw.one_of(&[usize::MAX, 3, 6]),
            inclusion: draw.one_of(&[Inclusion::None, Inclusion::Single, Inclusion::Transitive]),
            ..UnifiedOptions::from_map(&BTreeMap::new())
        };
        let level = Level { index: draw.below(3), sections: Sections::of(&sstables), sstables };
        let expected = sections(&level.sstables);
        let members = |number: usize| {
            let runs = level.sstables.iter().zip(&level.sections.runs);
            let inside = runs.filter(|(_, run)| run.contains(&number)).map(|(candidate, _)| candidate.index);
            inside.collect::<Vec<_>>()
        };
        assert_eq!(level.sections.sizes.len(), expected.len(), "round {round}");
        for (number, section) in expected.iter().enumerate() {
            let mut indexes: Vec<usize> = section.iter().map(|candidate| candidate.index).collect();
            indexes.sort_unstable();
            assert_eq!(members(number), indexes, "round {round}: section {number}");
            assert_eq!(level.sections.sizes[number], section.len(), "round {round}: section {number}");
        }
        let threshold = options.threshold(level.index);
        let found = level.sections.buckets(threshold, options.inclusion);
        assert_eq!(found, buckets(&expected, threshold, options.inclusion), "round {round}: {options:?}");
        several += usize::from(found.len() > 1);
        for bucket in found {
            let chosen = super::of_bucket(&level, &bucket, &options);
            let all: Vec<Candidate> = of_bucket(&expected[bucket.clone()], level.index, &options);
            assert_eq!(chosen, all, "round {round}: bucket {bucket:?} of {level:?}, {options:?}");
            limited += usize::from(level.sections.overlap(bucket) > options.fanout(level.index));
        }
    }
    assert!(limited > 100 && several > 100, "{limited} and {several}: the cases that matter are drawn");
}

/// Thousands of small SSTables, each of which overlaps half of the others: a choice whose steps
/// grow with the cube of their number would take minutes, and gigabytes for the sets.
#[test]
fn a_choice_among_thousands() {
    let (count, reach, step) = (4_000, 2_000, 1 << 50);
    let sstable = |place: i64| {
        let index = usize::try_from(place).expect("small");
        candidate(index, place * step, (place + reach) * step - 1, place)
    };
    let sstables: Vec<Candidate> = (0..count).map(sstable).collect();
    let options = UnifiedOptions::from_map(&BTreeMap::new());
    let levels = levels(&sstables, &options, 1 << 20);
    let [level] = &levels[..] else { panic!("all are as dense: {}", levels.len()) };
    assert_eq!(level.overlap(), 2_000);
    let chosen: Vec<usize> = of_level(level, &options, 0).iter().map(|candidate| candidate.index).collect();
    // the oldest, as many as make one SSTable five levels above
    assert!(chosen.iter().copied().eq(0..1024), "{} are chosen", chosen.len());
}
