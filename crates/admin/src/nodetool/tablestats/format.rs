//! JSON and YAML of nodetool (`-F`). Keys stand in alphabetical order; Cassandra's order is that of
//! a Java hash map.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::nodetool::text::{decimals, file_size};
use crate::nodetool::{VerbError, usage};
use crate::verbs::TableStats;

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Lines for people.
    Plain,
    /// `-F json`
    Json,
    /// `-F yaml`
    Yaml,
}

impl Format {
    /// The value of `-F`.
    pub(crate) fn read(name: &str) -> Result<Self, VerbError> {
        match name {
            "" => Ok(Self::Plain),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            _ => usage("arguments for -F are json,yaml only."),
        }
    }

    /// Prints a map.
    pub(crate) fn print(self, value: &Value, out: &mut dyn Write) -> io::Result<()> {
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
        Value::Array(items) => {
            // an array adds no indentation: its items stand where its key does
            for (index, item) in items.iter().enumerate() {
                write!(out, "{}", if index > 0 { ", " } else { "[ " })?;
                json(item, depth, out)?;
            }
            write!(out, " ]")
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
            Value::Array(items) if !items.is_empty() => {
                writeln!(out)?;
                items.iter().try_for_each(|item| yaml_item(item, depth, out))?;
            }
            other => writeln!(out, " {}", yaml_scalar(other))?,
        }
    }
    Ok(())
}

/// An item of an array, which stands where the key of the array does: a dash, and the lines of the
/// item two columns to the right.
fn yaml_item(item: &Value, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    let indent = "  ".repeat(depth);
    if !item.is_object() {
        return writeln!(out, "{indent}- {}", yaml_scalar(item));
    }
    let mut lines = Vec::new();
    yaml(item, depth + 1, &mut lines)?;
    let lines = String::from_utf8_lossy(&lines);
    let first = lines.get(indent.len() + 2..).unwrap_or_default();
    write!(out, "{indent}- {first}")
}

fn yaml_scalar(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}

/// A size as a number of bytes or, for people, with a unit.
pub(crate) fn size(bytes: u64, human: bool) -> String {
    if human { file_size(bytes) } else { bytes.to_string() }
}

/// Reads divided by writes; 0 without writes.
pub(crate) fn ratio(reads: u64, writes: u64) -> f64 {
    if writes == 0 { 0.0 } else { reads as f64 / writes as f64 }
}

/// A figure as a number. A text that is a number is read as one.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(f64::NAN)
}

/// For each level the number of its SSTables, with the greatest number that it should have if it
/// has more, and their bytes.
pub(crate) fn levels(table: &TableStats, human: bool) -> (Vec<String>, Vec<String>) {
    let count = |(count, _, most): &(u64, u64, u64)| match count > most {
        true => format!("{count}/{most}"),
        false => count.to_string(),
    };
    (table.levels.iter().map(count).collect(), table.levels.iter().map(|(_, bytes, _)| size(*bytes, human)).collect())
}

/// The window of TimeWindowCompactionStrategy, and the longest span of write timestamps in one
/// SSTable.
pub(crate) fn time_window(table: &TableStats) -> Option<String> {
    let (count, unit, millis) = table.time_window.as_ref()?;
    let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "null".to_owned());
    Some(format!("{} {}, max duration: {}", word(count), word(unit), duration_words(*millis)))
}

/// A duration as `1 day 2 hours`, without leading and trailing units that are zero.
fn duration_words(millis: u64) -> String {
    let seconds = millis / 1000;
    let parts = [
        (seconds / 86_400, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let first = parts.iter().position(|(count, _)| *count > 0);
    let last = parts.iter().rposition(|(count, _)| *count > 0);
    let shown = first.zip(last).and_then(|(first, last)| parts.get(first..=last)).unwrap_or(&parts[3..]);
    let words = shown.iter().map(|(count, unit)| format!("{count} {unit}{}", if *count == 1 { "" } else { "s" }));
    words.collect::<Vec<_>>().join(" ")
}

/// A table's figures under Cassandra's keys.
pub(crate) fn table_json(table: &TableStats, human: bool) -> Value {
    let millis = |mean: Option<f64>| decimals(mean.map(|micros| micros / 1000.0), 3);
    let (reads, writes) = (table.read_latency.count(), table.write_latency.count());
    let mut value = json!({
        "sstable_count": table.sstable_count,
        "old_sstable_count": table.old_sstable_count,
        "max_sstable_size": table.max_sstable_size,
        "twcs": time_window(table),
        "sstables_in_each_level": levels(table, human).0,
        "sstable_bytes_in_each_level": levels(table, human).1,
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
        "speculative_retries": table.speculative_retries,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_windows() {
        let levels_of = vec![(5, 2048, 4), (10, 4096, 10), (0, 0, 100)];
        let unit = Some("HOURS".to_owned());
        let table = TableStats {
            levels: levels_of,
            time_window: Some((None, unit, (86_400 + 3600 + 1) * 1000)),
            ..TableStats::default()
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(levels(&table, false), (texts(&["5/4", "10", "0"]), texts(&["2048", "4096", "0"])));
        let window = "null HOURS, max duration: 1 day 1 hour 0 minutes 1 second";
        assert_eq!(time_window(&table).as_deref(), Some(window));
        assert_eq!(time_window(&TableStats::default()), None);
        assert_eq!([999, 120_000, 3_660_000].map(duration_words), ["0 seconds", "2 minutes", "1 hour 1 minute"]);
    }
}
