//! `helenus sstable metadata`: the statistics of an SSTable, without reading its data, as
//! Cassandra's sstablemetadata prints them.
//!
//! Times are UTC. Agrees with `org.apache.cassandra.tools.SSTableMetadataViewer` (without colours).

mod bars;
mod scan;
mod text;

use std::fmt::Write as _;

use clap::Args;
use rows::NO_DELETION_TIME;
use sstable::{
    CommitLogPosition, Component, Descriptor, HeaderColumn, Histogram, MURMUR3_PARTITIONER, Statistics, Stats, Version,
};
use types::java_number::print_double;
use types::literal::to_plain_text;
use types::{CqlType, Token, marshal};

use crate::context::Context;
use crate::failure::{DONE, FAILED, Failure};
use crate::open;
use crate::target::Targets;
use bars::Bars;
pub use text::date;
use text::{byte_words, duration_words, java_map_order};

/// Print what is known of SSTables without reading them, as sstablemetadata does.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    targets: Targets,
    /// Seconds that tombstones are kept: those older count as droppable.
    #[arg(short = 'g', long = "gc_grace_seconds", value_name = "SECONDS", default_value_t = 0)]
    gc_grace_seconds: i64,
    /// Unit of write timestamps; only MICROSECONDS (sstablemetadata takes others and uses none).
    #[arg(short = 't', long = "timestamp_unit", value_name = "UNIT", default_value = "MICROSECONDS")]
    timestamp_unit: String,
    /// Read everything, for counts of partitions, rows, cells and tombstones.
    #[arg(short = 's', long)]
    scan: bool,
    /// Draw histograms with block characters.
    #[arg(short = 'u', long)]
    unicode: bool,
}

/// Prints each SSTable.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    if arguments.timestamp_unit != "MICROSECONDS" {
        return Err(Failure::usage(format!("-t {}: write timestamps are MICROSECONDS", arguments.timestamp_unit)));
    }
    let mut code = DONE;
    for descriptor in arguments.targets.sstables(context.env)? {
        let text = open::statistics(context.env, &descriptor).and_then(|statistics| {
            let viewer = Viewer { arguments, descriptor: &descriptor, statistics: &statistics, out: String::new() };
            viewer.print(context)
        });
        match text {
            Ok(text) => context.out.write_all(text.as_bytes())?,
            // a damaged one hides none of the others
            Err(failure) => {
                code = FAILED;
                writeln!(context.err, "helenus sstable: {failure}")?;
            }
        }
    }
    context.out.flush()?;
    Ok(code)
}

struct Viewer<'a> {
    arguments: &'a Arguments,
    descriptor: &'a Descriptor,
    statistics: &'a Statistics,
    out: String,
}

impl Viewer<'_> {
    fn print(mut self, context: &Context<'_>) -> Result<String, Failure> {
        let path = self.descriptor.directory.join(self.descriptor.prefix());
        let path = std::path::absolute(&path).unwrap_or(path);
        self.field("SSTable", path.display(), None);
        if self.arguments.scan {
            scan::print(context, self.descriptor, self.statistics, &mut self.out)?;
        }
        self.field("Partitioner", &self.statistics.partitioner, None);
        self.field("Bloom Filter FP chance", print_double(self.statistics.filter_chance), None);
        self.stats(context)?;
        if let Some(cardinality) = &self.statistics.cardinality {
            self.field("Estimated cardinality", cardinality.estimate(), None);
        }
        self.header();
        Ok(self.out)
    }

    fn field(&mut self, name: &str, value: impl std::fmt::Display, comment: Option<String>) {
        let written = match comment {
            Some(comment) => writeln!(self.out, "{name}: {value} ({comment})"),
            None => writeln!(self.out, "{name}: {value}"),
        };
        written.expect("a String takes all");
    }

    fn stats(&mut self, context: &Context<'_>) -> Result<(), Failure> {
        let stats = &self.statistics.stats;
        let null = || "--".to_owned();
        let micros = |micros: i64| date(micros / 1000).unwrap_or_else(null);
        self.field("Minimum timestamp", micros(stats.min_timestamp), Some(stats.min_timestamp.to_string()));
        self.field("Maximum timestamp", micros(stats.max_timestamp), Some(stats.max_timestamp.to_string()));
        self.field("Duration", duration(stats.max_timestamp.wrapping_sub(stats.min_timestamp)), None);
        for (name, seconds) in [
            ("SSTable min local deletion time", stats.min_local_deletion_time),
            ("SSTable max local deletion time", stats.max_local_deletion_time),
        ] {
            let (text, number) = deletion(seconds);
            self.field(name, text, Some(number.to_string()));
        }
        let compressor = compressor(context, self.descriptor)?;
        self.field("Compressor", compressor.as_deref().unwrap_or("-"), None);
        if compressor.is_some() {
            self.field("Compression ratio", print_double(stats.compression_ratio), None);
        }
        self.field("TTL min", stats.min_ttl, duration_words(stats.min_ttl));
        self.field("TTL max", stats.max_ttl, duration_words(stats.max_ttl));
        self.key_range(context);
        let covered = covered(stats, &self.statistics.header.clustering, self.descriptor.version);
        self.field("Covered clusterings", covered, None);
        let before = i64::from(context.env.clock.now_seconds()) - self.arguments.gc_grace_seconds;
        self.field("Estimated droppable tombstones", print_double(droppable_ratio(stats, before)), None);
        self.field("SSTable Level", stats.level, None);
        self.field("Repaired at", stats.repaired_at, date(stats.repaired_at));
        self.field("Originating host id", uuid(&stats.originating_host), None);
        self.field("Pending repair", uuid(&stats.pending_repair), None);
        self.field("Replay positions covered", intervals(&stats.commit_log_intervals), None);
        self.field("totalColumnsSet", stats.total_columns_set, None);
        self.field("totalRows", stats.total_rows, None);
        self.histograms(stats);
        self.field("Local token space coverage", print_double(stats.token_space_coverage), None);
        Ok(())
    }

    fn histograms(&mut self, stats: &Stats) {
        let unicode = self.arguments.unicode;
        let with_date = |seconds: i64| format!("{seconds} {}", date(seconds * 1000).map_or_else(String::new, quiet));
        let with_size = |bytes: i64| format!("{bytes} {}", byte_words(bytes).map_or_else(String::new, quiet));
        self.out.push_str("Estimated tombstone drop times: \n");
        Bars::new(stats.tombstones.bins().collect()).put(&mut self.out, "Drop Time", &with_date, unicode);
        self.out.push_str("Partition Size: \n");
        Bars::new(filled(&stats.partition_sizes)).put(&mut self.out, "Size (bytes)", &with_size, unicode);
        self.out.push_str("Column Count: \n");
        Bars::new(filled(&stats.cells_per_partition)).put(
            &mut self.out,
            "Columns",
            &|count| count.to_string(),
            unicode,
        );
    }

    /// Prints first and last key. Prints nothing where neither Statistics.db nor the index gives
    /// the keys.
    fn key_range(&mut self, context: &Context<'_>) {
        let stats = &self.statistics.stats;
        let range = if self.descriptor.version.has_key_range() {
            Some((stats.first_key.clone(), stats.last_key.clone()))
        } else {
            let opened = open::table_of_header(self.descriptor, self.statistics)
                .and_then(|table| open::open(context.env, self.descriptor, &table));
            opened.ok().map(|sstable| (sstable.first_key().key.clone(), sstable.last_key().key.clone()))
        };
        let Some((first, last)) = range else { return };
        let ty = marshal::parse(&self.statistics.header.key_type).map_or(CqlType::Blob, |(ty, _)| ty);
        for (name, key) in [("First token", first), ("Last token", last)] {
            let text = to_plain_text(&ty, &key);
            let token = if self.statistics.partitioner == MURMUR3_PARTITIONER {
                Token::of_key(&key).0.to_string()
            } else {
                text.clone()
            };
            self.field(name, token, Some(text));
        }
    }

    fn header(&mut self) {
        let header = &self.statistics.header;
        let base = &header.stats;
        self.field("EncodingStats minTTL", base.min_ttl, duration_words(base.min_ttl));
        let seconds = i64::from(base.min_local_deletion_time);
        let text = date(seconds * 1000).unwrap_or_else(|| "--".to_owned());
        self.field("EncodingStats minLocalDeletionTime", text, Some(seconds.to_string()));
        let text = date(base.min_timestamp / 1000).unwrap_or_else(|| "--".to_owned());
        self.field("EncodingStats minTimestamp", text, Some(base.min_timestamp.to_string()));
        self.field("KeyType", &header.key_type, None);
        self.field("ClusteringTypes", format!("[{}]", header.clustering.join(", ")), None);
        self.field("StaticColumns", columns(&header.statics), None);
        self.field("RegularColumns", columns(&header.regulars), None);
        self.field("IsTransient", self.statistics.stats.is_transient, None);
    }
}

fn quiet(text: String) -> String {
    format!("({text})")
}

/// The names in the order in which Java's hash map of them iterates, as sstablemetadata prints
/// them.
fn columns(columns: &[HeaderColumn]) -> String {
    let ordered = java_map_order(columns.iter().map(|column| (column.name.as_str(), column)));
    ordered.iter().map(|column| format!("{}:{}", column.name, column.ty)).collect::<Vec<_>>().join(", ")
}

fn compressor(context: &Context<'_>, descriptor: &Descriptor) -> Result<Option<String>, Failure> {
    let path = descriptor.path(Component::CompressionInfo);
    if !context.env.disk.exists(&path) {
        return Ok(None);
    }
    let info = open::compression_info(context.env, descriptor)?;
    Ok(Some(format!("org.apache.cassandra.io.compress.{}", info.params.compressor.class())))
}

fn duration(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let (hour, minute, second) = (hours - days * 24, minutes - hours * 60, seconds - minutes * 60);
    format!("Days: {days} Hours: {hour} Minutes: {minute} Seconds: {second}")
}

/// A local deletion time of the statistics in words and as a number.
fn deletion(seconds: u32) -> (String, i64) {
    match seconds {
        NO_DELETION_TIME => ("no tombstones".to_owned(), i64::MAX),
        0 => ("no tombstones".to_owned(), 0),
        _ => (date(i64::from(seconds) * 1000).unwrap_or_default(), i64::from(seconds)),
    }
}

/// Estimated share of cells that are tombstones from before a time, 0 to 1.
pub fn droppable_ratio(stats: &Stats, before: i64) -> f64 {
    let columns = stats.cells_per_partition.mean().ceil() * stats.cells_per_partition.count() as f64;
    if columns > 0.0 { stats.tombstones.sum(before) / columns } else { 0.0 }
}

fn filled(histogram: &Histogram) -> Vec<(i64, u64)> {
    histogram.buckets().filter(|bucket| bucket.1 > 0).collect()
}

fn uuid(uuid: &Option<[u8; 16]>) -> String {
    uuid.as_ref().map_or_else(|| "--".to_owned(), types::literal::print_uuid)
}

fn intervals(intervals: &[(CommitLogPosition, CommitLogPosition)]) -> String {
    let position = |position: &CommitLogPosition| {
        format!("CommitLogPosition(segmentId={}, position={})", position.segment, position.offset)
    };
    let each = intervals.iter().map(|(start, end)| format!("{}={}", position(start), position(end)));
    format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
}

fn covered(stats: &Stats, clustering: &[String], version: Version) -> String {
    // Cassandra makes the slice of two lists of values, and prints one that covers everything as
    // such
    if !version.has_covered_slice() && stats.covered.is_all() {
        return "ALL".to_owned();
    }
    let types: Vec<CqlType> =
        clustering.iter().map(|ty| marshal::parse(ty).map_or(CqlType::Blob, |(ty, _)| ty)).collect();
    let (start, end) = (&stats.covered.start, &stats.covered.end);
    let is_inclusive =
        |kind: rows::PrefixKind| matches!(kind, rows::PrefixKind::InclStartBound | rows::PrefixKind::InclEndBound);
    let values = |bound: &rows::Bound| {
        let each = bound.values.iter().zip(&types).map(|(value, ty)| match value {
            Some(value) => to_plain_text(ty, value),
            None => "null".to_owned(),
        });
        each.collect::<Vec<_>>().join(":")
    };
    let (open, close) =
        (if is_inclusive(start.kind) { '[' } else { '(' }, if is_inclusive(end.kind) { ']' } else { ')' });
    format!("{open}{}, {}{close}", values(start), values(end))
}
