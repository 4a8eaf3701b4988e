//! `nodetool tablehistograms`: distributions of a table's latencies and partitions.

use crate::nodetool::proxyhistograms::ROWS;
use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{GetTables, TableStats};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The keyspace and table name, or keyspace.table
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let wanted = self.wanted()?;
        let tables = context.api.ask(&GetTables {})?;
        if let Some((keyspace, name)) = &wanted
            && !tables.iter().any(|table| table.keyspace == *keyspace && table.table == *name)
        {
            return usage(format!("Unknown table {keyspace}.{name}"));
        }
        let chosen = |table: &&TableStats| {
            wanted.as_ref().is_none_or(|(keyspace, name)| table.keyspace == *keyspace && table.table == *name)
        };
        tables.iter().filter(chosen).try_for_each(|table| print(table, context))
    }

    fn wanted(&self) -> Result<Option<(String, String)>, VerbError> {
        match self.args.as_slice() {
            [] => Ok(None),
            [keyspace, table] if !keyspace.contains('.') && !table.contains('.') => {
                Ok(Some((keyspace.clone(), table.clone())))
            }
            [both] => match both.split_once('.') {
                Some((keyspace, table)) if !table.contains('.') => Ok(Some((keyspace.to_owned(), table.to_owned()))),
                _ => usage("tablehistograms requires keyspace and table name arguments"),
            },
            _ => usage("tablehistograms requires <keyspace> <table> or <keyspace.table> format argument."),
        }
    }
}

fn print(table: &TableStats, context: &mut Context<'_>) -> Outcome {
    let out = &mut *context.out;
    let has_sstables = table.partition_size.count() > 0;
    if !has_sstables {
        writeln!(out, "No SSTables exists, unable to calculate 'Partition Size' and 'Cell Count' percentiles")?;
    }
    writeln!(out, "{}/{} histograms", table.keyspace, table.table)?;
    let names = ["Percentile", "Read Latency", "Write Latency", "SSTables", "Partition Size", "Cell Count"];
    let units = ["", "(micros)", "(micros)", "", "(bytes)", ""];
    for [name, cells @ ..] in [names, units] {
        let cells: String = cells.iter().map(|cell| format!("{cell:>18}")).collect();
        writeln!(out, "{name:<10}{cells}")?;
    }
    let latencies = [&table.read_latency, &table.write_latency, &table.sstables_per_read].map(|h| h.column());
    let sizes = [&table.partition_size, &table.cell_count].map(|h| h.column());
    for (index, name) in ROWS.iter().enumerate() {
        write!(out, "{name:<10}")?;
        for column in &latencies {
            write!(out, "{:>18}", format!("{}.00", column[index]))?;
        }
        for column in &sizes {
            write!(out, "{:>18}", if has_sstables { column[index].to_string() } else { "NaN".to_owned() })?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    Ok(())
}
