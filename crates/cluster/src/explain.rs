//! Reports on reads: what a read would take (EXPLAIN), and what it took (EXPLAIN ANALYZE).
//!
//! The plan is made in the background, as it may touch indexes that are not in memory. What is
//! analysed runs as every read does, inline first; only its sources are opened by way of an
//! [`Observation`]. A read that other nodes have a share in runs among them: of them their answers
//! are told, of this node the sources that it has.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use rows::command::TraceSink;
use rows::dead::{GracePeriod, PassedCounts};
use rows::report::{COMMANDS_MAX, REPLICAS_MAX, ReadReport, ReplicaReport, RunReport};
use rows::{Build, PartitionHead, PartitionStream, ReadCommand, ReadContext, ReadError, Unfiltered};
use storage::Observation;
use types::Consistency;

use crate::coordinator::error::FailedRead;
use crate::node::Node;
use crate::replica::apply::within;
use crate::replica::read::{Open, ReadFigures, ReadOutcome, ReadRequest};

impl Node {
    /// A function that opens reads of this node and notes them in the observation.
    pub fn observed(&self, observation: &Observation) -> Arc<Open> {
        let (engine, observation) = (Arc::clone(&self.engine), observation.clone());
        Arc::new(move |command: &ReadCommand, context: &ReadContext| {
            engine.read_observed(command, context, &observation)
        })
    }

    /// Explains the reads of the commands: their sources, and the work that each would take.
    pub async fn explain(
        &self,
        commands: Vec<ReadCommand>,
        level: Consistency,
    ) -> Result<ReadReport, FailedRead<ReadError>> {
        let block_for = self.plan_read(&commands, level).map_err(FailedRead::Refused)?;
        let replicas = self.replicas_of(&commands, level)?;
        let limit = self.timeouts().range;
        let engine = Arc::clone(&self.engine);
        let plan = move || {
            let left_out = commands.len().saturating_sub(COMMANDS_MAX) as u64;
            let told = commands.iter().take(COMMANDS_MAX);
            let planned: Result<Vec<_>, ReadError> = told.map(|command| engine.explain(command)).collect();
            let commands = planned?.into_iter().flatten().collect();
            Ok(ReadReport { commands, commands_left_out: left_out, block_for, replicas, ..ReadReport::default() })
        };
        let planned = match within(&self.env, limit, self.env.blocking("explain", plan)).await {
            None => Err(ReadOutcome::TimedOut),
            Some(Err(_)) => Err(ReadOutcome::Overloaded),
            Some(Ok(result)) => result.map_err(ReadOutcome::Failed),
        };
        planned.map_err(|outcome| self.failed_read(outcome, level, block_for))
    }

    /// The replicas of a read that other nodes have a share in. Empty: this node alone is asked.
    fn replicas_of<E>(
        &self,
        commands: &[ReadCommand],
        level: Consistency,
    ) -> Result<Vec<ReplicaReport>, FailedRead<E>> {
        let parts = match self.messenger() {
            Some(_) => self.plan_all_parts(commands, level).map_err(FailedRead::Refused)?,
            None => None,
        };
        let mut replicas: BTreeMap<SocketAddr, ReplicaReport> = BTreeMap::new();
        for part in parts.into_iter().flatten() {
            let asks_for_digests = !part.is_of_range();
            let asked = part.contacts.asked.iter().enumerate().map(|(place, contact)| (Some(place), contact));
            for (place, contact) in asked.chain(part.contacts.spare.iter().map(|contact| (None, contact))) {
                let replica = replicas.entry(contact.address).or_default();
                (replica.address, replica.is_local) = (contact.address.to_string(), contact.is_local);
                match place {
                    None => replica.spare += 1,
                    Some(1..) if asks_for_digests => replica.digest += 1,
                    Some(_) => replica.data += 1,
                }
            }
        }
        Ok(replicas.into_values().take(REPLICAS_MAX).collect())
    }

    /// Builds something from the stream of a read among several nodes, and tells what it took: of
    /// the others their answers, of this node the sources that it would read by itself.
    async fn analyze_distributed<B: Build>(
        &self,
        commands: Vec<ReadCommand>,
        mut report: ReadReport,
        (level, trace): (Consistency, Option<Arc<dyn TraceSink>>),
        build: B,
    ) -> Result<(B::Built, ReadReport), FailedRead<B::Error>> {
        let grace = grace_of(&commands);
        let counted = move |stream: &mut dyn PartitionStream| {
            let mut merged = Merged { stream, grace, passed: PassedCounts::default() };
            let built = build.build(&mut merged)?;
            Ok((built, merged.passed))
        };
        let figures = ReadFigures::default().with_answers();
        let request = ReadRequest { trace, ..ReadRequest::of(commands) };
        let begun = self.env.now();
        let (built, passed) = self.read(request, level, &figures, counted).await?;
        let micros = micros(self.env.elapsed(begun));
        let mut answers = figures.answers();
        for replica in &mut report.replicas {
            replica.answers = replica.address.parse().ok().and_then(|address: SocketAddr| answers.remove(&address));
        }
        report.run = Some(RunReport { passed, micros, waited_micros: 0, in_background: false });
        Ok((built, report))
    }

    /// Builds something from the stream of a read, as [`Node::read`] does, and tells what it took.
    pub async fn analyze<B: Build>(
        &self,
        commands: Vec<ReadCommand>,
        level: Consistency,
        trace: Option<Arc<dyn TraceSink>>,
        build: B,
    ) -> Result<(B::Built, ReadReport), FailedRead<B::Error>> {
        let block_for = self.plan_read(&commands, level).map_err(FailedRead::Refused)?;
        if !self.replicas_of::<B::Error>(&commands, level)?.is_empty() {
            let planned = self.explain(commands.clone(), level).await.map_err(|error| error.map(B::Error::from))?;
            return Box::pin(self.analyze_distributed(commands, planned, (level, trace), build)).await;
        }
        let observation = Observation::new();
        let open = self.observed(&observation);
        let grace = grace_of(&commands);
        let env = self.env.clone();
        let timed = move |stream: &mut dyn PartitionStream| {
            let begun = env.now();
            let mut merged = Merged { stream, grace, passed: PassedCounts::default() };
            let built = build.build(&mut merged)?;
            Ok((built, merged.passed, micros(env.elapsed(begun))))
        };
        let begun = self.env.now();
        let request = ReadRequest { trace, open: Some(open), ..ReadRequest::of(commands) };
        let (limit, figures) = (self.read_limit(&request.commands), ReadFigures::default());
        let read = self.replica.read(request, limit, &figures, timed).await;
        let (built, passed, ran) = read.map_err(|outcome| self.failed_read(outcome, level, block_for))?;
        let micros = micros(self.env.elapsed(begun));
        let (commands, commands_left_out, in_background) = observation.take();
        let run = RunReport { passed, micros, waited_micros: micros.saturating_sub(ran), in_background };
        Ok((built, ReadReport { commands, commands_left_out, run: Some(run), block_for, ..ReadReport::default() }))
    }
}

fn grace_of(commands: &[ReadCommand]) -> GracePeriod {
    commands.first().map_or(GracePeriod { now: 0, seconds: 0 }, |command| GracePeriod {
        now: command.now,
        seconds: u32::try_from(command.table.params.gc_grace_seconds).unwrap_or(0),
    })
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The merged stream of all sources, which counts the rows and tombstones that it gives.
struct Merged<'a> {
    stream: &'a mut dyn PartitionStream,
    grace: GracePeriod,
    passed: PassedCounts,
}

impl PartitionStream for Merged<'_> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.stream.next_partition()?;
        if let Some(head) = &head {
            self.passed.head(head, &self.grace);
        }
        Ok(head)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let next = self.stream.next_unfiltered()?;
        if let Some(unfiltered) = &next {
            self.passed.unfiltered(unfiltered, &self.grace);
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SimRing, count_unfiltereds};

    /// The plan of a read of three copies names who gives data, who a digest, and who is spare; the
    /// analysis has the answers of those that were asked.
    #[test]
    fn replicas_of_a_read_are_told() {
        let ring = SimRing::new(23, &["dc1", "dc1", "dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
        ring.write(0, vec![ring.row("ks", 1, 1, 5, 10)], Consistency::All).expect("written");
        let node = ring.node(1);
        let commands = || vec![ring.select_key("ks", 1)];
        let planned = ring.world.block_on(node.explain(commands(), Consistency::Quorum)).expect("planned");
        let roles = |report: &ReadReport| {
            let mut roles: Vec<_> =
                report.replicas.iter().map(|one| (one.is_local, one.data, one.digest, one.spare)).collect();
            roles.sort_unstable();
            roles
        };
        assert_eq!(roles(&planned), [(false, 0, 0, 1), (false, 0, 1, 0), (true, 1, 0, 0)]);
        assert!(planned.replicas.iter().all(|one| one.answers.is_none()) && planned.run.is_none());
        let analyzed = node.analyze(commands(), Consistency::Quorum, None, count_unfiltereds);
        let (rows, report) = ring.world.block_on(analyzed).expect("read");
        assert_eq!((rows, roles(&report)), (1, roles(&planned)));
        for replica in &report.replicas {
            let answers = replica.answers.map(|answers| (answers.count, answers.failed, answers.bytes > 0));
            let wanted = (replica.spare == 0).then_some((1, 0, replica.data == 1));
            assert_eq!(answers, wanted, "{replica:?}");
        }
        assert!(!report.commands.is_empty(), "the sources of this node");
        // this node alone is asked: nothing of replicas
        let alone = ring.world.block_on(node.explain(commands(), Consistency::One)).expect("planned");
        assert_eq!(alone.replicas, []);
    }
}
