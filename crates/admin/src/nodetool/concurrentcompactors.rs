//! `nodetool getconcurrentcompactors` and `setconcurrentcompactors`.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{GetCompactions, SetConcurrentCompactors};

#[derive(clap::Args)]
pub(crate) struct Get {}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// Number of concurrent compactors, greater than 0.
    #[arg(allow_hyphen_values = true)]
    value: i32,
}

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let count = context.api.ask(&GetCompactions {})?.concurrent_compactors;
        Ok(writeln!(context.out, "Current concurrent compactors in the system is: \n{count}")?)
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        match u32::try_from(self.value) {
            Ok(count) if count > 0 => Ok(context.api.ask(&SetConcurrentCompactors { count })?),
            _ => usage("concurrent_compactors should be great than 0."),
        }
    }
}
