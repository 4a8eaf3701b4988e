//! `nodetool netstats`: streams and messages between nodes. A node alone has none, so all figures
//! are 0.

use crate::nodetool::{Context, Outcome};
use crate::verbs::GetNode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Display bytes in human readable form
    #[arg(short = 'H', long)]
    human_readable: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let node = context.api.ask(&GetNode {})?;
        let out = &mut *context.out;
        writeln!(out, "Mode: {}\nNot sending any streams.", node.mode)?;
        writeln!(out, "Read Repair Statistics:\nAttempted: 0\nMismatch (Blocking): 0\nMismatch (Background): 0")?;
        let mut line = |name: &str, cells: [&str; 4]| {
            let [active, pending, completed, dropped] = cells;
            writeln!(out, "{name:<25}{active:>10}{pending:>10}{completed:>15}{dropped:>10}")
        };
        line("Pool Name", ["Active", "Pending", "Completed", "Dropped"])?;
        for name in ["Large messages", "Small messages", "Gossip messages"] {
            line(name, ["n/a", "0", "0", "0"])?;
        }
        Ok(())
    }
}
