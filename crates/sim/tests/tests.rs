//! Short runs of both subjects; each judge finds the defect that it is there for; a seed is a run.
//!
//! Other seeds: `HELENUS_SEEDS=a..b`, or `cargo run --release -p sim -- --seeds A..B`. Defects of
//! nodes, each found by its judge: `tests/mutations.rs`.

use std::collections::BTreeSet;
use std::ops::Range;

use env::rare::{EventChoice, Rare};
use sim::node::{self, ClientDefect};
use sim::register::Defect;
use sim::run::{Report, Settings, Subject, replay, run};

/// Seeds of `HELENUS_SEEDS` (`a..b`), or the first `everyday`.
fn seeds(everyday: u64) -> Range<u64> {
    let text = std::env::var("HELENUS_SEEDS").unwrap_or_default();
    let numbers = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    numbers.unwrap_or(0..everyday)
}

fn settings(seed: u64) -> Settings {
    Settings::of(seed, 12)
}

fn sound(subject: Subject, everyday: u64) {
    let wrong: Vec<String> = seeds(everyday)
        .map(|seed| run(subject, settings(seed), None))
        .filter(|report| !report.rulings.findings.is_empty())
        .map(|report| format!("{:#?}\n{}", report.rulings.findings, replay(subject, settings(report.seed), None)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_register_is_sound() {
    sound(Subject::Register, 6);
}

#[test]
fn the_node_is_sound() {
    sound(Subject::Node, 3);
}

#[test]
fn the_ring_is_sound() {
    // conditional statements by Paxos v1 and v2 beside each other, and by v2 alone
    sound(Subject::Ring, 2);
}

#[test]
fn two_data_centers_are_sound() {
    let settings = Settings::of(0, 6);
    let report = run(Subject::Centers, settings, None);
    assert!(report.rulings.findings.is_empty(), "{:#?}", report.rulings.findings);
    assert!(report.rulings.judges.contains(&"equal"), "the nodes are looked at too");
}

#[test]
fn a_ring_repairs_itself_within_gc_grace() {
    let settings = Settings::of(0, 900);
    let report = run(Subject::Schedule, settings, None);
    assert!(report.rulings.findings.is_empty(), "{:#?}", report.rulings.findings);
    assert!(report.operations > 15, "each node has repaired each table: {:?}", report.happened);
}

#[test]
fn the_judges_of_the_schedule_find_that_there_is_none() {
    let report = node::schedule::run_with(Settings::of(0, 600), false);
    for judge in ["repaired", "equal"] {
        assert!(report.rulings.has_found(judge), "{judge}: {:#?}", report.rulings.findings);
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    for subject in [Subject::Register, Subject::Node] {
        let once: Report = run(subject, settings(1), None);
        assert!(once.operations > 100, "{subject:?}: clients have done something");
        assert_eq!(once, run(subject, settings(1), None), "{subject:?}");
        assert_ne!(once.trace, run(subject, settings(2), None).trace, "{subject:?}");
    }
}

/// Seeds within which each rare event has to happen, where all are switched on.
const SEEDS_OF_EVENT: u64 = 4;

#[test]
fn each_rare_event_happens_and_the_ring_is_sound() {
    let mut missing: BTreeSet<Rare> = Rare::ALL.iter().copied().collect();
    for seed in 0..SEEDS_OF_EVENT {
        let settings = Settings { rare: EventChoice::All, ..settings(seed) };
        let report = run(Subject::Ring, settings, None);
        assert!(report.rulings.findings.is_empty(), "{}: {:#?}", replay(Subject::Ring, settings, None), report.rulings);
        report.rare.iter().filter(|of| of.happened > 0).for_each(|of| {
            missing.remove(&of.event);
        });
        if missing.is_empty() {
            return;
        }
    }
    panic!("never within {SEEDS_OF_EVENT} seeds: {missing:?}");
}

/// Seeds within which a defect has to be found.
const SEEDS_OF_DEFECT: u64 = 20;

/// Whether a judge finds a defect within a few seeds.
fn finds(judge: &str, defect: Defect) -> bool {
    let mut reports = (0..SEEDS_OF_DEFECT).map(|seed| run(Subject::Register, settings(seed), Some(defect)));
    reports.any(|report| report.rulings.has_found(judge))
}

#[test]
fn each_judge_finds_the_defect_that_it_is_there_for() {
    let cases = [
        (Defect::NoSync, "acknowledged"),
        (Defect::ReadOne, "monotonic"),
        (Defect::ReadOne, "linearizable"),
        (Defect::MakeUp, "invented"),
        (Defect::ForgetDeletion, "invented"),
        (Defect::RepairOne, "equal"),
        (Defect::NoBound, "bounds"),
    ];
    for (defect, judge) in cases {
        assert!(finds(judge, defect), "{defect:?} is found by {judge}");
    }
}

/// Each judge whose subject is the node alone finds its defect too. Clients of such runs do
/// something else than they write down.
#[test]
fn the_judges_of_counters_and_batches_find_what_they_are_there_for() {
    for (defect, judge) in [(ClientDefect::CountTwice, "counted"), (ClientDefect::SplitBatch, "atomic")] {
        let mut reports = (0..SEEDS_OF_DEFECT).map(|seed| node::run_with(settings(seed), node::NODE, Some(defect)));
        let is_found = reports.any(|report| report.rulings.has_found(judge));
        assert!(is_found, "{defect:?} is found by {judge}");
    }
}
