//! The way of a node into its ring: what the configuration says of it, and the join itself.
//!
//! A node without seeds is alone: nothing here happens, and no port for other nodes is opened.
//! Agrees with `StorageService.initServer` and `shouldBootstrap`, except that no data is streamed
//! yet: a node that would have to fetch its data first is refused.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use cluster::allocation::{self, AllocationError};
use cluster::{DynamicSnitchOptions, IdentityOptions, JoinSettings, Node, Places, SeedNames};
use config::{Allocation, Compatibility, Config, InternodeCompression, Location, Ring};
use env::Env;
use internode::MessagingVersion;
use links::Scope;
use sstable::Version;
use storage::Engine;

use crate::server_encryption;
use crate::start_error::{Drive, StartError};

/// Whether the configuration names a ring to join.
pub(crate) fn is_wanted(config: &Config, read_only: bool) -> bool {
    config.ring.seeds.is_some() && !read_only
}

/// Joins the ring that the configuration names. Returns when the node is a member; a node alone
/// does nothing. `drive` runs the future of the join to its end.
pub(crate) fn join(node: &Arc<Node>, config: &Config, drive: Drive<'_>) -> Result<(), StartError> {
    if !node.identity.joins {
        return Ok(());
    }
    let settings = settings(&node.env, cluster::operations::state::options(node).sstable_version, config)?;
    check_bootstrap(node, config, &settings.seeds)?;
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
    joined.map_err(|error| StartError::Join(error.to_string()))?;
    tracing::info!(nodes = node.ring().endpoints().len(), "this node is a member of the ring");
    Ok(())
}

/// The identity of a node that is new in its ring gets the tokens that are best there, if the
/// configuration wants that.
pub(crate) fn allocate_tokens(
    engine: &Engine,
    identity: IdentityOptions,
    config: &Config,
    drive: Drive<'_>,
) -> Result<IdentityOptions, StartError> {
    let is_new = || cluster::identity::has_tokens(engine).map(|has| !has);
    if !identity.joins || !identity.initial_tokens.is_empty() || !is_new()? {
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
    let settings = settings(&engine.env, engine.options.sstable_version, config)?;
    let result = Rc::new(RefCell::new(None));
    let (env, told, wanted) = (engine.env.clone(), Rc::clone(&result), identity.clone());
    drive(Box::pin(async move {
        *told.borrow_mut() = Some(allocation::allocate_tokens(&env, &wanted, settings, copies).await);
    }))?;
    let allocated = result.take().ok_or_else(|| StartError::Join("the look at the ring was given up".to_owned()))?;
    let initial_tokens = allocated.map_err(|error| match error {
        AllocationError::Unseen(error) => StartError::Join(error.to_string()),
        AllocationError::Refused(why) => StartError::Join(why),
    })?;
    Ok(IdentityOptions { initial_tokens, ..identity })
}

fn settings(env: &Env, version: Version, config: &Config) -> Result<JoinSettings, StartError> {
    let ring = &config.ring;
    let seeds = seeds(env, ring, config.storage_port);
    let (names, of_names, port) = (ring.clone(), env.clone(), config.storage_port);
    let seed_names = SeedNames(Arc::new(move || self::seeds(&of_names, &names, port)));
    if seeds.is_empty() {
        let names = ring.seeds.as_deref().unwrap_or_default().join(", ");
        return Err(StartError::Join(format!("none of the seeds has an address: {names} (seed_provider, --seeds)")));
    }
    let encryption = ring.encryption.as_ref().map(|options| server_encryption::open(env, options));
    Ok(JoinSettings {
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
        encryption: encryption
            .transpose()
            .map_err(|why| StartError::Encryption(format!("server_encryption_options: {why}")))?,
        user_timeout: ring.user_timeout,
        queue: usize::try_from(ring.send_queue).unwrap_or(usize::MAX),
        reserve: usize::try_from(ring.send_reserve).unwrap_or(usize::MAX),
        convict_threshold: ring.phi_convict_threshold,
        sstable_versions: format!("{}-{}", version.format().name(), version.name()),
        prefers_local: ring.location.prefers_local,
        tells_internal_address: ring.snitch.tells_internal_address(),
        dynamic_snitch: ring.dynamic_snitch.map(dynamic_snitch),
        places: places(&ring.location),
    })
}

fn dynamic_snitch(options: config::DynamicSnitch) -> DynamicSnitchOptions {
    let config::DynamicSnitch { update_interval, reset_interval, badness_threshold } = options;
    DynamicSnitchOptions { update_interval, reset_interval, badness_threshold }
}

pub(crate) fn places(location: &Location) -> Places {
    let names = |place: &config::Place| (place.data_center.clone(), place.rack.clone());
    Places {
        by_address: location.places.iter().map(|(address, place)| (*address, names(place))).collect(),
        default: location.default.as_ref().map(names),
    }
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

/// A node that is new in its ring has no data of the ranges that it takes over. Cassandra fetches
/// it first (bootstrap). Here the operator must have said that the node may join without it.
fn check_bootstrap(node: &Node, config: &Config, seeds: &[SocketAddr]) -> Result<(), StartError> {
    let identity = &node.identity;
    if identity.is_bootstrapped || seeds.contains(&identity.broadcast) {
        return Ok(());
    }
    if config.ring.auto_bootstrap {
        return Err(StartError::Join(
            "this node is new in its ring and would have to fetch its data from the others first (auto_bootstrap: true), \
             which Helenus cannot do yet; set auto_bootstrap: false to let it join without the data"
                .to_owned(),
        ));
    }
    tracing::warn!(
        "this node joins without the data of its ranges (auto_bootstrap: false): a ring that has data already must read \
         and write at QUORUM or above until that data is repaired"
    );
    Ok(())
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
