//! `nodetool verify`: SSTables are compared with their checksums.

use crate::nodetool::sstable_work::Work;
use crate::nodetool::{Context, EXIT_USAGE, Outcome, VerbError};
use crate::verbs::SSTableWork;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Verify each cell data, beyond simply checking sstable checksums
    #[arg(short = 'e', long)]
    extended_verify: bool,
    /// Also check that all sstables are the latest version
    #[arg(short = 'c', long)]
    check_version: bool,
    /// Override disabling of verify tool - see CASSANDRA-9947 for caveats
    #[arg(short = 'f', long)]
    force: bool,
    /// Invoke the disk failure policy if a corrupt sstable is found
    #[arg(short = 'd', long)]
    dfp: bool,
    /// Mutate the repair status on corrupt sstables
    #[arg(short = 'r', long)]
    rsc: bool,
    /// Verify that all tokens in sstables are owned by this node
    #[arg(short = 't', long)]
    check_tokens: bool,
    /// Do a quick check - avoid reading all data to verify checksums
    #[arg(short = 'q', long)]
    quick: bool,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let refused = match &self {
            Self { force: false, .. } => Some(
                "verify is disabled unless a [-f|--force] override flag is provided. See CASSANDRA-9947 and \
                 CASSANDRA-17017 for details.",
            ),
            Self { check_tokens: true, extended_verify: false, .. } => {
                Some("Token verification requires --extended-verify")
            }
            _ => None,
        };
        if let Some(line) = refused {
            writeln!(context.out, "{line}")?;
            return Err(VerbError::Failed { text: String::new(), code: EXIT_USAGE });
        }
        let work = SSTableWork::Verify {
            extended: self.extended_verify,
            check_version: self.check_version,
            disk_failure_policy: self.dfp,
            mutate_repair_status: self.rsc,
            quick: self.quick,
            check_tokens: self.check_tokens,
        };
        Work { args: &self.args, jobs: None, work, name: "verifying" }.run(context)
    }
}
