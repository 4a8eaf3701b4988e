//! Promises of Paxos v2, as this node gives them to itself and to others: beside the state of the
//! partition a promise has the answer to a read, and what this node knows of the nodes that decide.
//!
//! 1. The ballot is promised ([`crate::replica::paxos`]); a read that is late may still be
//!    permitted.
//! 2. The electorate that the coordinator knows is compared with this node's own.
//! 3. The partition is read. If the state is the same before and after, no proposal was decided in
//!    between, and the coordinator need not wait for anybody else's.
//!
//! Agrees with `org.apache.cassandra.service.paxos.PaxosPrepare.RequestHandler`,
//! `PaxosPrepareRefresh`, `PaxosCommitAndPrepare` and `PaxosRepair`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use internode::payload::gossip::EndpointState;
use internode::payload::paxos::{
    Ballot, BallotFlag, CommitAndPrepare, Electorate, Permission, PrepareV2, PrepareV2Answer, Prepared, Refresh,
    RepairAnswer, RepairRequest,
};
use internode::payload::read_answer::{AnswerError, AnswerKind, AnswerLimits};
use internode::payload::read_request::ReadRequest;
use internode::payload::read_response::ReadResponse;
use links::limits::MESSAGE_SIZE_MAX;
use ring::EndpointId;
use rows::ReadError;
use rows::live::TombstoneLimits;
use schema::TableMetadata;
use types::DecoratedKey;

use crate::node::Node;
use crate::replica::apply::WriteError;
use crate::replica::paxos::{Promise, Promised, State};
use crate::replica::read::ReadOutcome;

/// Most bytes of the data of a read within a promise: the message is one that peers take, with two
/// updates beside the data.
const DATA_SIZE_MAX: usize = MESSAGE_SIZE_MAX / 2;

/// The rest of a promise beside the state of the partition.
struct PromiseRead {
    read: Option<ReadResponse>,
    is_stable: bool,
}

impl Node {
    /// Promises a ballot and reads.
    pub(crate) async fn paxos_prepare_v2(
        &self,
        prepare: &PrepareV2,
        limit: Duration,
    ) -> Result<PrepareV2Answer, WriteError> {
        let PrepareV2 { ballot, electorate, is_for_write, prepared } = prepare;
        let (table, key) = (prepared.table(), prepared.key());
        // Cassandra 5.0.8 reads the flag the other way round where there is no read. A promise to a
        // write is the stronger one.
        let is_for_write = *is_for_write || matches!(prepared, Prepared::Key(..));
        let Promised { promise, state } = self.replica.paxos_promise(table, &key, *ballot, is_for_write).await?;
        let superseded_by = match promise {
            Promise::Rejected { superseded_by } => return Ok(PrepareV2Answer::Rejected { superseded_by }),
            Promise::ReadPermitted { superseded_by } => Some(superseded_by),
            Promise::Promised => None,
        };
        let mut after = state.clone();
        if promise == Promise::Promised && is_for_write {
            after.promised_write = *ballot;
        }
        let endpoints = self.endpoints_if_other(electorate, table, &key, ballot);
        let told = match prepared {
            Prepared::Read(read) => self.read_promised(read, &state, &after, *ballot, limit).await?,
            Prepared::Key(..) => PromiseRead { read: None, is_stable: state.is_stable() },
        };
        Ok(PrepareV2Answer::Permitted(Box::new(Permission {
            low_bound: self.replica.paxos_bound_of(table, key.token).ticks().cast_unsigned(),
            accepted: state.accepted,
            committed: state.committed,
            read: told.read,
            is_stable: told.is_stable,
            endpoints,
            superseded_by,
        })))
    }

    /// Reads a partition of which a ballot was promised, and says whether the state stayed as it
    /// was.
    async fn read_promised(
        &self,
        read: &ReadRequest,
        before: &State,
        after: &State,
        ballot: Ballot,
        limit: Duration,
    ) -> Result<PromiseRead, WriteError> {
        let wanted = if read.digest.is_some() { AnswerKind::Digest } else { AnswerKind::Data };
        let options = &self.engine.options;
        let tombstones = TombstoneLimits {
            warn: options.tombstone_warn_threshold,
            failure: options.tombstone_failure_threshold,
            each_partition: true,
            each_rows: u64::MAX,
        };
        let limits = AnswerLimits { tombstones, size_max: DATA_SIZE_MAX, buffered_size_max: 0 };
        let mut question = read.clone();
        self.look_up_groups(&mut question).map_err(WriteError::Read)?;
        let question = Arc::new(question);
        let answer = self.replica.answer(&question, wanted, limits, limit, None, false).await.map_err(error_of)?;
        let is_stable = before.is_stable() && {
            let key = read.table.decorate(key_of(read));
            after.is_unchanged(&self.replica.paxos_state(&read.table, &key, ballot).await?)
        };
        Ok(PromiseRead { read: Some(answer.into_response()), is_stable })
    }

    /// Commits, and then promises.
    pub(crate) async fn paxos_commit_and_prepare(
        &self,
        both: &CommitAndPrepare,
        limit: Duration,
    ) -> Result<PrepareV2Answer, WriteError> {
        self.replica.paxos_commit(&both.commit).await?;
        self.paxos_prepare_v2(&both.prepare, limit).await
    }

    /// Commits what a promise has shown to be missing, and says what supersedes the promise.
    pub(crate) async fn paxos_refresh(&self, refresh: &Refresh) -> Result<Option<Ballot>, WriteError> {
        self.replica.paxos_commit(&refresh.missing).await?;
        let update = &refresh.missing.update;
        let state = self.replica.paxos_state(&update.table, &update.key, refresh.promised).await?;
        let latest = state.witnessed(self.replica.paxos_low_bound());
        Ok(latest.is_after(&refresh.promised).then_some(latest))
    }

    /// The state of a partition for a node that completes what others have begun.
    pub(crate) async fn paxos_repair_state(&self, request: &RepairRequest) -> Result<RepairAnswer, WriteError> {
        let now = Ballot::new(self.env.clock.now_micros(), BallotFlag::None, 0);
        let state = self.replica.paxos_state(&request.table, &request.key, now).await?;
        let latest_witnessed = state.witnessed(self.replica.paxos_low_bound());
        Ok(RepairAnswer { latest_witnessed, accepted: state.accepted, committed: state.committed })
    }

    /// The nodes that decide about a partition, for a ballot of all data centers or of this one.
    /// None: the keyspace is not of the ring.
    pub(crate) fn electorate(&self, table: &TableMetadata, key: &DecoratedKey, flag: BallotFlag) -> Option<Electorate> {
        let ring = self.ring.load();
        let Some(Ok(placement)) = ring.placed(&table.keyspace) else { return None };
        let center = ring.local_data_center();
        let addresses = |ids: &[EndpointId]| {
            let endpoints = ids.iter().map(|id| ring.endpoint(*id));
            let deciding = endpoints.filter(|endpoint| flag != BallotFlag::Local || endpoint.data_center == center);
            deciding.map(|endpoint| endpoint.address).collect()
        };
        let (natural, pending) = (placement.natural(key.token), placement.pending(key.token));
        Some(Electorate { natural: addresses(natural), pending: addresses(pending) })
    }

    /// If a coordinator knows another electorate than this node: what gossip tells this node of
    /// the members of both.
    fn endpoints_if_other(
        &self,
        theirs: &Electorate,
        table: &TableMetadata,
        key: &DecoratedKey,
        ballot: &Ballot,
    ) -> Vec<(SocketAddr, Option<EndpointState>)> {
        let ours = self.electorate(table, key, ballot.flag()).unwrap_or_default();
        let Some(messenger) = self.messenger().filter(|_| !ours.is_same(theirs)) else { return Vec::new() };
        let lists = [&theirs.natural, &theirs.pending, &ours.natural, &ours.pending];
        let mut addresses: Vec<SocketAddr> = lists.into_iter().flatten().copied().collect();
        addresses.sort_unstable();
        addresses.dedup();
        messenger.with_gossip(|gossip| {
            addresses.into_iter().map(|address| (address, gossip.state(address).cloned())).collect()
        })
    }
}

fn key_of(read: &ReadRequest) -> bytes::Bytes {
    match &read.partitions {
        internode::payload::read_request::Partitions::Key(key) => key.clone(),
        internode::payload::read_request::Partitions::Range { .. } => bytes::Bytes::new(),
    }
}

fn error_of(outcome: ReadOutcome<AnswerError>) -> WriteError {
    match outcome {
        ReadOutcome::TimedOut => WriteError::TimedOut,
        ReadOutcome::Overloaded => WriteError::Overloaded,
        ReadOutcome::Failed(AnswerError::Read(error)) => WriteError::Read(error),
        ReadOutcome::Failed(error) => WriteError::Read(ReadError::Malformed { offset: 0, what: error.to_string() }),
    }
}
