//! `helenus backup load`: loads a backup into a running ring.

use std::path::PathBuf;
use std::sync::Arc;

use backup::load::{Done, Grace, Request};
use bulk::{Access, Options, Throttle, Watch};
use clap::{Args, ValueEnum};
use env::Env;

use super::say;

/// Bytes of a mebibyte.
const MEBIBYTE: u64 = 1 << 20;

/// Options of `helenus backup load`.
#[derive(Args)]
pub struct Load {
    /// The store.
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// The name of the backup.
    #[arg(short = 't', long)]
    tag: String,
    /// Nodes that are asked for the ring, one after the other until one answers.
    #[arg(short = 'd', long, required = true, value_delimiter = ',', value_name = "HOST[,HOST]")]
    nodes: Vec<String>,
    /// The port for clients.
    #[arg(short = 'p', long, default_value_t = 9042)]
    port: u16,
    /// The user's name.
    #[arg(short = 'u', long, requires = "password")]
    username: Option<String>,
    /// The user's password.
    #[arg(long, requires = "username")]
    password: Option<String>,
    /// Where SSTables are kept while they are streamed.
    #[arg(long, value_name = "DIR")]
    scratch: PathBuf,
    /// Make no keyspaces and no tables. Without this, those that the ring lacks are made.
    #[arg(long)]
    no_schema: bool,
    /// For tables that the ring had before, where a compaction could forget a deletion before all
    /// is loaded: raise their gc_grace_seconds until then, or keep it. Without this, nothing is
    /// loaded then.
    #[arg(long, value_enum)]
    gc_grace: Option<GcGrace>,
    /// Mebibytes a second to all nodes; 0: without a limit.
    #[arg(long, default_value_t = 0, value_name = "MIB")]
    throttle_mib: u64,
    /// Keyspaces [default: all of users].
    keyspaces: Vec<String>,
}

/// The treatment of gc_grace_seconds of tables that the ring had before.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GcGrace {
    /// `gc_grace_seconds` is raised until all is loaded.
    Raise,
    /// `gc_grace_seconds` stays as it is.
    Keep,
}

impl Load {
    pub(super) fn run(&self, env: &Env) -> Result<(), String> {
        let store = backup::open(env, &self.from)?;
        let login = self.username.clone().zip(self.password.clone());
        let access = Access { nodes: self.nodes.clone(), port: self.port, login, tls: None };
        let rate = self.throttle_mib.saturating_mul(MEBIBYTE);
        let options = Options {
            access,
            keyspace: String::new(),
            table: String::new(),
            storage_port: None,
            internode_tls: None,
            ignored: Vec::new(),
            connections_per_host: 1,
            throttle: Throttle { parts: rate, entire: rate, ..Throttle::default() },
        };
        let request = Request {
            tag: self.tag.clone(),
            keyspaces: self.keyspaces.clone(),
            scratch: self.scratch.clone(),
            options,
            skips_schema: self.no_schema,
            grace: match self.gc_grace {
                None => Grace::Check,
                Some(GcGrace::Raise) => Grace::Raise,
                Some(GcGrace::Keep) => Grace::Keep,
            },
        };
        let watch: Arc<dyn Watch> = Arc::new(Nobody);
        let Done { tables, sstables } = backup::load::load(env, &*store, &request, &watch)?;
        say(&format!("loaded {sstables} SSTables of {tables} tables, of all nodes of backup {}", self.tag))
    }
}

struct Nobody;

impl Watch for Nobody {}
