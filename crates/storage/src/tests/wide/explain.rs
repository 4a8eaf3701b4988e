//! EXPLAIN of a read against the read itself: an observed read gives what a plain one gives, what
//! the plan leaves out holds nothing, and blocks are counted right.

use rows::report::{CommandReport, Decision, SourceKind, SourceReport};
use rows::{PartitionHead, PartitionStream, ReadCommand, ReadContext, ReadMode, Unfiltered};

use crate::{Engine, Observation};

fn content(mut stream: Box<dyn PartitionStream>) -> Vec<(PartitionHead, Vec<Unfiltered>)> {
    let mut partitions = Vec::new();
    while let Some(head) = stream.next_partition().expect("a sound disk reads") {
        let mut rows = Vec::new();
        while let Some(unfiltered) = stream.next_unfiltered().expect("a sound disk reads") {
            rows.push(unfiltered);
        }
        partitions.push((head, rows));
    }
    partitions
}

/// Reads in both ways, and compares.
pub(super) fn check(engine: &Engine, command: &ReadCommand, seed: u64) {
    let context = ReadContext::new(ReadMode::Background);
    let plain = content(engine.read(command, &context).expect("a sound disk reads"));
    let observation = Observation::new();
    let observed = content(engine.read_observed(command, &context, &observation).expect("a sound disk reads"));
    assert_eq!(plain, observed, "seed {seed}: who looks on changes nothing");
    let (reports, left_out, in_background) = observation.take();
    let [report] = reports.as_slice() else { panic!("seed {seed}: one command, {} reports", reports.len()) };
    assert_eq!((left_out, in_background), (0, true), "seed {seed}");
    let plan = engine.explain(command).expect("a sound disk reads").expect("the table is there");
    if by_row_cache(&plan) != by_row_cache(report)
        || report.sources.iter().any(|source| source.reason.contains("by this read"))
    {
        // the read itself has changed what the next one does
        return;
    }
    check_plan(&plan, report, command, seed);
    for source in report.sources.iter().filter(|source| source.kind == SourceKind::SSTable) {
        check_blocks(source, &plan, command, seed);
    }
}

fn by_row_cache(report: &CommandReport) -> bool {
    report.sources.iter().any(|source| source.kind == SourceKind::RowCache)
}

fn check_plan(plan: &CommandReport, report: &CommandReport, command: &ReadCommand, seed: u64) {
    let names = |report: &CommandReport| -> Vec<_> {
        report.sources.iter().map(|source| (source.kind, source.name.clone(), source.bytes)).collect()
    };
    assert_eq!(names(plan), names(report), "seed {seed}: the same sources in the same order");
    for (planned, done) in plan.sources.iter().zip(&report.sources) {
        let rows = done.measured.as_ref().map_or(0, |figures| figures.passed.rows + figures.passed.partitions);
        match planned.decision {
            Decision::Skip => assert_eq!(rows, 0, "seed {seed}: {} was to be left out: {command:?}", done.name),
            Decision::Read => assert_eq!(done.decision, Decision::Read, "seed {seed}: {} was to be read", done.name),
            Decision::Perhaps => assert!(plan.by_names || plan.key.is_some(), "seed {seed}"),
        }
    }
}

fn check_blocks(source: &SourceReport, plan: &CommandReport, command: &ReadCommand, seed: u64) {
    let Some(figures) = &source.measured else { return };
    let blocks = figures.blocks;
    assert!(blocks.wanted <= blocks.total, "seed {seed}: {blocks:?} of {}", source.name);
    if command.slices.is_all() && !by_row_cache(plan) {
        assert_eq!(blocks.wanted, blocks.total, "seed {seed}: everything was read of {}: {command:?}", source.name);
    }
    let planned = plan.sources.iter().find(|planned| planned.name == source.name).and_then(|planned| planned.blocks);
    if let Some(planned) = planned.filter(|_| figures.passed.partitions > 0) {
        assert_eq!(planned.total, blocks.total, "seed {seed}: {}", source.name);
        // to see that a slice has ended, what comes behind it is looked at
        let most = planned.wanted + command.slices.0.len() as u64;
        assert!(blocks.wanted <= most, "seed {seed}: {blocks:?} read of {planned:?} in {}: {command:?}", source.name);
    }
}
