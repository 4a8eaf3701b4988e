//! `nodetool getlogginglevels` and `setlogginglevel`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetLoggingLevels, SetLoggingLevel};

#[derive(clap::Args)]
pub(crate) struct Get {}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// The component (bootstrap, compaction, repair, streaming, cql, ring), package, class or
    /// module; without one, all go back to the levels of the start
    #[arg(default_value = "")]
    logger: String,
    /// The level
    #[arg(default_value = "")]
    level: String,
}

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        writeln!(context.out, "\n{:<50}{:>10}", "Logger Name", "Log Level")?;
        for (logger, level) in context.api.ask(&GetLoggingLevels {})? {
            writeln!(context.out, "{logger:<50}{level:>10}")?;
        }
        Ok(())
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&SetLoggingLevel { logger: self.logger, level: self.level })?)
    }
}
