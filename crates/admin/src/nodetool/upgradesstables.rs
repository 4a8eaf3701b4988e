//! `nodetool upgradesstables` and `recompress_sstables`: SSTables are written again.

use crate::nodetool::sstable_work::Work;
use crate::nodetool::{Context, Outcome};
use crate::verbs::SSTableWork;

#[derive(clap::Args)]
pub(crate) struct Upgrade {
    /// Use -a to include all sstables, even those already on the current version
    #[arg(short = 'a', long)]
    include_all_sstables: bool,
    /// Use -t to compact only SSTables that have local creation time _older_ than the given
    /// timestamp
    #[arg(short = 't', long, default_value_t = i64::MAX)]
    max_timestamp: i64,
    /// Number of sstables to upgrade simultanously, set to 0 to use all available compaction
    /// threads
    #[arg(short = 'j', long, default_value_t = 2)]
    jobs: u32,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Upgrade {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let (include_all, max_timestamp) = (self.include_all_sstables, self.max_timestamp);
        let work = SSTableWork::Upgrade { include_all, max_timestamp };
        Work { args: &self.args, jobs: Some(self.jobs), work, name: "upgrading sstables" }.run(context)
    }
}

#[derive(clap::Args)]
pub(crate) struct Recompress {
    /// Number of sstables to upgrade simultanously, set to 0 to use all available compaction
    /// threads
    #[arg(short = 'j', long, default_value_t = 2)]
    jobs: u32,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Recompress {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let work = SSTableWork::Recompress;
        Work { args: &self.args, jobs: Some(self.jobs), work, name: "recompressing sstables" }.run(context)
    }
}
