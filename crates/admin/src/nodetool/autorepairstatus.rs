//! `nodetool autorepairstatus`: whose turn it is in the schedule of repairs. `--tables`, which is
//! ours, shows how far this node is. Agrees with
//! `org.apache.cassandra.tools.nodetool.AutoRepairStatus`.

use crate::nodetool::text::Table;
use crate::nodetool::{Context, Outcome, VerbError};
use crate::verbs::{GetRepairSchedule, ScheduledTable};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Repair type
    #[arg(short = 't', long)]
    repair_type: Option<String>,
    /// Show how far the repairs of each table are (not in Cassandra)
    #[arg(long)]
    tables: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let kind = self.repair_type.ok_or_else(|| VerbError::Usage("--repair-type is required.".to_owned()))?;
        let is_known = ["full", "incremental", "preview_repaired"].iter().any(|known| kind.eq_ignore_ascii_case(known));
        if !is_known {
            return Err(VerbError::Usage(format!("Invalid repair type: {kind}")));
        }
        let schedule = context.api.ask(&GetRepairSchedule {})?;
        if schedule.off.as_deref() == Some("auto_repair is not enabled") {
            return Ok(writeln!(context.out, "Auto-repair is not enabled")?);
        }
        let is_full = kind.eq_ignore_ascii_case("full");
        let active = if is_full { schedule.active.join(",") } else { String::new() };
        let mut table = Table::new();
        table.add(["Active Repairs"]);
        table.add([if active.is_empty() { "NONE" } else { &active }]);
        table.print(context.out)?;
        if !self.tables {
            return Ok(());
        }
        match &schedule.off {
            Some(why) => writeln!(context.out, "This node repairs nothing by itself: {why}")?,
            None => writeln!(context.out, "This node: {}", schedule.phase)?,
        }
        let millis = |micros: u64| format!("{:.1} ms", micros as f64 / 1000.0);
        let (usual, latest) = (millis(schedule.usual_latency), millis(schedule.latency));
        writeln!(context.out, "99th percentile of clients: {usual} without repairs, {latest} now")?;
        let mut table = Table::new();
        table.add(["Keyspace", "Table", "Repaired", "gc_grace", "Due", "Blocked"]);
        schedule.tables.iter().for_each(|one| table.add(row(one)));
        Ok(table.print(context.out)?)
    }
}

fn row(of: &ScheduledTable) -> [String; 6] {
    let hours = |seconds: u64| format!("{:.1} h", seconds as f64 / 3600.0);
    let repaired = of.age_seconds.map_or("never".to_owned(), |age| format!("{} ago", hours(age)));
    let (due, blocked) = (of.due.to_string(), of.blocked.to_string());
    [of.keyspace.clone(), of.table.clone(), repaired, hours(of.grace_seconds), due, blocked]
}
