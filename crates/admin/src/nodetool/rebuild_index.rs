//! `nodetool rebuild_index`: secondary indexes are made again from what their table holds.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::RebuildIndexes;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The keyspace and table name followed by a list of index names
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [keyspace, table, indexes @ ..] = self.args.as_slice() else {
            return usage("rebuild_index requires ks, cf and idx args");
        };
        if indexes.is_empty() {
            return usage("rebuild_index requires ks, cf and idx args");
        }
        let (keyspace, table, indexes) = (keyspace.clone(), table.clone(), indexes.to_vec());
        Ok(context.api.ask(&RebuildIndexes { keyspace, table, indexes })?)
    }
}
