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
        print_streams(out, &sessions, self.human_readable)?;
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

/// The sessions, those of one plan together.
fn print_streams(out: &mut dyn Write, sessions: &[StreamSessionInfo], human: bool) -> io::Result<()> {
    let mut plans: BTreeMap<&str, Vec<&StreamSessionInfo>> = BTreeMap::new();
    for session in sessions {
        plans.entry(&session.plan).or_default().push(session);
    }
    for (plan, sessions) in plans {
        let operation = sessions.first().map_or("", |session| session.operation.as_str());
        writeln!(out, "{operation} {plan}")?;
        for session in sessions {
            let peer = session.peer.rsplit_once(':').map_or(session.peer.as_str(), |(address, _)| address);
            writeln!(out, "    /{peer}")?;
            print_way(out, session, &session.receiving, ["Receiving", "received", "received from"], human)?;
            print_way(out, session, &session.sending, ["Sending", "sent", "sent to"], human)?;
            // a line of our own, seldom there: Cassandra fails a session whose link is lost
            if session.resent > 0 {
                writeln!(out, "        Sent again: {} files, whose link was lost", session.resent)?;
            }
        }
    }
    Ok(())
}

fn print_way(
    out: &mut dyn Write,
    session: &StreamSessionInfo,
    way: &StreamWayInfo,
    [begins, done, with]: [&str; 3],
    human: bool,
) -> io::Result<()> {
    if way.files == 0 {
        return Ok(());
    }
    let size = |bytes| if human { file_size(bytes) } else { format!("{bytes} bytes") };
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
