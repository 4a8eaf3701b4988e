//! The cost of reads of parts of a partition in the engine, without protocol and CQL, by the
//! partition's width and by where its rows are.
//!
//! `cargo run --release -p bench-parts --example slices -- [widths [version [column_index_size
//! [only]]]]`, for instance `1000,100000,10000000 da 4096`; `only`: the queries whose names contain
//! it. CPU microseconds of this thread for each query, chunks warm. Each query runs inline first
//! and again in the background where it must, as in the server; `again` says how many in a hundred
//! did. What comes is checked: with a width of 100000000 that is the test of a partition beyond 2
//! GB.

// It measures itself.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{EncodingStatsCollector, Header};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Bound, Cell, ClusteringValues, ColumnFilter, DataLimits, DeletionTime, Liveness, Mutation, PartitionRange,
    PartitionUpdate, ReadCommand, ReadContext, ReadError, ReadMode, Row, Slice, Slices, Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{Descriptor, SSTableId, SSTableWriter, Version, WriterOptions};
use storage::{Engine, EngineOptions, commitlog, import};
use types::{CqlType, DecoratedKey};

/// Partitions of one row beside the wide one.
const SMALL_PARTITIONS: u64 = 1000;
/// Microseconds of 2023.
const EPOCH_MICROS: i64 = 1_700_000_000_000_000;
/// Wider partitions are not put into a memtable.
const MEMTABLE_WIDTH_MAX: u64 = 100_000;

fn table(name: &str, number: u8) -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::BigInt),
        spec("c", ColumnKind::Clustering, CqlType::BigInt),
        spec("v", ColumnKind::Regular, CqlType::Text),
    ];
    let (id, params) = (TableId([number; 16]), TableParams::default());
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(id, "bench", name, kind, flags, params, specs, BTreeMap::new(), None))
}

fn key(k: u64) -> DecoratedKey {
    DecoratedKey::new(Bytes::copy_from_slice(&k.to_be_bytes()))
}

fn clustering(c: u64) -> ClusteringValues {
    [Some(Bytes::copy_from_slice(&c.to_be_bytes()))].into_iter().collect()
}

fn row(table: &TableMetadata, c: u64) -> Row {
    let mut row = Row::new(clustering(c));
    row.liveness = Liveness::new(EPOCH_MICROS);
    let value = format!("value {:010}", c.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000_000_000);
    row.add_cell(Cell::live(table.regulars[0].id, EPOCH_MICROS, value.into()));
    row
}

/// CPU nanoseconds of this thread so far.
fn cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells of threads");
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Rounds that count, and queries of each.
const ROUNDS: u32 = 5;
const ROUND: u32 = 400;

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A query of one partition, and how many rows it must give.
struct Query {
    key: u64,
    slices: Slices,
    reversed: bool,
    limit: u32,
    expected: u32,
    /// Clustering of the first row.
    first: u64,
}

type MakeQuery = fn(u64, &mut Dice) -> Query;

fn slice(start: Option<u64>, end: Option<u64>, reversed: bool, limit: u32) -> Query {
    let first = if reversed { end.unwrap_or(u64::MAX) } else { start.unwrap_or(0) };
    let start = start.map_or(Bound::bottom(), |c| Bound::start(clustering(c), true));
    let end = end.map_or(Bound::top(), |c| Bound::end(clustering(c), true));
    Query { key: 0, slices: Slices::from(vec![Slice { start, end }]), reversed, limit, expected: limit, first }
}

fn names(mut cs: Vec<u64>) -> Query {
    cs.sort_unstable();
    cs.dedup();
    let first = cs.first().copied().unwrap_or(0);
    let slices: Vec<_> = cs.into_iter().map(|c| Slice::of_prefix(clustering(c))).collect();
    let expected = slices.len() as u32;
    Query { key: 0, slices: Slices::from(slices), reversed: false, limit: 5000, expected, first }
}

const QUERIES: [(&str, MakeQuery); 12] = [
    ("point: one-row partition", |_, dice| Query {
        key: 1 + dice.roll(SMALL_PARTITIONS),
        ..slice(None, None, false, 1)
    }),
    ("point: one row of the wide", |width, dice| names(vec![dice.roll(width)])),
    ("slice of 100: start", |_, _| slice(None, None, false, 100)),
    ("slice of 100: anywhere", |width, dice| slice(Some(dice.roll(width - 100)), None, false, 100)),
    ("slice of 100: last page", |width, _| slice(Some(width - 100), None, false, 100)),
    ("newest 10: descending table (start)", |_, _| slice(None, None, false, 10)),
    ("newest 10: reversed, end", |_, _| slice(None, None, true, 10)),
    ("reversed 10: anywhere", |width, dice| slice(None, Some(100 + dice.roll(width - 100)), true, 10)),
    ("reversed 100: end", |_, _| slice(None, None, true, 100)),
    ("reversed 100: anywhere", |width, dice| slice(None, Some(100 + dice.roll(width - 100)), true, 100)),
    ("100 names: together", |width, dice| {
        let first = dice.roll(width - 100);
        names((first..first + 100).collect())
    }),
    ("100 names: spread", |width, dice| names((0..100).map(|_| dice.roll(width)).collect())),
];

struct Bench {
    engine: Arc<Engine>,
    runtime: tokio::runtime::Runtime,
    directory: PathBuf,
    version: Version,
    block: Option<usize>,
}

impl Bench {
    fn open(directory: &Path, version: Version, block: Option<usize>) -> Self {
        let env = env::real::env();
        let _ = env.disk.remove_dir_all(directory);
        let options = EngineOptions {
            commitlog: commitlog::Options {
                sync: commitlog::SyncMode::Periodic(std::time::Duration::from_secs(10)),
                ..commitlog::Options::default()
            },
            shards: 8,
            memtable_bytes: 2 << 30,
            chunk_cache_bytes: 2 << 30,
            column_index_size: block,
            sstable_version: version,
            ..EngineOptions::with_small_budgets(directory)
        };
        let tables = (0..30u8).map(|number| table(&format!("t{number}"), number + 10));
        let engine = bench_parts::open(&env, options, tables);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { engine, runtime, directory: directory.to_owned(), version, block }
    }

    fn table(&self, number: usize) -> Arc<TableMetadata> {
        self.engine.schema().table("bench", &format!("t{number}")).cloned().expect("it was made")
    }

    fn fill_memtable(&self, table: &Arc<TableMetadata>, width: u64) {
        let keys = std::iter::repeat_n(0, width as usize).zip(0..width);
        for (k, c) in keys.chain((1..=SMALL_PARTITIONS).map(|k| (k, 0))) {
            let mut update = PartitionUpdate::new(Arc::clone(table), key(k));
            update.add_row(row(table, c));
            loop {
                match self.engine.apply(&[Mutation::of(update.clone())]) {
                    Err(storage::StorageError::Busy) => self.runtime.block_on(self.engine.log.wait_for_room()),
                    result => {
                        result.expect("the bench's disk is sound");
                        break;
                    }
                }
            }
        }
    }

    /// Row i lies in SSTable i modulo their number. Gives the bytes of their files.
    fn add_sstables(&self, table: &Arc<TableMetadata>, width: u64, count: u64) -> u64 {
        let directory = self.directory.join(format!("in-{}", table.name));
        self.engine.env.disk.create_dir_all(&directory).expect("a directory");
        let mut keys: Vec<_> = (0..=SMALL_PARTITIONS).map(|k| (key(k), k)).collect();
        keys.sort();
        for part in 0..count {
            let mut stats = EncodingStatsCollector::default();
            stats.row(&row(table, 0));
            let header = Header::for_table(table, stats.finish());
            let mut options = WriterOptions::for_table(table, keys.len() as u64).expect("default options");
            options.row_index_block = self.block;
            let descriptor = Descriptor::new(&directory, self.version, SSTableId::Sequence(part + 1));
            let env = &self.engine.env;
            let mut writer = SSTableWriter::new(env, descriptor, Arc::clone(table), options, header).expect("files");
            for (decorated, k) in &keys {
                let rows = if *k == 0 { (part..width).step_by(count as usize) } else { (0..1).step_by(1) };
                writer.start_partition(decorated, DeletionTime::LIVE);
                rows.for_each(|c| writer.append(&Unfiltered::Row(row(table, c))).expect("written"));
                writer.end_partition().expect("written");
            }
            writer.finish().expect("written");
        }
        let store = self.engine.table(table.id).expect("open");
        let options = import::Options {
            directories: vec![directory],
            reset_level: false,
            clear_repaired: false,
            verify: false,
            extended_verify: false,
            copy: false,
            require_indexes: false,
        };
        assert!(import::import(&self.engine, &store, &options, None).expect("sound").is_empty());
        store.view().sstables.iter().map(|sstable| sstable.disk_size()).sum()
    }

    fn read(&self, table: &Arc<TableMetadata>, query: &Query, mode: ReadMode) -> Result<u32, ReadError> {
        let command = ReadCommand {
            table: Arc::clone(table),
            range: PartitionRange::Key(key(query.key)),
            slices: query.slices.clone(),
            reversed: query.reversed,
            columns: ColumnFilter::All,
            now: 1_800_000_000,
            limits: DataLimits { rows: query.limit, ..DataLimits::NONE },
            indexes: Vec::new(),
        };
        let mut stream = self.engine.read(&command, &ReadContext::new(mode))?;
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(table), command.now, TombstoneLimits::NONE);
        let mut rows = 0;
        while rows < query.limit && live.next_partition()?.is_some() {
            while rows < query.limit
                && let Some(row) = live.next_row()?
            {
                if rows == 0 && query.first != u64::MAX {
                    assert_eq!(row.clustering, clustering(query.first));
                }
                rows += 1;
            }
        }
        Ok(rows)
    }

    /// CPU microseconds for each query, and how many in a hundred ran again.
    fn measure(&self, table: &Arc<TableMetadata>, width: u64, make: MakeQuery) -> (f64, f64) {
        let mut dice = Dice(7);
        let (mut spent, mut count, mut again) = (0, 0u64, 0u64);
        // the first round warms
        for round in 0..=ROUNDS {
            let queries: Vec<_> = (0..ROUND).map(|_| make(width, &mut dice)).collect();
            let start = cpu_nanos();
            let mut done = 0;
            for query in &queries {
                let mut rows = self.read(table, query, ReadMode::Inline);
                if rows == Err(ReadError::WouldBlock) {
                    again += u64::from(round > 0);
                    rows = self.read(table, query, ReadMode::Background);
                }
                assert_eq!(rows.expect("sound"), query.expected);
                done += 1;
            }
            if round > 0 {
                spent += cpu_nanos() - start;
                count += done;
            }
        }
        (spent as f64 / 1000.0 / count as f64, again as f64 * 100.0 / count as f64)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str).filter(|text| !text.is_empty());
    let widths: Vec<u64> =
        argument(0).unwrap_or("1000,100000,1000000").split(',').map(|width| width.parse().expect("a width")).collect();
    let version = Version::from_name(argument(1).unwrap_or("da")).expect("a version, like da");
    let block = argument(2).map(|text| text.parse().expect("a number of bytes"));
    let only = argument(3).unwrap_or("");
    let directory = std::env::temp_dir().join(format!("helenus-slices-{}", std::process::id()));
    let bench = Bench::open(&directory, version, block);
    let mut number = 0;
    for (source, sstables) in [("memtable", 0), ("1 SSTable", 1), ("4 SSTables", 4)] {
        let widths: Vec<u64> =
            widths.iter().copied().filter(|width| sstables > 0 || *width <= MEMTABLE_WIDTH_MAX).collect();
        let mut tables = Vec::new();
        for width in &widths {
            let table = bench.table(number);
            number += 1;
            if sstables == 0 {
                bench.fill_memtable(&table, *width);
            } else {
                let bytes = bench.add_sstables(&table, *width, sstables);
                println!("{source}, {width} rows: {bytes} bytes");
            }
            tables.push((table, *width));
        }
        println!("\n{source:36}{}", widths.iter().map(|width| format!("{width:>11} again")).collect::<String>());
        for (name, make) in QUERIES.iter().filter(|(name, _)| name.contains(only)) {
            let results: Vec<_> = tables.iter().map(|(table, width)| bench.measure(table, *width, *make)).collect();
            let cells: String = results.iter().map(|(micros, again)| format!("{micros:>11.2} {again:>4.0}%")).collect();
            let ratio = results.last().map_or(1.0, |last| last.0) / results.first().map_or(1.0, |first| first.0);
            println!("{name:36}{cells}   ratio {ratio:.2}");
        }
    }
    let _ = bench.engine.env.disk.remove_dir_all(&directory);
}
