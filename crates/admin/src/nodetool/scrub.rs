//! `nodetool scrub`: SSTables are written again as far as they can be read. The verb prints what is
//! lost; Cassandra only logs it.

use crate::nodetool::sstable_work::Work;
use crate::nodetool::{Context, Outcome};
use crate::verbs::SSTableWork;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scrubbed CFs will be snapshotted first, if disableSnapshot is false. (default false)
    #[arg(long)]
    no_snapshot: bool,
    /// Skip corrupted partitions even when scrubbing counter tables. (default false)
    #[arg(short = 's', long)]
    skip_corrupted: bool,
    /// Do not validate columns using column validator
    #[arg(short = 'n', long)]
    no_validate: bool,
    /// Rewrites rows with overflowed expiration date affected by CASSANDRA-14092 with the maximum
    /// supported expiration date
    #[arg(short = 'r', long)]
    reinsert_overflowed_ttl: bool,
    /// Number of sstables to scrub simultanously, set to 0 to use all available compaction threads
    #[arg(short = 'j', long, default_value_t = 2)]
    jobs: u32,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let work = SSTableWork::Scrub {
            no_snapshot: self.no_snapshot,
            skip_corrupted: self.skip_corrupted,
            no_validate: self.no_validate,
            reinsert_overflowed_ttl: self.reinsert_overflowed_ttl,
        };
        Work { args: &self.args, jobs: Some(self.jobs), work, name: "scrubbing" }.run(context)
    }
}
