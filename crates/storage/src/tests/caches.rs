//! The caches of an engine: what a scan leaves of a hot set, what stays of files that are gone, the
//! sum of all, and what a start finds again. By counts, never by time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::Random;
use env::sim::{DATA, Sim, SimRandom};
use rows::{
    Cell, ClusteringValues, DeletionTime, Liveness, Mutation, PartitionRange, PartitionStream, PartitionUpdate,
    ReadCommand, ReadContext, ReadMode, ReadStats, Row, Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::Version;
use types::{CqlType, DecoratedKey};

use super::common::{self, int};
use crate::caches::saved::Kind;
use crate::options::SavedCaches;
use crate::{Engine, EngineOptions, TableStore, flushed_table, schema_change};

const TABLE: TableId = TableId([7; 16]);
/// Bytes of a partition: a chunk has four.
const VALUE_BYTES: usize = 1000;

fn table(caching: u64) -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int),
        spec("c", ColumnKind::Clustering, CqlType::Int),
        spec("v", ColumnKind::Regular, CqlType::Blob),
    ];
    let mut params = TableParams { caching: common::caching(caching), ..TableParams::default() };
    params.compression.insert("chunk_length_in_kb".into(), "4".into());
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(TABLE, "caches", "t", kind, flags, params, specs, Default::default(), None))
}

/// No rows are cached.
const NO_ROWS: u64 = 2;

struct Node {
    sim: Sim,
    dice: SimRandom,
    options: EngineOptions,
    caching: u64,
}

impl Node {
    fn new(seed: u64, caching: u64, change: impl FnOnce(&mut EngineOptions)) -> Self {
        let sim = Sim::new(seed);
        let dice = sim.dice();
        let mut options =
            EngineOptions { memtable_bytes: 64 << 20, ..EngineOptions::with_small_budgets(Path::new(DATA)) };
        change(&mut options);
        Self { sim, dice, options, caching }
    }

    fn open(&self) -> (Arc<Engine>, Arc<TableStore>) {
        let (engine, _) = crate::open(&self.sim.env(), self.options.clone()).expect("a sound disk opens");
        if engine.schema().keyspace("caches").is_none() {
            let keyspace = common::keyspace("caches", Some(table(self.caching)));
            let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
            let position = changed.expect("a sound disk").expect("not refused").position.expect("rows were written");
            self.sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
        }
        let store = engine.table(TABLE).expect("the table is there");
        (engine, store)
    }

    fn write(&self, engine: &Engine, store: &TableStore, keys: std::ops::Range<i32>, at: i64) {
        for k in keys {
            let table = store.table();
            let mut update = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(int(k)));
            let mut row = Row::new([Some(int(0))].into_iter().collect());
            row.liveness = Liveness::new(at);
            let value: Vec<u8> = (0..VALUE_BYTES).map(|_| self.dice.below(256) as u8).collect();
            row.add_cell(Cell::live(table.column_by_name("v").expect("a column").id, at, Bytes::from(value)));
            update.add_row(row);
            engine.apply(&[Mutation::of(update)]).expect("a sound disk takes writes");
        }
        self.sim.block_on(engine.flush(&engine.table(TABLE).expect("there"))).expect("a sound disk flushes");
    }

    fn read(&self, engine: &Engine, store: &TableStore, range: PartitionRange) -> (usize, Arc<ReadStats>) {
        let context = ReadContext::new(ReadMode::Background);
        let mut stream = engine.read(&ReadCommand::whole(&store.table(), range), &context).expect("a sound disk reads");
        let mut rows = 0;
        while stream.next_partition().expect("a sound disk reads").is_some() {
            while stream.next_unfiltered().expect("a sound disk reads").is_some() {
                rows += 1;
            }
        }
        (rows, context.stats)
    }

    fn read_key(&self, engine: &Engine, store: &TableStore, k: i32) -> Arc<ReadStats> {
        let (rows, stats) = self.read(engine, store, PartitionRange::Key(DecoratedKey::new(int(k))));
        assert_eq!(rows, 1, "key {k}");
        stats
    }

    /// A key of a Zipf distribution (exponent about one).
    fn zipf(&self, keys: i32) -> i32 {
        let share = self.dice.below(1 << 30) as f64 / f64::from(1 << 30);
        (f64::from(keys).powf(share) as i32 - 1).clamp(0, keys - 1)
    }
}

fn percent(found: u64, all: u64) -> u64 {
    found * 100 / all.max(1)
}

/// The share of point reads whose chunk was in the cache.
fn hit_rate(node: &Node, engine: &Engine, store: &TableStore, reads: u32, mut between: impl FnMut(u32)) -> u64 {
    let (mut cached, mut read) = (0, 0);
    for number in 0..reads {
        let k = node.zipf(KEYS);
        let stats = node.read_key(engine, store, k);
        cached += ReadStats::get(&stats.chunks_cached);
        read += ReadStats::get(&stats.chunks_read);
        between(number);
    }
    percent(cached, cached + read)
}

/// Ten times as much data as the chunk cache takes.
const KEYS: i32 = 2_600;

#[test]
fn a_validation_leaves_the_cache_as_it_is() {
    // the cache has room for all, which a scan of a client may put there
    let node = Node::new(4, NO_ROWS, |options| options.chunk_cache_bytes = 64 << 20);
    let (engine, store) = node.open();
    node.write(&engine, &store, 0..KEYS, 1);
    let held = || engine.caches.chunks.usage().entries;
    let before = held();
    let frozen = node.sim.block_on(flushed_table::take(&engine, &store, |_| true)).expect("a sound disk flushes");
    let context = ReadContext::new(ReadMode::Background);
    let whole = (types::Token(i64::MIN), types::Token(i64::MIN));
    let mut stream = frozen.read(&[whole], context.clone());
    let mut partitions = 0;
    while stream.next_partition().expect("a sound disk reads").is_some() {
        while stream.next_unfiltered().expect("a sound disk reads").is_some() {}
        partitions += 1;
    }
    assert_eq!(partitions, KEYS);
    assert!(ReadStats::get(&context.stats.chunks_read) > 0);
    assert_eq!(held(), before);
    // and finds there what a client has read
    node.read(&engine, &store, PartitionRange::all());
    assert!(held() > before);
    let context = ReadContext::new(ReadMode::Background);
    let mut stream = frozen.read(&[whole], context.clone());
    while stream.next_partition().expect("a sound disk reads").is_some() {}
    assert!(ReadStats::get(&context.stats.chunks_cached) > 0);
}

#[test]
fn a_scan_leaves_the_hot_set_where_it_is() {
    let node = Node::new(1, NO_ROWS, |options| options.chunk_cache_bytes = 260 << 10);
    let (engine, store) = node.open();
    node.write(&engine, &store, 0..KEYS, 1);
    let scan = || node.read(&engine, &store, PartitionRange::all());
    hit_rate(&node, &engine, &store, 20_000, |_| {});
    let quiet = hit_rate(&node, &engine, &store, 6_000, |_| {});
    let held = engine.caches.chunks.usage();
    // a scan of everything between every 600 reads
    let scanned = hit_rate(&node, &engine, &store, 6_000, |number| {
        if number % 600 == 0 {
            let (rows, stats) = scan();
            assert_eq!(rows, KEYS as usize);
            let found = ReadStats::get(&stats.chunks_cached);
            let total = found + ReadStats::get(&stats.chunks_read);
            assert!(found > 0 && found * 5 < total, "{found} of {total} chunks of the scan were in the cache");
            assert!(ReadStats::get(&stats.bytes_read) > 0, "what came from the disk is counted");
        }
    });
    assert!(quiet >= 40, "hit rate of the hot set: {quiet} %");
    assert!(scanned + 2 >= quiet, "hit rate of the hot set {quiet} %, while scans run {scanned} %");
    assert!(engine.caches.chunks.usage().entries <= held.entries + 16);
}

#[test]
fn compaction_and_verification_put_nothing_in() {
    let node = Node::new(2, NO_ROWS, |_| {});
    let (engine, store) = node.open();
    (0..3).for_each(|run| node.write(&engine, &store, run * 50..run * 50 + 100, i64::from(run)));
    engine.caches.chunks.clear();
    node.sim.block_on(engine.compact(&store)).expect("a sound disk compacts");
    assert_eq!(engine.caches.chunks.usage().entries, 0);
}

fn files_of(engine: &Engine) -> Vec<u64> {
    engine
        .stores()
        .iter()
        .flat_map(|store| store.view().sstables.clone())
        .flat_map(|sstable| sstable.cached_files().collect::<Vec<_>>())
        .collect()
}

#[test]
fn what_is_kept_of_files_that_are_gone_goes() {
    for version in [Version::DA, Version::NB] {
        let node = Node::new(3, 0, |options| {
            options.sstable_version = version;
            options.row_cache_bytes = 1 << 20;
        });
        let (engine, store) = node.open();
        (0..3).for_each(|run| node.write(&engine, &store, run * 50..run * 50 + 100, i64::from(run)));
        (0..200).for_each(|k| drop(node.read_key(&engine, &store, k)));
        assert!(engine.caches.chunks.usage().entries > 0);
        assert_eq!(engine.caches.keys.usage().entries > 0, version == Version::NB, "keys are of big SSTables");
        node.sim.block_on(engine.compact(&store)).expect("a sound disk compacts");
        node.sim.run_until_idle();
        let live = files_of(&engine);
        assert!(engine.caches.chunks.places().all(|(file, _)| live.contains(&file)));
        assert!(engine.caches.keys.keys().all(|(file, _)| live.contains(&file)));
        // the entries of rows are of files that are gone: none is used
        let before = engine.caches.rows.usage();
        let stats = node.read_key(&engine, &store, 7);
        assert_eq!(ReadStats::get(&stats.sstables_read), 1);
        assert_eq!(engine.caches.rows.usage().hits, before.hits);
        let again = node.read_key(&engine, &store, 7);
        assert_eq!(ReadStats::get(&again.sstables_read), 0, "the row cache has what the SSTable holds");
        assert_eq!(engine.caches.rows.usage().hits, before.hits + 1);
    }
}

#[test]
fn all_caches_together_keep_to_the_budget() {
    let node = Node::new(4, 0, |options| {
        options.sstable_version = Version::NB;
        (options.chunk_cache_bytes, options.key_cache_bytes, options.row_cache_bytes) =
            (400 << 10, 32 << 10, 300 << 10);
    });
    let (engine, store) = node.open();
    node.write(&engine, &store, 0..1500, 1);
    let sum = || {
        let caches = &engine.caches;
        let usages = [caches.chunks.usage(), caches.keys.usage(), caches.rows.usage()];
        for usage in usages {
            assert!(usage.size <= usage.capacity, "{usage:?}");
        }
        (usages.iter().map(|usage| usage.size).sum::<u64>(), usages.iter().map(|usage| usage.capacity).sum::<u64>())
    };
    let read_all = || (0..1500).for_each(|k| drop(node.read_key(&engine, &store, k)));
    read_all();
    let (size, capacity) = sum();
    assert_eq!(capacity, engine.caches.budget());
    assert!(size * 10 > capacity * 8, "the caches are full: {size} of {capacity}");
    engine.caches.set_capacities(Some(16 << 10), Some(600 << 10)).expect("it fits");
    assert!(sum().0 <= engine.caches.budget());
    read_all();
    let (size, capacity) = sum();
    assert!(size * 10 > capacity * 8 && capacity <= engine.caches.budget() + 64, "{size} of {capacity}");
    engine.caches.set_capacities(Some(0), Some(0)).expect("it fits");
    assert_eq!(engine.caches.rows.usage().size + engine.caches.keys.usage().size, 0);
    assert!(engine.caches.set_capacities(None, Some(engine.caches.budget())).is_err(), "the chunks keep something");
}

/// A deletion of a range holds before and behind the place where an entry of the row cache ends.
/// Digests cover its markers, so a read gives those that it gives without the entry.
#[test]
fn a_range_is_not_cut_where_an_entry_of_the_row_cache_ends() {
    // an entry has one row
    let node = Node::new(8, 1, |options| options.row_cache_bytes = 1 << 20);
    let (engine, store) = node.open();
    let clustering = |c: i32| [Some(int(c))].into_iter().collect::<ClusteringValues>();
    let mut update = PartitionUpdate::new(store.table(), DecoratedKey::new(int(1)));
    common::delete_range(&mut update, [clustering(0), clustering(9)], DeletionTime::new(5, 1));
    for c in [3, 6] {
        let mut row = Row::new(clustering(c));
        row.liveness = Liveness::new(10);
        update.add_row(row);
    }
    engine.apply(&[Mutation::of(update)]).expect("a sound disk takes writes");
    node.sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
    let command = ReadCommand::whole(&store.table(), PartitionRange::Key(DecoratedKey::new(int(1))));
    let context = ReadContext::new(ReadMode::Background);
    let given = |mut stream: Box<dyn PartitionStream>| -> Vec<Unfiltered> {
        stream.next_partition().expect("a sound disk reads").expect("the partition is there");
        std::iter::from_fn(|| stream.next_unfiltered().expect("a sound disk reads")).collect()
    };
    let view = store.view();
    let [sstable] = &view.sstables[..] else { panic!("one flush") };
    let without = given(Box::new(sstable.read(&command, &context).expect("a sound disk reads")));
    assert_eq!(without.len(), 4, "two rows, and the two ends of the range");
    for hits in 0..2 {
        assert_eq!(given(engine.read(&command, &context).expect("a sound disk reads")), without);
        assert_eq!(engine.caches.rows.usage().hits, hits);
    }
}

fn saved_caches() -> SavedCaches {
    SavedCaches {
        directory: PathBuf::from(DATA).join("saved_caches"),
        keys_period: Some(Duration::from_secs(10)),
        rows_period: Some(Duration::from_secs(10)),
        keys_to_save: u64::MAX,
        rows_to_save: u64::MAX,
        load_timeout: Duration::from_secs(30),
    }
}

#[test]
fn what_was_hot_is_hot_after_a_kill() {
    for (seed, cut) in [(5, false), (6, true)] {
        let node = Node::new(seed, 0, |options| {
            options.sstable_version = Version::NB;
            options.row_cache_bytes = 1 << 20;
            options.saved_caches = Some(saved_caches());
        });
        let (engine, store) = node.open();
        node.write(&engine, &store, 0..400, 1);
        (0..50).for_each(|k| drop(node.read_key(&engine, &store, k)));
        for _ in 0..3 {
            node.sim.run_until_idle();
            node.sim.advance(Duration::from_secs(11));
        }
        node.sim.run_until_idle();
        assert!(node.sim.env().disk.exists(&saved_caches().directory.join(Kind::Chunks.file_name())));
        drop((engine, store));
        if cut {
            node.sim.power_cut()
        } else {
            node.sim.kill()
        }
        let (engine, store) = node.open();
        node.sim.run_until_idle();
        assert_eq!(engine.caches.chunks.usage().entries, 0, "nothing is read before the node is ready");
        engine.load_caches();
        node.sim.advance(Duration::from_secs(2));
        node.sim.run_until_idle();
        let before = [engine.caches.rows.usage(), engine.caches.keys.usage(), engine.caches.chunks.usage()];
        assert!(before.iter().all(|usage| usage.entries > 0), "{before:?}");
        for k in 0..50 {
            let stats = node.read_key(&engine, &store, k);
            assert_eq!(ReadStats::get(&stats.chunks_read), 0, "key {k} was hot");
        }
        assert_eq!(engine.caches.rows.usage().hits - before[0].hits, 50);
    }
}

#[test]
fn a_broken_saved_cache_is_removed_and_the_start_goes_on() {
    let node = Node::new(7, NO_ROWS, |options| options.saved_caches = Some(saved_caches()));
    let (engine, store) = node.open();
    node.write(&engine, &store, 0..40, 1);
    let disk = node.sim.env().disk;
    let path = saved_caches().directory.join(Kind::Chunks.file_name());
    disk.create_dir_all(&saved_caches().directory).expect("made");
    disk.replace_file(&path, b"hlncache and then something else").expect("written");
    engine.load_caches();
    node.sim.run_until_idle();
    assert!(!disk.exists(&path));
    node.read_key(&engine, &store, 3);
}
