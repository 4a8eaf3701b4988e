//! A ring without repairs by an operator: replicas drift apart, and the built-in schedule heals
//! them.
//!
//! Three nodes hold a copy of each key, without hints. Again and again one of them is cut off, and
//! rows are written and deleted at ONE; meanwhile nodes are killed, lose their power and are
//! started again. gc_grace is short, so that a few hours stand for months.
//!
//! Judged: each range of each table is repaired within gc_grace (`judges::repaired`), replicas are
//! equal when there was no write for gc_grace (`judges::equal`), and deleted rows stay deleted
//! (`judges::equal` too: the rows that a client would expect are compared as one more replica).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster::repair::records::{End, Step, Subject};
use env::Random;
use env::sim::World;

use super::running_nodes::RunningNodes;
use super::workload::{self, KEYSPACE, Observations};
use super::{CLIENTS, RING};
use crate::faults::Kind;
use crate::judges::{Rulings, equal, repaired};
use crate::report::{Report, Settings};

/// gc_grace_seconds of the tables.
const GRACE: i64 = 900;
/// Mean seconds between two rounds of writes.
const ROUND_SECONDS: u64 = 150;
/// Troubles after which a node is started again at once.
const TROUBLES: [Kind; 2] = [Kind::Kill, Kind::PowerCut];
/// Number of tokens of each table that the judge looks at.
const PROBES: u32 = 48;
/// Number of keys that are written and deleted.
const KEYS: u64 = 40;

/// Further settings of the nodes, besides those of all subjects.
pub(super) fn settings(is_on: bool) -> Vec<String> {
    if !is_on {
        return vec!["hinted_handoff_enabled=false".to_owned(), "auto_repair={enabled: false}".to_owned()];
    }
    let schedule = "auto_repair={repair_check_interval: 30s, global_settings: {initial_scheduler_delay: 60s, \
                    min_repair_interval: 60s, repair_retry_backoff: 10s}}";
    vec!["hinted_handoff_enabled=false".to_owned(), schedule.to_owned()]
}

/// The repairs that nodes have told of, by their ids.
type Repairs = BTreeMap<[u8; 16], repaired::Repaired>;

/// Looks at the repairs of each node: a node that is killed forgets them.
fn collect(running: &RunningNodes<'_>, repairs: &mut Repairs) {
    for node in running.nodes() {
        for record in node.services.node.repair_records(Subject::Command) {
            let state = record.state();
            let is_done = matches!(state.end, Some((End::Success(_), _)));
            let Some(at) = state.at(Step::Init).filter(|_| is_done) else { continue };
            let ranges: Vec<(i64, i64)> =
                record.facts.ranges.iter().map(|range| (range.start.0, range.end.0)).collect();
            for table in &record.facts.tables {
                let table = format!("{}.{table}", record.facts.keyspace);
                let of_table = repaired::Repaired { table, ranges: ranges.clone(), at: at / 1000 };
                repairs.insert(record.facts.id, of_table);
            }
        }
    }
}

/// Runs the subject on a seed, and judges what was seen.
pub fn run(settings: Settings) -> Report {
    run_with(settings, true)
}

/// Does the work of [`run`] with the schedule on or off, for a test that the judges find it off.
pub fn run_with(settings: Settings, is_on: bool) -> Report {
    let world = World::new(settings.seed, RING.servers + CLIENTS);
    let dice = world.dice();
    let observations = Observations::of(RING);
    let mut running = RunningNodes::scheduled(&world, RING, &observations, is_on);
    workload::prepare(&world, &observations);
    workload::set_grace(&world, &observations, GRACE);
    let begun = seconds(&world);
    let (mut repairs, mut rows) = (Repairs::new(), BTreeMap::new());
    let end = world.elapsed() + Duration::from_secs(settings.seconds);
    while world.elapsed() < end {
        workload::write_without_a_node(
            &world,
            &observations,
            dice.below(RING.servers as u64) as usize,
            KEYS,
            &mut rows,
        );
        let until = world.elapsed() + Duration::from_secs(ROUND_SECONDS / 2 + dice.below(ROUND_SECONDS));
        let is_troubled = dice.below(3) == 0 && (running.happened.len() as u64) < settings.steps;
        collect(&running, &mut repairs);
        if let Some(kind) = settings.kinds.among(&TROUBLES).draw(&dice).filter(|_| is_troubled) {
            running.inject(&dice, kind);
        }
        while world.elapsed() < until {
            world.run_for(Duration::from_secs(20));
            collect(&running, &mut repairs);
        }
    }
    // nobody writes any more, and the schedule comes round once more
    let quiet = world.elapsed() + Duration::from_secs(GRACE as u64);
    while world.elapsed() < quiet {
        world.run_for(Duration::from_secs(20));
        collect(&running, &mut repairs);
    }
    let mut rulings = Rulings::default();
    let tables: Vec<(String, i64)> =
        workload::table_names().map(|name| (format!("{KEYSPACE}.{name}"), GRACE)).collect();
    let repairs: Vec<repaired::Repaired> = repairs.into_values().collect();
    rulings.add("repaired", repaired::check(&tables, &repairs, begun, seconds(&world), PROBES));
    let mut replicas = workload::versioned(&world, &observations);
    replicas.push(rows);
    rulings.add("equal", equal::check(&replicas));
    let seen_tables: BTreeSet<&str> = repairs.iter().map(|repair| repair.table.as_str()).collect();
    let happened = std::mem::take(&mut running.happened)
        .into_iter()
        .chain([format!("{} repairs of {} tables", repairs.len(), seen_tables.len())])
        .collect();
    drop(running);
    Report { seed: settings.seed, operations: repairs.len(), trace: world.trace(), happened, rare: Vec::new(), rulings }
}

/// The wall clock of the first machine, seconds since 1970: this subject leaves clocks alone.
fn seconds(world: &World) -> i64 {
    world.env(0).clock.now_micros() / 1_000_000
}
