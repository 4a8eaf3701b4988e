//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use server::running::FirstPassword;

use crate::log::Format;

/// Apache Cassandra 5.0 without the JVM.
#[derive(Parser)]
#[command(name = "helenus", version, about, args_conflicts_with_subcommands = true, args_override_self = true)]
pub struct Program {
    /// The command; a node is served when none is given.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: Serve,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve a node (also without this word).
    #[command(args_override_self = true)]
    Serve(Serve),
    /// A ring of several nodes on this machine, to try things.
    #[command(subcommand)]
    Ring(crate::ring::Ring),
    /// Back nodes up to a directory or an object store, and restore them.
    #[command(subcommand)]
    Backup(crate::backup::Backup),
    /// Ask a running node, with the verbs of Cassandra's nodetool.
    #[command(disable_help_flag = true)]
    Nodetool {
        /// Verb and options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Look into SSTable files.
    #[command(disable_help_flag = true)]
    Sstable {
        /// Verb and files.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Look at this machine: what would be in the way of a node, and what to do. Takes the options
    /// of serve.
    #[command(args_override_self = true)]
    Doctor(Doctor),
    /// Check a configuration: what is honoured, has no effect, or is refused. Takes the options of
    /// serve.
    #[command(args_override_self = true)]
    Check(Serve),
    /// Whether a node serves clients: exit code 0 if it does. Takes nodetool's -h and -p.
    #[command(disable_help_flag = true)]
    Health {
        /// Host and port.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The first program of a container: takes the environment of Cassandra's image.
    #[command(disable_help_flag = true, hide = true)]
    Entrypoint {
        /// `cassandra -f`, options of serve, or another command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Print the completions of a shell.
    #[command(hide = true)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages.
    #[command(hide = true)]
    Man {
        /// The directory, which is made.
        directory: PathBuf,
    },
    /// A CQL prompt, with the commands and options of cqlsh.
    #[command(disable_help_flag = true)]
    Shell {
        /// Host, port, options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Load a node.
    #[command(disable_help_flag = true)]
    Stress {
        /// Options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Options of the doctor.
#[derive(Args)]
pub struct Doctor {
    /// Report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Look at the copy of another machine: the directory above its /proc, /sys and /run.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// The node that is to run here.
    #[command(flatten)]
    pub serve: Serve,
}

/// Options of a node.
#[derive(Args)]
pub struct Serve {
    /// Where everything is kept: a directory of Helenus or of Cassandra, or a snapshot (with
    /// --read-only).
    #[arg(long, value_name = "DIR", default_value = "helenus-data")]
    pub data_dir: PathBuf,
    /// CREATE statements of tables in a directory without system_schema [default: the schema.cql
    /// files in it].
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// A cassandra.yaml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address, or name of a host with it, that clients and other nodes connect to [default:
    /// rpc_address and listen_address of the configuration, 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: Option<IpAddr>,
    /// Join the ring of these nodes, HOST or HOST:PORT separated by commas; the first node of a
    /// ring names itself [default: seed_provider of the configuration; without it the node stays
    /// alone].
    #[arg(long, value_name = "HOSTS")]
    pub seeds: Option<String>,
    /// Name of the cluster [default: cluster_name of the configuration, Test Cluster].
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// Data center of this node [default: what the snitch says, datacenter1].
    #[arg(long, value_name = "NAME")]
    pub dc: Option<String>,
    /// Rack of this node [default: what the snitch says, rack1].
    #[arg(long, value_name = "NAME")]
    pub rack: Option<String>,
    /// Without --config: the directory of the other files that are read beside a cassandra.yaml,
    /// as cassandra-rackdc.properties. The entrypoint of a container names it.
    #[arg(long, value_name = "DIR", hide = true)]
    pub conf_dir: Option<PathBuf>,
    /// Port that clients connect to [default: native_transport_port of the configuration, 9042].
    #[arg(long)]
    pub port: Option<u16>,
    /// Port of metrics and nodetool; on admin_address of the configuration, or on the address of
    /// --listen if that is a loopback one, else on 127.0.0.1.
    #[arg(long, default_value_t = 9180)]
    pub admin_port: u16,
    /// Shards of each table: a power of two [default: four a core].
    #[arg(long)]
    pub shards: Option<usize>,
    /// Memory to use, such as 512M or 4G [default: what the control group or the machine has].
    #[arg(long, value_name = "SIZE", value_parser = server::memory::parse_size)]
    pub memory: Option<u64>,
    /// A key of cassandra.yaml.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Report keys of the configuration that are unknown or not honoured, and go on.
    #[arg(long)]
    pub lenient: bool,
    /// The form of the log on stderr.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: Format,
    /// Write the log into system.log and debug.log in this directory, too.
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,
    /// Write nothing at all beneath the directory; requests that write are refused.
    #[arg(long)]
    pub read_only: bool,
    /// The password of the default superuser. No option names it: other users of the machine read
    /// command lines.
    #[arg(skip)]
    pub first_password: FirstPassword,
}

/// An address, or that of a host: of several the first of IPv4, as for names in cassandra.yaml.
fn address(text: &str) -> Result<IpAddr, &'static str> {
    env::real::env().network.resolve_one(text).ok_or("neither an address nor a host that has one")
}
