//! The engine's threads under a scheduler that draws the order of their steps (shuttle): the door
//! of a memtable with the log's buffer in one step, the log's writer and who waits for it, the
//! flusher, memory that writers wait for, background tasks and their wakes, the pools.
//!
//! The code is the engine's own, over `env::interleaved`. A run is many schedules: half of them are
//! drawn evenly, half by priorities that change in a few places (PCT), which finds orders that need
//! few changes in the right places. Checked in each schedule: nobody waits for ever, no assertion
//! of the engine fails, an acknowledged write is read at once, and is there after a power cut at
//! any moment. Each case of [`each_defect_is_found`] switches on a wrong order, and the runs have
//! to find it.
//!
//! `cargo test -p storage --features shuttle --test threads` takes seconds; `HELENUS_SCHEDULES=N`
//! runs so many schedules of each kind. A schedule that fails is printed by shuttle.
//!
//! Not checked: orders that a machine without strong memory ordering adds (shuttle's atomics are
//! sequentially consistent), and anything that depends on how long a wait is.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use env::defects::{Defect, set};
use env::interleaved;
use env::interleaved::shuttle::future::block_on;
use env::interleaved::shuttle::rand::RngCore;
use env::interleaved::shuttle::scheduler::{PctScheduler, RandomScheduler};
use env::interleaved::shuttle::{self, Config, FailurePersistence, MaxSteps, Runner};
use env::sim::{DATA, Sim};
use futures_util::future::select;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Cell, ColumnFilter, DataLimits, Liveness, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext,
    ReadMode, Row, Slices,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, Replication, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use storage::commitlog::{self, CommitLog, SyncMode};
use storage::{Engine, EngineOptions, schema_change};
use types::{CqlType, DecoratedKey};

/// Flushes one after the other.
const FLUSHES: i32 = 4;
/// Threads that write at once.
const WRITERS: i32 = 3;
/// Writes of each.
const WRITES: i32 = 3;
/// The most steps that a thread leaves to the others: before the power goes, once all have begun,
/// or between two flushes.
const OTHERS_STEPS_MAX: u64 = 400;
/// Schedules of each kind within which a defect has to be found.
const SCHEDULES_OF_DEFECT: usize = 400;
/// Changes of priorities in a schedule by priorities.
const PCT_DEPTH: usize = 3;
const SEED: u64 = 1;

/// Defects are of the process, so its tests run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

type Body = fn();

/// Schedules of each kind: `HELENUS_SCHEDULES`, or a few.
fn schedules(everyday: usize) -> usize {
    std::env::var("HELENUS_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(everyday)
}

/// Runs so many schedules of each kind.
///
/// # Panics
/// When one of them fails.
fn run(body: Body, schedules: usize, prints: bool) {
    let config = || {
        let mut config = Config::new();
        config.stack_size = 2 << 20;
        config.max_steps = MaxSteps::FailAfter(1_000_000);
        config.failure_persistence = if prints { FailurePersistence::Print } else { FailurePersistence::None };
        config.ungraceful_shutdown_config.immediately_return_on_panic = true;
        config
    };
    Runner::new(RandomScheduler::new_from_seed(SEED, schedules), config()).run(body);
    Runner::new(PctScheduler::new_from_seed(SEED, PCT_DEPTH, schedules), config()).run(body);
}

fn sound(body: Body, everyday: usize) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    set(None);
    run(body, schedules(everyday), true);
}

#[test]
fn records_of_the_log_are_durable_when_that_is_told() {
    sound(log, 60);
}

#[test]
fn writes_are_read_at_once_and_survive() {
    sound(engine, 12);
}

#[test]
fn a_flush_that_is_asked_for_ends() {
    sound(flush, 12);
}

#[test]
fn jobs_of_a_pool_run() {
    sound(pool, 200);
}

#[test]
fn each_defect_is_found() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let cases: [(Defect, Body); 10] = [
        (Defect::ReleaseFirst, log),
        (Defect::NoSecondLook, log),
        (Defect::AdvanceTooFar, log),
        (Defect::ForgetWake, log),
        (Defect::WakeFirst, flush),
        (Defect::CutBeforeDoors, engine),
        (Defect::FreezeLate, engine),
        (Defect::ListenLate, engine),
        (Defect::NotifyFirst, pool),
        (Defect::LeaveJobs, pool),
    ];
    let only = std::env::var("HELENUS_MUTATION").ok();
    let mut missed = Vec::new();
    for (defect, body) in cases {
        if only.as_ref().is_some_and(|only| *only != format!("{defect:?}")) {
            continue;
        }
        set(Some(defect));
        let found = catch_unwind(AssertUnwindSafe(|| run(body, SCHEDULES_OF_DEFECT, false)));
        set(None);
        if found.is_ok() {
            missed.push(defect);
        }
    }
    assert!(missed.is_empty(), "not found within {SCHEDULES_OF_DEFECT} schedules of each kind: {missed:?}");
}

fn random() -> u64 {
    shuttle::rand::thread_rng().next_u64()
}

/// Lets the others work for a while, or to their end.
fn let_others_work() {
    for _ in 0..random() % OTHERS_STEPS_MAX {
        shuttle::thread::yield_now();
    }
}

/// Records of several threads in a log whose power goes at any moment.
fn log() {
    let sim = Sim::new(random());
    let directory = Path::new(DATA).join("commitlog");
    let options = commitlog::Options {
        segment_size: 4 << 10,
        mutation_size_max: 2 << 10,
        sync: SyncMode::Batch,
        ..commitlog::Options::default()
    };
    let acknowledged: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    {
        let env = interleaved::env(&sim);
        let (log, _) = CommitLog::open(&env, &directory, options.clone()).expect("an empty directory");
        log.begin(0).expect("there is room");
        let log = Arc::new(log);
        let write = |writer: i32| {
            let (log, acknowledged) = (Arc::clone(&log), Arc::clone(&acknowledged));
            move || {
                for number in 0..WRITES {
                    let record = vec![(writer * WRITES + number) as u8; 700];
                    let Ok(position) = log.append(&record, &[(TableId([writer as u8; 16]), 0)]) else { return };
                    if block_on(log.wait_durable(position)).is_err() {
                        return;
                    }
                    acknowledged.lock().expect("no panic").push(record);
                }
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|writer| shuttle::thread::spawn(write(writer))).collect();
        let_others_work();
        sim.power_cut();
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    }
    let (_log, replay) = CommitLog::open(&sim.env(), &directory, options).expect("what a power cut leaves is read");
    let replayed: Vec<Vec<u8>> = replay.map(|record| record.expect("a sound record").1.to_vec()).collect();
    for record in &*acknowledged.lock().expect("no panic") {
        assert!(replayed.contains(record), "record {:?} was acknowledged", record.first());
    }
}

/// Jobs of several threads; all of them run.
fn pool() {
    let sim = Sim::new(1);
    let env = interleaved::env(&sim);
    let ask = |writer: i32| {
        let env = env.clone();
        move || {
            for number in 0..WRITES {
                assert_eq!(block_on(env.blocking("job", move || writer + number)), Ok(writer + number));
            }
        }
    };
    let threads: Vec<_> = (0..WRITERS).map(|writer| shuttle::thread::spawn(ask(writer))).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![spec("k", ColumnKind::PartitionKey, CqlType::Int), spec("v", ColumnKind::Regular, CqlType::Blob)];
    let params = TableParams::default();
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(TableId([9; 16]), "model", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn keyspace() -> KeyspaceMetadata {
    let options = BTreeMap::from([("replication_factor".to_owned(), "1".to_owned())]);
    let class = "org.apache.cassandra.locator.SimpleStrategy".to_owned();
    KeyspaceMetadata {
        name: "model".to_owned(),
        durable_writes: true,
        replication: Replication { class, options },
        tables: [("t".to_owned(), table())].into_iter().collect(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: Default::default(),
        aggregates: Default::default(),
        is_virtual: false,
    }
}

fn mutation(k: i32) -> Mutation {
    let table = table();
    let mut row = Row::new(rows::ClusteringValues::new());
    row.liveness = Liveness::new(1);
    let column = table.column_by_name("v").expect("the column").id;
    row.add_cell(Cell::live(column, 1, Bytes::from(vec![k as u8; 4 << 10])));
    let mut update = PartitionUpdate::new(table, DecoratedKey::new(int(k)));
    update.add_row(row);
    Mutation::of(update)
}

fn is_there(engine: &Engine, k: i32) -> bool {
    let range = PartitionRange::Key(DecoratedKey::new(int(k)));
    let (columns, limits, now) = (ColumnFilter::All, DataLimits::NONE, engine.env.clock.now_seconds());
    let (table, slices) = (table(), Slices::all());
    let command = ReadCommand { table, range, slices, reversed: false, columns, now, limits, indexes: Vec::new() };
    let context = ReadContext::new(ReadMode::Background);
    let mut stream = engine.read(&command, &context).expect("a sound disk");
    let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&command.table), now, TombstoneLimits::NONE);
    live.next_partition().expect("a sound disk").is_some()
}

fn options() -> EngineOptions {
    EngineOptions {
        commitlog: commitlog::Options {
            segment_size: 128 << 10,
            mutation_size_max: 64 << 10,
            sync: SyncMode::Batch,
            ..commitlog::Options::default()
        },
        shards: 2,
        memtable_bytes: 40 << 10,
        ..EngineOptions::with_small_budgets(Path::new(DATA))
    }
}

/// An engine with the table, whose schema is durable.
fn opened(sim: &Sim) -> Arc<Engine> {
    let (engine, _) = storage::open(&interleaved::env(sim), options()).expect("an empty directory");
    let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace())));
    let position = changed.expect("logged").expect("not refused").position.expect("rows");
    block_on(engine.log.wait_durable(position)).expect("durable");
    engine
}

/// A flush that is asked for ends, whatever the flusher does at that moment.
fn flush() {
    let sim = Sim::new(random());
    let engine = opened(&sim);
    let store = engine.table_by_name("model", "t").expect("made");
    // behind the first flush the flusher has nothing else to do, and sleeps when the next one is
    // asked for after a while
    for k in 0..FLUSHES {
        engine.apply(&[mutation(k)]).expect("room");
        let_others_work();
        block_on(engine.flush(&store)).expect("a sound disk");
        let view = store.view();
        assert!(view.memtable_size() == 0 && !view.sstables.is_empty(), "flush {k}");
    }
    engine.stop();
}

/// Writes of several threads, flushes beside them, and the power that goes at any moment.
fn engine() {
    let sim = Sim::new(random());
    let acknowledged: Arc<Mutex<Vec<i32>>> = Arc::default();
    {
        let engine = opened(&sim);
        let store = engine.table_by_name("model", "t").expect("made");
        let (switch, power) = tokio::sync::watch::channel(true);
        let write = |writer: i32| {
            let (engine, acknowledged) = (Arc::clone(&engine), Arc::clone(&acknowledged));
            let mut power = power.clone();
            move || {
                for number in 0..WRITES {
                    let k = writer * WRITES + number;
                    // without power no flush gives memory back
                    let gone = async { drop(power.wait_for(|is_on| !is_on).await) };
                    drop(block_on(select(pin!(engine.admit()), pin!(gone))));
                    let Ok(applied) = engine.apply(&[mutation(k)]) else { return };
                    let position = applied.position.expect("logged");
                    if block_on(engine.log.wait_durable(position)).is_err() {
                        return;
                    }
                    acknowledged.lock().expect("no panic").push(k);
                }
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|writer| shuttle::thread::spawn(write(writer))).collect();
        let flusher = {
            let (engine, store) = (Arc::clone(&engine), Arc::clone(&store));
            shuttle::thread::spawn(move || drop(block_on(engine.flush(&store))))
        };
        if random() % 2 == 0 {
            // without a trouble everything ends well
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
            flusher.join().expect("no panic");
            let missing: Vec<i32> = (0..WRITERS * WRITES).filter(|k| !is_there(&engine, *k)).collect();
            assert!(missing.is_empty(), "{missing:?} were acknowledged and are not read");
            sim.power_cut();
        } else {
            let_others_work();
            sim.power_cut();
            switch.send_replace(false);
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
            flusher.join().expect("no panic");
        }
        engine.stop();
    }
    let (engine, _) = storage::open(&sim.env(), options()).expect("what a power cut leaves is opened");
    for k in &*acknowledged.lock().expect("no panic") {
        assert!(is_there(&engine, *k), "{k} was acknowledged");
    }
}
