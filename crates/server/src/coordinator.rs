//! The node behind the trait that statements use: [`cql::Coordinator`] over [`cluster::Node`].
//!
//! One [`RequestCoordinator`] a request: it knows the request's trace. Tables whose rows are made up are read here too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cluster::replica::read::Open;
use cluster::{Acknowledgement, ReadFigures, ReadOutcome, ReadRequest, WriteError};
use cql::auth::Roles;
use cql::{
    CasPartition, CasRequest, ClusterInfo, Coordinator, CqlError, ReadOptions, SchemaChange, SchemaEvent, WriteOptions,
};
use rows::command::TraceSink;
use rows::report::ReadReport;
use rows::{Mutation, PartitionRange, PartitionStream, PartitionUpdate, ReadCommand, ReadContext, ReadError};
use schema::{Schema, TableId, TableMetadata};
use stdx::Share;
use storage::Observation;
use types::{BatchKind, Consistency, DecoratedKey, WriteKind};

use crate::auth::Auth;
use crate::errors;
use crate::events;
use crate::request::Unacknowledged;
use crate::services::Services;
use crate::trace::TraceSession;
use crate::virtual_tables;

/// The node, for one request.
pub struct RequestCoordinator {
    /// What all requests share.
    pub services: Arc<Services>,
    /// Set when the request is traced.
    pub trace: Option<Arc<TraceSession>>,
    /// The request read a range: set on the way.
    pub of_range: AtomicBool,
    /// The request was a conditional statement: set on the way.
    pub conditional: AtomicBool,
    /// What its reads took.
    pub figures: ReadFigures,
    /// Looks on at reads that writes do: EXPLAIN ANALYZE asked for it.
    pub observation: OnceLock<Observation>,
    /// The table that was read, while somebody samples.
    pub sampled: OnceLock<Arc<TableMetadata>>,
    /// Whoever made it waits for the log in its place, where a write has to.
    pub leaves_wait: bool,
    /// The write that it has left to wait for.
    pub unacknowledged: Mutex<Option<Unacknowledged>>,
}

impl RequestCoordinator {
    fn check(&self, keyspace: &str, consistency: Consistency) -> Result<i32, CqlError> {
        let required = self
            .services
            .node
            .check_level(keyspace, consistency)
            .map_err(|shortage| errors::unavailable(consistency, shortage))?;
        Ok(i32::try_from(required).unwrap_or(i32::MAX))
    }

    /// Says in the trace where mutations go.
    fn describe(&self, mutations: &[Mutation]) {
        if self.trace.is_none() {
            return;
        }
        let shards = self.services.node.engine.shards;
        for mutation in mutations {
            self.trace(|| "Appending to commitlog".to_owned());
            for update in &mutation.updates {
                let shard = shards.of(mutation.key.token);
                self.trace(|| format!("Adding to {} memtable of shard {shard}", update.table.name));
            }
        }
    }

    /// Partitions of a batch; those of two keyspaces count as two.
    fn count_partitions(&self, kind: BatchKind, mutations: &[Mutation]) {
        let requests = &self.services.requests;
        let histogram = match kind {
            BatchKind::Logged => &requests.logged_batch_partitions,
            BatchKind::Unlogged => &requests.unlogged_batch_partitions,
            BatchKind::Counter => &requests.counter_batch_partitions,
        };
        histogram.record(mutations.len() as u64);
    }

    /// Writes, and leaves the wait for the log to whoever made this.
    async fn append(
        &self,
        mutations: Vec<Mutation>,
        unacknowledged: impl FnOnce(Acknowledgement) -> Unacknowledged,
    ) -> Result<(), WriteError> {
        let Some(wait) = self.services.node.append(&mutations).await? else { return Ok(()) };
        let former = self.unacknowledged.lock().expect("no panic inside").replace(unacknowledged(wait));
        match former {
            None => Ok(()),
            Some(former) => former.wait.await,
        }
    }

    /// What a client was told is in force when it has been told.
    async fn reload_roles(&self) -> Result<(), CqlError> {
        match &self.services.auth {
            Some(auth) => auth.reload().await,
            None => Ok(()),
        }
    }

    /// Refuses reads that cannot be at a level. Gives how many replicas they wait for.
    fn check_read(&self, commands: &[ReadCommand], consistency: Consistency) -> Result<i32, CqlError> {
        if consistency == Consistency::Any {
            return Err(CqlError::invalid("ANY ConsistencyLevel is only supported for writes"));
        }
        if consistency.is_serial() && commands.len() > 1 {
            return Err(CqlError::invalid(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
            ));
        }
        if cluster::replica::read::is_of_range(commands) {
            self.of_range.store(true, Ordering::Relaxed);
        }
        match commands.first() {
            Some(command) if !command.table.is_virtual() => self.check(&command.table.keyspace, consistency),
            _ => Ok(1),
        }
    }

    /// What a conditional statement or a read at SERIAL answers must not be taken back by a power cut.
    async fn wait_for_what_was_read(
        &self,
        table: &TableMetadata,
        key: &DecoratedKey,
        consistency: Consistency,
        block_for: i32,
    ) -> Result<(), CqlError> {
        let waited = self.services.node.wait_for_what_was_read(table, key).await;
        waited.map_err(|error| errors::of_write(error, consistency, block_for, WriteKind::Cas))
    }

    /// Reads what is there, durable or not.
    async fn read_now<T, F>(
        &self,
        commands: Vec<ReadCommand>,
        consistency: Consistency,
        build: F,
    ) -> Result<T, CqlError>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        let block_for = self.check_read(&commands, consistency)?;
        let open = match is_virtual(&commands) {
            true => Some(virtual_tables::opener(&self.services)),
            false => self.observing(),
        };
        let trace = self.trace.clone().map(|trace| trace as Arc<dyn TraceSink>);
        let table = commands.first().map(|command| command.table.id);
        let node = &self.services.node;
        if let Some(command) = commands.first().filter(|_| node.sampling.is_on()) {
            let _ = self.sampled.set(Arc::clone(&command.table));
        }
        let results = Some(Arc::clone(&self.services.results));
        let request = ReadRequest { commands, trace, open, results };
        let broadcast = node.identity.broadcast;
        let read = node.read_told(request, &self.figures, would_block, build).await;
        read.map_err(|outcome| {
            self.count_failure(table, &outcome);
            errors::of_read(outcome, consistency, block_for, broadcast)
        })
    }

    fn count_failure(&self, table: Option<TableId>, outcome: &ReadOutcome<CqlError>) {
        if let ReadOutcome::Failed(CqlError::Read(ReadError::TooManyTombstones(_))) = outcome
            && let Some(store) = table.and_then(|table| self.services.node.engine.table(table))
        {
            store.metrics.tombstone_failures.add(1);
        }
    }

    fn trace(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.event(line());
        }
    }

    /// How reads are opened while somebody looks on.
    fn observing(&self) -> Option<Arc<Open>> {
        let observation = self.observation.get()?.clone();
        let engine = Arc::clone(&self.services.node.engine);
        Some(Arc::new(move |command: &ReadCommand, context: &ReadContext| {
            engine.read_observed(command, context, &observation)
        }))
    }
}

/// The partition that a command reads; None: it reads a range.
fn partition_of(command: &ReadCommand) -> Option<(Arc<TableMetadata>, DecoratedKey)> {
    match &command.range {
        PartitionRange::Key(key) => Some((Arc::clone(&command.table), key.clone())),
        PartitionRange::Range { .. } => None,
    }
}

fn is_virtual(commands: &[ReadCommand]) -> bool {
    commands.first().is_some_and(|command| command.table.is_virtual())
}

fn would_block(error: &CqlError) -> bool {
    matches!(error, CqlError::Read(ReadError::WouldBlock))
}

/// What a schema change's function answered when it gave no schema.
enum Refused {
    NothingToDo,
    Failed(CqlError),
}

impl Coordinator for RequestCoordinator {
    fn schema(&self) -> Arc<Schema> {
        self.services.node.schema()
    }

    fn results(&self) -> Option<&Arc<Share>> {
        Some(&self.services.results.share)
    }

    fn now_micros(&self) -> i64 {
        self.services.node.clock.next_micros()
    }

    fn now_seconds(&self) -> u32 {
        self.services.node.env.clock.now_seconds()
    }

    fn next_timeuuid(&self) -> [u8; 16] {
        self.services.node.uuids.next()
    }

    fn random_uuid(&self) -> [u8; 16] {
        self.services.node.uuids.random()
    }

    fn cluster(&self) -> ClusterInfo {
        let identity = &self.services.node.identity;
        let endpoint = format!("/{}", identity.broadcast);
        ClusterInfo {
            name: identity.cluster_name.clone(),
            data_centers: vec![identity.data_center.clone()],
            default_compaction: Arc::clone(&self.services.default_compaction),
            ring: identity.tokens.iter().map(|token| (token.0, endpoint.clone())).collect(),
            ..ClusterInfo::default()
        }
    }

    fn roles(&self) -> Arc<Roles> {
        self.services.auth.as_ref().map(|auth| Arc::clone(&auth.current().roles)).unwrap_or_default()
    }

    async fn hash_password(&self, password: String) -> Result<String, CqlError> {
        match &self.services.auth {
            Some(auth) => auth.passwords.hash(password).await.map_err(CqlError::Overloaded),
            None => Err(CqlError::Server("nobody logs in here".to_owned())),
        }
    }

    async fn mutate(&self, mutations: Vec<Mutation>, options: &WriteOptions) -> Result<(), CqlError> {
        let consistency = options.consistency;
        if mutations.first().and_then(|mutation| mutation.updates.first()).is_some_and(|first| first.table.is_virtual())
        {
            return virtual_tables::apply(&self.services, &mutations);
        }
        if consistency.is_serial() {
            return Err(CqlError::invalid("You must use conditional updates for serializable writes"));
        }
        let mut block_for = 1;
        let mut of_roles = false;
        for update in mutations.iter().flat_map(|mutation| &mutation.updates) {
            block_for = self.check(&update.table.keyspace, consistency)?;
            of_roles |= Auth::follows(&update.table.keyspace);
        }
        let node = &self.services.node;
        let count = mutations.len();
        if let Some(kind) = options.batch {
            self.count_partitions(kind, &mutations);
        }
        let (kind, written) = if options.logged_batch && count > 1 {
            self.trace(|| format!("Writing a logged batch of {count} mutations with its record in system.batches"));
            (WriteKind::BatchLog, node.write_logged_batch(mutations).await)
        } else if options.counters {
            self.trace(|| format!("Adding to the counters of {count} partitions"));
            (WriteKind::Counter, node.write_counters(mutations, self.observing()).await)
        } else {
            self.describe(&mutations);
            let kind = if count > 1 { WriteKind::UnloggedBatch } else { WriteKind::Simple };
            // roles are loaded again when they are durable
            let written = match self.leaves_wait && !of_roles {
                true => self.append(mutations, |wait| Unacknowledged { wait, consistency, block_for, kind }).await,
                false => node.write(&mutations).await,
            };
            (kind, written)
        };
        written.map_err(|error| errors::of_write(error, consistency, block_for, kind))?;
        self.trace(|| "Written: the commit log has it".to_owned());
        if of_roles {
            self.reload_roles().await?;
        }
        Ok(())
    }

    async fn compare_and_set<F>(&self, request: CasRequest, mut decide: F) -> Result<(), CqlError>
    where
        F: FnMut(CasPartition, i64) -> Result<Option<PartitionUpdate>, CqlError>,
    {
        self.conditional.store(true, Ordering::Relaxed);
        let CasRequest { command, serial, commit, .. } = &request;
        let (serial, commit) = (*serial, *commit);
        let PartitionRange::Key(key) = command.range.clone() else {
            return Err(CqlError::Server("a conditional statement is of one partition".to_owned()));
        };
        let (table, command) = (Arc::clone(&command.table), command.clone());
        let block_for = self.check(&table.keyspace, serial)?;
        let commit_block_for = self.check(&table.keyspace, commit)?;
        let kind = WriteKind::Cas;
        let node = &self.services.node;
        let timed_out = || CqlError::WriteTimeout { consistency: serial, received: 0, block_for, kind };
        let held = node.lock_partition(&table, &key).await.ok_or_else(timed_out)?;
        self.trace(|| "Reading existing values for CAS precondition".to_owned());
        let build = move |stream: &mut dyn PartitionStream| CasPartition::read(stream, &request);
        let found = self.read_now(vec![command], serial, build).await?;
        let timestamp = found.timestamp(self.now_micros());
        let Some(update) = decide(found, timestamp)? else {
            self.trace(|| "CAS precondition does not match current values".to_owned());
            drop(held);
            return self.wait_for_what_was_read(&table, &key, serial, block_for).await;
        };
        if update.is_empty() {
            drop(held);
            return self.wait_for_what_was_read(&table, &key, serial, block_for).await;
        }
        let mutations = [Mutation::of(update)];
        self.trace(|| "CAS precondition is met".to_owned());
        self.describe(&mutations);
        let written = node.write_and_release(&mutations, held).await;
        written.map_err(|error| errors::of_write(error, commit, commit_block_for, kind))?;
        if Auth::follows(&table.keyspace) {
            self.reload_roles().await?;
        }
        Ok(())
    }

    async fn read<T, F>(&self, commands: Vec<ReadCommand>, options: &ReadOptions, build: F) -> Result<T, CqlError>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        let consistency = options.consistency;
        if !consistency.is_serial() {
            return self.read_now(commands, consistency, build).await;
        }
        let key = commands.first().and_then(partition_of);
        let built = self.read_now(commands, consistency, build).await?;
        if let Some((table, key)) = key {
            let waited = self.services.node.wait_for_what_was_read(&table, &key).await;
            waited.map_err(|error| errors::of_serial_read(error, consistency))?;
        }
        Ok(built)
    }

    fn tombstones_passed(&self, table: &TableMetadata, warning: &str) {
        tracing::warn!("{warning}");
        if let Some(store) = self.services.node.engine.table(table.id) {
            store.metrics.tombstone_warnings.add(1);
        }
    }

    async fn explain_read(&self, commands: Vec<ReadCommand>, options: &ReadOptions) -> Result<ReadReport, CqlError> {
        let consistency = options.consistency;
        let block_for = self.check_read(&commands, consistency)?;
        if is_virtual(&commands) {
            return Ok(ReadReport { is_virtual: true, block_for: 1, ..ReadReport::default() });
        }
        let node = &self.services.node;
        let of_read = |outcome| errors::of_read(outcome, consistency, block_for, node.identity.broadcast);
        let planned = node.explain(commands).await.map_err(|outcome| match outcome {
            ReadOutcome::Failed(error) => of_read(ReadOutcome::Failed(CqlError::Read(error))),
            ReadOutcome::Overloaded => of_read(ReadOutcome::Overloaded),
            ReadOutcome::TimedOut => of_read(ReadOutcome::TimedOut),
        });
        Ok(ReadReport { block_for: u32::try_from(block_for).unwrap_or(0), ..planned? })
    }

    async fn analyze_read<T, F>(
        &self,
        commands: Vec<ReadCommand>,
        options: &ReadOptions,
        build: F,
    ) -> Result<(T, ReadReport), CqlError>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        let consistency = options.consistency;
        let block_for = self.check_read(&commands, consistency)?;
        if is_virtual(&commands) {
            let built = self.read(commands, options, build).await?;
            return Ok((built, ReadReport { is_virtual: true, block_for: 1, ..ReadReport::default() }));
        }
        let node = &self.services.node;
        let trace = self.trace.clone().map(|trace| trace as Arc<dyn TraceSink>);
        let analyzed = node.analyze(commands, trace, would_block, build).await;
        let (built, report) =
            analyzed.map_err(|outcome| errors::of_read(outcome, consistency, block_for, node.identity.broadcast))?;
        Ok((built, ReadReport { block_for: u32::try_from(block_for).unwrap_or(0), ..report }))
    }

    async fn explain_increments(&self, mutations: &[Mutation]) -> Result<ReadReport, CqlError> {
        let now = self.now_seconds();
        let updates = mutations.iter().flat_map(|mutation| &mutation.updates);
        let commands = updates.filter_map(|update| cluster::coordinator::counter::command_of(update, now)).collect();
        self.explain_read(commands, &ReadOptions::default()).await
    }

    fn observe_reads(&self) {
        let _ = self.observation.set(Observation::new());
    }

    fn observed_reads(&self) -> ReadReport {
        let Some(observation) = self.observation.get() else { return ReadReport::default() };
        let (commands, commands_left_out, _) = observation.take();
        ReadReport { commands, commands_left_out, block_for: 1, ..ReadReport::default() }
    }

    fn monotonic_micros(&self) -> u64 {
        self.services.node.env.now().as_nanos() / 1_000
    }

    fn shard_of(&self, key: &DecoratedKey) -> Option<(usize, usize)> {
        let shards = self.services.node.engine.shards;
        Some((shards.of(key.token), shards.count()))
    }

    async fn change_schema(&self, change: SchemaChange) -> Result<Option<SchemaEvent>, CqlError> {
        let event = Arc::new(Mutex::new(None));
        let told = Arc::clone(&event);
        let decide = move |schema: &Schema| match (change.apply)(schema) {
            Ok(Some((after, event))) => {
                *told.lock().expect("nothing panics inside") = Some(event);
                Ok(after)
            }
            Ok(None) => Err(Refused::NothingToDo),
            Err(error) => Err(Refused::Failed(error)),
        };
        match self.services.node.change_schema(decide).await.map_err(errors::of_change)? {
            Err(Refused::NothingToDo) => Ok(None),
            Err(Refused::Failed(error)) => Err(error),
            Ok(_) => {
                let event = event.lock().expect("nothing panics inside").take();
                if let Some(event) = &event {
                    self.services.events.publish(events::of_schema(event));
                }
                Ok(event)
            }
        }
    }

    async fn truncate(&self, table: &Arc<TableMetadata>) -> Result<(), CqlError> {
        if table.is_virtual() {
            return virtual_tables::truncate(&self.services, table);
        }
        let truncated = self.services.node.truncate(&table.keyspace, &table.name).await;
        truncated.map_err(|error| {
            CqlError::Truncate(match errors::of_change(error) {
                CqlError::Server(message) => format!("Error during truncate: {message}"),
                other => other.to_string(),
            })
        })?;
        if Auth::follows(&table.keyspace) {
            self.reload_roles().await?;
        }
        Ok(())
    }
}
