//! A whole node in one process: engine, node, native transport. `helenus serve` and the tests of
//! whole nodes start it.
//!
//! The start: the ports are tried, the directory is locked, the schema is read, the commit log is
//! replayed, the node's identity is found, the ring is joined, the workers listen, the others are
//! told that drivers may connect. The end goes the other way: the workers drain, the others are
//! told that the node stops, memtables are flushed, the log is synced; spans that wait for their
//! collector are sent meanwhile.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use admin::http::{CallerScope, PortSecurity, TokenFile};
use cluster::operations;
use cluster::paxos::{ContentionStrategy, OnViolation, PaxosOptions, PaxosPurging, PaxosVariant};
use cluster::thresholds::{ReadSizes, SizeThresholds};
use cluster::{IdentityOptions, Node, ProtectionLimits, Timeouts};
use config::{Config, DiskFailurePolicy, SSTableFormat, Snitch};
use env::{Env, LocalFuture, Wake};
use protocol::response::{Event, StatusChange};
use schema::Schema;
use sstable::Version;
use storage::options::FlushCompression;
use storage::options::SavedCaches;
use storage::{DiskRoom, Engine, EngineOptions, StorageError};

use crate::admin_api::{NodeAdmin, SetLevel};
pub use crate::auth::FirstPassword;
use crate::auth::{Auth, PasswordAuthenticator};
use crate::certificates::{self, WatchedCertificates};
use crate::client_encryption;
use crate::commitlog_options;
use crate::console::NodeConsole;
use crate::directory::{self, Directories, DirectoryOptions};
use crate::events;
use crate::handoff;
use crate::joining;
use crate::log_lines::LogLines;
use crate::memory::MemoryBudget;
use crate::ops::Ops;
use crate::otlp::Otlp;
use crate::replay_watch::ReplayWatch;
use crate::request::CqlHandler;
use crate::resurrection;
use crate::services::Services;
pub use crate::start_error::{Drive, StartError};
use crate::topology_file;
use crate::traffic::Traffic;
use native::{EventHub, Server, ServerLimits, ServerOptions};

/// Time between two looks for compactions that no flush announces: of expired SSTables, and of
/// tombstones past gc_grace. As in Cassandra.
const COMPACTION_CHECK: Duration = Duration::from_secs(60);

/// The options of a start besides the configuration.
pub struct StartOptions {
    /// Clock, disk, network, threads.
    pub env: Env,
    /// `--data-dir`. Where data and commit log lie in it says [`crate::directory`].
    pub data_dir: PathBuf,
    /// A file of CREATE statements, for a directory without `system_schema`.
    pub schema_file: Option<PathBuf>,
    /// Nothing is written to disk; requests that write are refused.
    pub read_only: bool,
    /// cassandra.yaml and `--set`.
    pub config: Config,
    /// Where clients connect; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The admin port, for metrics and nodetool; `None`: there is none. Port 0 takes any free one.
    pub admin: Option<SocketAddr>,
    /// Changes the levels of the log, which belongs to the program; `None`: they cannot be changed.
    pub set_level: Option<Arc<SetLevel>>,
    /// The last lines of the log; filled by the program.
    pub log: Arc<LogLines>,
    /// How many workers; `None`: one a core.
    pub workers: Option<usize>,
    /// Shards of a table, a power of two; `None`: four a core.
    pub shards: Option<usize>,
    /// The memory that the node may use, and its shares.
    pub memory: MemoryBudget,
    /// File descriptors that the process may have; `None`: any number.
    pub descriptors: Option<u64>,
    /// The password of the default superuser, where users log in and there are no roles yet.
    pub first_password: FirstPassword,
}

/// A running node. Dropping it is like a kill of the process: nothing is flushed.
pub struct RunningNode {
    /// The state that all requests share.
    pub services: Arc<Services>,
    server: Server,
    ops: Option<Ops>,
    /// Follows cassandra-topology.properties; None: there is none to follow.
    _topology: Option<Wake>,
    /// Writes the heartbeat of check_data_resurrection; None: it is not enabled.
    _heartbeat: Option<Wake>,
    /// Looks at the files of certificates; None: nothing is encrypted.
    _certificates: Option<Wake>,
}

/// Starts a node.
pub fn start(options: StartOptions) -> Result<RunningNode, StartError> {
    start_until(options, &|| Box::pin(std::future::pending()))
}

/// Starts a node, unless a future of `stop` completes while the node is on its way into its ring:
/// then the node is drained, and the error is [`StartError::Stopped`]. The data of a bootstrap may
/// take hours. A second future that completes gives up the drain.
pub fn start_until(options: StartOptions, stop: &dyn Fn() -> LocalFuture) -> Result<RunningNode, StartError> {
    start_driven(options, &|future| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Workers)?;
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = future => Ok(()),
                () = stop() => Err(StartError::Stopped),
            }
        })
    })
}

/// Starts a node whose clock and network are no runtime's: those of a simulation. `drive` waits for
/// the join.
pub fn start_driven(options: StartOptions, drive: Drive<'_>) -> Result<RunningNode, StartError> {
    let StartOptions { env, config, listen, admin, memory, read_only, .. } = options;
    let directory_options =
        DirectoryOptions { data_dir: &options.data_dir, schema_file: options.schema_file.as_deref(), read_only };
    check_port(&env, listen)?;
    admin.map_or(Ok(()), |address| check_port(&env, address))?;
    let joins = joining::is_wanted(&config, read_only);
    if joins {
        check_port(&env, SocketAddr::new(config.listen_address, config.storage_port))?;
    }
    let default_compaction = schema::params::compaction::normalize(&config.compaction.default)
        .map_err(|error| StartError::DefaultCompaction(error.message().to_owned()))?;
    let cores = env.tasks.cores();
    let engine_slot: Arc<OnceLock<Weak<Engine>>> = Arc::default();
    let found = directory::locate(&env, &directory_options, &config).map_err(StartError::Directory)?;
    tracing::info!(
        data = found.data.iter().map(|data| data.display().to_string()).collect::<Vec<_>>().join(", "),
        commitlog = %found.commitlog.display(),
        read_only,
        "the directory is {}",
        found.description
    );
    let hints_directory = found.auxiliary.hints.clone();
    let shards = options.shards.unwrap_or(4 * cores);
    let replay_watch = ReplayWatch::default();
    let mut engine_options =
        EngineOptions { read_only, ..engine_options(&env, &config, found, &memory, shards, cores, &engine_slot)? };
    let (security, of_port) = port_security(&env, &config, admin)?;
    engine_options.commitlog.on_replay = replay_watch.on_replay(&env, admin, security.clone());
    let traffic = Arc::<Traffic>::default();
    engine_options.commitlog.on_failure = traffic.on_failure();
    engine_options.on_disk_failure = traffic.on_disk_failure();
    let (engine, recovered) = storage::open(&env, engine_options)?;
    replay_watch.end();
    if !config.compaction.on_startup {
        engine.tables().iter().for_each(|store| store.auto_compaction.set(false));
    }
    engine.compactor.start_periodic_checks(&engine, COMPACTION_CHECK);
    let _ = engine_slot.set(Arc::downgrade(&engine));
    tracing::info!(
        records = recovered.records,
        skipped = recovered.skipped,
        sstables = recovered.sstables,
        "storage is open"
    );
    let resurrection = config.data_resurrection.clone().filter(|_| !read_only);
    resurrection.iter().try_for_each(|options| resurrection::check(&engine, options))?;
    let resurrection = resurrection.map(|options| (Arc::clone(&engine), options));
    let identity = joining::allocate_tokens(&engine, identity(&config, listen, joins), &config, drive)?;
    engine.set_view_filters(Box::new(cql::view_filter));
    let node = Node::open(engine, identity, timeouts(&config))?;
    let [warn, fail] = config.thresholds.protected_rows;
    node.set_protection(ProtectionLimits { warn, fail });
    node.set_tracks_thresholds(config.read_thresholds);
    node.set_unanswered_max(usize::try_from(memory.unanswered).unwrap_or(usize::MAX));
    node.set_read_sizes(read_sizes(&config));
    node.set_out_of_range_handling(config.ring.logs_foreign, config.ring.refuses_foreign);
    node.set_paxos(paxos(&config.ring.paxos).map_err(StartError::Join)?);
    node.trace_ttl.store(config.trace_type_query_ttl, Ordering::Relaxed);
    node.set_batchlog_replay_throttle(config.batchlog_replay_throttle);
    // a node alone streams nothing, but shows its throughputs to operators
    node.change_stream_settings(|settings| settings.clone_from(&config.streams));
    let events: Arc<EventHub> = Arc::default();
    let limits = server_limits(&config, &memory, options.descriptors);
    let prepared = config.prepared_statements_cache_size.unwrap_or(memory.prepared);
    let auth = match config.auth.authenticates {
        true => Some(Auth::open(Arc::clone(&node), &config.auth, options.first_password)?),
        false => None,
    };
    // clients of this node hear of the changes that others make
    let hub = Arc::clone(&events);
    let publish = move |before: &Schema, after: &Schema| {
        events::of_difference(before, after).into_iter().for_each(|event| hub.publish(event));
    };
    node.follow_schema(Box::new(publish));
    node.start_view_builds();
    node.set_group_functions(Box::new(cql::group_values));
    let mut services = Services::new(node, config, Arc::clone(&events), prepared, memory.results, options.log);
    services.auth = auth;
    let spans = services.config.spans.as_ref();
    let otlp = spans.map(|spans| Otlp::start(&services.node, spans)).transpose().map_err(StartError::Encryption)?;
    services.otlp = otlp;
    services.default_compaction = Arc::new(default_compaction);
    let services = Arc::new(services);
    of_port.into_iter().for_each(|watched| services.certificates.watch(watched));
    let mut server_options = ServerOptions::new(listen);
    match &services.auth {
        Some(auth) => server_options.authenticator = Arc::new(PasswordAuthenticator(Arc::clone(auth))),
        None => warn_of_everybody(listen),
    }
    let encryption = services.config.client_encryption.as_ref();
    let opened = encryption.map(|options| client_encryption::open(&env, "client_encryption_options", options));
    if let Some((tls, watched)) = opened.transpose().map_err(StartError::Encryption)? {
        services.certificates.watch(watched);
        server_options.tls = Some(tls);
    }
    server_options.workers = options.workers.unwrap_or(cores);
    server_options.pin = cores >= PIN_FROM_CORES;
    server_options.limits = limits;
    server_options.results = Arc::clone(&services.results.budget);
    server_options.events = events;
    let for_handlers = Arc::clone(&services);
    let for_ring = Arc::clone(&services.events);
    services.node.on_ring_event(Box::new(move |event| for_ring.publish(events::of_ring(event))));
    handoff::start_hints(&services.node, &services.config, hints_directory).map_err(StartError::Join)?;
    // a node on its way in answers its operator, and no client; so does one that is told to wait
    server_options.is_closed = joins || !services.config.native_transport.start;
    let server = native::start(&env, server_options, move |_| CqlHandler::new(Arc::clone(&for_handlers)))
        .map_err(StartError::Workers)?;
    services.set_connections(Arc::clone(server.connections()));
    if server.address() != listen {
        services.node.set_native_port(server.address().port());
    }
    // drivers know this node by its broadcast address
    let down = SocketAddr::new(services.config.broadcast_rpc_address, server.address().port());
    server.handle().set_farewell(Event::Status(StatusChange::Down, down.ip(), down.port()));
    traffic.set_handles(&services, server.handle());
    // nodetool is told the path, and may be started in another directory
    let data_dir = std::path::absolute(&options.data_dir).unwrap_or_else(|_| options.data_dir.clone());
    let token = (!read_only).then(|| TokenFile::new(&env, &data_dir));
    let token_file = token.as_ref().map(|token| token.path.display().to_string());
    let operator = NodeAdmin::new(Arc::clone(&services), server.handle(), memory, options.set_level, token_file);
    let operator = Arc::new(operator.into_admin_api());
    let console = Arc::new(NodeConsole(Arc::clone(&services)));
    let ops = admin
        .map(|address| {
            Ops::start(&env, address, operator, console, token, security)
                .map_err(|error| StartError::Port(address, error))
        })
        .transpose()?;
    services.node.set_repair_schedule(joining::repair_schedule(&services.config.auto_repair));
    let weak = Arc::downgrade(&services);
    services.node.set_client_latencies(Box::new(move || {
        weak.upgrade().map_or_else(|| metrics::Histogram::default().snapshot(), |services| services.requests.all())
    }));
    let mut running = RunningNode { services, server, ops, _topology: None, _heartbeat: None, _certificates: None };
    let services = Arc::clone(&running.services);
    match joining::join(&services, drive) {
        Err(StartError::Stopped) => return Err(running.stop_early(drive)),
        joined => joined?,
    }
    // after the join: a start that failed on the way would otherwise count as time in the ring, and
    // the check of the next start would pass
    running._heartbeat = resurrection.map(|(engine, options)| resurrection::keep_heartbeat(&engine, &options));
    let topology = services.config.ring.topology_file.clone().filter(|_| joins);
    running._certificates = certificates::follow(&services.certificates, &services.node.env);
    running._topology = topology.map(|path| topology_file::follow(&services.node, path));
    operations::caches::load_saved(&services.node);
    match joining::serve_at_start(&services, running.server.handle(), drive) {
        Err(StartError::Stopped) => Err(running.stop_early(drive)),
        served => {
            traffic.end_if_failed();
            served.map(|()| running)
        }
    }
}

/// How callers reach the admin port, and the look at its certificates; None: it is not encrypted.
fn port_security(
    env: &Env,
    config: &Config,
    address: Option<SocketAddr>,
) -> Result<(PortSecurity, Option<WatchedCertificates>), StartError> {
    let options = config.admin_port.encryption.as_ref();
    let opened = options.map(|options| client_encryption::open(env, "admin_encryption_options", options));
    let (tls, watched) = opened.transpose().map_err(StartError::Encryption)?.unzip();
    let reach = match address.is_none_or(|address| address.ip().is_loopback()) {
        true => CallerScope::Machine,
        false => CallerScope::Network { by_certificate: options.is_some_and(|options| options.require_client_auth) },
    };
    Ok((PortSecurity { tls, reach }, watched))
}

/// Warns where nobody has to log in and other machines can connect.
fn warn_of_everybody(listen: SocketAddr) {
    if !listen.ip().is_loopback() {
        tracing::warn!(
            "ANYBODY WHO REACHES {listen} MAY READ AND CHANGE EVERYTHING: \
             nobody has to log in (authenticator: AllowAllAuthenticator; set PasswordAuthenticator)"
        );
    }
}

/// Workers are bound to cores on machines with this many cores or more.
const PIN_FROM_CORES: usize = 8;

impl RunningNode {
    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Whether clients are served. They are not while data of a new node has not come.
    pub fn is_serving(&self) -> bool {
        self.server.handle().is_serving()
    }

    /// Whether clients wait for `nodetool enablebinary` alone (`start_native_transport: false`).
    pub fn waits_for_its_operator(&self) -> bool {
        !self.services.config.native_transport.start && joining::is_data_complete(&self.services)
    }

    /// Drains a node that was told to stop before its start was done. Gives the error of the start.
    fn stop_early(self, drive: Drive<'_>) -> StartError {
        let result = Rc::new(RefCell::new(None));
        let told = Rc::clone(&result);
        let drained = drive(Box::pin(async move { *told.borrow_mut() = Some(self.shutdown().await) }));
        match (drained, result.take()) {
            (Ok(()), Some(Err(error))) => error.into(),
            (drained, _) => drained.err().unwrap_or(StartError::Stopped),
        }
    }

    /// Lets requests in flight end, closes connections and flushes memtables, so that the next
    /// start has nothing to replay.
    pub async fn shutdown(self) -> Result<(), StorageError> {
        self.server.shutdown();
        let node = &self.services.node;
        node.stop_streams();
        node.stop_membership().await;
        node.stop_hints();
        let flushed = async {
            if let Some(otlp) = &self.services.otlp {
                otlp.flush(&node.env).await;
            }
        };
        let (drained, ()) = tokio::join!(operations::state::drain(node), flushed);
        operations::state::stop(node);
        drop(self.ops);
        drained
    }
}

/// Tries the port before anything is opened. Workers share their port (SO_REUSEPORT), so the kernel
/// would not refuse a second program of the same user.
fn check_port(env: &Env, listen: SocketAddr) -> Result<(), StartError> {
    if listen.port() == 0 {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(StartError::Workers)?;
    let bound = runtime.block_on(async { env.network.bind(listen, false).map(drop) });
    bound.map_err(|error| StartError::Port(listen, error))
}

fn identity(config: &Config, listen: SocketAddr, joins: bool) -> IdentityOptions {
    let place = config.ring.location.of_local(config.broadcast_address);
    let place = place.map(|place| (place.data_center.clone(), place.rack.clone()));
    // a snitch that was chosen counts; without a choice the directory does
    let usual = (config.ring.snitch == Snitch::Simple && config.is_set("endpoint_snitch"))
        .then(|| ("datacenter1".to_owned(), "rack1".to_owned()));

    IdentityOptions {
        cluster_name: config.cluster_name.clone(),
        adopt_cluster_name: !config.is_set("cluster_name"),
        num_tokens: config.num_tokens,
        adopt_tokens: !config.is_set("num_tokens") && !config.is_set("initial_token"),
        initial_tokens: config.initial_tokens.clone(),
        host_id: None,
        takes_place: false,
        listen: SocketAddr::new(config.listen_address, config.storage_port),
        broadcast: SocketAddr::new(config.broadcast_address, config.storage_port),
        native: SocketAddr::new(config.broadcast_rpc_address, listen.port()),
        place: place.or(usual),
        joins,
    }
}

fn timeouts(config: &Config) -> Timeouts {
    let timeouts = &config.timeouts;
    Timeouts {
        read: timeouts.read,
        range: timeouts.range,
        write: timeouts.write,
        truncate: timeouts.truncate,
        counter_write: timeouts.counter_write,
        cas_contention: timeouts.cas_contention,
        misc: timeouts.request,
    }
}

/// The thresholds on sizes of reads as a replica. A coordinator that asks for it is told of rows;
/// row indexes are measured only where this node has the thresholds on.
fn read_sizes(config: &Config) -> ReadSizes {
    let sizes = config.thresholds.read_sizes;
    let row_index = SizeThresholds { warn: sizes.row_index_warn, fail: sizes.row_index_fail };
    ReadSizes {
        local: SizeThresholds { warn: sizes.local_warn, fail: sizes.local_fail },
        row_index: if config.read_thresholds { row_index } else { SizeThresholds::default() },
    }
}

fn paxos(config: &config::Paxos) -> Result<PaxosOptions, String> {
    let variant = PaxosVariant::parse(config.variant).ok_or_else(|| format!("paxos_variant: {}", config.variant))?;
    if !variant.settles_reads {
        tracing::warn!(
            "paxos_variant is {}: reads at SERIAL and LOCAL_SERIAL through this node are not linearizable; what a later \
             read should see may be missing",
            config.variant
        );
    }
    let contention = ContentionStrategy::parse(
        config.wait_randomizer.as_deref(),
        config.min_wait.as_deref(),
        config.max_wait.as_deref(),
        config.min_delta.as_deref(),
    );
    let contention = contention.map_err(|(key, why)| format!("{key}: {why}"))?;
    let purging = PaxosPurging::parse(config.state_purging, config.purge_grace);
    let purging = purging.ok_or_else(|| format!("paxos_state_purging: {}", config.state_purging))?;
    let on_violation = OnViolation::parse(config.on_violations);
    let on_violation =
        on_violation.ok_or_else(|| format!("paxos_on_linearizability_violations: {}", config.on_violations))?;
    let (skips_repair, skips_repair_of) = (config.skips_repair, config.skips_repair_of.clone());
    Ok(PaxosOptions { variant, contention, skips_repair, skips_repair_of, purging, on_violation })
}

/// The limit of a request's size that `key` sets, lowered to what the memory has room for.
fn limit_to_memory(key: &str, bytes: u64, memory: &MemoryBudget) -> u64 {
    let most = memory.request_max();
    if bytes > most {
        tracing::warn!(
            "{key}: {bytes} bytes are more than a request may have of the {} that the node may use (--memory): {most} it is",
            memory.total
        );
    }
    bytes.min(most)
}

/// Eighths of the file descriptors of the process that client connections may take. The rest is
/// for the commit log, flushes, compactions and SSTables, and for connections that are being
/// refused.
const CONNECTION_EIGHTHS: u64 = 3;

/// The most connections of clients: the configured number, and no more than descriptors allow. A
/// further connection gets an error and is closed; without a bound clients that do nothing would
/// use up what the commit log needs to go on.
fn connections_max(configured: Option<u64>, descriptors: Option<u64>) -> Option<u64> {
    let affordable = descriptors.map(|all| all / 8 * CONNECTION_EIGHTHS);
    configured.into_iter().chain(affordable).min()
}

fn server_limits(config: &Config, memory: &MemoryBudget, descriptors: Option<u64>) -> ServerLimits {
    let transport = &config.native_transport;
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let count = |limit: Option<u64>| limit.map(size);
    let defaults = ServerLimits::default();
    let of_mutations = config.commitlog.max_mutation_size.min(transport.max_request_data_in_flight.unwrap_or(u64::MAX));
    ServerLimits {
        frame_size_max: size(limit_to_memory("native_transport_max_frame_size", transport.max_frame_size, memory)),
        message_size_max: match transport.max_message_size {
            Some(bytes) => size(limit_to_memory("native_transport_max_message_size", bytes, memory)),
            None => size(of_mutations.min(memory.request_max())),
        },
        total_bytes_max: size(transport.max_request_data_in_flight.unwrap_or(memory.in_flight)),
        connections_max: count(connections_max(transport.max_concurrent_connections, descriptors)),
        connections_per_ip_max: count(transport.max_concurrent_connections_per_ip),
        idle_timeout: transport.idle_timeout,
        keepalive: transport.keepalive,
        queue_timeout: config.timeouts.native_transport,
        // a truncation may take longer than every other request, all of which have timeouts of
        // their own
        request_timeout: config.timeouts.native_transport.max(config.timeouts.truncate + Duration::from_secs(2)),
        ..defaults
    }
}

fn engine_options(
    env: &Env,
    config: &Config,
    found: Directories,
    memory: &MemoryBudget,
    shards: usize,
    cores: usize,
    engine: &Arc<OnceLock<Weak<Engine>>>,
) -> Result<EngineOptions, StartError> {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let caches = memory.cache_sizes(&config.caches).map_err(StartError::Memory)?;
    let commitlog = commitlog_options::of(env, config, &found, cores, engine).map_err(StartError::CommitLog)?;
    let saved_caches = Some(saved_caches(config, found.auxiliary.saved_caches));
    Ok(EngineOptions {
        data_directories: found.data,
        system_directory: found.system,
        places: found.places,
        offered_schema: found.schema,
        commitlog,
        // found when the engine is open, and set by the node
        host_id: None,
        commitlog_directory: found.commitlog,
        shards,
        memtable_bytes: size(config.memtable.space.unwrap_or(memory.memtables)),
        chunk_cache_bytes: size(caches.chunks),
        key_cache_bytes: size(caches.keys),
        row_cache_bytes: size(caches.rows),
        saved_caches,
        concurrent_compactors: config.compaction.concurrent_compactors.unwrap_or(1) as usize,
        compaction_bytes_per_second: config.compaction.throughput.unwrap_or(0),
        disk_room: DiskRoom { min_free: config.compaction.min_free, usable_part: config.compaction.usable_part },
        column_index_size: config.column_index_size.map(size),
        tombstone_failure_threshold: config.thresholds.tombstone_failure.unwrap_or(u64::MAX),
        tombstone_warn_threshold: config.thresholds.tombstone_warn.unwrap_or(u64::MAX),
        guards: Arc::new(crate::guardrails::of_storage(config).into()),
        auto_snapshot: config.auto_snapshot,
        disk_failure_policy: match config.disk_failure_policy {
            DiskFailurePolicy::Ignore => storage::DiskFailurePolicy::Ignore,
            DiskFailurePolicy::StopParanoid => storage::DiskFailurePolicy::StopParanoid,
            DiskFailurePolicy::Die => storage::DiskFailurePolicy::Die,
            // the second one is refused, or reported under --lenient
            DiskFailurePolicy::Stop | DiskFailurePolicy::BestEffort => storage::DiskFailurePolicy::Stop,
        },
        on_disk_failure: Arc::new(|_, _| {}),
        read_only: false,
        sstable_version: match config.sstable {
            SSTableFormat::Big4 => Version::NB,
            SSTableFormat::Big5 => Version::OA,
            SSTableFormat::Bti => Version::DA,
        },
        flush_compression: match config.flush_compression {
            config::FlushCompression::None => FlushCompression::None,
            config::FlushCompression::Fast => FlushCompression::Fast,
            config::FlushCompression::Table => FlushCompression::Table,
        },
        uuid_sstable_ids: config.uuid_sstable_identifiers,
    })
}

fn saved_caches(config: &Config, directory: PathBuf) -> SavedCaches {
    let caches = &config.caches;
    SavedCaches {
        directory,
        keys_period: caches.key_save_period,
        rows_period: caches.row_save_period,
        keys_to_save: caches.key_keys_to_save,
        rows_to_save: caches.row_keys_to_save,
        load_timeout: caches.load_timeout,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_data() {
        assert_eq!(connections_max(None, None), None);
        assert_eq!(connections_max(Some(7), None), Some(7));
        assert_eq!(connections_max(None, Some(256)), Some(96));
        assert_eq!(connections_max(Some(7), Some(256)), Some(7));
        assert_eq!(connections_max(Some(1000), Some(256)), Some(96));
    }
}
