//! Each judge of whole nodes finds the defect that it is there for, in a build whose nodes can have
//! it: `cargo test -p sim --features defects --test mutations`.
//!
//! A defect is of the process, so there is one test. `HELENUS_MUTATION=NAME` runs one defect alone.

use env::defects::{Defect, set};
use env::rare::EventChoice;
use sim::faults::{Kind, Kinds};
use sim::run::{Settings, Subject, replay, run};

/// Seeds within which a judge has to find its defect.
const SEEDS: u64 = 20;

/// How long clients work, in seconds of the simulation.
const SECONDS: u64 = 20;

/// How long rows are written in a ring that repairs itself: as long as its gc_grace.
const SCHEDULE_SECONDS: u64 = 900;

/// A defect, the subject that has it, the troubles that bring it to light (none: all), and the
/// judge that has to find it.
const CASES: [(Defect, Subject, &[Kind], &str); 11] = [
    (Defect::NoWait, Subject::Node, &[Kind::PowerCut, Kind::SlowDisk], "acknowledged"),
    (Defect::ForgetDeletion, Subject::Ring, &[Kind::Kill], "invented"),
    (Defect::ReadOne, Subject::Ring, &[Kind::Partition, Kind::OneWay, Kind::BadLink], "monotonic"),
    (Defect::BreakPromise, Subject::Ring, &[Kind::BadLink, Kind::Pause, Kind::OneWay], "linearizable"),
    (Defect::CountTwice, Subject::Node, &[Kind::Kill], "counted"),
    (Defect::SplitBatch, Subject::Ring, &[Kind::Kill], "atomic"),
    (Defect::NoBound, Subject::Ring, &[Kind::Pause, Kind::Partition, Kind::OneWay], "bounds"),
    (Defect::DeafToSchema, Subject::Ring, &[Kind::Schema], "agreement"),
    (Defect::DeafToGossip, Subject::Ring, &[], "converged"),
    (Defect::LeaveOut, Subject::Schedule, &[Kind::Kill], "repaired"),
    (Defect::NoHealing, Subject::Ring, &[Kind::Pause, Kind::Partition, Kind::PowerCut], "equal"),
];

/// The seed with which a judge finds a defect. What a defect breaks may also end a run with a
/// panic, as an assertion of a node does: that is no finding of the judge.
fn found_by(judge: &str, defect: Defect, subject: Subject, kinds: &[Kind]) -> Option<u64> {
    let kinds = if kinds.is_empty() { Kinds::ALL } else { Kinds::of(kinds) };
    set(Some(defect));
    let found = (0..SEEDS).find(|seed| {
        let seconds = if subject == Subject::Schedule { SCHEDULE_SECONDS } else { SECONDS };
        let settings = Settings { kinds, rare: EventChoice::None, ..Settings::of(*seed, seconds) };
        let report = std::panic::catch_unwind(|| run(subject, settings, None));
        report.is_ok_and(|report| {
            let is_found = report.rulings.has_found(judge);
            if is_found {
                println!("{defect:?}, {}: {:#?}", replay(subject, settings, None), report.rulings.findings.first());
            }
            is_found
        })
    });
    set(None);
    found
}

#[test]
fn each_judge_finds_its_defect() {
    let only = std::env::var("HELENUS_MUTATION").ok();
    let wanted = |defect: Defect| only.as_ref().is_none_or(|name| *name == format!("{defect:?}"));
    let missed: Vec<String> = CASES
        .iter()
        .filter(|(defect, ..)| wanted(*defect))
        .filter(|(defect, subject, kinds, judge)| found_by(judge, *defect, *subject, kinds).is_none())
        .map(|(defect, .., judge)| format!("{defect:?} is not found by {judge} within {SEEDS} seeds"))
        .collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
