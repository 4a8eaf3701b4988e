//! The replicas that decide a statement of Paxos v2, as the ring is when a round begins.
//!
//! Agrees with `org.apache.cassandra.service.paxos.Paxos.Participants`.

use std::sync::Arc;

use internode::payload::paxos::{BallotFlag, Electorate};
use ring::{EndpointId, PromisePlan, Ring};
use storage::StorageError;
use types::{Consistency, WriteKind};

use crate::coordinator::cas::agreement::Agreement;
use crate::coordinator::contacts::Contact;
use crate::coordinator::error::RequestError;
use crate::coordinator::plan::placement;
use crate::coordinator::write_answers::WriteAnswers;

/// The replicas that decide, and how many of them are enough.
pub(super) struct Electors {
    /// The ring by which they were chosen.
    pub ring: Arc<Ring>,
    /// The replicas that are asked, and the numbers.
    pub plan: PromisePlan,
    /// All of them, as other nodes are told.
    pub electorate: Electorate,
}

impl Electors {
    /// How a replica is reached.
    pub fn contact(&self, id: EndpointId) -> Contact {
        Contact { address: self.ring.endpoint(id).address, is_local: id == self.ring.local_id() }
    }

    /// Whether a replica reads when it promises.
    pub fn reads(&self, id: EndpointId) -> bool {
        !self.plan.pending.contains(&id)
    }
}

impl Agreement<'_> {
    /// The replicas that decide, as the ring is now. Refused where too few are up.
    pub(super) fn electors(&self) -> Result<Electors, RequestError> {
        let (ring, super::Cas { table, key, serial, .. }) = (self.node.ring(), self.cas);
        let unknown = || {
            let error = StorageError::UnknownTable { table: table.keyspace.clone() };
            RequestError::of_write(error.into(), WriteAnswers::of_one(serial, WriteKind::Cas))
        };
        let plan = {
            let placement = placement(&ring, &table.keyspace)?.ok_or_else(unknown)?;
            let plan = ring.plan_promises(placement, key.token, serial);
            plan.map_err(|shortage| RequestError::Unavailable { level: serial, shortage })?
        };
        Ok(Electors { electorate: self.electorate_now(), ring, plan })
    }

    /// The electorate as this node knows it now.
    pub(super) fn electorate_now(&self) -> Electorate {
        let flag = match self.cas.serial {
            Consistency::LocalSerial => BallotFlag::Local,
            _ => BallotFlag::Global,
        };
        self.node.electorate(self.cas.table, self.cas.key, flag).unwrap_or_default()
    }
}
