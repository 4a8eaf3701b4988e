//! `nodetool compactionhistory`: compactions that ended, the newest first.

use crate::nodetool::text::{Table, date_time, file_size};
use crate::nodetool::{Context, Outcome};
use crate::verbs::GetCompactionHistory;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB
    #[arg(short = 'H', long)]
    human_readable: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let mut history = context.api.ask(&GetCompactionHistory {})?;
        if history.is_empty() {
            return Ok(writeln!(context.out, "There is no compaction history")?);
        }
        history.sort_by_key(|entry| std::cmp::Reverse(entry.compacted_at));
        let bytes = |bytes: u64| if self.human_readable { file_size(bytes) } else { bytes.to_string() };
        let mut table = Table::new();
        table.add([
            "id",
            "keyspace_name",
            "columnfamily_name",
            "compacted_at",
            "bytes_in",
            "bytes_out",
            "rows_merged",
            "compaction_properties",
        ]);
        for entry in &history {
            let merged: Vec<String> = entry.rows_merged.iter().map(|(files, rows)| format!("{files}:{rows}")).collect();
            let properties: Vec<String> =
                entry.properties.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            table.add([
                entry.id.clone(),
                entry.keyspace.clone(),
                entry.table.clone(),
                date_time(entry.compacted_at),
                bytes(entry.bytes_in),
                bytes(entry.bytes_out),
                format!("{{{}}}", merged.join(", ")),
                format!("{{{}}}", properties.join(", ")),
            ]);
        }
        writeln!(context.out, "Compaction History: ")?;
        table.print(context.out)?;
        Ok(())
    }
}
