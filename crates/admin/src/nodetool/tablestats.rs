//! `nodetool tablestats`: figures of tables, by keyspace. Agrees with `TableStats`,
//! `TableStatsHolder`, `TableStatsPrinter`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{GetTables, TableStats};

mod format;
mod plain;

pub(crate) use format::Format;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Ignore the list of tables and display the remaining tables
    #[arg(short = 'i')]
    ignore: bool,
    /// Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB
    #[arg(short = 'H', long)]
    human_readable: bool,
    /// Output format (json, yaml)
    #[arg(short = 'F', long, default_value = "")]
    format: String,
    /// Sort tables by specified sort key: a key of the json format
    #[arg(short = 's', long, default_value = "")]
    sort: String,
    /// Show only the top K tables for the sort key
    #[arg(short = 't', long, default_value_t = 0)]
    top: usize,
    /// List of tables (or keyspace) names
    tables: Vec<String>,
}

/// Figures of a keyspace: sums over all its tables, and the tables that are shown.
pub(super) struct Keyspace<'a> {
    name: &'a str,
    reads: u64,
    read_micros: u64,
    writes: u64,
    write_micros: u64,
    pending_flushes: u64,
    tables: Vec<&'a TableStats>,
}

impl Keyspace<'_> {
    /// The mean latency of reads in milliseconds; None without reads.
    fn read_latency(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.read_micros as f64 / self.reads as f64 / 1000.0)
    }

    fn write_latency(&self) -> Option<f64> {
        (self.writes > 0).then(|| self.write_micros as f64 / self.writes as f64 / 1000.0)
    }
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let format = Format::read(&self.format)?;
        if self.top > 0 && self.sort.is_empty() {
            return usage("cannot filter top K tables without specifying a sort key.");
        }
        let all = context.api.ask(&GetTables {})?;
        self.check_names(&all)?;
        if !self.sort.is_empty() {
            return self.print_sorted(&all, format, context);
        }
        let keyspaces = self.keyspaces(&all);
        if format == Format::Plain {
            return Ok(plain::print(&keyspaces, self.human_readable, context.out)?);
        }
        let count: usize = keyspaces.iter().map(|keyspace| keyspace.tables.len()).sum();
        let mut root: Map<String, Value> =
            keyspaces.iter().map(|keyspace| (keyspace.name.to_owned(), self.keyspace_json(keyspace))).collect();
        root.insert("total_number_of_tables".to_owned(), json!(count));
        Ok(format.print(&Value::Object(root), context.out)?)
    }

    fn check_names(&self, all: &[TableStats]) -> Result<(), VerbError> {
        for name in &self.tables {
            let (keyspace, table) = split(name);
            if !all.iter().any(|known| known.keyspace == keyspace) {
                return usage(format!("Unknown keyspace: {keyspace}"));
            }
            if let Some(table) = table
                && !all.iter().any(|known| known.keyspace == keyspace && known.table == table)
            {
                return usage(format!("Unknown tables: [{table}] in keyspace: [{keyspace}]"));
            }
        }
        Ok(())
    }

    fn is_shown(&self, table: &TableStats) -> bool {
        let named = self.tables.iter().any(|name| {
            let (keyspace, wanted) = split(name);
            table.keyspace == keyspace && wanted.is_none_or(|wanted| table.table == wanted)
        });
        self.tables.is_empty() || named != self.ignore
    }

    fn keyspaces<'a>(&self, all: &'a [TableStats]) -> Vec<Keyspace<'a>> {
        let mut order: Vec<&str> = Vec::new();
        let mut keyspaces: BTreeMap<&str, Keyspace<'a>> = BTreeMap::new();
        for table in all {
            let keyspace = keyspaces.entry(&table.keyspace).or_insert_with(|| {
                order.push(&table.keyspace);
                Keyspace {
                    name: &table.keyspace,
                    reads: 0,
                    read_micros: 0,
                    writes: 0,
                    write_micros: 0,
                    pending_flushes: 0,
                    tables: Vec::new(),
                }
            });
            keyspace.reads += table.read_latency.count();
            keyspace.read_micros += table.read_latency.sum;
            keyspace.writes += table.write_latency.count();
            keyspace.write_micros += table.write_latency.sum;
            keyspace.pending_flushes += table.pending_flushes;
            if self.is_shown(table) {
                keyspace.tables.push(table);
            }
        }
        let mut shown: Vec<_> = order.iter().filter_map(|name| keyspaces.remove(name)).collect();
        shown.retain(|keyspace| !keyspace.tables.is_empty());
        for keyspace in &mut shown {
            keyspace.tables.sort_by(|a, b| a.table.cmp(&b.table));
        }
        shown
    }

    fn keyspace_json(&self, keyspace: &Keyspace<'_>) -> Value {
        let tables: Map<String, Value> = keyspace
            .tables
            .iter()
            .map(|table| (table.table.clone(), format::table_json(table, self.human_readable)))
            .collect();
        json!({
            "read_count": keyspace.reads,
            "read_latency": keyspace.read_latency(),
            "read_latency_ms": keyspace.read_latency(),
            "write_count": keyspace.writes,
            "write_latency_ms": keyspace.write_latency(),
            "pending_flushes": keyspace.pending_flushes,
            "tables": tables,
        })
    }

    fn print_sorted(&self, all: &[TableStats], format: Format, context: &mut Context<'_>) -> Outcome {
        let tables = self.sorted(all)?;
        if format == Format::Plain {
            return Ok(plain::print_sorted(&tables, &self.sort, self.top, self.human_readable, context.out)?);
        }
        let shown = if self.top == 0 { tables.len() } else { self.top };
        let mut root: Map<String, Value> = tables
            .iter()
            .take(shown)
            .map(|table| {
                (format!("{}.{}", table.keyspace, table.table), format::table_json(table, self.human_readable))
            })
            .collect();
        root.insert("total_number_of_tables".to_owned(), json!(tables.len()));
        Ok(format.print(&Value::Object(root), context.out)?)
    }

    /// The tables that are shown, those with the greatest figure first. Tables with equal figures
    /// are in the order of their names. A figure that is no number, as the mean latency of a table
    /// without reads, counts as zero.
    fn sorted<'a>(&self, all: &'a [TableStats]) -> Result<Vec<&'a TableStats>, VerbError> {
        let mut tables: Vec<&TableStats> = all.iter().filter(|table| self.is_shown(table)).collect();
        tables.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        let key = match self.sort.as_str() {
            "reads" => "local_read_count",
            "writes" => "local_write_count",
            "read_latency" => "local_read_latency_ms",
            "write_latency" => "local_write_latency_ms",
            other => other,
        };
        match key {
            "full_name" => tables.reverse(),
            "table_name" => tables.sort_by_key(|table| std::cmp::Reverse(table.table.as_str())),
            // a table without time windows has no duration
            "twcs_max_duration" => tables
                .sort_by_key(|table| std::cmp::Reverse(table.time_window.as_ref().map(|(_, _, longest)| *longest))),
            _ => {
                let figure = |table: &TableStats| format::table_json(table, false).get(key).map(format::number);
                if tables.first().is_some_and(|table| figure(table).is_none()) {
                    return usage(format!("argument for sort must be one of the keys of the json format, not {key}"));
                }
                let number = |table: &TableStats| figure(table).filter(|figure| !figure.is_nan()).unwrap_or(0.0);
                tables.sort_by(|a, b| number(b).total_cmp(&number(a)));
            }
        }
        Ok(tables)
    }
}

fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once('.') {
        Some((keyspace, table)) => (keyspace, Some(table)),
        None => (name, None),
    }
}
