//! `nodetool repair_admin`: sessions of incremental repairs. Agrees with
//! `org.apache.cassandra.tools.nodetool.RepairAdmin`; the columns of `summarize-pending --verbose`
//! show what they name, which Cassandra's do not.

use crate::nodetool::text::{Table, file_size};
use crate::nodetool::{Context, Outcome, VerbError, selection, usage};
use crate::verbs::{
    CancelRepair, CleanUpRepairs, GetPendingRepairs, GetRepairSessions, GetRepaired, PendingRepairData, RepairedTables,
};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// None: `list`, with the options that are given.
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// list repair sessions
    List(List),
    /// report the amount of data marked pending repair for the given token range (or all replicated
    /// range if no tokens are provided)
    SummarizePending(Summarize),
    /// return the most recent repairedAt timestamp for the given token range (or all replicated
    /// ranges if no tokens are provided)
    SummarizeRepaired(Summarize),
    /// cleans up pending data from completed sessions. This happens automatically, but the command
    /// is provided for situations where it needs to be expedited. Use --force to cancel compactions
    /// that are preventing promotion
    Cleanup(Cleanup),
    /// cancel an incremental repair session. Use --force to cancel from a node other than the
    /// repair coordinator. Attempting to cancel FINALIZED or FAILED sessions is an error.
    Cancel(Cancel),
}

#[derive(clap::Args)]
struct Range {
    /// Use -st to specify a token at which the repair range starts
    #[arg(long, allow_hyphen_values = true)]
    start_token: Option<i64>,
    /// Use -et to specify a token at which repair range ends
    #[arg(long, allow_hyphen_values = true)]
    end_token: Option<i64>,
}

#[derive(clap::Args)]
struct List {
    /// include completed and failed sessions
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    range: Range,
}

#[derive(clap::Args)]
struct Summarize {
    /// print additional info
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    range: Range,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

#[derive(clap::Args)]
struct Cleanup {
    /// Force a cleanup.
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    range: Range,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

#[derive(clap::Args)]
struct Cancel {
    /// Force a cancellation.
    #[arg(short, long)]
    force: bool,
    /// The session to cancel
    #[arg(short, long)]
    session: String,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        match self.verb.unwrap_or(Verb::List(self.list)) {
            Verb::List(list) => list.run(context),
            Verb::SummarizePending(summarize) => summarize.pending(context),
            Verb::SummarizeRepaired(summarize) => summarize.repaired(context),
            Verb::Cleanup(cleanup) => cleanup.run(context),
            Verb::Cancel(Cancel { force, session }) => Ok(context.api.ask(&CancelRepair { session, force })?),
        }
    }
}

impl Range {
    fn tokens(&self) -> Result<Option<(i64, i64)>, VerbError> {
        match (self.start_token, self.end_token) {
            (None, None) => Ok(None),
            (Some(start), Some(end)) => Ok(Some((start, end))),
            _ => usage("-st and -et are given together"),
        }
    }

    fn tables(&self, args: &[String], context: &Context<'_>) -> Result<RepairedTables, VerbError> {
        let named = selection::selection(args, context)?;
        let keyspace = named.keyspaces.into_iter().next();
        Ok(RepairedTables { keyspace, tables: named.tables, range: self.tokens()? })
    }
}

impl List {
    fn run(self, context: &mut Context<'_>) -> Outcome {
        let sessions = context.api.ask(&GetRepairSessions { all: self.all, range: self.range.tokens()? })?;
        if sessions.is_empty() {
            return Ok(writeln!(context.out, "no sessions")?);
        }
        let mut table = Table::barred();
        table.add(["id", "state", "last activity", "coordinator", "participants", "participants_wp"]);
        for session in sessions {
            let host = |address: &String| address.rsplit_once(':').map_or("", |(host, _)| host).to_owned();
            let hosts: Vec<String> = session.participants.iter().map(host).collect();
            table.add([
                session.id,
                session.state,
                format!("{} (s)", session.idle_seconds),
                format!("/{}", session.coordinator),
                hosts.join(","),
                session.participants.join(","),
            ]);
        }
        Ok(table.print(context.out)?)
    }
}

fn size(data: PendingRepairData) -> String {
    format!("{} ({} sstables / {} sessions)", file_size(data.bytes), data.sstables, data.sessions)
}

impl Summarize {
    fn pending(self, context: &mut Context<'_>) -> Outcome {
        let of = self.range.tables(&self.args, context)?;
        let mut table = Table::barred();
        let more = if self.verbose { &["pending", "finalized", "failed"][..] } else { &[] };
        table.add(["keyspace", "table", "total"].iter().chain(more).copied());
        for info in context.api.ask(&GetPendingRepairs { of })? {
            let parts = [info.pending, info.finalized, info.failed];
            let total = parts.iter().fold(PendingRepairData::default(), |sum, part| PendingRepairData {
                bytes: sum.bytes + part.bytes,
                sstables: sum.sstables + part.sstables,
                sessions: sum.sessions + part.sessions,
            });
            let more = if self.verbose { &parts[..] } else { &[] };
            let sizes = [total].into_iter().chain(more.iter().copied()).map(size);
            table.add([info.keyspace, info.table].into_iter().chain(sizes));
        }
        Ok(table.print(context.out)?)
    }

    fn repaired(self, context: &mut Context<'_>) -> Outcome {
        let of = self.range.tables(&self.args, context)?;
        let found = context.api.ask(&GetRepaired { of })?;
        if found.is_empty() {
            return Ok(writeln!(context.out, "no stats")?);
        }
        let mut table = Table::barred();
        let more = if self.verbose { &["detail"][..] } else { &[] };
        table.add(["keyspace", "table", "min_repaired", "max_repaired"].iter().chain(more).copied());
        for info in found {
            let times = || info.sections.iter().map(|(.., at)| *at);
            let (least, most) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
            let section = |(start, end, at): &(i64, i64, i64)| format!("({start},{end}]={at}");
            let detail: Vec<String> = info.sections.iter().map(section).collect();
            let detail = self.verbose.then(|| detail.join(", "));
            table.add([info.keyspace, info.table, least.to_string(), most.to_string()].into_iter().chain(detail));
        }
        Ok(table.print(context.out)?)
    }
}

impl Cleanup {
    fn run(self, context: &mut Context<'_>) -> Outcome {
        let of = self.range.tables(&self.args, context)?;
        writeln!(context.out, "Cleaning up data from completed sessions...")?;
        let done = context.api.ask(&CleanUpRepairs { of, force: self.force })?;
        if done.iter().any(|info| info.unsuccessful > 0) {
            writeln!(context.out, "Some tables couldn't be cleaned up completely")?;
        }
        let mut table = Table::barred();
        table.add(["keyspace", "table", "successful sessions", "unsuccessful sessions"]);
        for info in done {
            table.add([info.keyspace, info.table, info.successful.to_string(), info.unsuccessful.to_string()]);
        }
        Ok(table.print(context.out)?)
    }
}
