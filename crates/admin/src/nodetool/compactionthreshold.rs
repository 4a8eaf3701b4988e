//! `nodetool getcompactionthreshold` and `setcompactionthreshold`: with how many SSTables a table's
//! strategy compacts.

use crate::AdminError;
use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{GetCompactionThresholds, GetKeyspaces, SetCompactionThresholds};

#[derive(clap::Args)]
pub(crate) struct Get {
    /// The keyspace with a table
    args: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// The keyspace, the table, min and max threshold
    #[arg(allow_hyphen_values = true)]
    args: Vec<String>,
}

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [keyspace, table] = self.args.as_slice() else {
            return usage("getcompactionthreshold requires ks and cf args");
        };
        check(keyspace, table, context)?;
        let (min, max) =
            context.api.ask(&GetCompactionThresholds { keyspace: keyspace.clone(), table: table.clone() })?;
        writeln!(context.out, "Current compaction thresholds for {keyspace}/{table}: ")?;
        Ok(writeln!(context.out, " min = {min},  max = {max}")?)
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [keyspace, table, min, max] = self.args.as_slice() else {
            return usage("setcompactionthreshold requires ks, cf, min, and max threshold args.");
        };
        let (min, max) = (number(min)?, number(max)?);
        if min < 0 || max < 0 {
            return usage("Thresholds must be positive integers");
        }
        if min > max {
            return usage("Min threshold cannot be greater than max.");
        }
        if min < 2 && max != 0 {
            return usage("Min threshold must be at least 2");
        }
        check(keyspace, table, context)?;
        if max == 0 {
            let why = "Disabling compaction by setting min_compaction_threshold or max_compaction_threshold to 0 is deprecated, set the \
                       compaction strategy option 'enabled' to 'false' instead or use the nodetool command 'disableautocompaction'.";
            return Err(VerbError::Api(AdminError::Failed(why.to_owned())));
        }
        let (keyspace, table) = (keyspace.clone(), table.clone());
        let (min, max) = (min.unsigned_abs(), max.unsigned_abs());
        Ok(context.api.ask(&SetCompactionThresholds { keyspace, table, min, max })?)
    }
}

fn number(text: &str) -> Result<i32, VerbError> {
    text.parse().map_err(|_| VerbError::Usage(format!("For input string: \"{text}\"")))
}

/// Refuses a table that does not exist.
fn check(keyspace: &str, table: &str, context: &Context<'_>) -> Outcome {
    let keyspaces = context.api.ask(&GetKeyspaces {})?;
    let known = keyspaces.iter().find(|known| known.name == *keyspace);
    if known.is_some_and(|known| known.tables.iter().any(|name| name == table)) {
        return Ok(());
    }
    let text = format!("ColumnFamilyStore for {keyspace}/{table} not found.\n");
    Err(VerbError::Failed { text, code: 1 })
}
