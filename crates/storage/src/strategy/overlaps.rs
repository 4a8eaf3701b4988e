//! Which SSTables overlap one another, and which of those belong together.
//!
//! [`Sections`] are the sets of SSTables that have a token in common: no two that do not overlap
//! are in one, none is in two without being in all between them, and every set of SSTables that
//! overlap at some token is in one of them. Agrees with `org.apache.cassandra.utils.Overlaps`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use types::Token;

use super::Candidate;

/// Which sections are compacted together with one that has enough SSTables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inclusion {
    /// No other section.
    None,
    /// The groups that share an SSTable with a group.
    Single,
    /// These groups, the groups that share one with them, and so on.
    Transitive,
}

/// The sets of overlapping SSTables of a list, numbered in the order of tokens.
///
/// Each SSTable is in a run of sets without gaps, and the runs are all that is kept: the sets may
/// have as many members together as the square of the number of SSTables, which can be thousands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sections {
    /// The run of sections that each SSTable is in, in the order of the list. A run has one
    /// section at least.
    pub runs: Vec<Range<usize>>,
    /// Number of SSTables in each section.
    pub sizes: Vec<usize>,
}

impl Sections {
    /// The sections of a list.
    pub fn of(candidates: &[Candidate]) -> Self {
        let mut sorted: Vec<usize> = (0..candidates.len()).collect();
        sorted.sort_by_key(|place| (candidates[*place].first, candidates[*place].last, candidates[*place].index));
        let (mut runs, mut sizes) = (vec![Range::default(); candidates.len()], Vec::new());
        // the SSTables of the present section by their last tokens, the first one on top
        let mut active: BinaryHeap<Reverse<(Token, usize)>> = BinaryHeap::new();
        for place in sorted {
            let Candidate { first, last, .. } = candidates[place];
            if active.peek().is_some_and(|Reverse((end, _))| *end < first) {
                sizes.push(active.len());
            }
            while let Some(Reverse((end, gone))) = active.peek().copied()
                && end < first
            {
                runs[gone].end = sizes.len();
                active.pop();
            }
            runs[place].start = sizes.len();
            active.push(Reverse((last, place)));
        }
        if !active.is_empty() {
            sizes.push(active.len());
        }
        for Reverse((_, place)) in active {
            runs[place].end = sizes.len();
        }
        debug_assert!(runs.iter().all(|run| !run.is_empty()), "every SSTable is in a section");
        Self { runs, sizes }
    }

    /// The number of SSTables in the largest of some sections.
    pub fn overlap(&self, numbers: Range<usize>) -> usize {
        self.sizes[numbers].iter().copied().max().unwrap_or(0)
    }

    /// Runs of sections, each with one of at least `threshold` SSTables and those that are included
    /// with it.
    pub fn buckets(&self, threshold: usize, inclusion: Inclusion) -> Vec<Range<usize>> {
        let included = self.included(inclusion);
        let (mut buckets, mut free_from) = (Vec::new(), 0);
        for (number, size) in self.sizes.iter().enumerate() {
            if *size >= threshold && number >= free_from {
                let Range { start, end } = included[number];
                buckets.push(start.max(free_from)..end);
                free_from = end;
            }
        }
        buckets
    }

    /// The run of sections that are included with each one.
    fn included(&self, inclusion: Inclusion) -> Vec<Range<usize>> {
        let count = self.sizes.len();
        let mut included: Vec<Range<usize>> = (0..count).map(|number| number..number + 1).collect();
        if inclusion == Inclusion::None {
            return included;
        }
        // the groups that share an SSTable with a group are those that its SSTables reach
        for run in &self.runs {
            let (first, last) = (run.start, run.end - 1);
            included[first].end = included[first].end.max(run.end);
            included[last].start = included[last].start.min(run.start);
        }
        for number in 1..count {
            included[number].end = included[number].end.max(included[number - 1].end);
        }
        for number in (1..count).rev() {
            included[number - 1].start = included[number - 1].start.min(included[number].start);
        }
        if inclusion == Inclusion::Transitive {
            // on to where no SSTable is in both of two neighbours
            for number in (1..count).rev() {
                if included[number - 1].end > number {
                    included[number - 1].end = included[number].end;
                }
            }
            for number in 1..count {
                if included[number].start < number {
                    included[number].start = included[number - 1].start;
                }
            }
        }
        included
    }
}

/// SSTables that are connected by overlaps, however far: two of different groups never overlap.
pub fn connected(candidates: &[Candidate]) -> Vec<Vec<Candidate>> {
    let mut sorted = candidates.to_vec();
    sorted.sort_by_key(|candidate| (candidate.first, candidate.last, candidate.index));
    let mut groups: Vec<Vec<Candidate>> = Vec::new();
    let mut end = None;
    for candidate in sorted {
        match groups.last_mut() {
            Some(group) if end.is_some_and(|end| candidate.first <= end) => group.push(candidate),
            _ => groups.push(vec![candidate]),
        }
        end = end.max(Some(candidate.last));
    }
    let count: usize = groups.iter().map(Vec::len).sum();
    assert_eq!(count, candidates.len(), "each SSTable is in one group");
    groups
}
