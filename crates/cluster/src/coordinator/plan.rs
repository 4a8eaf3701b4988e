//! Which replicas a request needs: the ring's plan, or why there is none.

use ring::{Placement, ReplicaPlan, Ring};
use rows::{Mutation, PartitionRange, ReadCommand};
use types::{Consistency, Token, WriteKind};

use super::error::RequestError;
use super::range;
use super::write_answers::WriteAnswers;
use crate::node::Node;

impl Node {
    /// The answers that a write of these mutations waits for. Refused where the replicas of one of
    /// them are too few.
    pub(crate) fn plan_write(
        &self,
        mutations: &[Mutation],
        level: Consistency,
        kind: WriteKind,
    ) -> Result<WriteAnswers, RequestError> {
        let ring = self.ring.load();
        let (mut strictest, mut known): (Option<ReplicaPlan>, Option<(&str, Option<&Placement>)>) = (None, None);
        for mutation in mutations {
            let Some(update) = mutation.updates.first() else { continue };
            let keyspace = update.table.keyspace.as_str();
            let placement = match known {
                Some((same, placement)) if same == keyspace => placement,
                _ => placement(&ring, keyspace)?,
            };
            known = Some((keyspace, placement));
            let Some(placement) = placement else { continue };
            let planned = ring.plan_write(placement, mutation.key.token, level);
            let plan = planned.map_err(|shortage| RequestError::Unavailable { level, shortage })?;
            if strictest.as_ref().is_none_or(|former| former.block_for < plan.block_for) {
                strictest = Some(plan);
            }
        }
        Ok(strictest.map_or_else(|| WriteAnswers::of_one(level, kind), |plan| WriteAnswers::of(&plan, kind)))
    }

    /// The answers that a write of one partition waits for.
    pub(crate) fn plan_partition(
        &self,
        keyspace: &str,
        token: Token,
        level: Consistency,
        kind: WriteKind,
    ) -> Result<WriteAnswers, RequestError> {
        let ring = self.ring.load();
        let Some(placement) = placement(&ring, keyspace)? else { return Ok(WriteAnswers::of_one(level, kind)) };
        let planned = ring.plan_write(placement, token, level);
        let plan = planned.map_err(|shortage| RequestError::Unavailable { level, shortage })?;
        Ok(WriteAnswers::of(&plan, kind))
    }

    /// How many replicas a read waits for. Refused where those of one of its commands are too few.
    pub fn plan_read(&self, commands: &[ReadCommand], level: Consistency) -> Result<u32, RequestError> {
        let Some(first) = commands.first().filter(|command| !command.table.is_virtual()) else { return Ok(1) };
        let ring = self.ring.load();
        let Some(placement) = placement(&ring, &first.table.keyspace)? else { return Ok(1) };
        let mut block_for = 1;
        for command in commands {
            let planned = match &command.range {
                PartitionRange::Key(key) => ring.plan_read(placement, key.token, level).map(|plan| plan.block_for),
                other => range::block_for(&ring, placement, other, level),
            };
            block_for = planned.map_err(|shortage| RequestError::Unavailable { level, shortage })?.max(block_for);
        }
        Ok(block_for)
    }
}

/// Where a keyspace lies; None: it is not of the ring (dropped at this moment).
pub(super) fn placement<'r>(ring: &'r Ring, keyspace: &str) -> Result<Option<&'r Placement>, RequestError> {
    match ring.placed(keyspace) {
        None => Ok(None),
        Some(Ok(placement)) => Ok(Some(placement)),
        Some(Err(error)) => Err(RequestError::Unplaced { keyspace: keyspace.to_owned(), error: error.clone() }),
    }
}
