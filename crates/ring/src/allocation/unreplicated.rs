//! Tokens of a node in a ring of allocation in which each node holds only its own ranges: the
//! largest nodes give up parts of their largest ranges, so that all of them come near the mean.
//!
//! Agrees with `org.apache.cassandra.dht.tokenallocator.NoReplicationTokenAllocator`.

use types::Token;

use super::{Owned, Unit, at};
use crate::ownership::part;

/// Largest share of a range that is taken. The rest of it is the smallest share ([`TAKEN_MIN`]).
const TAKEN_MAX: f64 = 0.90;
const TAKEN_MIN: f64 = 1.0 - TAKEN_MAX;

/// A range of a node: start, end, size.
type Range = (Token, Token, f64);

/// A node that gives up parts of its ranges.
struct Donor {
    /// The part of the ring that the node owns.
    owned: f64,
    /// The node's ranges, the largest last.
    ranges: Vec<Range>,
}

/// Chooses tokens for `new`. The ring has at least as many tokens as are wanted.
pub(super) fn allocate(owned: Owned, new: Unit, count: usize, random: &mut dyn FnMut() -> u64) -> Vec<Token> {
    let mut donors = donors(&owned, new);
    let units = donors.len();
    let (chosen, average) = choose_donors(&donors, count);
    donors.truncate(chosen);
    // nodes are to differ a little, the less the more there are: a node that was just cut should
    // not be the largest again
    let correction = ((count as f64 + 1.0) / (units as f64 + 1.0)).min(1.0);
    let spread = average * correction * 2.0 / (2 * count + 1) as f64;
    let (mut target, step) = (average + spread / 2.0, spread / chosen as f64);
    let mut tokens = Vec::with_capacity(count);
    for (position, donor) in donors.iter_mut().enumerate() {
        let share = count / chosen + usize::from(position < count % chosen);
        take(donor, share, target, &mut tokens);
        target -= step;
    }
    // a donor with fewer ranges than are wanted leaves the rest to splits of what is largest
    assert!(tokens.len() <= count, "nodes give no more ranges than are wanted of them");
    let missing = count - tokens.len();
    if missing > 0 {
        let mut all: Owned = owned.into_iter().chain(tokens.iter().map(|token| (*token, new))).collect();
        all.sort_unstable();
        tokens.extend(super::splits::split(&mut all, new, missing, random));
    }
    tokens
}

/// All nodes with their ranges, those that own most first.
fn donors(owned: &Owned, units: usize) -> Vec<Donor> {
    let mut donors: Vec<Donor> = (0..units).map(|_| Donor { owned: 0.0, ranges: Vec::new() }).collect();
    let starts = owned.last().into_iter().chain(owned.iter()).map(|(token, _)| *token);
    for (start, (end, unit)) in starts.zip(owned) {
        let size = part(start, *end);
        donors[*unit].owned += size;
        donors[*unit].ranges.push((start, *end, size));
    }
    donors.retain(|donor| !donor.ranges.is_empty());
    for donor in &mut donors {
        donor.ranges.sort_by(|one, other| one.2.total_cmp(&other.2));
    }
    donors.sort_by(|one, other| other.owned.total_cmp(&one.owned));
    donors
}

/// Number of the largest nodes that give up parts, and the mean share that they and the new node
/// own afterwards.
fn choose_donors(donors: &[Donor], count: usize) -> (usize, f64) {
    let (mut sum, mut average, mut chosen) = (0.0, 0.0, 0);
    for donor in donors.iter().take(count) {
        sum += donor.owned;
        let with = sum / (chosen + 2) as f64;
        if donor.owned <= with {
            break;
        }
        (chosen, average) = (chosen + 1, with);
    }
    assert!(chosen > 0, "the largest node owns more than half of itself");
    (chosen, average)
}

/// Takes parts of the largest ranges of a node until it owns `target`.
fn take(donor: &mut Donor, share: usize, target: f64, tokens: &mut Vec<Token>) {
    let from = donor.ranges.len().saturating_sub(share);
    let cut = donor.ranges.split_off(from);
    let work: f64 = cut.iter().map(|(.., size)| size).sum();
    let excess = donor.owned - target;
    let slice = if excess < work { (excess / work).clamp(TAKEN_MIN, TAKEN_MAX) } else { TAKEN_MAX };
    tokens.extend(cut.into_iter().rev().map(|(start, end, _)| at(start, end, slice)));
}
