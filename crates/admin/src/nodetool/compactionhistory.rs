//! `nodetool compactionhistory`: compactions that ended, the newest first. Agrees with
//! `CompactionHistory`, `CompactionHistoryHolder` and `CompactionHistoryPrinter`.

use serde_json::{Value, json};

use crate::nodetool::tablestats::Format;
use crate::nodetool::text::{Table, date_time, file_size};
use crate::nodetool::{Context, Outcome};
use crate::verbs::{CompactionHistoryEntry, GetCompactionHistory};

/// The columns, which are the keys of the other formats.
const NAMES: [&str; 8] = [
    "id",
    "keyspace_name",
    "columnfamily_name",
    "compacted_at",
    "bytes_in",
    "bytes_out",
    "rows_merged",
    "compaction_properties",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB
    #[arg(short = 'H', long)]
    human_readable: bool,
    /// Output format (json, yaml)
    #[arg(short = 'F', long, default_value = "")]
    format: String,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let format = Format::read(&self.format)?;
        let mut history = context.api.ask(&GetCompactionHistory {})?;
        history.sort_by_key(|entry| std::cmp::Reverse(entry.compacted_at));
        let rows: Vec<[Value; 8]> = history.iter().map(|entry| self.row(entry)).collect();
        if format != Format::Plain {
            let of_row = |row: [Value; 8]| NAMES.iter().map(|name| (*name).to_owned()).zip(row).collect();
            let maps: Vec<Value> = rows.into_iter().map(|row| Value::Object(of_row(row))).collect();
            let all = if maps.is_empty() { json!({}) } else { json!({ "CompactionHistory": maps }) };
            return Ok(format.print(&all, context.out)?);
        }
        writeln!(context.out, "Compaction History: ")?;
        if rows.is_empty() {
            return Ok(writeln!(context.out, "There is no compaction history")?);
        }
        let mut table = Table::new();
        table.add(NAMES);
        for row in rows {
            table.add(row.map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)));
        }
        Ok(table.print(context.out)?)
    }

    /// The figures of a compaction in the order of [`NAMES`].
    fn row(&self, entry: &CompactionHistoryEntry) -> [Value; 8] {
        let bytes = |bytes: u64| if self.human_readable { json!(file_size(bytes)) } else { json!(bytes) };
        let merged: Vec<String> = entry.rows_merged.iter().map(|(files, rows)| format!("{files}:{rows}")).collect();
        let properties: Vec<String> = entry.properties.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        [
            json!(entry.id),
            json!(entry.keyspace),
            json!(entry.table),
            json!(date_time(entry.compacted_at)),
            bytes(entry.bytes_in),
            bytes(entry.bytes_out),
            json!(format!("{{{}}}", merged.join(", "))),
            json!(format!("{{{}}}", properties.join(", "))),
        ]
    }
}
