//! The endpoints that are about to hold a range.
//!
//! If the outcome of a change is open, too many endpoints are pending rather than too few: a write
//! to an endpoint too many is removed by `nodetool cleanup`, but a write that misses an endpoint
//! is lost.
//! 1. All endpoints that leave are taken out. An endpoint that holds a range then and does not now
//!    is pending.
//! 2. Each endpoint that joins or replaces another is added to the ring of step 1, alone: the
//!    ranges that it holds there are pending for it.
//! 3. Each endpoint that moves gets its new token in the ring of step 1: an endpoint that gains a
//!    range by that is pending, the mover or another.
//!
//! Agrees with `org.apache.cassandra.locator.TokenMetadata.calculatePendingRanges`; of several
//! endpoints that move at once Cassandra lets the order of a hash set decide, and here each is
//! looked at alone.

use types::Token;

use super::{Members, Natural};
use crate::endpoint::{Endpoint, EndpointId, State};

/// All tokens at which a range ends now or may end after the changes, ascending.
pub(super) fn all_tokens(endpoints: &[Endpoint]) -> Vec<Token> {
    let mut tokens: Vec<Token> = endpoints.iter().flat_map(|endpoint| endpoint.tokens.iter().copied()).collect();
    tokens.extend(endpoints.iter().filter_map(|endpoint| match endpoint.state {
        State::Moving(to) => Some(to),
        _ => None,
    }));
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

/// The endpoints that are about to hold each range. `members`: those that own tokens now; `now`:
/// the endpoints that hold each range now; `natural`: those that hold each range among other
/// members.
pub(super) fn of(
    endpoints: &[Endpoint],
    members: &Members,
    now: &[Natural],
    natural: impl Fn(&Members) -> Vec<Natural>,
) -> Vec<Natural> {
    let after_leaving = members.without(|id| endpoints[id.index()].state == State::Leaving);
    let mut pending = vec![Natural::new(); now.len()];
    add_gaining(&mut pending, now, &natural(&after_leaving), |_| true);
    for (id, endpoint) in (0u32..).map(EndpointId).zip(endpoints) {
        match endpoint.state {
            State::Normal | State::Leaving => {}
            State::Joining | State::Replacing(_) => {
                let joined = natural(&after_leaving.with(id, &endpoint.tokens));
                add_gaining(&mut pending, now, &joined, |gaining| gaining == id);
            }
            State::Moving(to) => add_gaining(&mut pending, now, &natural(&after_leaving.with(id, &[to])), |_| true),
        }
    }
    let is_both = |(pending, now): (&Natural, &Natural)| pending.iter().any(|id| now.contains(id));
    assert!(!pending.iter().zip(now).any(is_both), "an endpoint that holds a range is not about to hold it");
    pending
}

/// Adds the endpoints that hold a range after a change and do not now.
fn add_gaining(pending: &mut [Natural], now: &[Natural], after: &[Natural], counts: impl Fn(EndpointId) -> bool) {
    for ((pending, now), after) in pending.iter_mut().zip(now).zip(after) {
        for id in after.iter().copied() {
            if counts(id) && !now.contains(&id) && !pending.contains(&id) {
                pending.push(id);
            }
        }
    }
}
