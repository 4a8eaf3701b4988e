//! The choice of an SSTable that is compacted alone, for its tombstones.
//!
//! Compacting one SSTable alone is worth it when more of its cells than `tombstone_threshold` are
//! droppable tombstones, it has been there for `tombstone_compaction_interval`, and they can be
//! expected to be purged: nothing overlaps it, or it has expired as a whole, or enough of its keys
//! lie where nothing overlaps it. Otherwise it would be chosen again and again.
//! `unchecked_tombstone_compaction` leaves this last condition out.
//!
//! The number of keys in a range is estimated from the tokens, which are evenly spread; Cassandra
//! counts samples of the index. Agrees with `AbstractCompactionStrategy.worthDroppingTombstones`.

use types::Token;

use super::expired::fully_expired;
use super::options::CommonOptions;
use super::{Candidate, State};

/// Whether it is worth it to compact an SSTable alone.
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

/// The share of an SSTable's tokens, 0 to 1, that no other SSTable has.
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
