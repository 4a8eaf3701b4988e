//! `nodetool getautorepairconfig` and `setautorepairconfig`: settings of the schedule of repairs.
//!
//! Agrees with `org.apache.cassandra.tools.nodetool.{GetAutoRepairConfig,SetAutoRepairConfig}`, for
//! the settings that `auto_repair` of the configuration has here; others are refused by name. Only
//! full repairs are scheduled.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{GetRepairSettings, SetRepairSetting};

#[derive(clap::Args)]
pub(crate) struct Get {}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// Repair type
    #[arg(short = 't', long)]
    repair_type: Option<String>,
    /// autorepair param and value
    #[arg(value_names = ["autorepairparam", "value"])]
    args: Vec<String>,
}

const KINDS: [&str; 3] = ["full", "incremental", "preview_repaired"];
const OFF: &str = "Auto-repair is not enabled";

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let settings = context.api.ask(&GetRepairSettings {})?;
        if !settings.is_on {
            return Ok(writeln!(context.out, "{OFF}")?);
        }
        writeln!(context.out, "repair scheduler configuration:")?;
        writeln!(context.out, "\trepair_check_interval: {}s", settings.check_seconds)?;
        for kind in KINDS {
            let is_full = kind == "full";
            writeln!(context.out, "configuration for repair_type: {kind}\n\tenabled: {is_full}")?;
            for (name, value) in settings.full.iter().filter(|_| is_full) {
                writeln!(context.out, "\t{name}: {value}")?;
            }
        }
        Ok(())
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [name, value] = &*self.args else {
            return usage("setautorepairconfig requires param-type, and value args.");
        };
        if !context.api.ask(&GetRepairSettings {})?.is_on && name != "enabled" {
            return Ok(writeln!(context.out, "{OFF}")?);
        }
        match self.repair_type.as_deref() {
            None => return usage("--repair-type is required for this parameter."),
            Some(kind) if kind.eq_ignore_ascii_case("full") => {}
            Some(kind) if KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known)) => {
                return usage(format!("only full repairs are scheduled, not {kind} ones"));
            }
            Some(kind) => return usage(format!("Invalid repair type: {kind}")),
        }
        Ok(context.api.ask(&SetRepairSetting { name: name.clone(), value: value.clone() })?)
    }
}
