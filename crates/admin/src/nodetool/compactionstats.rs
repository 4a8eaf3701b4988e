//! `nodetool compactionstats`: compactions that run, wait and were done.

use crate::nodetool::text::{Table, file_size};
use crate::nodetool::{Context, Outcome};
use crate::verbs::{CompactionStats, GetCompactions};
use schema::ident::java_double;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB
    #[arg(short = 'H', long)]
    human_readable: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let stats = context.api.ask(&GetCompactions {})?;
        let mut table = Table::new();
        self.add_summary(&stats, &mut table);
        if !stats.running.is_empty() {
            self.add_running(&stats, &mut table);
        }
        table.print(context.out)?;
        Ok(())
    }

    fn bytes(&self, bytes: u64) -> String {
        if self.human_readable { file_size(bytes) } else { bytes.to_string() }
    }

    fn add_summary(&self, stats: &CompactionStats, table: &mut Table) {
        let pending: u64 = stats.pending.iter().map(|(_, _, count)| count).sum();
        table.add(["concurrent compactors".to_owned(), stats.concurrent_compactors.to_string()]);
        table.add(["pending tasks".to_owned(), pending.to_string()]);
        for (keyspace, name, count) in &stats.pending {
            table.add([keyspace.clone(), name.clone(), count.to_string()]);
        }
        let throughput = match stats.throughput {
            0 => "throttling disabled (0)".to_owned(),
            rate => java_double(rate as f64 / (1 << 20) as f64),
        };
        for (name, value) in [
            ("compactions completed", stats.completed.to_string()),
            ("data compacted", self.bytes(stats.bytes_compacted)),
            ("compactions aborted", stats.aborted.to_string()),
            ("compactions reduced", stats.reduced.to_string()),
            ("sstables dropped from compaction", stats.dropped_sstables.to_string()),
            ("15 minute rate", format!("{:.2}/minute", stats.fifteen_minute_rate * 60.0)),
            ("mean rate", format!("{:.2}/hour", stats.mean_rate * 3600.0)),
            ("compaction throughput (MiB/s)", throughput),
        ] {
            table.add([name.to_owned(), value]);
        }
    }

    fn add_running(&self, stats: &CompactionStats, table: &mut Table) {
        table.add(["id", "compaction type", "keyspace", "table", "completed", "total", "unit", "progress"]);
        let mut remaining = 0;
        for task in &stats.running {
            let progress = match task.total {
                0 => "n/a".to_owned(),
                total => format!("{:.2}%", task.completed as f64 / total as f64 * 100.0),
            };
            let (completed, total) = (self.bytes(task.completed), self.bytes(task.total));
            table.add([&task.id, &task.kind, &task.keyspace, &task.table, &completed, &total, "bytes", &progress]);
            remaining += task.total.saturating_sub(task.completed);
        }
        let time = match remaining.checked_div(stats.throughput) {
            None => "n/a".to_owned(),
            Some(seconds) => format!("{}h{:02}m{:02}s", seconds / 3600, seconds % 3600 / 60, seconds % 60),
        };
        table.add(["active compaction remaining time".to_owned(), time]);
    }
}
