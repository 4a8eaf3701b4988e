//! `nodetool garbagecollect`: SSTables are written again without what others delete.

use clap::ValueEnum;

use crate::nodetool::sstable_work::Work;
use crate::nodetool::{Context, Outcome};
use crate::verbs::SSTableWork;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum Granularity {
    Row,
    Cell,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Granularity of garbage removal. ROW (default) removes deleted partitions and rows, CELL also
    /// removes overwritten or deleted cells.
    #[arg(short = 'g', long, value_enum, default_value_t = Granularity::Row)]
    granularity: Granularity,
    /// Number of sstables to cleanup simultanously, set to 0 to use all available compaction
    /// threads. Defaults to 1 so that collections of newer tables can see the data is deleted and
    /// also remove tombstones.
    #[arg(short = 'j', long, default_value_t = 1)]
    jobs: u32,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let work = SSTableWork::GarbageCollect { cells: self.granularity == Granularity::Cell };
        Work { args: &self.args, jobs: Some(self.jobs), work, name: "garbage collection" }.run(context)
    }
}
