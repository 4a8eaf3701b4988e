//! `nodetool repair`: replicas compare what they have and stream what differs.
//!
//! Prints what happens as it happens, a line an event. Agrees with
//! `org.apache.cassandra.tools.nodetool.Repair` and `tools.RepairRunner`.

use crate::nodetool::{Context, EXIT_FAILURE, Outcome, VerbError, selection, text, usage};
use crate::verbs::{GetKeyspaces, GetRepair, RepairEventKind, RepairParallelism, RepairPreview, RepairRequest};

/// Not repaired unless it is named.
const ONLY_BY_NAME: &str = "system_distributed";

#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools)] // an option each
pub(crate) struct Args {
    /// Use -seq to carry out a sequential repair
    #[arg(long)]
    sequential: bool,
    /// Use -dcpar to repair data centers in parallel.
    #[arg(long)]
    dc_parallel: bool,
    /// Use -local to only repair against nodes in the same datacenter
    #[arg(long)]
    in_local_dc: bool,
    /// Use -dc to repair specific datacenters
    #[arg(long, value_delimiter = ',')]
    in_dc: Vec<String>,
    /// Use -hosts to repair specific hosts
    #[arg(long, value_delimiter = ',')]
    in_hosts: Vec<String>,
    /// Use -st to specify a token at which the repair range starts (exclusive)
    #[arg(long, allow_hyphen_values = true)]
    start_token: Option<i64>,
    /// Use -et to specify a token at which repair range ends (inclusive)
    #[arg(long, allow_hyphen_values = true)]
    end_token: Option<i64>,
    /// Use -pr to repair only the first range returned by the partitioner
    #[arg(long)]
    partitioner_range: bool,
    /// Use -full to issue a full repair.
    #[arg(long)]
    full: bool,
    /// Use -force to filter out down endpoints
    #[arg(long)]
    force: bool,
    /// Determine ranges and amount of data to be streamed, but don't actually perform repair (-prv)
    #[arg(long)]
    preview: bool,
    /// Checks that repaired data is in sync between nodes (-vd)
    #[arg(long)]
    validate: bool,
    /// Number of tables to repair at a time (max: 4)
    #[arg(short = 'j', long, default_value_t = 1)]
    job_threads: u32,
    /// Use --pull to perform a one way repair where data is only streamed from a remote node to
    /// this node. (-pl)
    #[arg(long)]
    pull: bool,
    /// Use --optimise-streams to try to reduce the number of streams we do (-os)
    #[arg(long)]
    optimise_streams: bool,
    /// If the --skip-paxos flag is included, the paxos repair step is skipped.
    #[arg(long)]
    skip_paxos: bool,
    /// If the --paxos-only flag is included, no table data is repaired, only paxos operations.
    #[arg(long)]
    paxos_only: bool,
    /// Use -tr to trace the repair. Traces are logged to system_traces.events.
    #[arg(long)]
    trace: bool,
    /// Ignore keyspaces which are not replicated, otherwise the repair will fail (-iuk)
    #[arg(long)]
    ignore_unreplicated_keyspaces: bool,
    /// The keyspace followed by one or many tables
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        if self.partitioner_range && !(self.in_dc.is_empty() && self.in_hosts.is_empty()) {
            return failed("Primary range repair should be performed on all nodes in the cluster.");
        }
        let ranges = match (self.start_token, self.end_token) {
            (None, None) => Vec::new(),
            (Some(start), Some(end)) => vec![(start, end)],
            _ => return usage("-st and -et are given together"),
        };
        let named = selection::selection(&self.args, context)?;
        let keyspaces = if named.keyspaces.is_empty() { self.keyspaces(context)? } else { named.keyspaces };
        for keyspace in keyspaces {
            let request = self.request(keyspace, named.tables.clone(), ranges.clone());
            follow(context, &request)?;
        }
        Ok(())
    }

    /// The keyspaces that are repaired where none is named.
    fn keyspaces(&self, context: &Context<'_>) -> Result<Vec<String>, VerbError> {
        let all = context.api.ask(&GetKeyspaces {})?;
        let is_meant = |known: &crate::verbs::KeyspaceInfo| {
            !known.replication_class.is_empty()
                && known.replication_class != "LocalStrategy"
                && known.name != ONLY_BY_NAME
        };
        Ok(all.into_iter().filter(is_meant).map(|known| known.name).collect())
    }

    fn request(&self, keyspace: String, tables: Vec<String>, ranges: Vec<(i64, i64)>) -> RepairRequest {
        let preview = match (self.validate, self.preview, self.full) {
            (true, ..) => RepairPreview::Repaired,
            (_, true, true) => RepairPreview::All,
            (_, true, false) => RepairPreview::Unrepaired,
            _ => RepairPreview::None,
        };
        let is_preview = preview != RepairPreview::None;
        RepairRequest {
            keyspace,
            tables,
            parallelism: match (self.sequential, self.dc_parallel) {
                (true, _) => RepairParallelism::Sequential,
                (_, true) => RepairParallelism::DataCenterAware,
                _ => RepairParallelism::Parallel,
            },
            primary_range: self.partitioner_range,
            incremental: !self.full && (is_preview || !self.paxos_only),
            job_threads: self.job_threads,
            data_centers: if self.in_local_dc { Vec::new() } else { self.in_dc.clone() },
            local_data_center: self.in_local_dc,
            hosts: self.in_hosts.clone(),
            ranges,
            preview,
            pull: self.pull,
            force: self.force,
            optimise_streams: self.optimise_streams,
            ignore_unreplicated: self.ignore_unreplicated_keyspaces,
            repair_paxos: !self.skip_paxos && !is_preview,
            paxos_only: self.paxos_only && !is_preview,
            trace: self.trace,
        }
    }
}

fn failed(message: &str) -> Outcome {
    Err(VerbError::Failed { text: format!("error: {message}\n"), code: EXIT_FAILURE })
}

/// Begins a repair and prints its events until it has ended.
fn follow(context: &mut Context<'_>, request: &RepairRequest) -> Outcome {
    let Some(number) = context.api.ask(request)? else {
        let now = text::log_time(context.now_millis);
        let keyspace = &request.keyspace;
        writeln!(context.out, "[{now}] Replication factor is 1. No repair is needed for keyspace '{keyspace}'")?;
        return Ok(());
    };
    let (mut from, mut failure) = (0, None);
    loop {
        let told = context.api.ask(&GetRepair { number, from })?;
        for event in &told.events {
            let line = match event.kind {
                RepairEventKind::Progress(percent) => format!("{} (progress: {percent}%)", event.text),
                _ => event.text.clone(),
            };
            writeln!(context.out, "[{}] {line}", text::log_time(event.at))?;
            if event.kind == RepairEventKind::Error {
                failure = Some(event.text.clone());
            }
        }
        context.out.flush()?;
        from += told.events.len() as u64;
        if told.has_ended {
            break;
        }
    }
    match failure {
        None => Ok(()),
        Some(why) => failed(&format!(
            "Repair job has failed with the error message: {why}. Check the logs on the repair participants for further \
             details"
        )),
    }
}
