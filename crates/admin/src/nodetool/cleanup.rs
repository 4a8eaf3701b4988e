//! `nodetool cleanup`: takes away what belongs to other nodes. All tokens belong to a node alone, so that no SSTable has anything to lose:
//! Cassandra passes over such SSTables too.

use crate::nodetool::selection::selection;
use crate::nodetool::{Context, Outcome};

#[derive(clap::Args)]
pub struct Args {
    /// Number of sstables to cleanup simultanously, set to 0 to use all available compaction threads
    #[arg(short = 'j', long = "jobs", default_value_t = 2)]
    _jobs: u32,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Args {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        selection(&self.args, context).map(drop)
    }
}
