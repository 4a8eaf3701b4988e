//! Random histories under every strategy, with time going on: gc_grace ends, what has a TTL
//! expires, tombstones go, strategies are changed, machines die in the middle of compactions.
//!
//! Checked: the content is at any moment that of a twin that remembers every write, so nothing is
//! lost and nothing comes back; SSTables of a level do not overlap; an idle strategy has nothing
//! left that it should do; nothing stays marked; in the end, when all that may go can go, a major
//! compaction leaves no tombstone; where only what is repaired may go, nothing goes. Not checked
//! here: faults of the disk, imports (`model`).
//!
//! A write may be late by less than gc_grace: a tombstone can go before a write that it would hide
//! only if that comes later still.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::Random;
use env::sim::{DATA, Sim, SimRandom};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Cell, ColumnData, DeletionTime, Liveness, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext,
    ReadMode, Row,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::common::{self, delete_range, delete_row, die, int, number};
use super::seeds::each;
use crate::compaction::choice;
use crate::compaction::operation::{Operation, Work};
use crate::strategy::kind::Kind;
use crate::{Engine, EngineOptions, TableStore, commitlog, schema_change};

const ID: TableId = TableId([7; 16]);
const PARTITIONS: i32 = 24;
const CLUSTERINGS: i32 = 20;
const VALUE_LENGTH_MAX: u64 = 16 << 10;
/// Seconds.
const GC_GRACE: i32 = 100;
/// Seconds by which a write may be late.
const LATE_MAX: u64 = 50;

/// Strategies, with options that make them do something with few megabytes.
const STRATEGIES: [&str; 10] = [
    "SizeTiered min_threshold=2 min_sstable_size=0",
    "SizeTiered tombstone_threshold=0.05 tombstone_compaction_interval=10 min_threshold=3",
    "SizeTiered unchecked_tombstone_compaction=true tombstone_threshold=0.01 tombstone_compaction_interval=60",
    "Leveled sstable_size_in_mb=1 fanout_size=2",
    "Leveled sstable_size_in_mb=1 fanout_size=2 single_sstable_uplevel=true",
    "TimeWindow compaction_window_unit=MINUTES expired_sstable_check_frequency_seconds=1",
    "TimeWindow compaction_window_unit=HOURS min_threshold=2 tombstone_threshold=0.1 tombstone_compaction_interval=5",
    "Unified scaling_parameters=T2 min_sstable_size=0B target_sstable_size=1MiB expired_sstable_check_frequency_seconds=1",
    "Unified scaling_parameters=L4,N min_sstable_size=0B target_sstable_size=1MiB base_shard_count=3",
    "Unified scaling_parameters=T3 overlap_inclusion_method=NONE max_sstables_to_compact=2",
];

#[derive(Clone, Debug)]
enum Op {
    Insert { k: i32, c: i32, v: Bytes, at: i64, expires: u32 },
    DeleteRow { k: i32, c: i32, at: i64 },
    DeleteRange { k: i32, from: i32, to: i32, at: i64 },
    DeletePartition { k: i32, at: i64 },
}

/// Rows by partition and clustering.
type Content = BTreeMap<(i32, i32), Bytes>;

/// The content after these writes.
fn twin(ops: &[Op], now: u32) -> Content {
    let mut latest: BTreeMap<(i32, i32), (i64, Bytes, u32)> = BTreeMap::new();
    for op in ops {
        if let Op::Insert { k, c, v, at, expires } = op {
            let entry = latest.entry((*k, *c)).or_insert((i64::MIN, Bytes::new(), 0));
            if *at > entry.0 {
                *entry = (*at, v.clone(), *expires);
            }
        }
    }
    for op in ops {
        let (partition, rows, deleted_at) = match op {
            Op::Insert { .. } => continue,
            Op::DeleteRow { k, c, at } => (*k, *c..=*c, *at),
            Op::DeleteRange { k, from, to, at } => (*k, *from..=*to, *at),
            Op::DeletePartition { k, at } => (*k, 0..=CLUSTERINGS, *at),
        };
        latest.retain(|(k, c), (at, ..)| *k != partition || !rows.contains(c) || *at > deleted_at);
    }
    latest.into_iter().filter(|(_, (.., expires))| *expires > now).map(|(key, (_, v, _))| (key, v)).collect()
}

fn params(strategy: &str, only_repaired: bool) -> TableParams {
    let mut words = strategy.split_whitespace();
    let class = format!("org.apache.cassandra.db.compaction.{}CompactionStrategy", words.next().unwrap_or_default());
    let mut map = BTreeMap::from([("class".to_owned(), class)]);
    map.extend(words.filter_map(|word| word.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned())));
    if only_repaired {
        map.insert("only_purge_repaired_tombstones".to_owned(), "true".to_owned());
    }
    TableParams { compaction: map, gc_grace_seconds: GC_GRACE, ..TableParams::default() }
}

fn keyspace(params: TableParams) -> KeyspaceMetadata {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int),
        spec("c", ColumnKind::Clustering, CqlType::Int),
        spec("v", ColumnKind::Regular, CqlType::Blob),
    ];
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    let table = TableMetadata::new(ID, "purging", "t", kind, flags, params, specs, BTreeMap::new(), None);
    common::keyspace("purging", Some(Arc::new(table)))
}

struct Purging {
    sim: Sim,
    dice: SimRandom,
    ops: Vec<Op>,
    writes: i64,
    only_repaired: bool,
}

impl Purging {
    fn open(&self) -> Arc<Engine> {
        let options = EngineOptions {
            commitlog: commitlog::Options {
                segment_size: 1 << 20,
                total_space: 8 << 20,
                ..commitlog::Options::default()
            },
            memtable_bytes: 4 << 20,
            concurrent_compactors: 1 + self.dice.below(3) as usize,
            column_index_size: Some(4096),
            ..EngineOptions::with_small_budgets(Path::new(DATA))
        };
        let (engine, _) = crate::open(&self.sim.env(), options).expect("a sound disk opens");
        if engine.schema().keyspace("purging").is_none() {
            common::give_host_id(&self.sim, &engine, i64::from(self.now()) * 1_000_000);
            self.set_strategy(&engine);
        }
        engine
    }

    fn set_strategy(&self, engine: &Arc<Engine>) {
        let strategy = STRATEGIES[self.dice.below(STRATEGIES.len() as u64) as usize];
        let keyspace = keyspace(params(strategy, self.only_repaired));
        let changed = schema_change::change(engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        let changed = changed.expect("a sound disk").expect("the change is not refused");
        if let Some(position) = changed.position {
            self.sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
        }
        engine.compactor.wake();
    }

    fn now(&self) -> u32 {
        self.sim.env().clock.now_seconds()
    }

    fn random_op(&mut self) -> Op {
        let dice = &self.dice;
        let (k, c) = (dice.below(PARTITIONS as u64) as i32, dice.below(CLUSTERINGS as u64) as i32);
        self.writes += 1;
        let late = if dice.chance(20) { dice.below(LATE_MAX) } else { 0 };
        let at = (i64::from(self.now()) - late as i64) * 1_000_000 + self.writes % 1_000_000;
        match dice.below(12) {
            0 => Op::DeletePartition { k, at },
            1..=2 => Op::DeleteRange { k, from: c, to: c + dice.below(8) as i32, at },
            3 => Op::DeleteRow { k, c, at },
            _ => {
                let mut v = vec![0; dice.below(VALUE_LENGTH_MAX) as usize];
                v.chunks_exact_mut(16).for_each(|chunk| chunk[..8].copy_from_slice(&dice.next_u64().to_be_bytes()));
                let ttl = if dice.chance(40) { 1 + dice.below(90) as u32 } else { u32::MAX };
                Op::Insert { k, c, v: v.into(), at, expires: self.now().saturating_add(ttl) }
            }
        }
    }

    /// One write, or a batch.
    fn write(&mut self, engine: &Arc<Engine>) {
        let count = if self.dice.chance(20) { 2 + self.dice.below(3) } else { 1 };
        let ops: Vec<Op> = (0..count).map(|_| self.random_op()).collect();
        let mutations: Vec<Mutation> = ops.iter().map(|op| self.mutation(engine, op)).collect();
        self.sim.block_on(engine.admit());
        let applied = engine.apply(&mutations).expect("a sound disk takes writes");
        let position = applied.position.expect("the keyspace is durable");
        self.sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
        self.ops.extend(ops);
    }

    fn mutation(&self, engine: &Arc<Engine>, op: &Op) -> Mutation {
        let table = engine.schema().table("purging", "t").cloned().expect("the table is there");
        let now = self.now();
        let clustering = |c: i32| [Some(int(c))].into_iter().collect();
        let (Op::Insert { k, .. }
        | Op::DeleteRow { k, .. }
        | Op::DeleteRange { k, .. }
        | Op::DeletePartition { k, .. }) = op;
        let mut update = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(int(*k)));
        match op {
            Op::Insert { c, v, at, expires, .. } => {
                let mut row = Row::new(clustering(*c));
                let cell = Cell::live(table.column_by_name("v").expect("the column").id, *at, v.clone());
                if *expires == u32::MAX {
                    row.liveness = Liveness::new(*at);
                    row.add_cell(cell);
                } else {
                    let ttl = *expires - now;
                    row.liveness = Liveness::expiring(*at, ttl, *expires);
                    row.add_cell(Cell { ttl, local_deletion_time: *expires, ..cell });
                }
                update.add_row(row);
            }
            Op::DeleteRow { c, at, .. } => {
                delete_row(&mut update, clustering(*c), DeletionTime::new(*at, now));
            }
            Op::DeleteRange { from, to, at, .. } => {
                delete_range(&mut update, [clustering(*from), clustering(*to)], DeletionTime::new(*at, now));
            }
            Op::DeletePartition { at, .. } => update.deletion = DeletionTime::new(*at, now),
        }
        Mutation::of(update)
    }

    fn content(&self, engine: &Engine) -> Content {
        let table = engine.schema().table("purging", "t").cloned().expect("the table is there");
        let now = self.now();
        let command = ReadCommand { now, ..ReadCommand::whole(&table, PartitionRange::all()) };
        let mut stream = engine.read(&command, &ReadContext::new(ReadMode::Background)).expect("a sound disk reads");
        let mut live = LiveRows::new(stream.as_mut(), table, now, TombstoneLimits::NONE);
        let mut content = Content::new();
        while let Some(partition) = live.next_partition().expect("a sound disk reads") {
            let k = number(&partition.key.key);
            while let Some(row) = live.next_row().expect("a sound disk reads") {
                let c = number(row.clustering[0].as_ref().expect("a clustering"));
                let [ColumnData::Simple(cell)] = row.columns.as_slice() else {
                    panic!("one cell is expected: {row:?}")
                };
                content.insert((k, c), cell.value.clone());
            }
        }
        content
    }

    fn check(&self, engine: &Engine) {
        let (found, expected) = (self.content(engine), twin(&self.ops, self.now()));
        let short = |content: &Content| content.iter().map(|(key, v)| (*key, v.len())).collect::<Vec<_>>();
        assert!(found == expected, "seed {}: {:?} is not {:?}", self.sim.seed(), short(&found), short(&expected));
        self.check_levels(&store(engine));
        if self.only_repaired {
            self.check_unrepaired(engine);
        }
    }

    /// Nothing is ever repaired: of each partition the last deletion is still there.
    fn check_unrepaired(&self, engine: &Engine) {
        let mut last: BTreeMap<i32, i64> = BTreeMap::new();
        for op in &self.ops {
            if let Op::DeletePartition { k, at } = op {
                let newest = last.entry(*k).or_insert(*at);
                *newest = (*newest).max(*at);
            }
        }
        let table = engine.schema().table("purging", "t").cloned().expect("the table is there");
        let command = ReadCommand { now: self.now(), ..ReadCommand::whole(&table, PartitionRange::all()) };
        let mut stream = engine.read(&command, &ReadContext::new(ReadMode::Background)).expect("a sound disk reads");
        while let Some(head) = stream.next_partition().expect("a sound disk reads") {
            if let Some(at) = last.remove(&number(&head.key.key)) {
                assert_eq!(head.deletion.marked_for_delete_at, at, "seed {}: a deletion went", self.sim.seed());
            }
        }
        assert!(last.is_empty(), "seed {}: deletions of partitions went: {last:?}", self.sim.seed());
    }

    /// SSTables of a level do not overlap, whatever the strategy is now.
    fn check_levels(&self, store: &TableStore) {
        let mut levels: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for sstable in &store.view().sstables {
            let keys = (sstable.first_key().clone(), sstable.last_key().clone());
            levels.entry(sstable.statistics().stats.level).or_default().push(keys);
        }
        for (level, mut sstables) in levels.split_off(&1) {
            sstables.sort();
            let apart = sstables.windows(2).all(|pair| pair[0].1 < pair[1].0);
            assert!(apart, "seed {}: SSTables of level {level} overlap: {sstables:?}", self.sim.seed());
        }
    }

    /// Nobody is at work: nothing is marked, and the strategy has nothing to do.
    fn check_idle(&self, engine: &Engine) {
        self.sim.run_until_idle();
        let (store, seed) = (store(engine), self.sim.seed());
        assert!(store.changes().compacting.is_empty(), "seed {seed}: SSTables stay marked");
        // the leveled strategy counts what is in a level, also where it waits for more
        if choice::levels(&store).is_empty() {
            assert_eq!(choice::pending(&store), 0, "seed {seed}: {:?}", store.table().params.compaction);
        }
        self.check(engine);
    }

    fn operate(&self, engine: &Arc<Engine>, kind: Kind, work: Work) {
        let operation = Operation::new(kind, work, self.dice.below(3) as usize);
        self.sim.block_on(engine.operate(&store(engine), operation)).expect("a sound disk compacts");
        self.check(engine);
    }

    fn live(&mut self, engine: &Arc<Engine>) {
        for _ in 0..self.dice.below(400) {
            match self.dice.below(60) {
                0..=4 => self.sim.block_on(engine.flush(&store(engine))).expect("a sound disk flushes"),
                5 => {
                    let split = self.dice.chance(30);
                    self.operate(engine, Kind::MajorCompaction, Work::Major { split });
                }
                6 => self.operate(engine, Kind::MajorCompaction, Work::Named),
                7 => self.operate(engine, Kind::Upgrade, Work::Rewrite),
                8 => {
                    let cells = self.dice.chance(50);
                    self.operate(engine, Kind::GarbageCollect, Work::GarbageCollect { cells });
                }
                9..=11 => self.sim.advance(Duration::from_secs(self.dice.below(60))),
                12 => self.set_strategy(engine),
                13 => self.check_idle(engine),
                14..=15 => self.check(engine),
                _ => self.write(engine),
            }
        }
        // to die in the middle of what follows
        if self.dice.chance(50) {
            engine.flusher.request(&store(engine), None);
        }
        for _ in 0..self.dice.below(30) {
            self.sim.step();
        }
    }

    /// All that may go can go now.
    fn check_end(&self, engine: &Arc<Engine>) {
        self.sim.block_on(engine.flush(&store(engine))).expect("a sound disk flushes");
        self.sim.advance(Duration::from_secs(300));
        self.check_idle(engine);
        self.operate(engine, Kind::MajorCompaction, Work::Major { split: false });
        let purged = |store: &TableStore| {
            store.view().sstables.iter().all(|sstable| sstable.statistics().stats.tombstones.bins().next().is_none())
        };
        let empty = store(engine).view().sstables.iter().all(|sstable| sstable.partition_count() == 0);
        assert!(self.only_repaired || purged(&store(engine)) || empty, "seed {}: tombstones are left", self.sim.seed());
    }
}

fn store(engine: &Engine) -> Arc<TableStore> {
    engine.table(ID).expect("the table is open")
}

fn run(seed: u64, lives: usize) {
    let sim = Sim::new(seed);
    let dice = sim.dice();
    let only_repaired = dice.chance(20);
    let mut purging = Purging { sim, dice, ops: Vec::new(), writes: 0, only_repaired };
    for _ in 0..lives {
        let engine = purging.open();
        purging.check(&engine);
        purging.live(&engine);
        drop(engine);
        die(&purging.sim, &purging.dice);
    }
    let engine = purging.open();
    purging.check(&engine);
    purging.check_end(&engine);
}

#[test]
fn strategies_lose_nothing_and_bring_nothing_back() {
    each(3, |seed| run(seed, 3));
}
