//! `nodetool netstats`: streams and messages between nodes. There are no streams yet.
//! Agrees with `org.apache.cassandra.tools.nodetool.NetStats`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetMessages, GetNode};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Display bytes in human readable form
    #[arg(short = 'H', long)]
    human_readable: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let node = context.api.ask(&GetNode {})?;
        let messages = context.api.ask(&GetMessages {})?;
        let out = &mut *context.out;
        writeln!(out, "Mode: {}\nNot sending any streams.", node.mode)?;
        writeln!(out, "Read Repair Statistics:\nAttempted: 0\nMismatch (Blocking): 0\nMismatch (Background): 0")?;
        let mut line = |name: &str, cells: [&str; 4]| {
            let [active, pending, completed, dropped] = cells;
            writeln!(out, "{name:<25}{active:>10}{pending:>10}{completed:>15}{dropped:>10}")
        };
        line("Pool Name", ["Active", "Pending", "Completed", "Dropped"])?;
        for (name, pool) in [
            ("Large messages", messages.large),
            ("Small messages", messages.small),
            ("Gossip messages", messages.urgent),
        ] {
            line(name, ["n/a", &pool.pending.to_string(), &pool.completed.to_string(), &pool.dropped.to_string()])?;
        }
        Ok(())
    }
}
