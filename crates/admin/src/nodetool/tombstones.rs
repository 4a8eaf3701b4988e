//! `nodetool tombstones`: where the tombstones of a table are, when they may go, and why not yet. A
//! verb of our own.

use crate::nodetool::getendpoints::check_table;
use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::GetTombstones;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Partitions with most tombstones that are named of each SSTable
    #[arg(short = 'n', long, default_value_t = 10)]
    top: u32,
    /// The keyspace and the table
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [keyspace, table] = self.args.as_slice() else {
            return usage("tombstones requires keyspace and table name arguments");
        };
        check_table(context, keyspace, table)?;
        let request = GetTombstones { keyspace: keyspace.clone(), table: table.clone(), top: self.top };
        let texts = context.api.ask(&request)?;
        if texts.is_empty() {
            writeln!(context.out, "{keyspace}.{table} has no SSTables")?;
        }
        for text in texts {
            write!(context.out, "{text}")?;
        }
        Ok(())
    }
}
