//! `helenus backup load`: loads a backup into a running ring.

use std::path::PathBuf;
use std::sync::Arc;

use backup::load::{GcGracePolicy, Request, Summary};
use bulk::{Options, Throttle, Watch};
use clap::{Args, ValueEnum};
use env::Env;
use tools::RingAccess;

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
    #[command(flatten)]
    ring: RingAccess,
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
        let rate = self.throttle_mib.saturating_mul(MEBIBYTE);
        let options = Options {
            access: self.ring.access(env)?,
            keyspace: String::new(),
            table: String::new(),
            storage_port: self.ring.storage_port(),
            internode_tls: self.ring.internode_tls(env)?,
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
                None => GcGracePolicy::Check,
                Some(GcGrace::Raise) => GcGracePolicy::Raise,
                Some(GcGrace::Keep) => GcGracePolicy::Keep,
            },
        };
        let watch: Arc<dyn Watch> = Arc::new(NoWatch);
        let done = backup::load::load(env, &*store, &request, &watch)?;
        sentences(&self.tag, &done).iter().try_for_each(|line| say(line))
    }
}

/// The sentences about a load that is done.
fn sentences(tag: &str, Summary { tables, sstables, absent }: &Summary) -> Vec<String> {
    let missing = |host_id: &String| {
        format!(
            "the node {host_id} was in the ring, and backup {tag} has no part of it: what no other node had is not \
             loaded"
        )
    };
    let loaded = format!("loaded {sstables} SSTables of {tables} tables, of all nodes that backup {tag} has");
    absent.iter().map(missing).chain([loaded]).collect()
}

struct NoWatch;

impl Watch for NoWatch {}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Command, Program};
    use crate::backup::Backup;

    /// The files are read before a node is asked: the first is named, since none of them is there.
    #[test]
    fn the_ring_may_be_encrypted_and_a_password_stand_in_a_file() {
        for (options, missing) in [
            (["--truststore", "/no/trust", "--keystore", "/no/key"], "/no/key: "),
            (["--internode-truststore", "/no/trust", "--internode-keystore", "/no/own"], "/no/own: "),
            (["--username", "ann", "--password-file", "/no/passwords"], "/no/passwords: "),
        ] {
            let words = ["helenus", "backup", "load", "--from", "store", "-t", "t", "-d", "n", "--scratch", "s"];
            let program = Program::try_parse_from(words.into_iter().chain(options)).expect("known options");
            let Some(Command::Backup(Backup::Load(load))) = program.command else { panic!("a load was asked") };
            let refused = load.run(&env::real::env()).expect_err(missing);
            assert!(refused.starts_with(missing), "{refused}");
        }
    }

    #[test]
    fn nodes_that_a_backup_lacks_are_named() {
        let absent = vec!["5f1c6a9e-0000-4000-8000-000000000002".to_owned()];
        let told = sentences("monday", &Summary { tables: 3, sstables: 7, absent });
        assert!(told[0].starts_with("the node 5f1c6a9e-0000-4000-8000-000000000002 was in the ring"), "{told:?}");
        assert!(told[1].starts_with("loaded 7 SSTables of 3 tables"), "{told:?}");
        assert_eq!(sentences("monday", &Summary::default()).len(), 1);
    }
}
