//! `nodetool tpstats`: pools of work. Cassandra prints dropped messages between nodes behind them;
//! a node alone has none.

use serde_json::{Map, Value, json};

use crate::nodetool::tablestats::Format;
use crate::nodetool::text::Table;
use crate::nodetool::{Context, Outcome};
use crate::verbs::GetPools;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output format (json, yaml)
    #[arg(short = 'F', long, default_value = "")]
    format: String,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let format = Format::read(&self.format)?;
        let pools = context.api.ask(&GetPools {})?;
        if format != Format::Plain {
            let pools: Map<String, Value> = pools
                .into_iter()
                .map(|pool| {
                    let figures = json!({
                        "ActiveTasks": pool.active,
                        "PendingTasks": pool.pending,
                        "CompletedTasks": pool.completed,
                        "CurrentlyBlockedTasks": pool.blocked,
                        "TotalBlockedTasks": pool.all_time_blocked,
                    });
                    (pool.name, figures)
                })
                .collect();
            return Ok(format
                .print(&json!({ "ThreadPools": pools, "DroppedMessage": {}, "WaitLatencies": {} }), context.out)?);
        }
        let mut table = Table::new();
        table.add(["Pool Name", "Active", "Pending", "Completed", "Blocked", "All time blocked"]);
        for pool in &pools {
            let figures = [pool.active, pool.pending, pool.completed, pool.blocked, pool.all_time_blocked];
            table.add(std::iter::once(pool.name.clone()).chain(figures.map(|figure| figure.to_string())));
        }
        table.print(context.out)?;
        writeln!(context.out, "\nLatencies waiting in queue (micros) per dropped message types")?;
        let mut dropped = Table::new();
        dropped.add(["Message type", "Dropped    ", "50%     ", "95%     ", "99%     ", "Max"]);
        dropped.print(context.out)?;
        Ok(())
    }
}
