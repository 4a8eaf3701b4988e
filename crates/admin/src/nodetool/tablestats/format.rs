//! JSON and YAML of nodetool (`-F`). Keys stand in alphabetical order; Cassandra's order is that of a Java hash map.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::model::TableStats;
use crate::nodetool::text::{decimals, file_size};
use crate::nodetool::{VerbError, usage};

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// For people.
    Plain,
    /// `-F json`
    Json,
    /// `-F yaml`
    Yaml,
}

impl Format {
    /// The value of `-F`.
    pub fn read(name: &str) -> Result<Self, VerbError> {
        match name {
            "" => Ok(Self::Plain),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            _ => usage("arguments for -F are json,yaml only."),
        }
    }

    /// Prints a map.
    pub fn print(self, value: &Value, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Yaml => {
                yaml(value, 0, out)?;
                writeln!(out)
            }
            Self::Json | Self::Plain => {
                json(value, 0, out)?;
                writeln!(out)
            }
        }
    }
}

fn json(value: &Value, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    match value {
        Value::Object(map) if map.is_empty() => write!(out, "{{ }}"),
        Value::Array(items) if items.is_empty() => write!(out, "[ ]"),
        Value::Object(map) => {
            let indent = "  ".repeat(depth + 1);
            writeln!(out, "{{")?;
            for (index, (key, value)) in map.iter().enumerate() {
                write!(out, "{indent}{} : ", json!(key))?;
                json(value, depth + 1, out)?;
                writeln!(out, "{}", if index + 1 < map.len() { "," } else { "" })?;
            }
            write!(out, "{}}}", "  ".repeat(depth))
        }
        other => write!(out, "{other}"),
    }
}

fn yaml(value: &Value, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    let Value::Object(map) = value else { return write!(out, "{}", yaml_scalar(value)) };
    for (key, value) in map {
        write!(out, "{}{key}:", "  ".repeat(depth))?;
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                writeln!(out)?;
                yaml(value, depth + 1, out)?;
            }
            other => writeln!(out, " {}", yaml_scalar(other))?,
        }
    }
    Ok(())
}

fn yaml_scalar(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}

/// Bytes as a number or for people.
pub fn size(bytes: u64, human: bool) -> String {
    if human { file_size(bytes) } else { bytes.to_string() }
}

/// Reads over writes; 0 without writes.
pub fn ratio(reads: u64, writes: u64) -> f64 {
    if writes == 0 { 0.0 } else { reads as f64 / writes as f64 }
}

/// A figure as a number; texts that are numbers count too.
pub fn number(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(f64::NAN)
}

/// A table's figures under Cassandra's keys.
pub fn table_json(table: &TableStats, human: bool) -> Value {
    let millis = |mean: Option<f64>| decimals(mean.map(|micros| micros / 1000.0), 3);
    let (reads, writes) = (table.read_latency.count(), table.write_latency.count());
    let mut value = json!({
        "sstable_count": table.sstable_count,
        "old_sstable_count": table.old_sstable_count,
        "max_sstable_size": table.max_sstable_size,
        "twcs": null,
        "sstables_in_each_level": [],
        "sstable_bytes_in_each_level": [],
        "space_used_live": size(table.space_used_live, human),
        "space_used_total": size(table.space_used_total, human),
        "space_used_by_snapshots_total": size(table.space_used_by_snapshots, human),
        "off_heap_memory_used_total": size(table.bloom_filter_memory + table.compression_metadata_memory, human),
        "sstable_compression_ratio": table.compression_ratio,
        "number_of_partitions_estimate": table.estimated_partitions,
        "memtable_cell_count": table.memtable_cells,
        "memtable_data_size": size(table.memtable_data_size, human),
        "memtable_off_heap_memory_used": size(0, human),
        "memtable_switch_count": table.memtable_switch_count,
        "speculative_retries": 0,
        "local_read_count": reads,
        "local_read_latency_ms": millis(table.read_latency.mean()),
        "local_write_count": writes,
        "local_write_latency_ms": millis(table.write_latency.mean()),
        "local_read_write_ratio": format!("{:.5}", ratio(reads, writes)),
        "pending_flushes": table.pending_flushes,
        "percent_repaired": table.percent_repaired,
        "bytes_repaired": table.bytes_repaired,
        "bytes_unrepaired": table.bytes_unrepaired,
        "bytes_pending_repair": table.bytes_pending_repair,
    });
    let details = json!({
        "bloom_filter_false_positives": table.bloom_filter_false_positives,
        "bloom_filter_false_ratio": format!("{:.5}", table.bloom_filter_false_ratio),
        "bloom_filter_space_used": size(table.bloom_filter_space_used, human),
        "bloom_filter_off_heap_memory_used": size(table.bloom_filter_memory, human),
        "index_summary_off_heap_memory_used": size(0, human),
        "compression_metadata_off_heap_memory_used": size(table.compression_metadata_memory, human),
        "compacted_partition_minimum_bytes": table.min_partition_size,
        "compacted_partition_maximum_bytes": table.max_partition_size,
        "compacted_partition_mean_bytes": table.mean_partition_size,
        "average_live_cells_per_slice_last_five_minutes": table.live_rows_per_read.mean(),
        "maximum_live_cells_per_slice_last_five_minutes": table.live_rows_per_read.max(),
        "average_tombstones_per_slice_last_five_minutes": table.tombstones_per_read.mean(),
        "maximum_tombstones_per_slice_last_five_minutes": table.tombstones_per_read.max(),
        "droppable_tombstone_ratio": format!("{:.5}", table.droppable_tombstone_ratio),
        "top_size_partitions": {},
        "top_tombstone_partitions": {},
    });
    if let (Value::Object(map), Value::Object(details)) = (&mut value, details) {
        map.extend(details);
    }
    value
}
