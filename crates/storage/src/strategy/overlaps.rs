//! Which SSTables overlap one another, and which of those belong together.
//!
//! [`sections`] are the sets of SSTables that have a token in common: no two that do not overlap
//! are in one, none is in two that are not neighbours, and every set of SSTables that overlap at
//! some token is in one of them. Agrees with `org.apache.cassandra.utils.Overlaps`.

use super::Candidate;

/// Which sections are compacted together with one that has enough SSTables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inclusion {
    /// None.
    None,
    /// The groups that share an SSTable with a group.
    Single,
    /// These groups, the groups that share one with them, and so on.
    Transitive,
}

/// Sets of overlapping SSTables, in the order of tokens.
pub fn sections(candidates: &[Candidate]) -> Vec<Vec<Candidate>> {
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
    groups
}

/// Runs of sections, each with one of at least `threshold` SSTables and those that are included
/// with it.
pub fn buckets(sections: &[Vec<Candidate>], threshold: usize, inclusion: Inclusion) -> Vec<&[Vec<Candidate>]> {
    let mut buckets = Vec::new();
    let mut free_from = 0;
    let mut index = 0;
    while index < sections.len() {
        if sections[index].len() < threshold {
            index += 1;
            continue;
        }
        let (mut start, mut end) = (index, index + 1);
        if inclusion != Inclusion::None {
            let mut target = sections[index].clone();
            while start > free_from && meets(&sections[start - 1], &target) {
                start -= 1;
                include(&mut target, &sections[start], inclusion);
            }
            while end < sections.len() && meets(&sections[end], &target) {
                include(&mut target, &sections[end], inclusion);
                end += 1;
            }
        }
        buckets.push(&sections[start..end]);
        (free_from, index) = (end, end);
    }
    buckets
}

fn include(target: &mut Vec<Candidate>, section: &[Candidate], inclusion: Inclusion) {
    if inclusion == Inclusion::Transitive {
        target.extend_from_slice(section);
    }
}

fn meets(section: &[Candidate], target: &[Candidate]) -> bool {
    section.iter().any(|one| target.iter().any(|other| other.index == one.index))
}
