//! The parts of a read that have replicas of their own: each partition that is named by its key,
//! and each stretch of a range whose tokens have the same replicas.

use ring::{InsufficientReplicas, Placement, ReplicaPlan, Ring};
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

/// The things that the parts of a read are planned by.
pub(super) struct Planner<'a> {
    pub ring: &'a Ring,
    /// Where the keyspace of the read lies.
    pub placement: &'a Placement,
    pub level: Consistency,
    /// The scores that replicas are ordered by; None: there is no dynamic snitch.
    pub scores: Option<&'a Scores>,
}

impl Planner<'_> {
    /// The parts of some commands, in the order of the answer. Of a range `ahead` stretches are
    /// planned, and the rest is one part that is not ([`Self::stretches`]). Refused where too few
    /// replicas of a partition are up that is named by its key. A stretch of a range may turn out
    /// not to be needed: where it lacks replicas the read is refused when it comes there
    /// ([`Contacts::shortage`]).
    pub fn parts(&self, commands: &[ReadCommand], ahead: usize) -> Result<Vec<Part>, RequestError> {
        let mut parts = Vec::with_capacity(commands.len());
        for command in commands {
            match &command.range {
                PartitionRange::Key(key) => {
                    let plan = self.ring.plan_read(self.placement, key.token, self.level);
                    let unavailable = |shortage| RequestError::Unavailable { level: self.level, shortage };
                    let plan = plan.map_err(unavailable)?;
                    let contacts = Contacts::of(self.ring, &self.placement.replication, &plan, self.scores);
                    parts.push(Part { command: command.clone(), contacts });
                }
                PartitionRange::Range { start, end } => parts.extend(self.stretches(command, (start, end), ahead)),
            }
        }
        Ok(parts)
    }

    /// The stretches of the range between two bounds that a command reads: at most `ahead`, but one
    /// at least, and behind them the rest of the range, for which nobody is chosen yet. Neighbours
    /// that ask the same replicas are one stretch.
    ///
    /// A page mostly ends within the first stretches of what may be thousands. Cassandra plans as
    /// lazily (`org.apache.cassandra.service.reads.range.ReplicaPlanIterator`).
    fn stretches(&self, command: &ReadCommand, (start, end): (&RingBound, &RingBound), ahead: usize) -> Vec<Part> {
        let (first, last) = range::tokens(&command.range);
        if first >= last {
            // nothing can be in the range, and plan_range would take it for the whole ring
            return Vec::new();
        }
        let mut stretches: Vec<(Token, Contacts)> = Vec::new();
        for (from, _, plan) in self.ring.plan_range(self.placement, first, last, self.level) {
            let contacts = self.contacts_of_range(plan);
            match stretches.last() {
                Some((_, former)) if *former == contacts => {}
                _ if stretches.len() < ahead.max(1) => stretches.push((from, contacts)),
                _ => {
                    stretches.push((from, Contacts::unplanned()));
                    break;
                }
            }
        }
        let stretches_max = ahead.max(1).saturating_add(1);
        assert!(stretches.len() <= stretches_max, "so many stretches are planned ahead, and the rest is one");
        let inner = stretches.iter().skip(1).map(|(from, _)| RingBound::Token { token: *from, inclusive: true });
        let ends: Vec<RingBound> = inner.chain([end.clone()]).collect();
        assert_eq!(ends.len(), stretches.len(), "each stretch ends where the next one begins");
        let bounded = stretches.into_iter().zip(ends).enumerate().map(|(index, ((from, contacts), end))| {
            let start = match index {
                0 => start.clone(),
                _ => RingBound::Token { token: from, inclusive: false },
            };
            Part { command: ReadCommand { range: PartitionRange::Range { start, end }, ..command.clone() }, contacts }
        });
        bounded.collect()
    }

    fn contacts_of_range(&self, plan: Result<ReplicaPlan, InsufficientReplicas>) -> Contacts {
        let mut contacts = match plan {
            Ok(plan) => Contacts::of(self.ring, &self.placement.replication, &plan, self.scores),
            Err(shortage) => Contacts::too_few(shortage),
        };
        // all of them give data, so their order does not matter, and equal sets are to be equal
        contacts.asked.sort_by_key(|contact| (!contact.is_local, contact.address));
        contacts.spare.sort_by_key(|contact| contact.address);
        contacts
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use ring::{Endpoint, EndpointId, Replication, State};

    use super::*;
    use crate::testing::table;

    /// Tokens of each endpoint.
    const TOKENS: i64 = 1_000;

    /// Three endpoints whose tokens take turns. The last endpoint is down.
    fn many_tokens() -> Ring {
        let endpoint = |number: u8| Endpoint {
            address: SocketAddr::from(([127, 0, 0, number], 7000)),
            native: SocketAddr::from(([127, 0, 0, number], 9042)),
            host_id: [number; 16],
            data_center: "dc1".to_owned(),
            rack: "r1".to_owned(),
            tokens: (0..TOKENS).map(|place| Token((place * 3 + i64::from(number)) * 1_000)).collect(),
            is_up: number < 3,
            state: State::Normal,
        };
        let ring = Ring::new([1, 2, 3].map(endpoint).into(), EndpointId(0));
        ring.with_keyspaces([("ks".to_owned(), Ok(Replication::Simple { factor: 1 }))])
    }

    /// The parts of the whole ring, of which so many are planned.
    fn parts(ring: &Ring, command: &ReadCommand, ahead: usize) -> Vec<Part> {
        let placement = ring.placement("ks").expect("it is placed");
        let planner = Planner { ring, placement, level: Consistency::One, scores: None };
        planner.parts(std::slice::from_ref(command), ahead).expect("no partition is named")
    }

    /// A page of a few rows needs the first stretch, however many follow.
    #[test]
    fn stretches_are_planned_as_far_as_they_are_needed() {
        let (ring, whole) = (many_tokens(), ReadCommand::whole(&table("ks", "t"), PartitionRange::all()));
        for ahead in [1, 2, 64] {
            let parts = parts(&ring, &whole, ahead);
            let planned = parts.iter().take_while(|part| part.contacts.is_planned).count();
            assert_eq!((planned, parts.len()), (ahead, ahead + 1));
        }
    }

    /// The rest of a range is planned to the same stretches as if all were planned at once.
    #[test]
    fn the_rest_goes_on_where_the_planned_stretches_end() {
        let (ring, whole) = (many_tokens(), ReadCommand::whole(&table("ks", "t"), PartitionRange::all()));
        let shown = |parts: &[Part]| -> Vec<(PartitionRange, Contacts)> {
            parts.iter().map(|part| (part.command.range.clone(), part.contacts.clone())).collect()
        };
        let all = parts(&ring, &whole, usize::MAX);
        // the first range of the ring goes around its end
        assert_eq!(all.len(), 3 * TOKENS as usize + 1);
        let lacking = all.iter().filter(|part| part.contacts.shortage.is_some()).count();
        assert_eq!(lacking, TOKENS as usize, "the stretches of the endpoint that is down");
        let mut planned = parts(&ring, &whole, 1);
        let mut ahead = 1;
        while let Some(rest) = planned.pop_if(|last| !last.contacts.is_planned) {
            ahead = ahead % 7 + 1;
            planned.extend(parts(&ring, &rest.command, ahead));
        }
        assert_eq!(shown(&planned), shown(&all));
    }
}
