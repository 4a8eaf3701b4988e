//! Reads of ranges: the parts of a range have replicas of their own.
//!
//! Where this node has them all, one stream of its own gives the whole range. Otherwise
//! [`super::parts`] splits it.

use ring::{InsufficientReplicas, Placement, Ring};
use rows::PartitionRange;
use rows::command::RingBound;
use types::{Consistency, Token};

/// How many replicas the parts of a range wait for. The number follows from the level and the
/// replication, so it is the same for all parts. Parts with too few live replicas are left out,
/// because a read may end before it comes to them; the read is refused if all parts have too few.
pub(super) fn block_for(
    ring: &Ring,
    placement: &Placement,
    range: &PartitionRange,
    level: Consistency,
) -> Result<u32, InsufficientReplicas> {
    let (start, end) = tokens(range);
    if start >= end {
        // nothing can be in the range, and plan_range would take it for the whole ring
        return Ok(1);
    }
    let mut shortage = None;
    for (_, _, plan) in ring.plan_range(placement, start, end, level) {
        match plan {
            Ok(plan) => return Ok(plan.block_for),
            Err(lacking) => _ = shortage.get_or_insert(lacking),
        }
    }
    shortage.map_or(Ok(1), Err)
}

/// The tokens that partitions of a range may have: excluded start, included end. No token more:
/// where the range begins behind a boundary of the ring, or ends before the token behind one, the
/// replicas beyond that boundary have no part in the read, and need not be up. A range that begins
/// or ends at a partition has others of the same token.
pub(super) fn tokens(range: &PartitionRange) -> (Token, Token) {
    let before = |token: Token| Token(token.0.saturating_sub(1));
    match range {
        PartitionRange::Key(key) => (key.token, key.token),
        PartitionRange::Range { start, end } => {
            let first = match start {
                RingBound::Open => Token::MIN,
                RingBound::Token { token, inclusive: false } => *token,
                RingBound::Token { token, inclusive: true } => before(*token),
                RingBound::Key { key, .. } => before(key.token),
            };
            let last = match end {
                RingBound::Open => Token::MAX,
                RingBound::Token { token, inclusive: false } => before(*token),
                RingBound::Token { token, inclusive: true } => *token,
                RingBound::Key { key, .. } => key.token,
            };
            (first, last)
        }
    }
}
