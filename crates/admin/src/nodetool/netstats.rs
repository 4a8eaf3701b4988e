//! `nodetool netstats`: streams and messages between nodes.
//! Agrees with `org.apache.cassandra.tools.nodetool.NetStats`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::nodetool::text::file_size;
use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetMessages, GetNode, GetStreams, StreamSessionInfo, StreamWayInfo};

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
        let sessions = context.api.ask(&GetStreams {})?;
        let out = &mut *context.out;
        writeln!(out, "Mode: {}", node.mode)?;
        if sessions.is_empty() {
            writeln!(out, "Not sending any streams.")?;
        }
        let layout = Layout { human: self.human_readable, print_port: context.print_port };
        layout.print_streams(out, &sessions)?;
        if node.mode == "STARTING" {
            return Ok(());
        }
        // Cassandra has the lines `Attempted` and `Background` still, and nothing that raises them
        let blocking = messages.read_repairs.repaired_blocking;
        writeln!(out, "Read Repair Statistics:\nAttempted: 0\nMismatch (Blocking): {blocking}")?;
        writeln!(out, "Mismatch (Background): 0")?;
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

/// How sizes and addresses are written.
struct Layout {
    /// Sizes have units.
    human: bool,
    /// Addresses have their ports.
    print_port: bool,
}

impl Layout {
    /// The sessions, those of one plan together.
    fn print_streams(&self, out: &mut dyn Write, sessions: &[StreamSessionInfo]) -> io::Result<()> {
        let mut plans: BTreeMap<&str, Vec<&StreamSessionInfo>> = BTreeMap::new();
        for session in sessions {
            plans.entry(&session.plan).or_default().push(session);
        }
        for (plan, sessions) in plans {
            let operation = sessions.first().map_or("", |session| session.operation.as_str());
            writeln!(out, "{operation} {plan}")?;
            for session in sessions {
                let host = session.peer.rsplit_once(':').map(|(address, _)| address).filter(|_| !self.print_port);
                writeln!(out, "    /{}", host.unwrap_or(&session.peer))?;
                self.print_way(out, session, &session.receiving, ["Receiving", "received", "received from"])?;
                self.print_way(out, session, &session.sending, ["Sending", "sent", "sent to"])?;
                // a line of our own, seldom there: Cassandra fails a session whose link is lost
                if session.resent > 0 {
                    writeln!(out, "        Sent again: {} files, whose link was lost", session.resent)?;
                }
            }
        }
        Ok(())
    }

    fn print_way(
        &self,
        out: &mut dyn Write,
        session: &StreamSessionInfo,
        way: &StreamWayInfo,
        [begins, done, with]: [&str; 3],
    ) -> io::Result<()> {
        if way.files == 0 {
            return Ok(());
        }
        let size = |bytes| if self.human { file_size(bytes) } else { format!("{bytes} bytes") };
        let part = |done: u64, all: u64| if all == 0 { 100.0 } else { done as f64 / all as f64 * 100.0 };
        writeln!(
            out,
            "        {begins} {} files, {} total. Already {done} {} files ({:.2}%), {} total ({:.2}%)",
            way.files,
            size(way.bytes),
            way.files_done,
            part(way.files_done, way.files),
            size(way.bytes_done),
            part(way.bytes_done, way.bytes),
        )?;
        let StreamSessionInfo { peer, index, .. } = session;
        for (name, (done, all)) in &way.by_file {
            let percent = part(*done, *all) as u64;
            writeln!(out, "            {name} {done}/{all} bytes ({percent}%) {with} idx:{index}/{peer}")?;
        }
        Ok(())
    }
}
