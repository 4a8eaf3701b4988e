//! `nodetool cleanup`: removes partitions that belong to other nodes.
//! Agrees with `org.apache.cassandra.tools.nodetool.Cleanup`.

use crate::nodetool::selection::selection;
use crate::nodetool::{Context, Outcome};
use crate::verbs::CleanupRequest;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of sstables to cleanup simultanously, set to 0 to use all available compaction
    /// threads
    #[arg(short = 'j', long = "jobs", default_value_t = 2)]
    jobs: u32,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let tables = selection(&self.args, context)?;
        Ok(context.api.ask(&CleanupRequest { tables, jobs: self.jobs })?)
    }
}
