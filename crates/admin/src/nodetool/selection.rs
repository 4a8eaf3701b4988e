//! `nodetool flush` and `drain`, which print nothing, and the tables that a verb is for.

use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{self, GetKeyspaces, TableSelection};

#[derive(clap::Args)]
pub(crate) struct Flush {
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Drain {}

impl Flush {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let tables = selection(&self.args, context)?;
        Ok(context.api.ask(&verbs::Flush { tables })?)
    }
}

impl Drain {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&verbs::Drain {})?)
    }
}

/// The keyspace and the tables that the arguments name; without arguments all tables.
pub(super) fn selection(args: &[String], context: &Context<'_>) -> Result<TableSelection, VerbError> {
    let Some((keyspace, tables)) = args.split_first() else { return Ok(TableSelection::default()) };
    let keyspaces = context.api.ask(&GetKeyspaces {})?;
    let Some(known) = keyspaces.iter().find(|known| known.name == *keyspace) else {
        return usage(format!("Keyspace [{keyspace}] does not exist."));
    };
    if let Some(table) = tables.iter().find(|table| !known.tables.contains(table)) {
        return usage(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
    }
    Ok(TableSelection { keyspaces: vec![keyspace.clone()], tables: tables.to_vec() })
}
