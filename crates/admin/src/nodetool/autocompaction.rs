//! `nodetool enableautocompaction`, `disableautocompaction` and `statusautocompaction`.

use crate::nodetool::selection::selection;
use crate::nodetool::text::Table;
use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetAutoCompaction, SetAutoCompaction};

#[derive(clap::Args)]
pub(crate) struct Enable {
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Disable {
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Status {
    /// Show auto compaction status for each keyspace/table
    #[arg(short = 'a', long)]
    all: bool,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

fn word(on: bool) -> &'static str {
    if on { "running" } else { "not running" }
}

impl Enable {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let tables = selection(&self.args, context)?;
        Ok(context.api.ask(&SetAutoCompaction { tables, on: true })?)
    }
}

impl Disable {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let tables = selection(&self.args, context)?;
        Ok(context.api.ask(&SetAutoCompaction { tables, on: false })?)
    }
}

impl Status {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let tables = selection(&self.args, context)?;
        let states = context.api.ask(&GetAutoCompaction { tables })?;
        if self.all {
            let mut table = Table::new();
            table.add(["Keyspace", "Table", "Status"]);
            for (keyspace, name, on) in &states {
                table.add([keyspace, name, word(*on)]);
            }
            return Ok(table.print(context.out)?);
        }
        let all_on = states.iter().all(|(_, _, on)| *on);
        let all_off = states.iter().all(|(_, _, on)| !*on);
        let status = if all_on || all_off { word(all_on) } else { "partially running" };
        Ok(writeln!(context.out, "{status}")?)
    }
}
