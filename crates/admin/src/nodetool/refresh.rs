//! `nodetool refresh`: SSTables that were put into a table's directory are loaded.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::Refresh;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The keyspace and table name
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        writeln!(context.out, "nodetool refresh is deprecated, use nodetool import instead")?;
        let [keyspace, table] = self.args.as_slice() else {
            return usage("refresh requires ks and cf args");
        };
        Ok(context.api.ask(&Refresh { keyspace: keyspace.clone(), table: table.clone() })?)
    }
}
