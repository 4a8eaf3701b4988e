//! The plan of a read: its parts, each with the replicas that are asked.
//!
//! A range is planned as far as each round of the read needs it, in the ring as it is then.

use rows::ReadCommand;
use types::Consistency;

use super::{DistributedRead, STRETCHES_FIRST};
use crate::coordinator::contacts::{Contact, Contacts};
use crate::coordinator::error::RequestError;
use crate::coordinator::part_read::PartRead;
use crate::coordinator::parts::{Part, Planner};
use crate::coordinator::plan::placement;
use crate::dynamic_snitch::DynamicSnitch;
use crate::node::Node;

impl Node {
    /// The parts of a read that other nodes have a share in; None: this node alone is asked. Parts
    /// of ranges are planned as far as the first round of the read needs them.
    pub(crate) fn plan_parts_if_distributed(
        &self,
        commands: &[ReadCommand],
        level: Consistency,
    ) -> Result<Option<Vec<Part>>, RequestError> {
        self.plan_parts(commands, level, STRETCHES_FIRST)
    }

    /// As [`Self::plan_parts_if_distributed`], where the parts of ranges are planned to their end.
    pub(crate) fn plan_all_parts(
        &self,
        commands: &[ReadCommand],
        level: Consistency,
    ) -> Result<Option<Vec<Part>>, RequestError> {
        self.plan_parts(commands, level, usize::MAX)
    }

    /// The parts of a read that other nodes have a share in, of whose ranges `ahead` stretches are
    /// planned.
    fn plan_parts(
        &self,
        commands: &[ReadCommand],
        level: Consistency,
        ahead: usize,
    ) -> Result<Option<Vec<Part>>, RequestError> {
        let Some(first) = commands.first().filter(|command| !command.table.is_virtual()) else { return Ok(None) };
        let ring = self.ring.load();
        let Some(placement) = placement(&ring, &first.table.keyspace)? else { return Ok(None) };
        let scores = self.membership_state.dynamic_snitch.get().map(DynamicSnitch::scores);
        let planner = Planner { ring: &ring, placement, level, scores: scores.as_deref() };
        let mut parts = planner.parts(commands, ahead)?;
        loop {
            if parts.iter().any(|part| part.contacts.is_planned && !part.contacts.is_local()) {
                return Ok(Some(parts));
            }
            // others may have a share in what is not planned: twice as much is planned each time
            let Some(rest) = parts.iter().position(|part| !part.contacts.is_planned) else { return Ok(None) };
            let further = planner.parts(std::slice::from_ref(&parts[rest].command), parts.len())?;
            parts.splice(rest..=rest, further);
        }
    }

    /// Plans the rest of a range, at most `ahead` stretches of it, in the ring as it is now.
    fn plan_rest(&self, rest: &ReadCommand, level: Consistency, ahead: usize) -> Result<Vec<Part>, RequestError> {
        let ring = self.ring.load();
        let Some(placement) = placement(&ring, &rest.table.keyspace)? else {
            // the keyspace was dropped: this node is asked, as by a read that begins now
            let own = Contact { address: self.identity.broadcast, is_local: true };
            let contacts = Contacts { asked: vec![own], spare: Vec::new(), shortage: None, is_planned: true };
            return Ok(vec![Part { command: rest.clone(), contacts }]);
        };
        let scores = self.membership_state.dynamic_snitch.get().map(DynamicSnitch::scores);
        let planner = Planner { ring: &ring, placement, level, scores: scores.as_deref() };
        planner.parts(std::slice::from_ref(rest), ahead)
    }
}

impl DistributedRead<'_> {
    /// Plans the parts from `next` on as far as the `count` of them are asked for now.
    pub(super) fn plan_ahead(&self, parts: &mut Vec<PartRead>, next: usize, count: usize) -> Result<(), RequestError> {
        loop {
            let mut wanted = parts.iter().skip(next).take(count);
            let Some(place) = wanted.position(|asked| !asked.part.contacts.is_planned) else { return Ok(()) };
            let rest = &parts[next + place];
            let planned = self.node.plan_rest(&rest.part.command, self.level, count - place)?;
            let planned = rest.planned_as(planned, self.wanted_rows.as_deref());
            parts.splice(next + place..=next + place, planned);
        }
    }
}
