//! `helenus nodetool VERB`: Cassandra's verbs, flags, layouts and exit codes over the admin API.
//!
//! A verb is a file of [`nodetool`](self), with its arguments and what it prints, and a line in the
//! table of verbs below; what it asks of the node are [`crate::verbs`]. Verbs of Cassandra that are
//! not here are refused by name. Agrees with `org.apache.cassandra.tools.NodeTool` and
//! `tools.nodetool.*`. Where nobody logs in at the node, user and password are without effect.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::http::{ClientTls, Login, NodeAddress, Password};
use crate::verb::{AdminApi, AdminError};

mod text;

mod assassinate;
mod auth_caches;
mod autocompaction;
mod autorepairconfig;
mod autorepairstatus;
mod caches;
mod cleanup;
mod clearsnapshot;
mod compact;
mod compactionhistory;
mod compactionstats;
mod compactionthreshold;
mod concurrentcompactors;
mod decommission;
mod describecluster;
mod describering;
mod failuredetector;
mod forcecompact;
mod garbagecollect;
mod getcompactionthroughput;
mod getendpoints;
mod getlogginglevels;
mod getsstables;
mod gettimeout;
mod gossipinfo;
mod guardrailsconfig;
mod handoff;
mod import;
mod info;
mod joining;
mod listsnapshots;
mod move_token;
mod netstats;
mod profile;
mod profileload;
mod proxyhistograms;
mod rebuild;
mod rebuild_index;
mod refresh;
mod refused;
mod reloadssl;
mod relocatesstables;
mod removenode;
mod repair;
mod repair_admin;
mod ring;
mod scrub;
mod seeds;
mod selection;
mod snapshot;
mod sstable_work;
mod status;
mod stop;
mod streamthroughput;
mod switches;
mod tablehistograms;
mod tablestats;
mod tombstones;
mod tpstats;
mod traceprobability;
mod upgradesstables;
mod verify;
mod viewbuildstatus;

pub use profileload::print as print_samples;

/// Exit code of a call with wrong arguments.
const EXIT_USAGE: u8 = 1;
/// Exit code of a failure.
const EXIT_FAILURE: u8 = 2;

#[derive(Parser)]
#[command(name = "nodetool", about = "Talks to a node's admin port", disable_help_flag = true)]
struct NodeTool {
    /// Node hostname or ip address
    #[arg(short = 'h', long, global = true, default_value = "127.0.0.1")]
    host: String,
    /// Admin port of the node
    #[arg(short = 'p', long, global = true, default_value_t = crate::http::PORT)]
    port: u16,
    /// File with the token of the node, which verbs need that change something (default: where the
    /// node says it is)
    #[arg(long, global = true)]
    token_file: Option<PathBuf>,
    /// Role that asks; a superuser needs no token
    #[arg(short = 'u', long, global = true)]
    username: Option<String>,
    /// Password of the role (-pw)
    #[arg(long, global = true)]
    password: Option<String>,
    /// File with lines of a role and its password (-pwf)
    #[arg(long, global = true, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Encrypt the connection, for a node with admin_encryption_options
    #[arg(long, global = true)]
    ssl: bool,
    /// PEM file of the authorities that sign the node's certificate
    #[arg(long, global = true, value_name = "FILE")]
    truststore: Option<PathBuf>,
    /// PEM file of the key and the certificate to show to a node that asks for one
    #[arg(long, global = true, value_name = "FILE")]
    keystore: Option<PathBuf>,
    /// Show hosts with their ports
    #[arg(long, global = true)]
    print_port: bool,
    /// Show help
    #[arg(long, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(subcommand)]
    verb: Verb,
}

/// The description of the command line, for manuals and completions.
pub fn command() -> clap::Command {
    NodeTool::command()
}

/// Makes the command line's verbs of their table: for each its help, its word if that is not the
/// name in lower case, and its arguments, whose `run` carries it out.
macro_rules! verbs {
    ($($(#[$attribute:meta])* $name:ident($arguments:ty),)*) => {
        #[derive(Subcommand)]
        enum Verb {
            $($(#[$attribute])* $name($arguments),)*
        }

        fn dispatch(verb: Verb, context: &mut Context<'_>) -> Outcome {
            match verb {
                $(Verb::$name(arguments) => arguments.run(context),)*
            }
        }
    };
}

verbs! {
    /// Print cluster information (state, load, IDs, ...)
    Status(status::Args),
    /// Print node information (uptime, load, ...)
    Info(info::Args),
    /// Print cassandra version
    Version(info::VersionArgs),
    /// Flush one or more tables
    Flush(selection::Flush),
    /// Force a (major) compaction on one or more tables
    Compact(compact::Args),
    /// Force a (major) compaction on a table
    Forcecompact(forcecompact::Args),
    /// Print min and max compaction thresholds for a given table
    Getcompactionthreshold(compactionthreshold::Get),
    /// Set min and max compaction thresholds for a given table
    Setcompactionthreshold(compactionthreshold::Set),
    /// Triggers the immediate cleanup of keys no longer belonging to a node
    Cleanup(cleanup::Args),
    /// Enable autocompaction for the given keyspace and table
    Enableautocompaction(autocompaction::Enable),
    /// Disable autocompaction for the given keyspace and table
    Disableautocompaction(autocompaction::Disable),
    /// Status of autocompaction of the given keyspace and table
    Statusautocompaction(autocompaction::Status),
    /// Get the number of concurrent compactors in the system
    Getconcurrentcompactors(concurrentcompactors::Get),
    /// Set number of concurrent compactors in the system
    Setconcurrentcompactors(concurrentcompactors::Set),
    /// Drain the node (stop accepting writes and flush all tables)
    Drain(selection::Drain),
    /// Print statistics on tables
    #[command(alias = "cfstats")]
    Tablestats(tablestats::Args),
    /// Print statistic histograms for a given table
    #[command(alias = "cfhistograms")]
    Tablehistograms(tablehistograms::Args),
    /// Show what uses the CPU, the memory and the disks, and what is waited for
    Profile(profile::Args),
    /// Show where the tombstones of a table are, when they may go, and why not yet
    Tombstones(tombstones::Args),
    /// Print statistic histograms for network operations
    Proxyhistograms(proxyhistograms::Args),
    /// Print statistics on compactions
    Compactionstats(compactionstats::Args),
    /// Print history of compaction
    Compactionhistory(compactionhistory::Args),
    /// Print the end points that owns the key
    Getendpoints(getendpoints::Args),
    /// Print the sstable filenames that own the key
    Getsstables(getsstables::Args),
    /// Print the name, snitch, partitioner and schema version of a cluster
    Describecluster(describecluster::Args),
    /// Shows the token ranges info of a given keyspace
    Describering(describering::Args),
    /// Print information about the token ring
    Ring(ring::Args),
    /// Take a snapshot of specified keyspaces or a snapshot of the specified table
    Snapshot(snapshot::Args),
    /// Lists all the snapshots along with the size on disk and true size
    Listsnapshots(listsnapshots::Args),
    /// Remove the snapshot with the given name from the given keyspaces
    Clearsnapshot(clearsnapshot::Args),
    /// Print the current trace probability value
    Gettraceprobability(traceprobability::Get),
    /// Sets the probability for tracing any given request to value
    Settraceprobability(traceprobability::Set),
    /// Print the timeout of the given type in ms
    Gettimeout(gettimeout::Get),
    /// Set the specified timeout in ms
    Settimeout(gettimeout::Set),
    /// Print runtime configuration of guardrails
    Getguardrailsconfig(guardrailsconfig::Get),
    /// Modify runtime configuration of guardrails
    Setguardrailsconfig(guardrailsconfig::Set),
    /// Print usage statistics of thread pools
    Tpstats(tpstats::Args),
    /// Print the MiB/s throughput cap for compaction in the system
    Getcompactionthroughput(getcompactionthroughput::Get),
    /// Set the MiB/s throughput cap for compaction in the system, or 0 to disable throttling
    Setcompactionthroughput(getcompactionthroughput::Set),
    /// Print the throughput cap for streaming and entire SSTable streaming in the system
    Getstreamthroughput(streamthroughput::Get),
    /// Set throughput cap for streaming and entire SSTable streaming in the system, or 0 to disable
    /// throttling
    Setstreamthroughput(streamthroughput::Set),
    /// Print the throughput cap for inter-datacenter streaming and entire SSTable inter-datacenter
    /// streaming
    Getinterdcstreamthroughput(streamthroughput::GetInterDc),
    /// Set the throughput cap for inter-datacenter streaming and entire SSTable inter-datacenter
    /// streaming, or 0 to disable throttling
    Setinterdcstreamthroughput(streamthroughput::SetInterDc),
    /// Get the runtime logging levels
    Getlogginglevels(getlogginglevels::Get),
    /// Set the log level threshold for a given logger
    Setlogginglevel(getlogginglevels::Set),
    /// Disable native transport (binary protocol)
    Disablebinary(switches::DisableBinary),
    /// Reenable native transport (binary protocol)
    Enablebinary(switches::EnableBinary),
    /// Status of native transport (binary protocol)
    Statusbinary(switches::Binary),
    /// Status of gossip
    Statusgossip(switches::Gossip),
    /// Status of incremental backup
    Statusbackup(switches::Backup),
    /// Status of storing future hints on the current node
    Statushandoff(handoff::Status),
    /// Reenable future hints storing on the current node
    Enablehandoff(handoff::Enable),
    /// Disable storing hinted handoffs
    Disablehandoff(handoff::Disable),
    /// Pause hints delivery process
    Pausehandoff(handoff::Pause),
    /// Resume hints delivery process
    Resumehandoff(handoff::Resume),
    /// Enable hints for a data center that was previously disabled
    Enablehintsfordc(handoff::EnableFor),
    /// Disable hints for a data center
    Disablehintsfordc(handoff::DisableFor),
    /// Print the max hint window in ms
    Getmaxhintwindow(handoff::GetWindow),
    /// Set the specified max hint window in ms
    Setmaxhintwindow(handoff::SetWindow),
    /// Set hinted handoff throttle in KiB per second, shared by all other nodes
    Sethintedhandoffthrottlekb(handoff::SetThrottle),
    /// Truncate all hints on the local node, or truncate hints for the endpoint specified
    Truncatehints(handoff::Truncate),
    /// Print all pending hints that this node has
    Listpendinghints(handoff::ListPending),
    /// Disable gossip (effectively marking the node down)
    Disablegossip(switches::DisableGossip),
    /// Reenable gossip
    Enablegossip(switches::EnableGossip),
    /// Forcefully remove a dead node without re-replicating any data. Use as a last resort if you
    /// cannot removenode
    Assassinate(assassinate::Args),
    /// Decommission the *node I am connecting to*
    Decommission(decommission::Args),
    /// Show status of current node removal, force completion of pending removal or remove provided
    /// ID
    Removenode(removenode::Args),
    /// Move node on the token ring to a new token
    #[command(name = "move")]
    MoveToken(move_token::Args),
    /// Rebuild data by streaming from other nodes (similarly to bootstrap)
    Rebuild(rebuild::Args),
    /// Monitor/manage node's bootstrap process
    Bootstrap(joining::Bootstrap),
    /// Join the ring
    Join(joining::Join),
    /// Shows the failure detector information for the cluster
    Failuredetector(failuredetector::Args),
    /// Get the currently in use seed node IP list excluding the node IP
    Getseeds(seeds::Get),
    /// Reload the seed node list from the seed node provider
    Reloadseeds(seeds::Reload),
    /// Reload the certificates of clients, of other nodes and of the admin port
    Reloadssl(reloadssl::Args),
    /// Shows the gossip information for the cluster
    Gossipinfo(gossipinfo::Args),
    /// Repair one or more tables
    Repair(repair::Args),
    /// Print autorepair status
    Autorepairstatus(autorepairstatus::Args),
    /// Print autorepair configurations
    Getautorepairconfig(autorepairconfig::Get),
    /// sets the autorepair configuration
    Setautorepairconfig(autorepairconfig::Set),
    /// list and fail incremental repair sessions
    #[command(name = "repair_admin")]
    RepairAdmin(repair_admin::Args),
    /// Import new SSTables to the system
    Import(import::Args),
    /// Load newly placed SSTables to the system without restart
    Refresh(refresh::Args),
    /// A full rebuild of native secondary indexes for a given table
    #[command(name = "rebuild_index")]
    RebuildIndex(rebuild_index::Args),
    /// Show progress of a materialized view build
    Viewbuildstatus(viewbuildstatus::Args),
    /// Rewrite sstables (for the requested tables) that are not on the current version (thus
    /// upgrading them to said current version)
    Upgradesstables(upgradesstables::Upgrade),
    /// Rewrite sstables (for the requested tables) that have compression configuration different
    /// from the current
    #[command(name = "recompress_sstables")]
    RecompressSstables(upgradesstables::Recompress),
    /// Verify (check data checksum for) one or more tables
    Verify(verify::Args),
    /// Scrub (rebuild sstables for) one or more tables
    Scrub(scrub::Args),
    /// Remove deleted data from one or more tables
    Garbagecollect(garbagecollect::Args),
    /// Invalidate the key cache
    Invalidatekeycache(caches::InvalidateKeys),
    /// Invalidate the row cache
    Invalidaterowcache(caches::InvalidateRows),
    /// Invalidate the counter cache
    Invalidatecountercache(caches::InvalidateCounters),
    /// Set global key, row, and counter cache capacities (in MB units)
    Setcachecapacity(caches::Capacity),
    /// Set number of keys saved by each cache for faster post-restart warmup. 0 to disable
    Setcachekeystosave(caches::KeysToSave),
    /// Relocates sstables to the correct disk
    Relocatesstables(relocatesstables::Args),
    /// Stop compaction
    Stop(stop::Args),
    /// Low footprint profiling of activity for a period of time
    #[command(alias = "toppartitions")]
    Profileload(profileload::Args),
    /// Print network information on provided host (connecting node by default)
    Netstats(netstats::Args),
    /// Invalidate the credentials cache
    Invalidatecredentialscache(auth_caches::InvalidateCredentials),
    /// Invalidate the network permissions cache
    Invalidatenetworkpermissionscache(auth_caches::InvalidateNetworkPermissions),
    /// Invalidate the permissions cache
    Invalidatepermissionscache(auth_caches::InvalidatePermissions),
    /// Invalidate the roles cache
    Invalidaterolescache(auth_caches::InvalidateRoles),
    /// Print configuration for Auth cache
    Getauthcacheconfig(auth_caches::GetConfig),
    /// Set configuration for Auth cache
    Setauthcacheconfig(auth_caches::SetConfig),
}

/// The context of a verb: the node, the output, the clock.
pub(crate) struct Context<'a> {
    /// The node that is asked.
    pub api: &'a dyn AdminApi,
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// The wall clock, milliseconds since 1970.
    pub now_millis: i64,
    /// Show hosts with their ports.
    pub print_port: bool,
    /// Finds the name of a host.
    host_name: HostName<'a>,
}

/// Gives the name of the host that has an address; None: it is not known.
type HostName<'a> = &'a dyn Fn(IpAddr) -> Option<String>;

impl Context<'_> {
    /// The name of the host with this address, or the address if the host has no name
    /// (`--resolve-ip`).
    pub(crate) fn host_name(&self, address: &str) -> String {
        let name = address.parse().ok().and_then(self.host_name);
        name.unwrap_or_else(|| address.to_owned())
    }
}

/// Why a verb did not do what was asked.
#[derive(Debug)]
pub(crate) enum VerbError {
    /// The arguments are wrong.
    Usage(String),
    /// The node refused or failed, or is not there.
    Api(AdminError),
    /// The verb says by itself what went wrong, and with which exit code the program ends.
    Failed {
        /// Text for standard error; empty if the verb has printed it.
        text: String,
        /// The exit code.
        code: u8,
    },
    /// Standard output could not be written.
    Output(io::Error),
}

impl From<AdminError> for VerbError {
    fn from(error: AdminError) -> Self {
        Self::Api(error)
    }
}

impl From<io::Error> for VerbError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The result of a verb.
pub(crate) type Outcome = Result<(), VerbError>;

/// Refuses wrong arguments.
pub(crate) fn usage<T>(message: impl Into<String>) -> Result<T, VerbError> {
    Err(VerbError::Usage(message.into()))
}

/// Makes the API of a node.
pub type Connect<'a> = &'a dyn Fn(NodeAddress) -> crate::Result<Box<dyn AdminApi>>;

/// Runs a command line (without the program's name) and gives its exit code.
pub fn run(args: &[String], now_millis: i64, connect: Connect<'_>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let look_up = |address: IpAddr| dns_lookup::lookup_addr(&address).ok();
    run_with(args, now_millis, connect, &look_up, out, err)
}

fn run_with(
    args: &[String],
    now_millis: i64,
    connect: Connect<'_>,
    host_name: HostName<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let tool = match parse(args) {
        Ok(tool) => tool,
        Err(error) => return report_parse_error(&error, out, err),
    };
    let print_port = tool.print_port;
    let done = address(&tool).and_then(|address| Ok(connect(address)?)).and_then(|api| {
        let mut context = Context { api: api.as_ref(), out, now_millis, print_port, host_name };
        dispatch(tool.verb, &mut context)
    });
    match done {
        Ok(()) => 0,
        Err(error) => report(&error, err),
    }
}

/// Verbs whose last argument is a key. An unknown option behind the table is the key: a composite
/// key may begin with a negative number (`-5:7`). Cassandra takes an option that it does not know
/// for an argument, whatever the verb is.
const VERBS_OF_KEYS: [&str; 2] = ["getendpoints", "getsstables"];

fn parse(args: &[String]) -> Result<NodeTool, clap::Error> {
    let words: Vec<String> = std::iter::once("nodetool".to_owned()).chain(long_forms(args)).collect();
    let unknown = match NodeTool::try_parse_from(&words) {
        Err(error) if error.kind() == ErrorKind::UnknownArgument => error,
        parsed => return parsed,
    };
    // only now: all words behind the first argument are taken for arguments, options too
    let with_keys = |verb: clap::Command| verb.mut_arg("args", |arg| arg.allow_hyphen_values(true));
    let command = VERBS_OF_KEYS.iter().fold(command(), |command, verb| command.mut_subcommand(verb, with_keys));
    let parsed = command.try_get_matches_from(&words).and_then(|matches| NodeTool::from_arg_matches(&matches));
    parsed.map_err(|_| unknown)
}

/// The node that the options name.
fn address(tool: &NodeTool) -> Result<NodeAddress, VerbError> {
    let password = match (&tool.password, &tool.password_file) {
        (Some(password), _) => Some(Password::Text(password.clone())),
        (None, Some(file)) => Some(Password::File(file.clone())),
        (None, None) => None,
    };
    let login = match (&tool.username, password) {
        (None, _) => None,
        (Some(user), Some(password)) => Some(Login { user: user.clone(), password }),
        (Some(_), None) => return usage("-u needs the password: -pw PASSWORD, or -pwf FILE"),
    };
    let tls = match (tool.ssl, &tool.truststore) {
        (false, None) if tool.keystore.is_none() => None,
        (false, _) => return usage("--truststore and --keystore are for --ssl"),
        (true, None) => {
            return usage("--ssl needs the authorities that sign the node's certificate: --truststore FILE");
        }
        (true, Some(trusted)) => Some(ClientTls { trusted: trusted.clone(), identity: tool.keystore.clone() }),
    };
    let (host, port, token_file) = (tool.host.clone(), tool.port, tool.token_file.clone());
    Ok(NodeAddress { host, port, token_file, login, tls })
}

/// Arguments without Cassandra's options of one dash and several letters, and without properties of
/// the virtual machine (`-Dname=value`), which scripts and Medusa give nodetool and which mean
/// nothing without one. Behind the verb `import`, `-p` is no port.
fn long_forms(args: &[String]) -> Vec<String> {
    let verb = verb_at(args);
    let is_import = args.get(verb).is_some_and(|verb| verb == "import");
    // behind `--` there are no options, whatever a word looks like
    let options_end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let one = |(place, arg): (usize, &String)| match arg.as_str() {
        arg if place > options_end => arg.to_owned(),
        "-p" if is_import && place > verb => "--copy-data".to_owned(),
        arg => long_form(arg),
    };
    // a key may begin like a property
    let is_property =
        |place: usize, arg: &str| arg.starts_with("-D") && (place < verb || place < options_end && arg.contains('='));
    args.iter().enumerate().filter(|(place, arg)| !is_property(*place, arg)).map(one).collect()
}

/// The place of the verb: the first word that is neither an option nor the value of one.
fn verb_at(args: &[String]) -> usize {
    let command = command();
    let takes_value = |arg: &String| {
        let word = long_form(arg);
        let is_word = |option: &clap::Arg| match word.strip_prefix("--") {
            Some(long) => option.get_long() == Some(long),
            None => option.get_short().is_some_and(|letter| word.chars().eq(['-', letter])),
        };
        command.get_arguments().any(|option| option.get_action().takes_values() && is_word(option))
    };
    let mut place = 0;
    while let Some(arg) = args.get(place).filter(|arg| arg.starts_with('-')) {
        place += 1 + usize::from(takes_value(arg));
    }
    place
}

/// Cassandra's options of one dash and several letters.
fn long_form(arg: &str) -> String {
    let long = match arg {
        "-pp" => "--print-port",
        "-pw" => "--password",
        "-pwf" => "--password-file",
        "-cf" => "--table",
        "-ks" => "--keyspace",
        "-ts" => "--tokens",
        "-kt" | "-kc" => "--kt-list",
        "-sf" => "--skip-flush",
        "-hf" => "--hex-format",
        "-id" => "--compaction-id",
        "-niv" => "--no-index-validation",
        "-ns" => "--no-snapshot",
        "-nt" => "--no-ttl",
        "-st" => "--start-token",
        "-et" => "--end-token",
        "-seq" => "--sequential",
        "-dcpar" => "--dc-parallel",
        "-local" => "--in-local-dc",
        "-dc" => "--in-dc",
        "-hosts" => "--in-hosts",
        "-pr" => "--partitioner-range",
        "-full" => "--full",
        "-force" => "--force",
        "-prv" => "--preview",
        "-vd" => "--validate",
        "-pl" => "--pull",
        "-tr" => "--trace",
        "-os" => "--optimise-streams",
        "-skip-paxos" => "--skip-paxos",
        "-paxos-only" => "--paxos-only",
        "-iuk" => "--ignore-unreplicated-keyspaces",
        "-ri" => "--require-index-components",
        other => other,
    };
    long.to_owned()
}

fn report_parse_error(error: &clap::Error, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let shown = write!(out, "{error}");
            if shown.is_ok() { 0 } else { EXIT_FAILURE }
        }
        ErrorKind::InvalidSubcommand => {
            let verb =
                error.get(clap::error::ContextKind::InvalidSubcommand).map(ToString::to_string).unwrap_or_default();
            let message = match refused::reason(&verb) {
                Some(why) => format!("{verb} exists in Cassandra, but is not supported: {why}"),
                None => format!("Found unexpected parameters: [{verb}]"),
            };
            report(&VerbError::Usage(message), err)
        }
        _ => {
            let text = error.to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            let message = first.trim_start_matches("error: ").replace('\n', " ");
            report(&VerbError::Usage(message), err)
        }
    }
}

/// When standard error fails too, the exit code is all that is left.
fn report(error: &VerbError, err: &mut dyn Write) -> u8 {
    let (text, code) = match error {
        VerbError::Usage(message) | VerbError::Api(AdminError::Invalid(message)) => {
            (format!("nodetool: {message}\nSee 'nodetool help' or 'nodetool help <command>'.\n"), EXIT_USAGE)
        }
        VerbError::Api(AdminError::Unreachable(message)) => (format!("nodetool: {message}\n"), EXIT_USAGE),
        VerbError::Api(AdminError::Failed(message) | AdminError::Unauthorized(message)) => {
            (format!("error: {message}\n"), EXIT_FAILURE)
        }
        VerbError::Failed { text, code } => (text.clone(), *code),
        VerbError::Output(error) => (format!("error: {error}\n"), EXIT_FAILURE),
    };
    let _ = err.write_all(text.as_bytes());
    code
}

#[cfg(test)]
mod tests;
