//! The start of a node on a simulated machine: the settings of a member of a ring, the options of a
//! small node, and the wait for its join. The subjects of this crate are started with them, and so
//! are the nodes in tests of other crates that need a ring (dev-dependencies of `server`, `bulk`).

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use config::Config;
use env::LocalFuture;
use env::sim::{DATA, World};
use server::memory::MemoryBudget;
use server::running::{FirstPassword, StartError, StartOptions};

/// The port to which clients connect.
pub const PORT: u16 = 9042;

/// Bytes of memory that a node may use.
const MEMORY: u64 = 64 << 20;

/// The keys of cassandra.yaml that make the node of a machine a member of a ring, whose seeds are
/// the first two machines.
pub fn ring_settings(world: &World, machine: usize) -> [String; 5] {
    let address = world.address(machine);
    let seeds = format!("{},{}", world.address(0), world.address(1));
    [
        format!("seed_provider={{class_name: SimpleSeedProvider, parameters: {{seeds: '{seeds}'}}}}"),
        format!("listen_address={address}"),
        format!("rpc_address={address}"),
        "auto_bootstrap=false".to_owned(),
        "cluster_name=sim".to_owned(),
    ]
}

/// The options of a node with these settings (`key=value`) and a single worker.
///
/// # Panics
/// When the settings are no keys of cassandra.yaml.
pub fn options(world: &World, machine: usize, settings: &[String]) -> StartOptions {
    StartOptions {
        env: world.env(machine),
        data_dir: Path::new(DATA).join("helenus"),
        schema_file: None,
        read_only: false,
        config: Config::load(None, settings, false).expect("the settings are keys of cassandra.yaml"),
        listen: SocketAddr::from(([0, 0, 0, 0], PORT)),
        admin: None,
        set_level: None,
        log: Arc::default(),
        workers: Some(1),
        shards: Some(1),
        memory: MemoryBudget::of(MEMORY),
        descriptors: None,
        first_password: FirstPassword::default(),
    }
}

/// The wait for the join of a node (`server::running::start_driven`): all machines go on meanwhile.
pub fn drive(world: &World) -> impl Fn(LocalFuture) -> Result<(), StartError> {
    move |joining| {
        world.block_on(joining);
        Ok(())
    }
}
