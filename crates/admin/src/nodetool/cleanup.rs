//! `nodetool cleanup`: removes partitions that belong to other nodes. A node alone owns all tokens,
//! so no SSTable has such partitions, and the verb only checks its arguments. Cassandra too skips
//! SSTables without such partitions.

use crate::nodetool::selection::selection;
use crate::nodetool::{Context, Outcome};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of sstables to cleanup simultanously, set to 0 to use all available compaction
    /// threads
    #[arg(short = 'j', long = "jobs", default_value_t = 2)]
    _jobs: u32,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        selection(&self.args, context).map(drop)
    }
}
