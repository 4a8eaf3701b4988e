//! The log under a simulated disk: what was acknowledged as durable is replayed, nothing is
//! invented; Cassandra's bytes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use env::Random;
use env::sim::{DATA, EIO, EMFILE, ENOSPC, Fault, Op, Sim, SimRandom};

use super::*;

mod archive;
mod cdc;
mod compression;
mod format;
mod full;
mod model;

fn directory() -> PathBuf {
    Path::new(DATA).join("commitlog")
}

fn small() -> Options {
    Options { segment_size: 8 << 10, mutation_size_max: 2000, total_space: 64 << 10, ..Options::default() }
}

fn key(number: u8) -> DirtyKey {
    (TableId([number; 16]), u16::from(number))
}

fn record(number: u64, len: usize) -> Vec<u8> {
    let mut record = number.to_be_bytes().repeat(len.div_ceil(8));
    record.truncate(len);
    record
}

/// A log that takes records, and what is to be replayed.
fn begun(sim: &Sim, options: Options) -> (CommitLog, Replay) {
    let (log, replay) = CommitLog::open(&sim.env(), &directory(), options).expect("opened");
    log.begin(0).expect("there is room");
    (log, replay)
}

fn open(sim: &Sim, options: Options) -> (CommitLog, Vec<Vec<u8>>) {
    let (log, replay) = begun(sim, options);
    let records = replay.map(|item| item.expect("no corruption").1.to_vec()).collect();
    log.finish_replay().expect("settled");
    (log, records)
}

#[test]
fn the_first_segment_is_behind_all_that_are_named() {
    let sim = Sim::new(1);
    let position_of = |after: u64| {
        let (log, _) = CommitLog::open(&sim.env(), &directory(), small()).expect("opened");
        log.begin(after).expect("there is room");
        let position = log.append(&record(1, 20), &[key(1)]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("durable");
        (log, position)
    };
    let (log, first) = position_of(0);
    // SSTables name a segment of a time when the clock was ahead
    let named = first.segment + 1_000_000;
    log.end().expect("ended");
    drop(log);
    sim.run_until_idle();
    let (log, second) = position_of(named);
    assert_eq!(second.segment, named + 1);
    drop(log);
    sim.power_cut();
    let (log, records) = open(&sim, small());
    assert_eq!(records.last(), Some(&record(1, 20)), "what was durable is replayed");
    assert!(log.first_new_segment() > second.segment);
}

#[test]
fn one_sync_serves_many_writes() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, small());
    let positions: Vec<LogPosition> =
        (0..50).map(|number| log.append(&record(number, 20), &[key(1)]).expect("room")).collect();
    let last = *positions.last().expect("appended");
    assert_eq!(log.stats().pending_bytes, 50 * 32);
    sim.block_on(log.wait_durable(last)).expect("durable");
    assert_eq!((log.stats().syncs, log.stats().pending_bytes, log.stats().waiting), (1, 0, 0));
}

#[test]
fn group_mode_waits_for_company() {
    let sim = Sim::new(1);
    let options = Options { sync: SyncMode::Group(Duration::from_millis(10)), ..small() };
    let (log, _) = open(&sim, options);
    let before = sim.env().now();
    let first = log.append(&record(1, 20), &[]).expect("room");
    sim.run_until_idle();
    sim.advance(Duration::from_millis(5));
    let second = log.append(&record(2, 20), &[]).expect("room");
    sim.block_on(async { (log.wait_durable(second).await, log.wait_durable(first).await) }).1.expect("durable");
    assert_eq!(sim.env().elapsed(before), Duration::from_millis(10));
    assert_eq!(log.stats().syncs, 1);
}

#[test]
fn periodic_mode_answers_at_once_and_syncs_in_time() {
    let sim = Sim::new(1);
    let options = Options { sync: SyncMode::Periodic(Duration::from_secs(10)), ..small() };
    let (log, _) = open(&sim, options.clone());
    sim.run_until_idle();
    let position = log.append(&record(1, 20), &[]).expect("room");
    sim.block_on(log.wait_durable(position)).expect("at once");
    assert_eq!(log.stats().syncs, 0);
    sim.block_on(sim.env().sleep(Duration::from_millis(100)));
    log.append(&record(2, 20), &[]).expect("room");
    sim.block_on(sim.env().sleep(Duration::from_millis(100)));
    assert_eq!((log.stats().syncs, log.stats().pending_bytes), (0, 0), "written, not synced");
    // The death of the process alone loses nothing that was written.
    sim.kill();
    let (log, records) = open(&sim, options.clone());
    assert_eq!(records, [record(1, 20), record(2, 20)]);
    log.append(&record(3, 20), &[]).expect("room");
    sim.block_on(sim.env().sleep(Duration::from_secs(11)));
    assert!(log.stats().syncs >= 1);
    sim.power_cut();
    assert_eq!(open(&sim, options).1.last(), Some(&record(3, 20)));
}

#[test]
fn periodic_mode_waits_when_syncs_lag() {
    let sim = Sim::new(1);
    let options = Options { sync: SyncMode::Periodic(Duration::from_secs(10)), ..small() };
    let (log, _) = open(&sim, options);
    log.append(&record(1, 20), &[]).expect("room");
    sim.advance(Duration::from_secs(16));
    let position = log.append(&record(2, 20), &[]).expect("room");
    sim.block_on(log.wait_durable(position)).expect("durable");
    assert_eq!(log.stats().syncs, 1);
}

/// `periodic_commitlog_sync_lag_block` may be shorter than the period: a write waits then while a
/// record is as old as that.
#[test]
fn writes_wait_as_soon_as_syncs_lag_by_what_is_configured() {
    let sim = Sim::new(1);
    let sync_lag_block = Some(Duration::from_secs(1));
    let (log, _) = open(&sim, Options { sync: SyncMode::Periodic(Duration::from_secs(10)), sync_lag_block, ..small() });
    for (millis, syncs) in [(0, 0), (900, 0), (200, 1)] {
        sim.advance(Duration::from_millis(millis));
        let position = log.append(&record(1, 20), &[]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("durable");
        assert_eq!(log.stats().syncs, syncs);
    }
}

#[test]
fn sizes_are_limited() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, small());
    assert!(matches!(
        log.append(&record(1, 2001), &[]),
        Err(LogError::MutationTooLarge { size: 2001, size_max: 2000 })
    ));
    let records = vec![record(1, 1900); 5];
    let group: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    assert!(matches!(log.append_group(&group, &[]), Err(LogError::MutationTooLarge { .. })));
    log.append_group(&group[..4], &[]).expect("fits a segment");
}

#[test]
fn a_full_buffer_is_busy_until_it_is_written() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, Options::default());
    let large = vec![7; 15 << 20];
    for _ in 0..4 {
        log.append(&large, &[]).expect("room");
    }
    assert!(matches!(log.append(&large, &[]), Err(LogError::Busy)));
    sim.block_on(log.wait_for_room());
    let position = log.append(&large, &[]).expect("room");
    sim.block_on(log.wait_durable(position)).expect("durable");
}

/// A group of a large segment may be larger than half of the buffer. It is taken where the log says
/// that it is ready: its writer would try again without end otherwise.
#[test]
fn a_log_that_is_ready_takes_a_group_of_any_size() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, Options { segment_size: 48 << 20, ..Options::default() });
    let large = vec![7_u8; 15 << 20];
    log.append_group(&[&large[..]; 2], &[]).expect("nothing else is there");
    let pending = log.stats().pending_bytes as usize;
    assert!((1..=COMMITLOG_PENDING_BYTES_MAX / 2).contains(&pending), "the log is ready beside {pending} bytes");
    log.append_group(&[&large[..]; 3], &[]).expect("the log is ready");
    assert!(matches!(log.append(&large, &[]), Err(LogError::Busy)));
}

#[test]
fn flushed_segments_are_recycled_and_the_log_asks_for_flushes() {
    let sim = Sim::new(1);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let asked_in_log = asked.clone();
    let on_pressure = Arc::new(move |keys: &[DirtyKey]| asked_in_log.lock().expect("whole").push(keys.to_vec()));
    let (log, _) = open(&sim, Options { total_space: 3 * (8 << 10), on_pressure, ..small() });
    for number in 0..40u8 {
        let position = log.append(&record(u64::from(number), 1000), &[key(number / 10)]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("durable");
        // not so fast that segments are only reserved
        sim.advance(Duration::from_secs(1));
    }
    sim.run_until_idle();
    assert_eq!(log.stats().segments, 5);
    assert_eq!(asked.lock().expect("whole").last(), Some(&vec![key(0), key(1)]));
    assert_eq!(log.needs_flush(), [key(0)]);
    log.mark_flushed(key(0).0, key(0).1, log.position());
    log.mark_discarded(key(2).0, log.position());
    sim.run_until_idle();
    assert_eq!(log.stats().segments, 4, "the first is free");
    let names = sim.env().disk.list_dir(&directory()).expect("listed");
    assert_eq!(names.len(), 6, "one is ready ahead, one waits to be used again: {names:?}");
    sim.power_cut();
    let (_, records) = open(&sim, small());
    let numbers: Vec<u8> = records.iter().map(|record| record[7]).collect();
    assert!((10..20).all(|number| numbers.contains(&number)) && (30..40).all(|number| numbers.contains(&number)));
    assert!(!numbers.contains(&0));
}

#[test]
fn replayed_segments_stay_until_their_memtables_are_flushed() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, small());
    let position = log.append(&record(1, 20), &[key(1)]).expect("room");
    sim.block_on(log.wait_durable(position)).expect("durable");
    sim.power_cut();
    let (log, replay) = begun(&sim, small());
    for item in replay {
        log.mark_replayed(item.expect("no corruption").0, &[key(1)]);
    }
    log.finish_replay().expect("settled");
    sim.run_until_idle();
    sim.power_cut();
    let (log, replay) = begun(&sim, small());
    assert_eq!(replay.count(), 1);
    log.finish_replay().expect("settled");
    sim.run_until_idle();
    sim.power_cut();
    assert!(open(&sim, small()).1.is_empty());
}

#[test]
fn a_log_that_ends_with_everything_flushed_leaves_nothing_to_replay() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, small());
    let mut last = LogPosition::NONE;
    for number in 0..40 {
        last = log.append(&record(number, 900), &[key(1)]).expect("room");
        sim.block_on(log.wait_durable(last)).expect("durable");
    }
    log.end().expect("nothing to do");
    log.append(&record(40, 20), &[key(2)]).expect("a memtable needs it: it goes on");
    log.mark_flushed(key(1).0, key(1).1, last);
    let position = log.position();
    log.mark_flushed(key(2).0, key(2).1, position);
    sim.block_on(log.wait_durable(position)).expect("durable");
    log.end().expect("removed");
    assert!(matches!(log.append(&record(41, 20), &[key(1)]), Err(LogError::Stopped)));
    sim.run_until_idle();
    drop(log);
    sim.power_cut();
    let names = sim.env().disk.list_dir(&directory()).expect("listed");
    assert!(names.iter().all(|entry| !entry.name.ends_with(".log")), "{names:?}");
    assert!(open(&sim, small()).1.is_empty());
}

fn corrupt_middle(sim: &Sim, offset: usize) -> PathBuf {
    let (log, _) = open(sim, small());
    for number in 1..=3 {
        let position = log.append(&record(number, 100), &[key(1)]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("durable");
    }
    sim.kill();
    let names = sim.env().disk.list_dir(&directory()).expect("listed");
    let path = directory().join(&names.first().expect("a segment").name);
    assert!(sim.disk().flip_bit(&path, offset * 8));
    path
}

#[test]
fn a_corrupt_middle_is_named_or_ignored() {
    // In the record, in its size, in the section's marker: of the first of three sections of 8 +
    // 112 bytes.
    for offset in [60, 31, 24, 20] {
        let sim = Sim::new(1);
        corrupt_middle(&sim, offset);
        let (_log, replay) = begun(&sim, small());
        let items: Vec<_> = replay.collect();
        assert!(
            matches!(items.first(), Some(Err(LogError::Corrupt { .. }))) && items.len() == 1,
            "{offset}: {items:?}"
        );
        sim.kill();
        let ignore = Options { replay_policy: ReplayPolicy::Ignore, ..small() };
        assert_eq!(open(&sim, ignore).1, [record(2, 100), record(3, 100)], "{offset}");
    }
}

#[test]
fn a_torn_tail_is_cut_for_good() {
    let sim = Sim::new(1);
    let segment = corrupt_middle(&sim, 20 + 2 * 120 + 50);
    let torn = sim.env().disk.read_all(&segment, 1 << 20).expect("read");
    for _ in 0..2 {
        assert_eq!(open(&sim, small()).1, [record(1, 100), record(2, 100)]);
        sim.kill();
    }
    // what is cut is kept as it was, once
    let kept = torn_tails(&sim);
    let [name] = kept.as_slice() else { panic!("{kept:?}") };
    let (of_segment, offset) = name.split_once(".torn-").expect("named by its place");
    assert_eq!(segment, directory().join(of_segment));
    let offset: usize = offset.parse().expect("a number");
    let tail = sim.env().disk.read_all(&directory().join(name), 1 << 20).expect("read");
    assert!(!tail.is_empty() && tail.last() != Some(&0) && torn[offset..].starts_with(&tail));
    assert!(torn[offset + tail.len()..].iter().all(|byte| *byte == 0));
    let (_log, records) = open(&sim, small());
    assert_eq!(records.len(), 2);
    sim.run_until_idle();
    sim.kill();
    assert!(open(&sim, small()).1.is_empty(), "nobody claimed the replayed segment");
}

fn torn_tails(sim: &Sim) -> Vec<String> {
    let entries = sim.env().disk.list_dir(&directory()).expect("listed");
    entries.into_iter().map(|entry| entry.name).filter(|name| name.contains("torn")).collect()
}

#[test]
fn few_torn_tails_are_kept() {
    let sim = Sim::new(2);
    let disk = sim.env().disk;
    disk.create_dir_durable(&directory()).expect("made");
    for id in 100..120 {
        torn::keep(&*disk, &directory().join(super::format::file_name(id)), 24, "a reason", &[1, 2, 0, 3, 0, 0]);
    }
    let kept = torn_tails(&sim);
    assert_eq!(kept.len(), 8);
    assert!((112..120).all(|id| kept.contains(&format!("CommitLog-8-{id}.log.torn-24"))), "{kept:?}");
    let tail = disk.read_all(&directory().join(&kept[0]), 100).expect("read");
    assert_eq!(tail, [1, 2, 0, 3]);
    assert_eq!(open(&sim, small()).1.len(), 0, "a start does not read them");
}

fn failing(policy: FailurePolicy, fault: Fault) -> (Sim, CommitLog, Arc<AtomicU64>) {
    let sim = Sim::new(1);
    let failures = Arc::new(AtomicU64::new(0));
    let counted = failures.clone();
    let on_failure = Arc::new(move |_, _: &LogError| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let (log, _) = open(&sim, Options { failure_policy: policy, on_failure, ..small() });
    sim.run_until_idle();
    let position = log.append(&record(1, 20), &[]).expect("room");
    sim.block_on(log.wait_durable(position)).expect("durable");
    sim.disk().inject(fault);
    (sim, log, failures)
}

#[test]
fn a_failed_sync_stops_the_log() {
    for op in [Op::Sync, Op::Write] {
        let (sim, log, failures) = failing(FailurePolicy::Stop, Fault::next(op, ""));
        let position = log.append(&record(2, 20), &[]).expect("room");
        assert!(matches!(sim.block_on(log.wait_durable(position)), Err(LogError::Stopped)));
        assert!(matches!(log.append(&record(3, 20), &[]), Err(LogError::Stopped)));
        assert_eq!(failures.load(Ordering::Relaxed), 1);
        sim.power_cut();
        assert_eq!(open(&sim, small()).1, [record(1, 20)]);
    }
}

#[test]
fn an_ignored_failure_loses_what_it_reported() {
    for op in [Op::Sync, Op::Write] {
        let (sim, log, _) = failing(FailurePolicy::Ignore, Fault::next(op, ""));
        let lost = log.append(&record(2, 20), &[]).expect("room");
        assert!(matches!(sim.block_on(log.wait_durable(lost)), Err(LogError::WriteFailed)));
        let kept = log.append(&record(3, 20), &[]).expect("room");
        sim.block_on(log.wait_durable(kept)).expect("durable");
        sim.power_cut();
        assert_eq!(open(&sim, small()).1, [record(1, 20), record(3, 20)]);
    }
}

#[test]
fn writers_wait_while_the_log_holds_far_more_than_it_may() {
    let sim = Sim::new(1);
    let asked = Arc::new(AtomicU64::new(0));
    let counted = asked.clone();
    let on_pressure = Arc::new(move |_: &[DirtyKey]| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let (log, _) = open(&sim, Options { on_pressure, ..small() });
    let env = sim.env();
    // 8 segments are what it may hold; one of them is being filled
    let write = |number| {
        let begun = env.now();
        sim.block_on(log.admit());
        let waited = env.elapsed(begun);
        let position = log.append(&record(number, 1500), &[key(1)]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("durable");
        sim.run_until_idle();
        (log.stats().segments, waited)
    };
    let mut waits: BTreeMap<u64, Duration> = BTreeMap::new();
    for number in 0..85 {
        let (segments, waited) = write(number);
        let longest = waits.entry(segments).or_default();
        *longest = waited.max(*longest);
    }
    let second = Duration::from_secs(1);
    assert!(waits.range(..=11).all(|(_, wait)| wait.is_zero()), "{waits:?}");
    assert!(waits.range(12..17).all(|(_, wait)| !wait.is_zero() && *wait < second / 50), "{waits:?}");
    assert!(waits.len() == 17 && waits.range(17..).all(|(_, wait)| *wait == second), "{waits:?}");
    // whoever is held has asked for flushes
    let before = asked.load(Ordering::Relaxed);
    write(85);
    assert!(asked.load(Ordering::Relaxed) > before);
    assert!(!log.admits_at_once());
    log.mark_flushed(key(1).0, key(1).1, log.position());
    sim.run_until_idle();
    assert!(log.admits_at_once() && write(86).1.is_zero());
}

/// Tables whose memtables hold records that the log lost are asked to flush.
#[test]
fn what_a_failure_may_have_lost_is_to_be_flushed() {
    for (policy, expected) in [(FailurePolicy::StopCommit, vec![key(1), key(2)]), (FailurePolicy::Die, vec![])] {
        let sim = Sim::new(1);
        let asked: Arc<Mutex<Vec<DirtyKey>>> = Arc::default();
        let on_pressure: OnPressure = {
            let asked = Arc::clone(&asked);
            Arc::new(move |keys| asked.lock().expect("no panic").extend(keys))
        };
        let (log, _) = open(&sim, Options { failure_policy: policy, on_pressure, ..small() });
        let position = log.append(&record(1, 20), &[key(1)]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("durable");
        sim.run_until_idle();
        sim.disk().inject(Fault::next(Op::Sync, ""));
        let lost = log.append(&record(2, 20), &[key(2)]).expect("room");
        assert!(matches!(sim.block_on(log.wait_durable(lost)), Err(LogError::Stopped)));
        sim.run_until_idle();
        assert_eq!(*asked.lock().expect("no panic"), expected);
    }
}

#[test]
fn many_records_ask_for_flushes_before_many_bytes_do() {
    let asked_of = |size: usize, count: u64| {
        let sim = Sim::new(1);
        let asked = Arc::new(AtomicU64::new(0));
        let counted = asked.clone();
        let on_pressure = Arc::new(move |_: &[DirtyKey]| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let replay_budget = Some(ReplayBudget { nanos: 500_000, of_record: 1_000, of_kibibyte: 1_000 });
        let (log, _) = open(&sim, Options { total_space: 1 << 20, replay_budget, on_pressure, ..small() });
        for number in 0..count {
            let position = log.append(&record(number, size), &[key(1)]).expect("room");
            sim.block_on(log.wait_durable(position)).expect("durable");
        }
        sim.run_until_idle();
        asked.load(Ordering::Relaxed)
    };
    // 120,000 bytes each time: 0.12 ms for them, and 1 us for each record
    assert_eq!(asked_of(1_200, 100), 0);
    assert!(asked_of(60, 2_000) > 0);
}

#[test]
fn no_segment_goes_before_one_that_is_older() {
    for op in [Op::Remove, Op::Rename, Op::SyncDir] {
        let sim = Sim::new(1);
        let (log, _) = open(&sim, small());
        for number in 0..40 {
            let position = log.append(&record(number, 1000), &[key(1)]).expect("room");
            sim.block_on(log.wait_durable(position)).expect("durable");
            sim.advance(Duration::from_secs(1));
        }
        sim.run_until_idle();
        let ids = || {
            let entries = sim.env().disk.list_dir(&directory()).expect("listed");
            let mut ids: Vec<u64> =
                entries.iter().filter_map(|entry| Some(super::format::parse_file_name(&entry.name)?.1)).collect();
            ids.sort_unstable();
            ids
        };
        let before = ids();
        sim.disk().inject(Fault { times: 3, ..Fault::next(op, "") });
        log.mark_flushed(key(1).0, key(1).1, log.position());
        for _ in 0..100 {
            sim.step();
            let now = ids();
            let oldest = *now.first().expect("the one being written stays");
            assert!(
                before.iter().filter(|id| **id >= oldest).all(|id| now.contains(id)),
                "{op:?}: {before:?}, {now:?}"
            );
            sim.advance(Duration::from_millis(100));
        }
        assert!(ids().len() < before.len(), "{op:?}: those that nobody needs have gone in the end");
        assert_eq!(log.stats().segments, 1, "{op:?}");
    }
}
