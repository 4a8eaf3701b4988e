//! The way of a node into its ring: what the configuration says of it, and the join itself.
//!
//! A node without seeds is alone: nothing here happens, and no port for other nodes is opened.
//! Agrees with `StorageService.initServer` and `shouldBootstrap`.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use cluster::allocation::{self, AllocationError};
use cluster::identity::Saved;
use cluster::membership::JoinError;
use cluster::range_movements::Mode;
use cluster::repair::{RepairSettings, ScheduleSettings};
use cluster::{
    BatchHosts, DynamicSnitchOptions, IdentityOptions, JoinSettings, MovementSettings, Node, NodeLocations, SeedNames,
};
use config::{Allocation, AutoRepair, Compatibility, Config, InternodeCompression, Location, PoolFull, Ring};
use env::Env;
use internode::MessagingVersion;
use links::{LinkSettings, Scope};
use native::{ResumeError, ServerHandle};
use sstable::Version;
use storage::Engine;

use crate::certificates::WatchedCertificates;
use crate::server_encryption;
use crate::services::Services;
use crate::start_error::{Drive, StartError};

/// Whether the configuration names a ring to join.
pub(crate) fn is_wanted(config: &Config, read_only: bool) -> bool {
    config.ring.seeds.is_some() && !read_only
}

/// Joins the ring that the configuration names. Returns when the node is a member, or when it is
/// none and an operator may make it one: with `join_ring: false`, and where not all of its data has
/// come. A node alone does nothing. `drive` runs the future of the join to its end.
pub(crate) fn join(services: &Services, drive: Drive<'_>) -> Result<(), StartError> {
    let (node, config) = (&services.node, &services.config);
    if !node.identity.joins {
        return Ok(());
    }
    let version = cluster::operations::state::options(node).sstable_version;
    let (settings, certificates) = settings(&node.env, version, config, node.identity.is_bootstrapped)?;
    certificates.into_iter().for_each(|watched| services.certificates.watch(watched));
    warn_without_bootstrap(node, config, &settings.seeds);
    let seeds: Vec<String> = settings.seeds.iter().map(ToString::to_string).collect();
    tracing::info!(
        seeds = seeds.join(", "),
        address = %node.identity.broadcast,
        cluster = node.identity.cluster_name,
        version = settings.version.number(),
        "joining the ring"
    );
    let result = Rc::new(RefCell::new(None));
    let (joining, told) = (Arc::clone(node), Rc::clone(&result));
    drive(Box::pin(async move { *told.borrow_mut() = Some(joining.join(settings).await) }))?;
    let joined = result.take().ok_or_else(|| StartError::Join("the join was given up".to_owned()))?;
    match joined {
        Err(JoinError::Bootstrap(why)) if node.mode() == Mode::JoiningFailed => {
            tracing::error!("Some data streaming failed: {why}");
            Ok(())
        }
        Err(error) => Err(StartError::Join(error.to_string())),
        Ok(()) => {
            tracing::info!(nodes = node.ring().endpoints().len(), mode = %node.mode(), "this node knows the ring");
            Ok(())
        }
    }
}

/// Serves clients from now on, unless data of this node has not come, or clients are served only
/// when the operator says so (`start_native_transport: false`). A node that is no member
/// coordinates for them, as in Cassandra.
pub(crate) async fn serve_clients(services: &Services, transport: &ServerHandle) -> Result<(), ResumeError> {
    let Some(membership) = services.node.membership() else { return Ok(()) };
    if !is_data_complete(services) {
        tracing::warn!("clients are not served: not all data of this node has come");
        return Ok(());
    }
    if let Some(auth) = &services.auth {
        auth.has_joined(is_first_seed(services));
    }
    if !services.config.native_transport.start {
        return Ok(());
    }
    transport.resume().await?;
    membership.set_ready(true);
    Ok(())
}

/// Whether all data that a new node fetches on its way in has come.
pub(crate) fn is_data_complete(services: &Services) -> bool {
    !matches!(services.node.mode(), Mode::Joining | Mode::JoiningFailed)
}

/// [`serve_clients`] at the end of a start.
pub(crate) fn serve_at_start(
    services: &Arc<Services>,
    transport: ServerHandle,
    drive: Drive<'_>,
) -> Result<(), StartError> {
    let result = Rc::new(RefCell::new(None));
    let (told, services) = (Rc::clone(&result), Arc::clone(services));
    drive(Box::pin(async move { *told.borrow_mut() = Some(serve_clients(&services, &transport).await) }))?;
    match result.take() {
        Some(Err(ResumeError::Bind(address, error))) => Err(StartError::Port(address, error)),
        Some(Err(ResumeError::Ended)) | None => Err(StartError::Join("the start was given up".to_owned())),
        Some(Ok(())) => Ok(()),
    }
}

/// Gives the identity of a node that is new in its ring the tokens that are best there, if the
/// configuration asks for that.
pub(crate) fn allocate_tokens(
    engine: &Engine,
    identity: IdentityOptions,
    config: &Config,
    drive: Drive<'_>,
) -> Result<IdentityOptions, StartError> {
    if !identity.joins {
        return Ok(identity);
    }
    let saved = Saved::find(engine)?;
    if config.ring.replaces.is_some() && saved.as_ref().is_none_or(Saved::is_outside) {
        return of_replaced(engine, identity, saved, config, drive);
    }
    if saved.is_some() {
        return Ok(identity);
    }
    if !identity.initial_tokens.is_empty() {
        return Ok(identity);
    }
    let copies = match &config.ring.allocation {
        Allocation::Random => return Ok(identity),
        Allocation::LocalCopies(copies) => *copies,
        Allocation::Keyspace(keyspace) => {
            return Err(StartError::Join(format!(
                "allocate_tokens_for_keyspace: a new node does not know yet how many copies {keyspace} has; say it \
                 with allocate_tokens_for_local_replication_factor, or name the tokens (initial_token)"
            )));
        }
    };
    let (settings, _) = settings(&engine.env, engine.options.sstable_version, config, false)?;
    let (env, wanted) = (engine.env.clone(), identity.clone());
    let initial_tokens =
        look_at_ring(drive, async move { allocation::allocate_tokens(&env, &wanted, settings, copies).await })?;
    Ok(IdentityOptions { initial_tokens, ..identity })
}

/// Gives a node that replaces another one the tokens of the replaced node, and its host id if both
/// have the same address. They overwrite the tokens and the host id that an earlier start wrote if
/// it was refused, or ended before the node had joined.
fn of_replaced(
    engine: &Engine,
    identity: IdentityOptions,
    saved: Option<Saved>,
    config: &Config,
    drive: Drive<'_>,
) -> Result<IdentityOptions, StartError> {
    if !config.ring.auto_bootstrap {
        return Err(StartError::Join(
            "Replacing a node without bootstrapping risks invalidating consistency guarantees as the expected data may not \
             be present until repair is run (auto_bootstrap: false)"
                .to_owned(),
        ));
    }
    let (settings, _) = settings(&engine.env, engine.options.sstable_version, config, false)?;
    let (env, wanted) = (engine.env.clone(), identity.clone());
    let allocation::ReplacedNode { tokens, host_id } =
        look_at_ring(drive, async move { allocation::replaced(&env, &wanted, saved.as_ref(), settings).await })?;
    let num_tokens = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
    Ok(IdentityOptions { initial_tokens: tokens, num_tokens, host_id, takes_place: true, ..identity })
}

/// Runs a look at the ring, and gives its result.
fn look_at_ring<T: 'static>(
    drive: Drive<'_>,
    look: impl Future<Output = Result<T, AllocationError>> + 'static,
) -> Result<T, StartError> {
    let result = Rc::new(RefCell::new(None));
    let told = Rc::clone(&result);
    drive(Box::pin(async move { *told.borrow_mut() = Some(look.await) }))?;
    let found = result.take().ok_or_else(|| StartError::Join("the look at the ring was given up".to_owned()))?;
    found.map_err(|error| match error {
        AllocationError::Unseen(error) => StartError::Join(error.to_string()),
        AllocationError::Refused(why) => StartError::Join(why),
    })
}

/// How to join, and the look at the certificates of links; None: links are not encrypted.
/// `is_member`: the node has come into its ring at an earlier start.
fn settings(
    env: &Env,
    version: Version,
    config: &Config,
    is_member: bool,
) -> Result<(JoinSettings, Option<WatchedCertificates>), StartError> {
    let ring = &config.ring;
    let seeds = seeds(env, ring, config.storage_port);
    let (names, of_names, port) = (ring.clone(), env.clone(), config.storage_port);
    let seed_names = SeedNames(Arc::new(move || self::seeds(&of_names, &names, port)));
    if seeds.is_empty() {
        let names = ring.seeds.as_deref().unwrap_or_default().join(", ");
        return Err(StartError::Join(format!("none of the seeds has an address: {names} (seed_provider, --seeds)")));
    }
    let opened = ring.encryption.as_ref().map(|options| server_encryption::open(env, options)).transpose();
    let (encryption, certificates) =
        opened.map_err(|why| StartError::Encryption(format!("server_encryption_options: {why}")))?.unzip();
    let settings = JoinSettings {
        seeds,
        seed_names: Some(seed_names),
        version: match ring.compatibility {
            Compatibility::Cassandra4 => MessagingVersion::V12,
            Compatibility::Upgrading | Compatibility::None => MessagingVersion::V13,
        },
        compression: match ring.compression {
            InternodeCompression::None => Scope::None,
            InternodeCompression::BetweenDataCenters => Scope::BetweenDataCenters,
            InternodeCompression::All => Scope::All,
        },
        encryption,
        links: links(&ring.links),
        convict_threshold: ring.phi_convict_threshold,
        sstable_versions: format!("{}-{}", version.format().name(), version.name()),
        prefers_local: ring.location.prefers_local,
        tells_internal_address: ring.snitch.tells_internal_address(),
        movements: MovementSettings {
            bootstraps: ring.auto_bootstrap,
            joins: ring.joins_ring,
            is_consistent: ring.is_range_movement_consistent,
            ring_delay: ring.ring_delay,
            severity_of_leaving: ring.severity_of_leaving,
            replaces: replaced(env, ring, config.storage_port, is_member)?,
        },
        dynamic_snitch: ring.dynamic_snitch.map(dynamic_snitch),
        batch_hosts: batch_hosts(ring.batch_hosts),
        streams: config.streams.clone(),
        repairs: repairs(config),
        places: places(&ring.location),
    };
    Ok((settings, certificates))
}

fn links(keys: &config::Links) -> LinkSettings {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    LinkSettings {
        connect_timeout: keys.connect_timeout,
        user_timeout: keys.user_timeout,
        message_size_max: size(keys.message_size_max),
        queue: size(keys.send_queue),
        reserve_each: size(keys.send_reserve_each),
        reserve: size(keys.send_reserve),
        receive_reserve: size(keys.receive_reserve),
        send_buffer: size(keys.send_buffer),
        receive_buffer: size(keys.receive_buffer),
        trusts_clocks: keys.trusts_clocks,
        listens_on_broadcast: keys.listens_on_broadcast,
        ..LinkSettings::default()
    }
}

fn repairs(config: &Config) -> RepairSettings {
    let options = &config.repairs;
    let default = RepairSettings::default();
    RepairSettings {
        validations: options.concurrent_validations.unwrap_or(default.validations),
        tree_requests: options.concurrent_tree_requests,
        space: options.session_space.unwrap_or(default.space),
        optimises_full: options.optimises_full,
        optimises_incremental: options.optimises_incremental,
        optimises_previews: options.optimises_previews,
        repairs_paxos: options.repairs_paxos,
        paxos_parallelism: options.paxos_parallelism.unwrap_or(default.paxos_parallelism),
        pool_size: options.pool_size.or(options.concurrent_validations).unwrap_or(default.pool_size),
        waits_for_pool: options.pool_full == PoolFull::Queue,
        request_timeout: options.request_timeout,
        tree_depth_max: options.tree_depth_max,
        trace_ttl: options.trace_ttl,
        preview_head_start: options.preview_head_start,
    }
}

/// The schedule of repairs as the configuration wants it.
pub(crate) fn repair_schedule(settings: &AutoRepair) -> ScheduleSettings {
    let AutoRepair {
        is_on,
        check_every,
        first_after,
        interval_min,
        parallel_count,
        parallel_percent,
        shares_replicas,
        ignored_data_centers,
        repairs_views,
        repair_max,
        retry_after,
        retries_max,
        bytes_max,
        work_share,
        latency_factor,
    } = settings.clone();
    ScheduleSettings {
        is_on,
        check_every,
        first_after,
        interval_min,
        parallel_count,
        parallel_percent,
        shares_replicas,
        ignored_data_centers,
        repairs_views,
        repair_max,
        retry_after,
        retries_max,
        bytes_max,
        work_share,
        latency_factor,
    }
}

fn batch_hosts(strategy: config::BatchHosts) -> BatchHosts {
    let config::BatchHosts { by_latency, prefers_own_rack } = strategy;
    BatchHosts { by_latency, prefers_own_rack }
}

fn dynamic_snitch(options: config::DynamicSnitch) -> DynamicSnitchOptions {
    let config::DynamicSnitch { update_interval, reset_interval, badness_threshold } = options;
    DynamicSnitchOptions { update_interval, reset_interval, badness_threshold }
}

pub(crate) fn places(location: &Location) -> NodeLocations {
    let names = |place: &config::Place| (place.data_center.clone(), place.rack.clone());
    NodeLocations {
        by_address: location.places.iter().map(|(address, place)| (*address, names(place))).collect(),
        default: location.default.as_ref().map(names),
    }
}

/// The address of the node in whose place a new one stands (replace_address_first_boot). The name
/// of that node may be gone once the new one is a member.
fn replaced(env: &Env, ring: &Ring, port: u16, is_member: bool) -> Result<Option<SocketAddr>, StartError> {
    let Some(name) = &ring.replaces else { return Ok(None) };
    let (host, port) = host_and_port(name, port);
    let unknown = || StartError::Join(format!("replace_address_first_boot: {name} has no address"));
    match env.network.resolve_one(host) {
        Some(address) => Ok(Some(SocketAddr::new(address, port))),
        None if is_member => Ok(None),
        None => Err(unknown()),
    }
}

/// Whether the first of the seeds is this node. A seed whose name has no address is none.
fn is_first_seed(services: &Services) -> bool {
    let (env, config) = (&services.node.env, &services.config);
    let Some(seed) = config.ring.seeds.as_ref().and_then(|seeds| seeds.first()) else { return false };
    let (host, port) = host_and_port(seed, config.storage_port);
    let addresses = env.network.resolve(host).unwrap_or_default();
    addresses.into_iter().any(|address| SocketAddr::new(address, port) == services.node.identity.broadcast)
}

/// The addresses of the seeds. A name that has none is left out with a warning, as in Cassandra: it
/// may be there at the next look.
fn seeds(env: &Env, ring: &Ring, port: u16) -> Vec<SocketAddr> {
    let mut seeds = Vec::new();
    for seed in ring.seeds.iter().flatten() {
        let (host, port) = host_and_port(seed, port);
        match env.network.resolve(host) {
            Ok(addresses) => {
                let taken = if ring.every_address_of_a_seed { addresses.len() } else { 1 };
                seeds.extend(addresses.into_iter().take(taken).map(|address| SocketAddr::new(address, port)));
            }
            Err(error) => tracing::warn!(seed, %error, "a seed has no address"),
        }
    }
    seeds
}

/// Splits `host`, `host:port`, `address`, `[address]:port`.
fn host_and_port(seed: &str, port: u16) -> (&str, u16) {
    if seed.parse::<std::net::IpAddr>().is_ok() {
        return (seed, port);
    }
    let split = seed.rsplit_once(':').and_then(|(host, given)| Some((host, given.parse().ok()?)));
    let (host, port) = split.unwrap_or((seed, port));
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// Warns of a node that takes over ranges without their data: the operator has said that it may.
fn warn_without_bootstrap(node: &Node, config: &Config, seeds: &[SocketAddr]) {
    let identity = &node.identity;
    if !identity.is_bootstrapped && !seeds.contains(&identity.broadcast) && !config.ring.auto_bootstrap {
        tracing::warn!(
            "this node joins without the data of its ranges (auto_bootstrap: false): a ring that has data already must \
             read and write at QUORUM or above until that data is repaired"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_have_the_port_of_the_ring_unless_they_name_one() {
        for (seed, expected) in [
            ("10.0.0.1", ("10.0.0.1", 7000)),
            ("10.0.0.1:7001", ("10.0.0.1", 7001)),
            ("seed.example.org", ("seed.example.org", 7000)),
            ("seed.example.org:17000", ("seed.example.org", 17000)),
            ("::1", ("::1", 7000)),
            ("[::1]:7001", ("::1", 7001)),
            ("[::1]", ("::1", 7000)),
        ] {
            assert_eq!(host_and_port(seed, 7000), expected, "{seed}");
        }
    }
}
