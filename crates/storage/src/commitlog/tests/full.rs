//! A device without room, and a process without file descriptors: nothing that was taken is lost,
//! nothing more is taken, and when what was lacking is there again all goes on by itself.

use super::*;

/// Time passes, and what is due is done.
fn pass(sim: &Sim, time: Duration) {
    const STEP: Duration = Duration::from_millis(100);
    for _ in 0..time.div_duration_f64(STEP) as u32 {
        sim.advance(STEP);
        sim.run_until_idle();
    }
    sim.run_until_idle();
}

fn full(sync: SyncMode) -> (Sim, CommitLog, Vec<LogPosition>) {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, Options { sync, ..small() });
    sim.run_until_idle();
    sim.disk().set_capacity(Some(30 << 10));
    let mut taken = Vec::new();
    let refused = (0..100).find_map(|number| match log.append(&record(number, 1000), &[key(1)]) {
        Ok(position) => {
            taken.push(position);
            // whether it waits or fails: it was taken
            let _ = sim.block_on(log.wait_durable(position));
            pass(&sim, Duration::from_millis(100));
            None
        }
        Err(error) => Some(error),
    });
    assert!(matches!(refused, Some(LogError::NoSpace { .. })), "{refused:?}");
    assert!((10..100).contains(&taken.len()), "{}", taken.len());
    (sim, log, taken)
}

const MODES: [SyncMode; 3] =
    [SyncMode::Batch, SyncMode::Group(Duration::from_millis(5)), SyncMode::Periodic(Duration::from_millis(50))];

#[test]
fn what_was_taken_becomes_durable_when_there_is_room() {
    for sync in MODES {
        let (sim, log, mut taken) = full(sync);
        sim.disk().set_capacity(None);
        pass(&sim, Duration::from_secs(3));
        taken.push(log.append(&record(100, 1000), &[key(1)]).expect("there is room"));
        sim.block_on(log.sync()).expect("durable");
        for position in &taken {
            sim.block_on(log.wait_durable(*position)).expect("durable");
        }
        sim.power_cut();
        assert_eq!(open(&sim, small()).1.len(), taken.len(), "{sync:?}");
    }
}

#[test]
fn a_power_cut_meanwhile_loses_nothing_that_was_durable() {
    for sync in MODES {
        let (sim, log, taken) = full(sync);
        let is_durable = |position: &&LogPosition| log.shared.durability.reaches(**position);
        let durable = taken.iter().filter(is_durable).count();
        sim.power_cut();
        sim.disk().set_capacity(None);
        let found = open(&sim, small()).1.len();
        assert!((durable..=taken.len()).contains(&found), "{sync:?}: {durable} of {}, found {found}", taken.len());
    }
}

#[test]
fn it_is_refused_until_there_is_room() {
    let (sim, log, _) = full(SyncMode::Batch);
    pass(&sim, Duration::from_secs(10));
    let error = log.append(&record(1, 1000), &[key(1)]).expect_err("still full");
    assert!(error.to_string().starts_with("no space left on the device of "), "{error}");
}

#[test]
fn room_that_flushes_make_is_enough() {
    let (sim, log, taken) = full(SyncMode::Batch);
    assert!(log.stats().segments > 1);
    log.mark_flushed(key(1).0, key(1).1, *taken.last().expect("some"));
    pass(&sim, Duration::from_secs(3));
    let position = log.append(&record(1, 1000), &[key(1)]).expect("a segment was recycled");
    sim.block_on(log.wait_durable(position)).expect("durable");
}

/// Every write fails for want of room, though there was some when the segment was made.
fn refuse_writes(sim: &Sim) {
    sim.disk().inject(Fault { errno: ENOSPC, times: 3, ..Fault::next(Op::Write, "") });
}

#[test]
fn a_write_without_room_is_tried_again() {
    for sync in [SyncMode::Batch, SyncMode::Group(Duration::from_millis(5))] {
        let sim = Sim::new(1);
        let (log, _) = open(&sim, Options { sync, ..small() });
        sim.run_until_idle();
        refuse_writes(&sim);
        let position = log.append(&record(1, 20), &[]).expect("nobody knows yet");
        assert!(matches!(sim.block_on(log.wait_durable(position)), Err(LogError::NoSpace { .. })));
        assert!(matches!(log.append(&record(2, 20), &[]), Err(LogError::NoSpace { .. })));
        pass(&sim, Duration::from_secs(2));
        sim.block_on(log.wait_durable(position)).expect("there is room now");
        let position = log.append(&record(3, 20), &[]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("durable");
        sim.power_cut();
        assert_eq!(open(&sim, small()).1, [record(1, 20), record(3, 20)]);
    }
}

#[test]
fn a_sync_without_room_is_final() {
    let fault = Fault { errno: ENOSPC, ..Fault::next(Op::Sync, "") };
    let (sim, log, failures) = failing(FailurePolicy::Stop, fault);
    let position = log.append(&record(2, 20), &[]).expect("room");
    assert!(matches!(sim.block_on(log.wait_durable(position)), Err(LogError::Stopped)));
    assert_eq!(failures.load(Ordering::Relaxed), 1);
}

#[test]
fn the_policy_die_dies_of_it() {
    let fault = Fault { errno: ENOSPC, ..Fault::next(Op::Write, "") };
    let (sim, log, failures) = failing(FailurePolicy::Die, fault);
    let position = log.append(&record(2, 20), &[]).expect("room");
    assert!(matches!(sim.block_on(log.wait_durable(position)), Err(LogError::Stopped)));
    assert_eq!(failures.load(Ordering::Relaxed), 1);
}

#[test]
fn a_segment_that_is_needed_at_once_is_reserved() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, small());
    sim.run_until_idle();
    let writes = |sim: &Sim| sim.disk().count(Op::Write);
    let fill = |pause: Duration| {
        for number in 0..30 {
            let position = log.append(&record(number, 1000), &[]).expect("room");
            sim.block_on(log.wait_durable(position)).expect("durable");
            pass(&sim, pause);
        }
        writes(&sim)
    };
    let begun = writes(&sim);
    let fast = fill(Duration::ZERO) - begun;
    let slow = fill(Duration::from_secs(1)) - begun - fast;
    assert!(slow > fast, "slow segments are zeroed first: {slow} and {fast} writes");
}

/// From now on no file and no directory can be opened.
fn use_up_descriptors(sim: &Sim) {
    for op in [Op::Open, Op::Create, Op::SyncDir, Op::List] {
        sim.disk().inject(Fault { errno: EMFILE, times: u64::MAX, ..Fault::next(op, "") });
    }
}

#[test]
fn without_descriptors_writes_are_refused_and_go_on_later() {
    for (sync, policy) in MODES
        .into_iter()
        .flat_map(|sync| [FailurePolicy::Stop, FailurePolicy::Die, FailurePolicy::Ignore].map(|policy| (sync, policy)))
    {
        let sim = Sim::new(1);
        let on_failure = Arc::new(|policy, error: &LogError| panic!("{policy:?}: {error}"));
        let (log, _) = open(&sim, Options { sync, failure_policy: policy, on_failure, ..small() });
        sim.run_until_idle();
        let mut taken = vec![log.append(&record(0, 1000), &[key(1)]).expect("room")];
        pass(&sim, Duration::from_millis(100));
        use_up_descriptors(&sim);
        let refused = (1..100).find_map(|number| match log.append(&record(number, 1000), &[key(1)]) {
            Ok(position) => {
                taken.push(position);
                pass(&sim, Duration::from_millis(100));
                None
            }
            Err(error) => Some(error),
        });
        assert!(matches!(refused, Some(LogError::NoDescriptors { .. })), "{sync:?}, {policy:?}: {refused:?}");
        // the next segment was made ahead, and its file is open: it is entered without a descriptor
        let first = taken[0].segment;
        let entered = taken.iter().find(|position| position.segment == first + 1).expect("the second segment");
        sim.block_on(log.wait_durable(*entered)).expect("durable without a descriptor");
        sim.disk().heal();
        pass(&sim, Duration::from_secs(3));
        taken.push(log.append(&record(100, 1000), &[key(1)]).expect("descriptors are there again"));
        for position in &taken {
            sim.block_on(log.wait_durable(*position)).expect("durable");
        }
        sim.power_cut();
        assert_eq!(open(&sim, small()).1.len(), taken.len(), "{sync:?}, {policy:?}");
    }
}
