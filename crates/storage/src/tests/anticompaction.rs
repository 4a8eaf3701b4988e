//! Data of repair sessions: put apart, compacted among itself, released; also where the power fails
//! in between. Every row is there all the time, by the index too.

use std::sync::Arc;

use sstable::{SSTable, Version};
use types::Token;

use super::receiving::{ID, files, open, read, source, sstables};
use crate::inherited::RepairState;
use crate::repair_sessions::{self, Released};
use crate::requests::operations::{AnticompactedRanges, Operation, Work};
use crate::strategy::kind::Kind;
use crate::token_ranges::TokenRanges;
use crate::{Engine, StorageError};

const SESSION: [u8; 16] = [7; 16];
const OTHER: [u8; 16] = [8; 16];
const REPAIRED_AT: i64 = 1_795_457_998_177;

fn ranges_of(session: [u8; 16], ranges: &[(i64, i64)]) -> Arc<AnticompactedRanges> {
    let ranges: Vec<_> = ranges.iter().map(|(start, end)| (Token(*start), Token(*end))).collect();
    Arc::new(AnticompactedRanges { session, ranges: TokenRanges::new(&ranges) })
}

fn anticompact(
    sim: &env::sim::Sim,
    engine: &Engine,
    anticompacted: &Arc<AnticompactedRanges>,
) -> Result<(), StorageError> {
    let store = engine.table(ID).expect("open");
    sim.block_on(repair_sessions::anticompact(engine, &store, anticompacted, |_| false))
}

fn state(sstable: &SSTable) -> RepairState {
    RepairState::of(&sstable.statistics().stats)
}

/// SSTables that are unrepaired, a session's, repaired.
fn counts(engine: &Engine) -> [usize; 3] {
    let mut counts = [0; 3];
    for sstable in sstables(engine) {
        let place = match state(&sstable) {
            RepairState::Unrepaired => 0,
            RepairState::Pending { .. } => 1,
            RepairState::Repaired => 2,
        };
        counts[place] += 1;
    }
    counts
}

/// Each SSTable that is a session's, or repaired, lies within its ranges; the others outside.
fn assert_anticompacted(engine: &Engine, anticompacted: &AnticompactedRanges) {
    for sstable in sstables(engine) {
        let (first, last) = (sstable.first_key().token, sstable.last_key().token);
        match state(&sstable) {
            RepairState::Unrepaired => {
                assert!(!anticompacted.ranges.contains(first) && !anticompacted.ranges.contains(last), "outside");
            }
            _ => assert!(anticompacted.ranges.contains(first) && anticompacted.ranges.contains(last), "inside"),
        }
    }
}

#[test]
fn a_session_takes_its_ranges_and_gives_them_back() {
    for (version, repaired_at) in [(Version::DA, REPAIRED_AT), (Version::NB, 0)] {
        let (sim, engine) = source(version);
        let (store, before) = (engine.table(ID).expect("open"), read(&engine, None));
        let ranges = ranges_of(SESSION, &[(0, 1 << 60), (1 << 61, i64::MIN + (1 << 60))]);
        anticompact(&sim, &engine, &ranges).expect("nobody else has the data");
        assert_eq!((counts(&engine), read(&engine, None)), ([2, 2, 0], before.clone()));
        assert_anticompacted(&engine, &ranges);
        let pending = repair_sessions::pending(&store);
        assert_eq!(pending.keys().collect::<Vec<_>>(), [&SESSION]);
        assert_eq!(pending[&SESSION].sstables, 2);

        let other = ranges_of(OTHER, &[(1 << 59, 1 << 62)]);
        let refused = anticompact(&sim, &engine, &other).expect_err("the data is a session's").to_string();
        assert!(refused.contains("belonging to another incremental repair session (07070707"), "{refused}");
        assert_eq!(counts(&engine), [2, 2, 0], "nothing is taken by half");

        let all = Operation::new(Kind::MajorCompaction, Work::Major { split: false }, 0);
        sim.block_on(engine.operate(&store, all)).expect("a sound disk compacts");
        assert_eq!((counts(&engine), read(&engine, None)), ([1, 1, 0], before.clone()), "each apart from the other");

        let release = |at: Option<i64>| repair_sessions::release(&engine, &store, |_| at).expect("a sound disk");
        assert_eq!(release(None), Released::default());
        assert_eq!(release(Some(repaired_at)).released.into_iter().collect::<Vec<_>>(), [SESSION]);
        let expected = if repaired_at > 0 { [1, 0, 1] } else { [2, 0, 0] };
        assert_eq!((counts(&engine), read(&engine, None)), (expected, before.clone()));
        let repaired = sstables(&engine).into_iter().find(|sstable| state(sstable) == RepairState::Repaired);
        assert!(repaired.is_none_or(|sstable| sstable.statistics().stats.repaired_at == REPAIRED_AT));
        drop((engine, store));
        sim.power_cut();
        let engine = open(&sim, version);
        assert_eq!((counts(&engine), read(&engine, None)), (expected, before), "after a power cut");
    }
}

#[test]
fn an_sstable_within_the_ranges_is_not_written_again() {
    let (sim, engine) = source(Version::DA);
    let before: Vec<_> = files(&engine);
    anticompact(&sim, &engine, &ranges_of(SESSION, &[(5, 5)])).expect("nobody else has the data");
    assert_eq!((counts(&engine), files(&engine)), ([0, 2, 0], before));
    anticompact(&sim, &engine, &ranges_of(SESSION, &[(5, 5)])).expect("it is done already");
    assert_eq!(counts(&engine), [0, 2, 0]);
}

/// The power fails after so many changes of the disk: each SSTable is as before or put apart, and
/// no row is lost or there twice.
#[test]
fn a_power_cut_leaves_sstables_whole() {
    let mut seen = [false; 2];
    for operations in (0..400).step_by(9) {
        let (sim, engine) = source(Version::DA);
        let before = read(&engine, None);
        let _ = sim.run_until_idle();
        sim.disk().power_cut_after(operations);
        let ranges = ranges_of(SESSION, &[(0, i64::MAX)]);
        let done = anticompact(&sim, &engine, &ranges);
        drop(engine);
        sim.power_cut();
        let engine = open(&sim, Version::DA);
        assert_eq!(read(&engine, None), before, "after {operations} operations");
        seen[usize::from(done.is_ok())] = true;
        if done.is_ok() {
            assert_anticompacted(&engine, &ranges);
        }
        anticompact(&sim, &engine, &ranges).expect("it is tried again");
        assert_anticompacted(&engine, &ranges);
        assert_eq!(read(&engine, None), before);
    }
    assert_eq!(seen, [true; 2], "the power failed before and after the end");
}
