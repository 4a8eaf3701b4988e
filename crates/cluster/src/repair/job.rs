//! One table of a session: its replicas are validated, compared and brought together. Agrees with
//! `org.apache.cassandra.repair.RepairJob`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use internode::Verb;
use internode::payload::repair::{Job, Preview, SessionId, StreamSummary, SyncRequest, ValidationRequest};
use internode::payload::token_ranges::Tokens;
use repair::MerkleTrees;
use repair::plan::{self, Difference, Sync};

use super::messages::Patience;
use super::participant;
use super::paxos::PaxosRepair;
use super::ranges::CommonRange;
use super::streams::{self, Exchange};
use crate::clock::uuid_text;
use crate::node::Node;
use crate::repair_state::command::Command;
use crate::repair_state::options::Parallelism;
use crate::repair_state::records::{Facts, Record, RepairCounts, Step, Subject};
use crate::repair_state::{RepairResult, RepairResultKey};

/// One table of a session.
pub(super) struct RepairJob<'a> {
    pub node: &'a Arc<Node>,
    pub command: &'a Command,
    pub session: SessionId,
    pub common: &'a CommonRange,
    pub table: String,
}

/// The ranges that two replicas differed in, and the streams between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SyncStat {
    pub ranges: Vec<Tokens>,
    pub summaries: Vec<StreamSummary>,
}

impl RepairJob<'_> {
    /// Repairs the table, and gives what was streamed.
    pub async fn run(&self) -> Result<Vec<SyncStat>, String> {
        let job = self.job();
        let records = &self.node.repairs.records;
        let facts = Facts {
            nodes: self.common.neighbours.iter().copied().collect(),
            is_incremental: self.command.options.is_incremental,
            is_global: self.command.options.is_global(),
            preview: self.command.options.preview,
            ..Facts::of_job(Subject::Job, &job)
        };
        let record = records.begin(facts, self.now());
        if let Some(of_session) = records.find(Subject::Session, &self.session) {
            of_session.adopt(record.facts.id);
        }
        record.step(Step::Start, self.now());
        let result = self.steps(&job, &record).await;
        record.end_with(&result, self.now());
        result
    }

    fn now(&self) -> i64 {
        self.node.env.clock.now_micros() / 1000
    }

    async fn steps(&self, job: &Job, record: &Record) -> Result<Vec<SyncStat>, String> {
        let (options, parallelism) = (&self.command.options, self.command.options.parallelism);
        // of Paxos v1 only where an operator wants nothing else, as in Cassandra
        let is_v2 = self.node.paxos().variant.is_v2;
        let repairs_paxos = options.is_paxos_only || is_v2 && options.repairs_paxos;
        if repairs_paxos && self.node.repairs.permits.load().settings.repairs_paxos {
            self.repair_paxos().await?;
        }
        if options.is_paxos_only {
            return Ok(Vec::new());
        }
        if parallelism != Parallelism::Parallel && !options.is_incremental {
            record.step(Step::SnapshotStart, self.now());
            try_join_all(self.endpoints().into_iter().map(|endpoint| self.snapshot(job, endpoint))).await?;
            record.step(Step::SnapshotComplete, self.now());
        }
        record.step(Step::ValidationStart, self.now());
        self.command.trace(self.node, || {
            let endpoints: Vec<_> = self.endpoints().iter().map(|endpoint| format!("/{endpoint}")).collect();
            format!("Requesting merkle trees for {} (to [{}])", self.table, endpoints.join(", "))
        });
        let trees = self.all_trees(job, parallelism).await?;
        record.step(Step::ValidationComplete, self.now());
        let syncs = self.plan(trees).await?;
        tracing::info!(
            session = uuid_text(&self.session),
            keyspace = job.keyspace,
            table = job.table,
            exchanges = syncs.len(),
            "replicas are compared"
        );
        record.step(Step::StreamStart, self.now());
        try_join_all(syncs.into_iter().map(|sync| self.sync(job, sync))).await
    }

    async fn repair_paxos(&self) -> Result<(), String> {
        let schema = self.node.schema();
        let table = schema.table(&self.command.keyspace, &self.table).cloned();
        let table = table.ok_or_else(|| self.failed("the table was dropped"))?;
        let (node, command, ranges) = (self.node, self.command, &self.common.ranges[..]);
        let (replicas, has_skipped) = (self.endpoints(), self.common.has_skipped);
        let repair = PaxosRepair { node, command, table, ranges, replicas, has_skipped };
        repair.run().await.map_err(|why| self.failed(&why))
    }

    fn job(&self) -> Job {
        Job {
            parent: self.command.id,
            session: self.session,
            keyspace: self.command.keyspace.clone(),
            table: self.table.clone(),
            ranges: self.common.ranges.clone(),
        }
    }

    fn local(&self) -> SocketAddr {
        self.node.identity.broadcast
    }

    /// The replicas, this node last.
    fn endpoints(&self) -> Vec<SocketAddr> {
        self.common.neighbours.iter().copied().chain([self.local()]).collect()
    }

    /// An error as operators see it.
    fn failed(&self, why: &str) -> String {
        let kind = if self.command.options.preview.is_preview() { "preview repair" } else { "repair" };
        let ranges: Vec<_> = self.common.ranges.iter().map(ToString::to_string).collect();
        let (session, keyspace) = (uuid_text(&self.session), &self.command.keyspace);
        format!("[{kind} #{session} on {keyspace}/{}, [{}]] {why}", self.table, ranges.join(", "))
    }

    async fn snapshot(&self, job: &Job, endpoint: SocketAddr) -> Result<(), String> {
        let taken = match endpoint == self.local() {
            true => participant::snapshot(self.node, job).await,
            false => {
                let payload = job.encode().map_err(|error| error.to_string())?;
                let told = self.node.tell_repair_of(Some(self.command), endpoint, Verb::SnapshotMsg, payload).await;
                told.map_err(|error| error.to_string())
            }
        };
        taken.map_err(|why| self.failed(&format!("Could not create snapshot at /{endpoint}: {why}")))
    }

    /// The trees of all replicas.
    async fn all_trees(&self, job: &Job, parallelism: Parallelism) -> Result<Vec<(SocketAddr, MerkleTrees)>, String> {
        let now = self.node.env.clock.now_seconds();
        let is_of_repaired = self.command.options.preview == Preview::Repaired;
        let head_start = self.node.repairs.permits.load().settings.preview_head_start;
        let now = if is_of_repaired { now.saturating_add(head_start) } else { now };
        let mut groups: BTreeMap<String, Vec<SocketAddr>> = BTreeMap::new();
        for endpoint in self.endpoints() {
            let group = match parallelism {
                Parallelism::Parallel => endpoint.to_string(),
                Parallelism::Sequential => String::new(),
                Parallelism::DataCenterAware => data_center(self.node, endpoint),
            };
            groups.entry(group).or_default().push(endpoint);
        }
        let one_after_the_other = |endpoints: Vec<SocketAddr>| async move {
            let mut trees = Vec::with_capacity(endpoints.len());
            for endpoint in endpoints {
                trees.push((endpoint, self.trees(job, endpoint, now).await?));
            }
            Ok::<_, String>(trees)
        };
        let mut trees: Vec<_> = try_join_all(groups.into_values().map(one_after_the_other)).await?.concat();
        assert_eq!(trees.len(), self.endpoints().len(), "each replica gives its trees once");
        // as the replicas are told: the order decides which of two opens the streams
        trees.sort_by_key(|(endpoint, _)| (*endpoint == self.local(), *endpoint));
        Ok(trees)
    }

    /// The trees of a replica.
    async fn trees(&self, job: &Job, endpoint: SocketAddr, now: u32) -> Result<MerkleTrees, String> {
        let validated = match endpoint == self.local() {
            true => {
                let validated = participant::validate_here(self.node, job, now).await;
                self.command.trace(self.node, || {
                    format!("Local completed merkle tree for /{endpoint} for {}.{}", job.keyspace, job.table)
                });
                validated
            }
            false => self.trees_of(job, endpoint, now).await,
        };
        if validated.is_ok() {
            self.command.trace(self.node, || format!("Received merkle tree for {} from /{endpoint}", self.table));
        }
        validated.map_err(|why| {
            tracing::warn!(why, peer = %endpoint, table = job.table, "a replica cannot be validated");
            self.failed(&format!("Validation failed in /{endpoint}"))
        })
    }

    async fn trees_of(&self, job: &Job, endpoint: SocketAddr, now: u32) -> Result<MerkleTrees, String> {
        let turns = self.node.repairs.permits.load().tree_requests.clone();
        let _turn = match &turns {
            Some(turns) => Some(turns.acquire().await.map_err(|_| "the repair has ended".to_owned())?),
            None => None,
        };
        let key = RepairResultKey::Trees(self.session, self.table.clone(), endpoint);
        let told = self.node.repairs.expect(key.clone());
        let request = ValidationRequest { job: job.clone(), now };
        let payload = Bytes::from(request.encode().map_err(|error| error.to_string())?);
        let verb = Verb::ValidationReq;
        if let Err(error) = self.node.tell_repair_of(Some(self.command), endpoint, verb, payload.clone()).await {
            self.node.repairs.forget(&key);
            return Err(error.to_string());
        }
        let patience = Patience::Asks(verb, payload);
        let told = self.node.await_repair(self.command, endpoint, &key, told, patience).await?;
        let RepairResult::Trees(Some(trees)) = told else { return Err("the replica says so".to_owned()) };
        let decoded = self.node.env.blocking_long("decode trees", move || MerkleTrees::decode(&trees)).await;
        let decoded = decoded.map_err(|_| "too much is to be done here".to_owned())?;
        decoded.map_err(|error| format!("its trees cannot be read: {error}"))
    }

    /// Compares the trees of each two replicas, and plans what is streamed.
    async fn plan(&self, trees: Vec<(SocketAddr, MerkleTrees)>) -> Result<Vec<Sync>, String> {
        let replicas: Vec<SocketAddr> = trees.iter().map(|(endpoint, _)| *endpoint).collect();
        let options = &self.command.options;
        let optimises = self.node.repairs.permits.load().settings.optimises(options) && !options.is_pull;
        let centers: BTreeMap<SocketAddr, String> =
            replicas.iter().map(|endpoint| (*endpoint, data_center(self.node, *endpoint))).collect();
        let compare = move || -> Result<_, String> {
            let differences = differences(&trees)?;
            let is_near = |a: SocketAddr, b: SocketAddr| centers.get(&a) == centers.get(&b);
            let optimised = optimises.then(|| plan::optimised(&differences, &is_near));
            Ok((differences, optimised))
        };
        let compared = self.node.env.blocking_long("compare trees", compare).await;
        let compared = compared.map_err(|_| "too much is to be done here".to_owned())?;
        let (differences, optimised) = compared.map_err(|why| self.failed(&why))?;
        self.trace_differences(&replicas, &differences);
        Ok(optimised.unwrap_or_else(|| plan::standard(differences, self.local(), options.is_pull)))
    }

    /// Says in the trace which replicas differ, and which do not.
    fn trace_differences(&self, replicas: &[SocketAddr], differences: &[Difference]) {
        for (at, first) in replicas.iter().enumerate() {
            for second in &replicas[at + 1..] {
                let found = differences.iter().find(|difference| difference.between == [*first, *second]);
                self.command.trace(self.node, || match found.map(|difference| difference.ranges.len()) {
                    None => format!("Endpoint /{first} is consistent with /{second} for {}", self.table),
                    Some(count) => {
                        format!("Endpoint /{first} has {count} range(s) out of sync with /{second} for {}", self.table)
                    }
                });
            }
        }
    }

    async fn sync(&self, job: &Job, sync: Sync) -> Result<SyncStat, String> {
        // a TRUNCATE that came while trees were compared has ended no streams of this job
        if let Some(why) = self.command.cancelled() {
            return Err(self.failed(&why));
        }
        let (source, destination) = (sync.source, sync.destination);
        let ranges = sync.ranges.clone();
        let summaries = match source == self.local() {
            true => {
                let options = &self.command.options;
                let (preview, pending) = (options.preview, options.is_incremental.then_some(self.command.id));
                let (peer, ranges, sends) = (destination, &sync.ranges[..], sync.is_mutual);
                let exchange = Exchange { job, peer, ranges, sends, preview, pending };
                self.command.trace(self.node, || {
                    format!("Performing streaming repair of {} ranges with /{destination}", ranges.len())
                });
                let exchanged = streams::exchange(self.node, exchange).await;
                self.command.trace(self.node, || {
                    let (session, table) = (uuid_text(&self.session), &self.table);
                    let status = if exchanged.is_ok() { "complete" } else { "aborted" };
                    format!("Sync {status} using session {session} between /{source} and /{destination} on {table}")
                });
                let counts = &self.node.repairs.counts;
                RepairCounts::count(&exchanged, &counts.exchanges, &counts.exchanges_failed);
                exchanged
            }
            false => self.sync_of(job, sync).await,
        };
        let summaries = summaries.map_err(|why| {
            tracing::warn!(why, %source, %destination, table = job.table, "what differs cannot be streamed");
            self.failed(&format!("Sync failed between /{source} and /{destination}"))
        })?;
        Ok(SyncStat { ranges, summaries })
    }

    /// Streams between two other replicas.
    async fn sync_of(&self, job: &Job, sync: Sync) -> Result<Vec<StreamSummary>, String> {
        let Sync { source, destination, ranges, is_mutual } = sync;
        let key = RepairResultKey::Synced(self.session, self.table.clone(), source, destination);
        let told = self.node.repairs.expect(key.clone());
        let request = SyncRequest {
            job: job.clone(),
            initiator: self.local(),
            source,
            destination,
            ranges,
            preview: self.command.options.preview,
            is_asymmetric: !is_mutual,
        };
        self.command.trace(self.node, || {
            format!(
                "Forwarding streaming repair of {} ranges to /{source} (to be streamed with /{destination})",
                request.ranges.len()
            )
        });
        let payload = Bytes::from(request.encode().map_err(|error| error.to_string())?);
        let verb = Verb::SyncReq;
        if let Err(error) = self.node.tell_repair_of(Some(self.command), source, verb, payload.clone()).await {
            self.node.repairs.forget(&key);
            return Err(error.to_string());
        }
        let patience = Patience::Asks(verb, payload);
        match self.node.await_repair(self.command, source, &key, told, patience).await? {
            RepairResult::Synced(told) if told.is_success => Ok(told.summaries),
            _ => Err("the source says so".to_owned()),
        }
    }
}

fn data_center(node: &Node, address: SocketAddr) -> String {
    let ring = node.ring();
    let endpoint = ring.endpoints().iter().find(|endpoint| endpoint.address == address);
    endpoint.map(|endpoint| endpoint.data_center.clone()).unwrap_or_default()
}

/// The differences of each two replicas that have some.
fn differences(trees: &[(SocketAddr, MerkleTrees)]) -> Result<Vec<Difference>, String> {
    let mut differences = Vec::new();
    for (at, (first, of_first)) in trees.iter().enumerate() {
        for (second, of_second) in &trees[at + 1..] {
            let ranges = of_first.difference(of_second)?;
            if !ranges.is_empty() {
                differences.push(Difference { between: [*first, *second], ranges });
            }
        }
    }
    Ok(differences)
}
