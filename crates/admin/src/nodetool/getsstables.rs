//! `nodetool getsstables`: the data files that may hold a partition.

use crate::nodetool::getendpoints::check_table;
use crate::nodetool::{Context, Outcome, usage};

#[derive(clap::Args)]
pub struct Args {
    /// The keyspace, the table, and the key
    args: Vec<String>,
}

impl Args {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        let [keyspace, table, key] = self.args.as_slice() else {
            return usage("getsstables requires ks, cf and key args");
        };
        check_table(context, keyspace, table)?;
        for file in context.api.sstables(keyspace, table, key)? {
            writeln!(context.out, "{file}")?;
        }
        Ok(())
    }
}
