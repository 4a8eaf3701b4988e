//! A coordinator that records what a statement asks of it.

use std::cell::RefCell;
use std::sync::Arc;

use rows::report::ReadReport;
use rows::stream::EmptyStream;
use rows::{Mutation, PartitionRange, PartitionStream, PartitionUpdate, ReadCommand};
use schema::{Schema, TableMetadata};
use types::Consistency;

use super::ExplainCoordinator;
use crate::auth::{Roles, RolesOf};
use crate::coordinator::CasPartition;
use crate::coordinator::{CasRequest, ClusterInfo, Coordinator, ReadOptions, SchemaChange, WriteOptions};
use crate::error::CqlError;
use crate::result::SchemaEvent;

/// A read that was asked for.
pub(super) struct RecordedRead {
    /// Its commands; of increments there are none, their report says all.
    pub commands: Vec<ReadCommand>,
    /// The node's report on its sources.
    pub report: ReadReport,
    /// For a write: it looks at what is there.
    pub consistency: Consistency,
}

/// A write that was asked for.
pub(super) struct RecordedWrite {
    /// The mutations of the write.
    pub mutations: Vec<Mutation>,
    /// How.
    pub options: WriteOptions,
    /// How long the node took; 0 where nothing was carried out.
    pub micros: u64,
}

/// A conditional statement that was asked for.
pub(super) struct RecordedCondition {
    /// The condition held; None: it was not looked at.
    pub applied: Option<bool>,
    /// The update that a condition allowed; None: nothing was written.
    pub update: Option<PartitionUpdate>,
    /// At which consistency it was agreed on.
    pub serial: Consistency,
    /// How long the node took.
    pub micros: u64,
}

/// The reads and writes that a statement asked its coordinator for.
#[derive(Default)]
pub(super) struct Recording {
    /// Reads, in order.
    pub reads: Vec<RecordedRead>,
    /// Writes, in order.
    pub writes: Vec<RecordedWrite>,
    /// A conditional statement.
    pub condition: Option<RecordedCondition>,
}

/// The coordinator. `analyze`: what is asked is passed on.
pub(super) struct RecordingCoordinator<'a, C> {
    node: &'a C,
    analyze: bool,
    recording: RefCell<Recording>,
}

impl<'a, C: ExplainCoordinator> RecordingCoordinator<'a, C> {
    /// Before a node.
    pub fn new(node: &'a C, analyze: bool) -> Self {
        Self { node, analyze, recording: RefCell::default() }
    }

    /// The reads and writes that were asked for.
    pub fn into_recording(self) -> Recording {
        self.recording.into_inner()
    }

    async fn plan_read(&self, commands: Vec<ReadCommand>, options: &ReadOptions) -> Result<(), CqlError> {
        let report = self.node.explain_read(commands.clone(), options).await?;
        let consistency = options.consistency;
        self.recording.borrow_mut().reads.push(RecordedRead { commands, report, consistency });
        Ok(())
    }
}

impl<C: ExplainCoordinator> Coordinator for RecordingCoordinator<'_, C> {
    fn schema(&self) -> Arc<Schema> {
        self.node.schema()
    }

    fn now_micros(&self) -> i64 {
        self.node.now_micros()
    }

    fn now_seconds(&self) -> u32 {
        self.node.now_seconds()
    }

    fn latest_expiration(&self) -> u32 {
        self.node.latest_expiration()
    }

    fn next_timeuuid(&self) -> [u8; 16] {
        self.node.next_timeuuid()
    }

    fn random_uuid(&self) -> [u8; 16] {
        self.node.random_uuid()
    }

    fn cluster(&self) -> ClusterInfo {
        self.node.cluster()
    }

    fn ownership(&self, keyspace: &str) -> Vec<(i64, Vec<String>)> {
        self.node.ownership(keyspace)
    }

    async fn roles(&self, of: RolesOf<'_>) -> Result<Arc<Roles>, CqlError> {
        self.node.roles(of).await
    }

    async fn mutate(&self, mutations: Vec<Mutation>, options: &WriteOptions) -> Result<(), CqlError> {
        let begun = self.node.monotonic_micros();
        let reads = options.counters.then_some(options.consistency);
        let mut report = ReadReport::default();
        if self.analyze {
            reads.iter().for_each(|_| self.node.observe_reads());
            self.node.mutate(mutations.clone(), options).await?;
        } else if reads.is_some() {
            report = self.node.explain_increments(&mutations).await?;
        }
        let micros = self.node.monotonic_micros().saturating_sub(begun);
        if let Some(consistency) = reads {
            let report = if self.analyze { self.node.observed_reads() } else { report };
            self.recording.borrow_mut().reads.push(RecordedRead { commands: Vec::new(), report, consistency });
        }
        self.recording.borrow_mut().writes.push(RecordedWrite { mutations, options: *options, micros });
        Ok(())
    }

    async fn compare_and_set<F>(&self, request: CasRequest, mut decide: F) -> Result<(), CqlError>
    where
        F: FnMut(CasPartition, i64) -> Result<Option<PartitionUpdate>, CqlError>,
    {
        let serial = request.serial;
        if !self.analyze && matches!(request.command.range, PartitionRange::Key(_)) {
            self.plan_read(vec![request.command.clone()], &ReadOptions { consistency: serial, wanted_rows: None })
                .await?;
        }
        let mut condition = RecordedCondition { applied: None, update: None, serial, micros: 0 };
        if self.analyze {
            let begun = self.node.monotonic_micros();
            let watched = |partition: CasPartition, timestamp: i64| {
                let decided = decide(partition, timestamp)?;
                condition.applied = Some(decided.is_some());
                condition.update.clone_from(&decided);
                Ok(decided)
            };
            let commands = vec![request.command.clone()];
            self.node.observe_reads();
            self.node.compare_and_set(request, watched).await?;
            condition.micros = self.node.monotonic_micros().saturating_sub(begun);
            let report = self.node.observed_reads();
            self.recording.borrow_mut().reads.push(RecordedRead { commands, report, consistency: serial });
        }
        self.recording.borrow_mut().condition = Some(condition);
        Ok(())
    }

    async fn read<T, F>(&self, commands: Vec<ReadCommand>, options: &ReadOptions, build: F) -> Result<T, CqlError>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        if !self.analyze {
            self.plan_read(commands, options).await?;
            // of nothing, to have something of that type: it is thrown away
            return build(&mut EmptyStream);
        }
        let (built, report) = self.node.analyze_read(commands.clone(), options, build).await?;
        let consistency = options.consistency;
        self.recording.borrow_mut().reads.push(RecordedRead { commands, report, consistency });
        Ok(built)
    }

    async fn change_schema(&self, _: SchemaChange) -> Result<Option<SchemaEvent>, CqlError> {
        Err(CqlError::Server("EXPLAIN changes no schema".to_owned()))
    }

    async fn truncate(&self, _: &Arc<TableMetadata>) -> Result<(), CqlError> {
        Err(CqlError::Server("EXPLAIN truncates nothing".to_owned()))
    }
}
