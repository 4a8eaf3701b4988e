//! The plain layout of tablestats, line by line.

use std::io::{self, Write};

use schema::ident::java_double;

use super::Keyspace;
use super::format::{levels, size, time_window};
use crate::nodetool::text::{decimals, memory};
use crate::verbs::TableStats;

const RULE: &str = "----------------";

/// Prints tables by keyspace.
pub(crate) fn print(keyspaces: &[Keyspace<'_>], human: bool, out: &mut dyn Write) -> io::Result<()> {
    let count: usize = keyspaces.iter().map(|keyspace| keyspace.tables.len()).sum();
    writeln!(out, "Total number of tables: {count}\n{RULE}")?;
    let latency = |mean: Option<f64>| mean.map_or("NaN".to_owned(), java_double);
    for keyspace in keyspaces {
        writeln!(out, "Keyspace: {}", keyspace.name)?;
        writeln!(out, "\tRead Count: {}", keyspace.reads)?;
        writeln!(out, "\tRead Latency: {} ms", latency(keyspace.read_latency()))?;
        writeln!(out, "\tWrite Count: {}", keyspace.writes)?;
        writeln!(out, "\tWrite Latency: {} ms", latency(keyspace.write_latency()))?;
        writeln!(out, "\tPending Flushes: {}", keyspace.pending_flushes)?;
        for table in &keyspace.tables {
            print_table(table, &table.table, "\t\t", human, out)?;
        }
        writeln!(out, "{RULE}")?;
    }
    Ok(())
}

/// Prints tables in a given order, with their full names.
pub(crate) fn print_sorted(
    tables: &[&TableStats],
    key: &str,
    top: usize,
    human: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let shown = if top == 0 { tables.len() } else { top.min(tables.len()) };
    write!(out, "Total number of tables: {}", tables.len())?;
    if top > 0 {
        write!(out, " (showing top {shown} by {key})")?;
    }
    writeln!(out, "\n{RULE}")?;
    for table in &tables[..shown] {
        print_table(table, &format!("{}.{}", table.keyspace, table.table), "\t", human, out)?;
    }
    writeln!(out, "{RULE}")
}

fn print_table(table: &TableStats, name: &str, indent: &str, human: bool, out: &mut dyn Write) -> io::Result<()> {
    let lines = storage_lines(table, human).into_iter().chain(request_lines(table)).chain(detail_lines(table, human));
    writeln!(out, "{indent}Table: {name}")?;
    for (name, value) in lines {
        writeln!(out, "{indent}{name}: {value}")?;
    }
    writeln!(out)
}

type Lines = Vec<(&'static str, String)>;

fn storage_lines(table: &TableStats, human: bool) -> Lines {
    let mut lines = vec![
        ("SSTable count", table.sstable_count.to_string()),
        ("Old SSTable count", table.old_sstable_count.to_string()),
        ("Max SSTable size", memory(table.max_sstable_size)),
    ];
    lines.extend(time_window(table).map(|window| ("SSTables Time Window", window)));
    if !table.levels.is_empty() {
        let (counts, bytes) = levels(table, human);
        lines.push(("SSTables in each level", format!("[{}]", counts.join(", "))));
        lines.push(("SSTable bytes in each level", format!("[{}]", bytes.join(", "))));
    }
    lines.extend([
        ("Space used (live)", size(table.space_used_live, human)),
        ("Space used (total)", size(table.space_used_total, human)),
        ("Space used by snapshots (total)", size(table.space_used_by_snapshots, human)),
        ("Off heap memory used (total)", size(table.bloom_filter_memory + table.compression_metadata_memory, human)),
        ("SSTable Compression Ratio", format!("{:.5}", table.compression_ratio)),
        ("Number of partitions (estimate)", table.estimated_partitions.to_string()),
        ("Memtable cell count", table.memtable_cells.to_string()),
        ("Memtable data size", size(table.memtable_data_size, human)),
        ("Memtable off heap memory used", size(0, human)),
        ("Memtable switch count", table.memtable_switch_count.to_string()),
    ]);
    lines
}

fn request_lines(table: &TableStats) -> Lines {
    let millis = |mean: Option<f64>| format!("{} ms", decimals(mean.map(|micros| micros / 1000.0), 3));
    let (reads, writes) = (table.read_latency.count(), table.write_latency.count());
    vec![
        ("Speculative retries", table.speculative_retries.to_string()),
        ("Local read count", reads.to_string()),
        ("Local read latency", millis(table.read_latency.mean())),
        ("Local write count", writes.to_string()),
        ("Local write latency", millis(table.write_latency.mean())),
        ("Local read/write ratio", format!("{:.5}", super::format::ratio(reads, writes))),
        ("Pending flushes", table.pending_flushes.to_string()),
        ("Percent repaired", java_double(table.percent_repaired)),
        ("Bytes repaired", memory(table.bytes_repaired)),
        ("Bytes unrepaired", memory(table.bytes_unrepaired)),
        ("Bytes pending repair", memory(table.bytes_pending_repair)),
    ]
}

fn detail_lines(table: &TableStats, human: bool) -> Lines {
    let mean = |mean: Option<f64>| mean.map_or("NaN".to_owned(), java_double);
    vec![
        ("Bloom filter false positives", table.bloom_filter_false_positives.to_string()),
        ("Bloom filter false ratio", format!("{:.5}", table.bloom_filter_false_ratio)),
        ("Bloom filter space used", size(table.bloom_filter_space_used, human)),
        ("Bloom filter off heap memory used", size(table.bloom_filter_memory, human)),
        ("Index summary off heap memory used", size(0, human)),
        ("Compression metadata off heap memory used", size(table.compression_metadata_memory, human)),
        ("Compacted partition minimum bytes", table.min_partition_size.to_string()),
        ("Compacted partition maximum bytes", table.max_partition_size.to_string()),
        ("Compacted partition mean bytes", table.mean_partition_size.to_string()),
        ("Average live cells per slice (last five minutes)", mean(table.live_rows_per_read.mean())),
        ("Maximum live cells per slice (last five minutes)", table.live_rows_per_read.max().to_string()),
        ("Average tombstones per slice (last five minutes)", mean(table.tombstones_per_read.mean())),
        ("Maximum tombstones per slice (last five minutes)", table.tombstones_per_read.max().to_string()),
        ("Droppable tombstone ratio", format!("{:.5}", table.droppable_tombstone_ratio)),
    ]
}
