//! `nodetool tpstats`: pools of work, and messages of other nodes that were dropped because they
//! were too old, by verb. Messages wait in no queue here, so there are no latencies of that.
//! Agrees with `org.apache.cassandra.tools.nodetool.stats.TpStatsPrinter`.

use serde_json::{Map, Value, json};

use crate::nodetool::tablestats::Format;
use crate::nodetool::text::Table;
use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetMessageCounts, GetPools};

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
        let messages = context.api.ask(&GetMessageCounts {})?;
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
            let dropped: Map<String, Value> =
                messages.into_iter().map(|message| (message.verb, json!(message.dropped))).collect();
            let all = json!({ "ThreadPools": pools, "DroppedMessage": dropped, "WaitLatencies": {} });
            return Ok(format.print(&all, context.out)?);
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
        for message in messages {
            let none = ["0.0"; 4].map(str::to_owned);
            dropped.add([message.verb, message.dropped.to_string()].into_iter().chain(none));
        }
        dropped.print(context.out)?;
        Ok(())
    }
}
