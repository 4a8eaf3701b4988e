//! The endpoints that held a range until a moment ago.
//!
//! A node that joins or moves tells the others, and it takes about a second until all have heard of
//! it. A coordinator that has heard writes to the new replicas; one that has not reads from the old
//! ones. Of three copies, {A, B, C} before and {A, B, X} afterwards, a write may be acknowledged by
//! A and X while a read asks B and C: no replica has been asked by both. So a node that has lost a
//! range is treated for a while like one that is about to get it: it is written to, and one more
//! answer is waited for. Any three of {A, B, C, X} include two of {A, B, C}.
//!
//! For a node that leaves this is not needed, because it refuses reads as soon as it has left.
//! Cassandra 5.0 has neither.

use types::Token;

use super::{Members, Natural, tokens_of};
use crate::endpoint::{Endpoint, FormerTokens};

/// Adds the tokens at which ranges ended before.
pub(super) fn add_tokens(ends: &mut Vec<Token>, former: &FormerTokens) {
    let before = ends.len();
    ends.extend(former.values().flatten());
    if ends.len() > before {
        ends.sort_unstable();
        ends.dedup();
    }
}

/// The endpoints that held each range before, do not hold it now and are not about to hold it.
/// `now`, `pending` and `natural` are as for the pending ones; `pending` may be empty.
pub(super) fn of(
    endpoints: &[Endpoint],
    former: &FormerTokens,
    now: &[Natural],
    pending: &[Natural],
    natural: impl Fn(&Members) -> Vec<Natural>,
) -> Vec<Natural> {
    let tokens = tokens_of(endpoints, |id, endpoint| former.get(&id).unwrap_or(&endpoint.tokens));
    let mut before = natural(&Members::of(tokens));
    for (place, held) in before.iter_mut().enumerate() {
        held.retain(|id| !now[place].contains(id) && !pending.get(place).is_some_and(|of| of.contains(id)));
    }
    before
}
