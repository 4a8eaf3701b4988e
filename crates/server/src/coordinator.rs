//! The node behind the trait that statements use: [`cql::Coordinator`] over [`cluster::Node`].
//!
//! One [`RequestCoordinator`] a request: it knows the request's trace. Tables whose rows are made
//! up are read here too.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cluster::coordinator::cas::{Cas, CasError, Round};
use cluster::replica::read::Open;
use cluster::schema_agreement::AGREEMENT_WAIT;
use cluster::thresholds::Measure;
use cluster::traces::describe_write;
use cluster::{Acknowledgement, FailedRead, ReadFigures, ReadOutcome, ReadRequest, RequestError};
use config::Compatibility;
use cql::auth::{Roles, RolesOf};
use cql::coordinator::{EXPIRATION_MAX, EXPIRATION_MAX_CASSANDRA_4};
use cql::{
    CasPartition, CasRequest, ClusterInfo, Coordinator, CqlError, ExplainCoordinator, ReadOptions, ReplicaFindings,
    SchemaChange, SchemaEvent, UpdatePermissions, WriteOptions,
};
use env::LocalFutureFactory;
use protocol::response::Event;
use ring::{EndpointId, State};
use rows::command::TraceSink;
use rows::report::ReadReport;
use rows::{Build, Mutation, PartitionRange, PartitionStream, PartitionUpdate, ReadCommand, ReadError, WantedRows};
use schema::{Schema, TableId, TableMetadata};
use stdx::ByteBudget;
use storage::Observation;
use tokio::sync::oneshot;
use types::{BatchKind, Consistency, DecoratedKey};

use crate::auth::{Auth, RoleChange};
use crate::errors;
use crate::events;
use crate::services::Services;
use crate::trace::TraceSession;
use crate::virtual_tables;

/// A change of the schema that is in force: the event for its client, and those that all registered
/// clients are sent, which are taken out when they are sent.
type Change = (SchemaEvent, Vec<Event>);

/// The node, for one request.
pub struct RequestCoordinator {
    /// The state that all requests share.
    pub services: Arc<Services>,
    /// Set when the request is traced.
    pub trace: Option<Arc<TraceSession>>,
    /// Set to true when the request reads a range.
    pub of_range: AtomicBool,
    /// Set to true when the request is a conditional statement.
    pub conditional: AtomicBool,
    /// Set to true when the request reads at SERIAL or LOCAL_SERIAL.
    pub serial: AtomicBool,
    /// Figures of the request's reads.
    pub figures: ReadFigures,
    /// Observes the reads that a write does. Set only for EXPLAIN ANALYZE.
    pub observation: OnceLock<Observation>,
    /// The table that was read. Set only while a sampling session runs.
    pub sampled: OnceLock<Arc<TableMetadata>>,
    /// True: the caller waits for the commit log in the place of this request, if the write has
    /// nothing else to wait for.
    pub leaves_wait: bool,
    /// The write whose wait is left to the caller; None: none is.
    pub unacknowledged: Mutex<Option<Acknowledgement>>,
}

impl RequestCoordinator {
    /// The node for work without a request of a client: nothing traces or observes the work.
    pub fn without_request(services: Arc<Services>) -> Self {
        Self::new(services, None, false)
    }

    /// The node for a request. Inlined: a copy of the value costs each write some hundred
    /// instructions.
    #[inline]
    pub fn new(services: Arc<Services>, trace: Option<Arc<TraceSession>>, leaves_wait: bool) -> Self {
        Self {
            services,
            trace,
            of_range: AtomicBool::new(false),
            conditional: AtomicBool::new(false),
            serial: AtomicBool::new(false),
            figures: ReadFigures::default(),
            observation: OnceLock::new(),
            sampled: OnceLock::new(),
            leaves_wait,
            unacknowledged: Mutex::default(),
        }
    }

    /// Changes the schema; clients are told, and `follow` is called, when the change is durable,
    /// also where the client is gone by then.
    async fn change(
        &self,
        change: SchemaChange,
        follow: impl FnOnce(&SchemaEvent) + Send + 'static,
    ) -> Result<Option<SchemaEvent>, CqlError> {
        let event: Arc<Mutex<Option<Change>>> = Arc::default();
        let (told, published, services) = (Arc::clone(&event), Arc::clone(&event), Arc::clone(&self.services));
        let decide = move |schema: &Schema| match (change.apply)(schema) {
            Ok(Some((after, event))) => {
                let events = events::of_statement(&event, schema, &after);
                *told.lock().expect("nothing panics inside") = Some((event, events));
                Ok(after)
            }
            Ok(None) => Err(NoSchemaChange::NothingToDo),
            Err(error) => Err(NoSchemaChange::Failed(error)),
        };
        let tell = move || {
            if let Some((event, events)) = &mut *published.lock().expect("nothing panics inside") {
                events.drain(..).for_each(|event| services.events.publish(event));
                follow(event);
            }
        };
        let changed = self.services.node.change_schema_with_hook(decide, tell).await;
        match changed.map_err(errors::of_change)? {
            Err(NoSchemaChange::NothingToDo) => Ok(None),
            Err(NoSchemaChange::Failed(error)) => Err(error),
            Ok(_) => Ok(event.lock().expect("nothing panics inside").take().map(|(event, _)| event)),
        }
    }

    /// Says in the trace where mutations go. Among several nodes each replica says so itself, this
    /// node too if it is one.
    fn describe(&self, mutations: &[Mutation]) {
        let node = &self.services.node;
        if let Some(trace) = &self.trace
            && node.is_alone()
        {
            mutations.iter().for_each(|mutation| describe_write(node, &**trace, mutation));
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

    /// Ends a write. `is_left`: its wait for the commit log is left to the caller that made this
    /// coordinator; otherwise this function waits. No other wait is left: a connection polls only
    /// the first of them, so a write that waits for a slow replica would hold up the answers of
    /// all writes behind it.
    async fn acknowledge(&self, wait: Acknowledgement, is_left: bool) -> Result<(), RequestError> {
        if !is_left || !wait.is_of_log() {
            return wait.await;
        }
        let former = self.unacknowledged.lock().expect("no panic inside").replace(wait);
        match former {
            None => Ok(()),
            Some(former) => former.await,
        }
    }

    /// Called when a write to a keyspace begins. Some: the write may change the roles. The change
    /// is put in force before the statement is answered, because a client may rely on the answer.
    fn begin_role_change(&self, keyspace: &str) -> Option<RoleChange<'_>> {
        let auth = self.services.auth.as_ref().filter(|_| Auth::is_auth_keyspace(keyspace))?;
        Some(auth.begin_change())
    }

    /// Refuses reads that cannot be at a level, whatever the ring is.
    fn check_read(&self, commands: &[ReadCommand], consistency: Consistency) -> Result<(), CqlError> {
        if consistency == Consistency::Any {
            return Err(CqlError::invalid("ANY ConsistencyLevel is only supported for writes"));
        }
        if consistency.is_serial() && commands.len() > 1 {
            return Err(CqlError::invalid(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
            ));
        }
        if consistency.is_serial() {
            self.serial.store(true, Ordering::Relaxed);
        }
        if cluster::replica::read::is_of_range(commands) {
            self.of_range.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The request to the node for a read.
    fn read_request(&self, commands: Vec<ReadCommand>, wanted_rows: Option<Arc<WantedRows>>) -> ReadRequest {
        let open = match is_virtual(&commands) {
            true => {
                virtual_tables::warnings(&commands).for_each(|warning| self.figures.warnings.add(warning));
                Some(virtual_tables::opener(&self.services))
            }
            false => self.observing(),
        };
        if let Some(command) = commands.first().filter(|_| self.services.node.sampling.is_on()) {
            let _ = self.sampled.set(Arc::clone(&command.table));
        }
        let trace = self.trace_sink();
        let results = Some(Arc::clone(&self.services.results));
        ReadRequest { trace, wanted_rows, open, results, ..ReadRequest::of(commands) }
    }

    /// Reads for a conditional statement that decides by it.
    async fn read_to_decide<B>(&self, command: ReadCommand, round: &Round, build: B) -> Result<B::Built, CqlError>
    where
        B: Build<Error = CqlError>,
    {
        let table = command.table.id;
        let mut request = self.read_request(vec![command], None);
        if round.timestamp.is_some() {
            // whoever looks on at reads would see those of this node alone, and a statement that
            // replicas agree on does not decide by one of them
            request.open = None;
        }
        let read = self.services.node.read_to_decide(request, round, &self.figures, build).await;
        read.map_err(|error| self.failed_read(Some(table), error))
    }

    fn failed_read(&self, table: Option<TableId>, error: FailedRead<CqlError>) -> CqlError {
        if let FailedRead::Failed { outcome, .. } = &error
            && let ReadOutcome::Failed(CqlError::Read(ReadError::TooManyTombstones(_))) = outcome
            && let Some(table) = table
        {
            self.services.node.count_tombstone_failure(table);
        }
        errors::of_read(error, self.services.config.read_thresholds)
    }

    fn trace(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.event(line());
        }
    }

    fn trace_sink(&self) -> Option<Arc<dyn TraceSink>> {
        self.trace.clone().map(|trace| trace as Arc<dyn TraceSink>)
    }

    /// The function that opens reads under observation; None: nobody observes the request.
    fn observing(&self) -> Option<Arc<Open>> {
        Some(self.services.node.observed(self.observation.get()?))
    }
}

fn is_virtual(commands: &[ReadCommand]) -> bool {
    commands.first().is_some_and(|command| command.table.is_virtual())
}

/// Why the function of a schema change gave no new schema.
enum NoSchemaChange {
    NothingToDo,
    Failed(CqlError),
}

impl Coordinator for RequestCoordinator {
    fn schema(&self) -> Arc<Schema> {
        self.services.node.schema()
    }

    fn results(&self) -> Option<&Arc<ByteBudget>> {
        Some(&self.services.results.budget)
    }

    fn now_micros(&self) -> i64 {
        self.services.node.clock.next_micros()
    }

    fn now_seconds(&self) -> u32 {
        self.services.node.env.clock.now_seconds()
    }

    fn latest_expiration(&self) -> u32 {
        match self.services.config.ring.compatibility {
            Compatibility::Cassandra4 => EXPIRATION_MAX_CASSANDRA_4,
            Compatibility::Upgrading | Compatibility::None => EXPIRATION_MAX,
        }
    }

    fn next_timeuuid(&self) -> [u8; 16] {
        self.services.node.uuids.next()
    }

    fn random_uuid(&self) -> [u8; 16] {
        self.services.node.uuids.random()
    }

    fn cluster(&self) -> ClusterInfo {
        let ring = self.services.node.ring();
        let of_ring = &self.services.config.ring;
        let snitch = of_ring.dynamic_snitch.map_or(of_ring.snitch.class(), |_| "DynamicEndpointSnitch");
        ClusterInfo {
            name: self.services.node.identity.cluster_name.clone(),
            snitch: snitch.to_owned(),
            data_centers: ring.data_centers().into_iter().map(|(name, nodes)| (name.to_owned(), nodes)).collect(),
            moving: ring
                .peers()
                .filter(|peer| peer.state != State::Normal)
                .map(|peer| format!("/{}", peer.address))
                .collect(),
            default_index: self.services.config.default_index.clone(),
            default_compaction: Arc::clone(&self.services.default_compaction),
            ..ClusterInfo::default()
        }
    }

    fn ownership(&self, keyspace: &str) -> Vec<(i64, Vec<String>)> {
        let ring = self.services.node.ring();
        let Some(placement) = ring.placement(keyspace) else { return Vec::new() };
        let name = |id: &EndpointId| format!("/{}", ring.endpoint(*id).address);
        placement.ranges().map(|(_, end, nodes)| (end.0, nodes.iter().map(name).collect())).collect()
    }

    async fn roles(&self, of: RolesOf<'_>) -> Result<Arc<Roles>, CqlError> {
        match &self.services.auth {
            Some(auth) => auth.roles(of).await,
            None => Ok(Arc::default()),
        }
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
        let mut updates = mutations.iter().flat_map(|mutation| &mutation.updates);
        let role_change = updates.find_map(|update| self.begin_role_change(&update.table.keyspace));
        let node = &self.services.node;
        let count = mutations.len();
        if let Some(kind) = options.batch {
            self.count_partitions(kind, &mutations);
        }
        let written = if options.logged_batch && count > 1 {
            self.trace(|| format!("Writing a logged batch of {count} mutations with its record in system.batches"));
            node.write_batch(mutations, consistency, self.trace_sink()).await
        } else if options.counters {
            self.trace(|| format!("Adding to the counters of {count} partitions"));
            // boxed: the future of other writes stays as small as it is
            Box::pin(node.add_to_counters(mutations, consistency, self.observing(), self.trace_sink())).await
        } else {
            self.describe(&mutations);
            match &self.trace {
                None => node.write(mutations, consistency).await,
                Some(trace) => Box::pin(node.write_traced(mutations, consistency, Arc::clone(trace) as _)).await,
            }
        };
        if let Some(wait) = written.map_err(errors::of_request)? {
            // roles are loaded again when they are durable
            let is_left = self.leaves_wait && role_change.is_none();
            self.acknowledge(wait, is_left).await.map_err(errors::of_request)?;
        }
        self.trace(|| match self.services.node.is_alone() {
            true => "Written: the commit log has it".to_owned(),
            false => "Written: as many replicas as the consistency level needs have it".to_owned(),
        });
        if let Some(role_change) = role_change {
            role_change.finish().await?;
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
        let table = Arc::clone(&command.table);
        let role_change = self.begin_role_change(&table.keyspace);
        let asked_for = Arc::new(request.clone());
        let decide = async |round: Round| -> Result<Option<Mutation>, CqlError> {
            self.trace(|| "Reading existing values for CAS precondition".to_owned());
            let asked = Arc::clone(&asked_for);
            let build = move |stream: &mut dyn PartitionStream| CasPartition::read(stream, &asked);
            let found = self.read_to_decide(request.command.clone(), &round, build).await?;
            let timestamp = round.timestamp.unwrap_or_else(|| found.timestamp(self.now_micros()));
            let Some(update) = decide(found, timestamp)? else {
                self.trace(|| "CAS precondition does not match current values".to_owned());
                return Ok(None);
            };
            let mutation = (!update.is_empty()).then(|| Mutation::of(update));
            if round.timestamp.is_none() {
                self.trace(|| "CAS precondition is met".to_owned());
                self.describe(mutation.as_slice());
            }
            Ok(mutation)
        };
        let trace = self.trace.as_deref().map(|trace| trace as &dyn TraceSink);
        let cas = Cas { table: &table, key: &key, serial, commit, trace };
        // boxed: by value it would make the future of every request larger, which is moved several
        // times
        let done = Box::pin(self.services.node.compare_and_set(cas, command, decide));
        done.await.map_err(|error| match error {
            CasError::Request(error) => errors::of_request(error),
            CasError::Decide(error) => error,
        })?;
        if let Some(role_change) = role_change {
            role_change.finish().await?;
        }
        Ok(())
    }

    async fn read<T, F>(&self, commands: Vec<ReadCommand>, options: &ReadOptions, build: F) -> Result<T, CqlError>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        self.check_read(&commands, options.consistency)?;
        let table = commands.first().map(|command| command.table.id);
        let request = self.read_request(commands, options.wanted_rows.clone());
        let read = self.services.node.read(request, options.consistency, &self.figures, build).await;
        read.map_err(|error| self.failed_read(table, error))
    }

    fn add_error_warnings(&self, warnings: Vec<String>) {
        warnings.into_iter().for_each(|warning| self.figures.warnings.add(warning));
    }

    fn read_warnings(&self) -> Vec<String> {
        self.figures.warnings.take()
    }

    fn replica_findings(&self, query: &str, tokens: &str) -> ReplicaFindings {
        let mut sentences = ReplicaFindings::default();
        for finding in self.figures.warnings.findings.take() {
            let sentence = finding.sentence(query);
            tracing::warn!("{sentence}");
            sentences.of_tombstones |= finding.measure == Measure::Tombstones;
            sentences.warnings.push(format!("{sentence} with {tokens}"));
            if finding.is_failure {
                sentences.failures.push(sentence);
            }
        }
        sentences
    }

    fn endpoint(&self) -> SocketAddr {
        self.services.node.identity.broadcast
    }

    fn has_replica_findings(&self) -> bool {
        !self.figures.warnings.findings.is_empty()
    }

    fn report_tombstones(&self, table: &TableMetadata, warning: &str) {
        tracing::warn!("{warning}");
        self.services.node.count_tombstone_warning(table.id);
    }

    fn report_large_batch(&self, line: &str, is_refused: bool) {
        match is_refused {
            true => tracing::error!("{line}"),
            false => tracing::warn!("{line}"),
        }
    }

    async fn change_schema(&self, change: SchemaChange) -> Result<Option<SchemaEvent>, CqlError> {
        self.change(change, |_| ()).await
    }

    async fn change_schema_and_permissions<F: UpdatePermissions>(
        &self,
        change: SchemaChange,
        update: F,
    ) -> Result<Option<(SchemaEvent, Option<String>)>, CqlError> {
        let (ended, end) = oneshot::channel();
        let (services, followed) = (Arc::clone(&self.services), update.clone());
        let follow = move |event: &SchemaEvent| {
            let (event, env) = (event.clone(), services.node.env.clone());
            let make: LocalFutureFactory = Box::new(move || {
                Box::pin(async move {
                    let coordinator = Self::without_request(services);
                    let unheard = ended.send(followed.update_permissions(&event, &coordinator).await).err();
                    match unheard {
                        Some(Err(error)) => tracing::error!(%error, "permissions do not follow a change of the schema"),
                        Some(Ok(Some(warning))) => tracing::error!("{warning}"),
                        Some(Ok(None)) | None => {}
                    }
                })
            });
            if let Err(error) = env.tasks.try_spawn_local_worker("permissions", make) {
                tracing::warn!(%error, "permissions follow a change of the schema only if its client waits for it");
            }
        };
        let Some(event) = self.change(change, follow).await? else { return Ok(None) };
        let followed = match end.await {
            Ok(followed) => followed?,
            // there was no thread for it
            Err(_) => update.update_permissions(&event, self).await?,
        };
        Ok(Some((event, followed)))
    }

    async fn schema_agreement(&self) -> Vec<String> {
        let lacking = self.services.node.wait_for_schema_agreement(AGREEMENT_WAIT).await;
        if lacking.is_empty() {
            return Vec::new();
        }
        let names = lacking.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        vec![format!(
            "The schema is changed, but {names} did not have the change after {} s; they take it over as soon as they can",
            AGREEMENT_WAIT.as_secs()
        )]
    }

    async fn truncate(&self, table: &Arc<TableMetadata>) -> Result<(), CqlError> {
        if table.is_virtual() {
            return virtual_tables::truncate(&self.services, table);
        }
        let role_change = self.begin_role_change(&table.keyspace);
        let truncated = self.services.node.truncate(&table.keyspace, &table.name).await;
        truncated.map_err(errors::of_truncation)?;
        if let Some(role_change) = role_change {
            role_change.finish().await?;
        }
        Ok(())
    }
}

impl ExplainCoordinator for RequestCoordinator {
    async fn explain_read(&self, commands: Vec<ReadCommand>, options: &ReadOptions) -> Result<ReadReport, CqlError> {
        self.check_read(&commands, options.consistency)?;
        if is_virtual(&commands) {
            return Ok(ReadReport { is_virtual: true, block_for: 1, ..ReadReport::default() });
        }
        let planned = self.services.node.explain(commands, options.consistency).await;
        planned.map_err(|error| errors::of_read(error.map(CqlError::Read), self.services.config.read_thresholds))
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
        self.check_read(&commands, options.consistency)?;
        if is_virtual(&commands) {
            let built = self.read(commands, options, build).await?;
            return Ok((built, ReadReport { is_virtual: true, block_for: 1, ..ReadReport::default() }));
        }
        let trace = self.trace_sink();
        let analyzed = self.services.node.analyze(commands, options.consistency, trace, build).await;
        analyzed.map_err(|error| errors::of_read(error, self.services.config.read_thresholds))
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
        Some(self.services.node.shard_of(key.token))
    }
}
