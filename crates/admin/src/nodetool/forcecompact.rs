//! `nodetool forcecompact`: the SSTables of some partitions are compacted, and their tombstones go
//! before gc_grace has ended.

use crate::nodetool::selection::selection;
use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{Compact, CompactRequest};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The keyspace, table, and a list of partition keys ignoring the gc_grace_seconds
    #[arg(allow_hyphen_values = true)]
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let Some((table, keys)) = self.args.split_at_checked(2).filter(|(_, keys)| !keys.is_empty()) else {
            return usage("forcecompact requires keyspace, table and keys args");
        };
        let tables = selection(table, context)?;
        Ok(context.api.ask(&CompactRequest { tables, what: Compact::Keys(keys.to_vec()) })?)
    }
}
