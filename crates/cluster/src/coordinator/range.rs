//! Reads of ranges: the parts of a range have replicas of their own.
//!
//! Where this node has them all, one stream of its own gives the whole range. Otherwise
//! [`super::parts`] splits it.

use ring::{Placement, Ring, Shortage};
use rows::PartitionRange;
use rows::command::RingBound;
use types::{Consistency, Token};

/// How many replicas the parts of a range wait for at most. Refused where those of one part are too
/// few.
pub(super) fn block_for(
    ring: &Ring,
    placement: &Placement,
    range: &PartitionRange,
    level: Consistency,
) -> Result<u32, Shortage> {
    let (start, end) = tokens(range);
    let plans = ring.plan_range(placement, start, end, level)?;
    Ok(plans.iter().map(|(_, _, plan)| plan.block_for).max().unwrap_or(1))
}

/// The tokens around a range: excluded start, included end. One token more on a side does no harm:
/// its part has the replicas of its neighbour, or is asked for nothing.
pub(super) fn tokens(range: &PartitionRange) -> (Token, Token) {
    let token = |bound: &RingBound, open: Token| match bound {
        RingBound::Open => open,
        RingBound::Token { token, .. } => *token,
        RingBound::Key { key, .. } => key.token,
    };
    match range {
        PartitionRange::Key(key) => (key.token, key.token),
        PartitionRange::Range { start, end } => {
            let start = token(start, Token::MIN);
            (Token(start.0.saturating_sub(1)), token(end, Token::MAX))
        }
    }
}
