//! One SSTable compacted alone, for the tombstones in it.
//!
//! Compacting one SSTable alone is worth it when more of its cells than `tombstone_threshold` are
//! droppable tombstones, it has been there for `tombstone_compaction_interval`, and they can be
//! expected to go: nothing overlaps it, or it has expired as a whole, or enough of its keys lie
//! where nothing overlaps it (else it would be chosen again and again).
//! `unchecked_tombstone_compaction` asks for none of that.
//!
//! How many keys lie in a range is taken from the tokens, which are evenly spread; Cassandra counts
//! samples of the index. Agrees with `AbstractCompactionStrategy.worthDroppingTombstones`.

use types::Token;

use super::expired::fully_expired;
use super::options::CommonOptions;
use super::{Candidate, State};

/// Whether compacting it alone is worth it.
pub fn worth_dropping(candidate: &Candidate, state: &State<'_>, options: &CommonOptions) -> bool {
    let old_enough = candidate.created.saturating_add(options.tombstone_interval.saturating_mul(1000));
    if !state.may_purge || state.now_millis < old_enough || candidate.droppable <= options.tombstone_threshold {
        return false;
    }
    if options.unchecked_tombstones {
        return true;
    }
    let overlapping = state.overlapping(&[*candidate]);
    if overlapping.is_empty() || !fully_expired(&[*candidate], &overlapping, state).is_empty() {
        return true;
    }
    share_alone(candidate, &overlapping) * candidate.droppable > options.tombstone_threshold
}

/// The share of an SSTable's tokens that are in no other.
fn share_alone(candidate: &Candidate, overlapping: &[Candidate]) -> f64 {
    let width = |first: Token, last: Token| (i128::from(last.0) - i128::from(first.0) + 1).max(0);
    let mut ranges: Vec<(Token, Token)> =
        overlapping.iter().map(|other| (other.first.max(candidate.first), other.last.min(candidate.last))).collect();
    ranges.sort();
    let (mut covered, mut upto) = (0, None);
    for (first, last) in ranges {
        let from = match upto {
            Some(upto) if upto >= last => continue,
            Some(Token(upto)) if upto >= first.0 => Token(upto.saturating_add(1)),
            _ => first,
        };
        covered += width(from, last);
        upto = Some(last);
    }
    1.0 - covered as f64 / width(candidate.first, candidate.last).max(1) as f64
}
