//! `helenus sstable load`: streams the SSTables of a directory into a ring, each part to the nodes
//! that replicate it. `org.apache.cassandra.tools.BulkLoader`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bulk::{LoadResult, Options, Planned, Throttle, Watch};
use clap::Args;
use env::Env;

use crate::access::RingAccess;
use crate::context::Context;
use crate::failure::{DONE, FAILED, Failure};
use crate::progress::Progress;
use crate::{open, target};

/// Bytes a second of a megabit a second.
const MEGABIT: u64 = 125_000;
/// Bytes of a mebibyte.
const MEBIBYTE: u64 = 1 << 20;

/// Stream the SSTables of a directory into a ring.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The directory of a table, of a snapshot, or KEYSPACE/TABLE with SSTables in it.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    ring: RingAccess,
    /// Addresses or names of nodes to which nothing is streamed.
    #[arg(short = 'i', long, value_delimiter = ',', value_name = "HOST[,HOST]")]
    ignore: Vec<String>,
    /// Sessions with each node at one time.
    #[arg(long, visible_alias = "cph", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    connections_per_host: u8,
    /// The keyspace [default: that of the directory].
    #[arg(short = 'k', long, value_name = "KEYSPACE")]
    target_keyspace: Option<String>,
    /// The table [default: that of the directory].
    #[arg(long, value_name = "TABLE")]
    target_table: Option<String>,
    /// Show no progress.
    #[arg(long)]
    no_progress: bool,
    #[command(flatten)]
    rates: Rates,
}

/// Limits of the pace; 0: none.
#[derive(Args, Debug)]
struct Rates {
    /// Megabits a second to all nodes.
    #[arg(short = 't', long, default_value_t = 0, conflicts_with = "throttle_mib", value_name = "MBPS")]
    throttle: u64,
    /// Mebibytes a second to all nodes.
    #[arg(long, default_value_t = 0, value_name = "MIB")]
    throttle_mib: u64,
    /// Megabits a second to other data centers than that of the node that was asked.
    #[arg(long, default_value_t = 0, conflicts_with = "inter_dc_throttle_mib", value_name = "MBPS")]
    inter_dc_throttle: u64,
    /// Mebibytes a second to other data centers than that of the node that was asked.
    #[arg(long, default_value_t = 0, value_name = "MIB")]
    inter_dc_throttle_mib: u64,
    /// As --throttle-mib, for SSTables that go whole [default: the same].
    #[arg(long, value_name = "MIB")]
    entire_sstable_throttle_mib: Option<u64>,
    /// As --inter-dc-throttle-mib, for SSTables that go whole [default: the same].
    #[arg(long, value_name = "MIB")]
    entire_sstable_inter_dc_throttle_mib: Option<u64>,
}

/// Loads the SSTables of the directory.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    let sstables = target::in_directory(context.env, &arguments.directory)?;
    if sstables.is_empty() {
        return Err(Failure::new(format!("{}: no SSTable here", arguments.directory.display())));
    }
    let options = options(arguments, context.env)?;
    writeln!(context.out, "Loading {} SSTables into {}.{}", sstables.len(), options.keyspace, options.table)?;
    let watch = Arc::new(Bar { shows: !arguments.no_progress, state: Mutex::default() });
    let loaded = bulk::load(context.env, options, sstables, Arc::clone(&watch) as Arc<dyn Watch>);
    watch.end();
    report(&loaded.map_err(Failure::new)?, context)
}

fn options(arguments: &Arguments, env: &Env) -> Result<Options, Failure> {
    let directory = std::path::absolute(&arguments.directory).unwrap_or_else(|_| arguments.directory.clone());
    let of_directory = open::names_of_path(&directory);
    let (keyspace, table) = match (&arguments.target_keyspace, &arguments.target_table, of_directory) {
        (Some(keyspace), Some(table), _) => (keyspace.clone(), table.clone()),
        (keyspace, table, Some(names)) => (keyspace.clone().unwrap_or(names.0), table.clone().unwrap_or(names.1)),
        (_, _, None) => {
            let shown = arguments.directory.display();
            let why = format!("{shown} does not end with KEYSPACE/TABLE; say --target-keyspace and --target-table");
            return Err(Failure::usage(why));
        }
    };
    let ignored: Result<Vec<IpAddr>, Failure> = arguments.ignore.iter().map(|name| address_of(env, name)).collect();
    Ok(Options {
        access: arguments.ring.access(env).map_err(Failure::new)?,
        keyspace,
        table,
        storage_port: arguments.ring.storage_port(),
        internode_tls: arguments.ring.internode_tls(env).map_err(Failure::new)?,
        ignored: ignored?,
        connections_per_host: usize::from(arguments.connections_per_host),
        throttle: arguments.rates.throttle(),
    })
}

/// The address of a node that is to be left out. Of several the first of IPv4 counts, as in
/// Cassandra.
fn address_of(env: &Env, name: &str) -> Result<IpAddr, Failure> {
    let name = name.trim();
    let why = || Failure::usage(format!("--ignore {name}: neither an address nor a host that has one"));
    env.network.resolve_one(name).ok_or_else(why)
}

impl Rates {
    fn throttle(&self) -> Throttle {
        let of = |megabits: u64, mebibytes: u64| match mebibytes {
            0 => megabits.saturating_mul(MEGABIT),
            _ => mebibytes.saturating_mul(MEBIBYTE),
        };
        let parts = of(self.throttle, self.throttle_mib);
        let parts_inter_dc = of(self.inter_dc_throttle, self.inter_dc_throttle_mib);
        let entire = |mebibytes: Option<u64>, parts| mebibytes.map_or(parts, |given| given.saturating_mul(MEBIBYTE));
        Throttle {
            parts,
            parts_inter_dc,
            entire: entire(self.entire_sstable_throttle_mib, parts),
            entire_inter_dc: entire(self.entire_sstable_inter_dc_throttle_mib, parts_inter_dc),
        }
    }
}

/// Prints who has got what.
fn report(loaded: &LoadResult, context: &mut Context<'_>) -> Result<u8, Failure> {
    for end in &loaded.peers {
        let Planned { peer, files, bytes } = end.planned;
        match &end.result {
            Ok(()) => writeln!(context.out, "{peer}: {files} files, {bytes} bytes")?,
            Err(why) => writeln!(context.err, "{peer}: failed: {why}")?,
        }
    }
    let failed = loaded.failures().count();
    if failed == 0 {
        return Ok(DONE);
    }
    writeln!(
        context.err,
        "{failed} of {} nodes have not got everything; the load can be repeated",
        loaded.peers.len()
    )?;
    Ok(FAILED)
}

/// The bar on the terminal.
struct Bar {
    shows: bool,
    state: Mutex<Option<(Progress, BTreeMap<SocketAddr, u64>)>>,
}

impl Bar {
    fn end(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Watch for Bar {
    fn planned(&self, plan: &[Planned]) {
        if self.shows {
            let total = plan.iter().map(|planned| planned.bytes).sum();
            let name = format!("to {} nodes", plan.len());
            let begun = (Progress::new(&name, total), BTreeMap::new());
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        }
    }

    fn sent(&self, peer: SocketAddr, bytes: u64) {
        if let Some((progress, sent)) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            *sent.entry(peer).or_default() += bytes;
            progress.at(sent.values().sum());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_are_left_out_have_addresses_or_names() {
        let env = env::real::env();
        let of = |name: &str| address_of(&env, name).map_err(|failure| failure.message);
        assert_eq!(of(" 10.0.0.7"), Ok(IpAddr::from([10, 0, 0, 7])));
        assert_eq!(of("LOCALHOST").map(|address| address.is_loopback()), Ok(true));
        // too long for a name server to be asked
        let nobody = "n".repeat(300);
        assert_eq!(of(&nobody), Err(format!("--ignore {nobody}: neither an address nor a host that has one")));
    }
}
