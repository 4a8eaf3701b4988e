//! `nodetool relocatesstables`: each SSTable goes to the data directory that its tokens belong to.

use crate::nodetool::sstable_work::Work;
use crate::nodetool::{Context, Outcome};
use crate::verbs::SSTableWork;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of sstables to relocate simultanously, set to 0 to use all available compaction
    /// threads
    #[arg(short = 'j', long, default_value_t = 2)]
    jobs: u32,
    /// The keyspace and table name
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let work = SSTableWork::Relocate;
        Work { args: &self.args, jobs: Some(self.jobs), work, name: "relocating sstables" }.run(context)
    }
}
