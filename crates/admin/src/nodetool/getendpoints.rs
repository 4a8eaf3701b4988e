//! `nodetool getendpoints`: the replicas of a partition.

use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{GetEndpoints, GetKeyspaces};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The keyspace, the table, and the partition key for which we need to find the endpoint
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [keyspace, table, key] = self.args.as_slice() else {
            return usage("getendpoints requires keyspace, table and partition key arguments");
        };
        check_table(context, keyspace, table)?;
        let (keyspace, table, key) = (keyspace.clone(), table.clone(), key.clone());
        let request = GetEndpoints { keyspace, table, key, with_port: context.print_port };
        for endpoint in context.api.ask(&request)? {
            writeln!(context.out, "{endpoint}")?;
        }
        Ok(())
    }
}

/// Refuses a table that does not exist.
pub(super) fn check_table(context: &Context<'_>, keyspace: &str, table: &str) -> Result<(), VerbError> {
    let keyspaces = context.api.ask(&GetKeyspaces {})?;
    match keyspaces.iter().find(|known| known.name == keyspace) {
        None => usage(format!("Unknown keyspace '{keyspace}'")),
        Some(known) if !known.tables.iter().any(|known| known == table) => {
            usage(format!("Unknown table '{table}' in keyspace '{keyspace}'"))
        }
        Some(_) => Ok(()),
    }
}
