//! The parts of a read that have replicas of their own: each partition that is named by its key,
//! and each stretch of a range whose tokens have the same replicas.

use ring::{Placement, ReplicaPlan, Ring, Shortage};
use rows::command::RingBound;
use rows::{PartitionRange, ReadCommand};
use types::{Consistency, Token};

use super::contacts::Contacts;
use super::error::RequestError;
use super::range;
use crate::dynamic_snitch::Scores;

/// A part of a read.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The part's own command.
    pub command: ReadCommand,
    /// The replicas that are asked for the part.
    pub contacts: Contacts,
}

impl Part {
    /// Whether the part is a stretch of a range, not one partition.
    pub fn is_of_range(&self) -> bool {
        matches!(self.command.range, PartitionRange::Range { .. })
    }
}

/// The parts of some commands, in the order of the answer, whose replicas are ordered by `scores`.
/// Refused where too few replicas of a partition are up that is named by its key. A stretch of a
/// range may turn out not to be needed: where it lacks replicas the read is refused when it comes
/// there ([`Contacts::shortage`]).
pub(super) fn parts_of(
    ring: &Ring,
    placement: &Placement,
    commands: &[ReadCommand],
    level: Consistency,
    scores: Option<&Scores>,
) -> Result<Vec<Part>, RequestError> {
    let unavailable = |shortage| RequestError::Unavailable { level, shortage };
    let mut parts = Vec::with_capacity(commands.len());
    for command in commands {
        match &command.range {
            PartitionRange::Key(key) => {
                let plan = ring.plan_read(placement, key.token, level).map_err(unavailable)?;
                let contacts = Contacts::of(ring, &placement.replication, &plan, scores);
                parts.push(Part { command: command.clone(), contacts });
            }
            range @ PartitionRange::Range { start, end } => {
                let (first, last) = range::tokens(range);
                if first >= last {
                    // nothing can be in the range, and plan_range would take it for the whole ring
                    continue;
                }
                let planned = range::plans(ring, placement, (first, last), level);
                for (range, contacts) in stretches((ring, placement, scores), start, end, planned) {
                    parts.push(Part { command: ReadCommand { range, ..command.clone() }, contacts });
                }
            }
        }
    }
    Ok(parts)
}

/// The stretches of a range, each with whom it asks. Neighbours that ask the same replicas are one.
fn stretches(
    (ring, placement, scores): (&Ring, &Placement, Option<&Scores>),
    start: &RingBound,
    end: &RingBound,
    planned: Vec<(Token, Token, Result<ReplicaPlan, Shortage>)>,
) -> Vec<(PartitionRange, Contacts)> {
    let mut stretches: Vec<(Token, Token, Contacts)> = Vec::new();
    for (from, to, plan) in planned {
        let mut contacts = match plan {
            Ok(plan) => Contacts::of(ring, &placement.replication, &plan, scores),
            Err(shortage) => Contacts::too_few(shortage),
        };
        // all of them give data, so their order does not matter, and equal sets are to be equal
        contacts.asked.sort_by_key(|contact| (!contact.is_local, contact.address));
        contacts.spare.sort_by_key(|contact| contact.address);
        match stretches.last_mut() {
            Some((_, end, former)) if *former == contacts => *end = to,
            _ => stretches.push((from, to, contacts)),
        }
    }
    let count = stretches.len();
    let bounded = stretches.into_iter().enumerate().map(|(index, (from, to, contacts))| {
        let start = match index {
            0 => start.clone(),
            _ => RingBound::Token { token: from, inclusive: false },
        };
        let end = match index + 1 == count {
            true => end.clone(),
            false => RingBound::Token { token: to, inclusive: true },
        };
        (PartitionRange::Range { start, end }, contacts)
    });
    bounded.collect()
}
