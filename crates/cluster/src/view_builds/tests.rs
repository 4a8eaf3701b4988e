//! Builds of views.

use std::pin::pin;
use std::time::Duration;

use env::sim::{Fault, Op};
use rows::Mutation;
use schema::{KeyspaceMetadata, TableId};
use storage::materialized::built::{self, BuiltRange};
use storage::strategy::kind::Kind;
use types::Token;

use super::job::{JobEnd, RangeProgress, build_next_rows};
use super::{Attempts, RETRY_MIN, TrackedView};
use crate::operations::views::build_statuses;
use crate::system_rows::SystemRow;
use crate::testing::views::{
    change_on, create_on, keyspace_of, keyspace_of_notes, keyspace_with_view, notes, owned_by, show_everything,
    view_by_v, with_keyspace,
};
use crate::testing::{SimNode, SimRing, poll, table};

/// Rows of the partition 1 of `t`.
fn written(count: i32) -> Vec<Mutation> {
    let row = |c: i32| {
        let row = SystemRow::new(&table("ks", "t"), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], 10, None);
        row.set("v", c.to_be_bytes().to_vec()).finish()
    };
    (0..count).map(row).collect()
}

/// A partition of many slices is built though somebody else holds its lock again and again: each
/// job goes on at the row where the one before it ended, and no entry is written twice.
#[test]
fn a_build_goes_on_where_it_was_held_up() {
    const ROWS: i32 = 10_000;
    let machine = with_keyspace(keyspace_with_view("1"));
    let node = &machine.node;
    // as if they had been written before the view was there
    node.engine.apply(&written(ROWS)).expect("applied");
    let views = node.engine.views();
    let view = views.all().next().expect("one view");
    let key = 1_i32.to_be_bytes();
    let range = BuiltRange { start: Token::MIN, end: Token(i64::MAX), last: None, keys: 0 };
    let mut place = RangeProgress { range, next: None };
    let mut jobs = 0;
    while !place.range.is_done() {
        jobs += 1;
        assert!(jobs < 10, "each job that has the lock passes its share");
        let held = node.replica.try_lock_base(view.base.id, &key).expect("nobody has it");
        let (refused, pause) = build_next_rows(node, view, place, None).expect("no error");
        assert_eq!(pause, JobEnd::Locked);
        drop(held);
        let waited = machine.sim.block_on(node.replica.lock_base(view.base.id, &key));
        place = build_next_rows(node, view, refused, Some(waited)).expect("no error").0;
    }
    assert!(jobs > 1, "the partition is more than the share of a job");
    let entries = node.engine.table(view.table.id).expect("the view").metrics.writes.get();
    assert_eq!((entries, place.range.keys), (ROWS as u64, 1));
    assert_eq!(machine.count("ks", "by_v"), ROWS as usize);
}

/// A row of the partition 1 of `notes`, all of which are of one partition of its view.
fn note(c: i32, bytes: usize) -> Mutation {
    let row = SystemRow::new(&notes(), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], 10, None);
    row.set("v", 7_i32.to_be_bytes().to_vec()).set("b", vec![b'x'; bytes]).finish()
}

/// Has views built, and runs until one of them is complete.
fn build(machine: &SimNode, view: &str) {
    let is_built = || built::state(&machine.node.engine, "ks", view).expect("readable").0;
    machine.node.start_view_builds();
    for _ in 0..600 {
        if is_built() {
            return;
        }
        machine.sim.block_on(machine.node.env.sleep(Duration::from_secs(1)));
    }
    panic!("{view} is not complete");
}

/// Everything that was written so far becomes durable.
fn sync(machine: &SimNode) {
    machine.sim.block_on(async { machine.node.engine.log.sync().await }).expect("synced");
}

/// Of large rows a step of a build has few: 256 of them would be more than a mutation may have.
#[test]
fn a_view_of_large_rows_is_built() {
    const ROWS: i32 = 300;
    let machine = with_keyspace(keyspace_of_notes("1", &["shown"]));
    for c in 0..ROWS {
        machine.node.engine.apply(&[note(c, 80 << 10)]).expect("applied");
    }
    build(&machine, "shown");
    assert_eq!(machine.count("ks", "shown"), ROWS as usize);
}

/// Where an entry is more than the commit log takes, as since the limit was lowered, the view is
/// complete without that entry: it has all others.
#[test]
fn a_view_is_built_without_rows_that_the_log_does_not_take() {
    let machine = with_keyspace(keyspace_of_notes("1", &["shown"]));
    let sizes = [10, 80 << 10, 10, 80 << 10, 80 << 10, 10];
    for (c, bytes) in (0..).zip(sizes) {
        machine.node.engine.apply(&[note(c, bytes)]).expect("applied");
    }
    sync(&machine);
    let machine = machine.after_power_cut_with(64 << 10);
    show_everything(&machine.node.engine);
    build(&machine, "shown");
    assert_eq!((machine.count("ks", "notes"), machine.count("ks", "shown")), (6, 3));
}

/// The commit log becomes full while a job of a build runs: the build waits with its note until
/// there is room, and passes no row again.
#[test]
fn a_build_waits_for_the_log_with_its_note() {
    const ROWS: i32 = 10;
    let machine = with_keyspace(keyspace_with_view("1"));
    let node = &machine.node;
    node.engine.apply(&written(ROWS)).expect("applied");
    let views = node.engine.views();
    let view = views.all().next().expect("one view");
    let mut attempts = Attempts { is_flushed: true, is_further: false };
    {
        let mut building = pin!(super::build::build(node, view, &mut attempts));
        assert!(poll(building.as_mut()).is_pending(), "a job passes the rows");
        machine.sim.run_until_idle();
        machine.fill_log();
        assert!(poll(building.as_mut()).is_pending(), "there is no room for the note");
        machine.sim.block_on(building).expect("built");
    }
    assert!(attempts.is_further);
    let entries = node.engine.table(view.table.id).expect("the view").metrics.writes.get();
    assert_eq!(entries, ROWS as u64);
    let noted = built::ranges(&node.engine, "ks", "by_v").expect("readable");
    assert_eq!(noted.iter().map(BuiltRange::is_done).collect::<Vec<_>>(), [true]);
}

/// Each failure at one place makes the pause before the next attempt longer. A build that comes
/// further, or does not fail, is tried again soon.
#[test]
fn the_pause_grows_by_failures_at_one_place_only() {
    let machine = with_keyspace(keyspace_with_view("1"));
    let now = machine.node.env.now();
    let views = machine.node.engine.views();
    let mut known = TrackedView::of(views.all().next().expect("one view"), now);
    // an attempt, and the pause behind it in units of the shortest one
    let mut pause = |is_further: bool, has_failed: bool, was_due: bool| {
        known.attempts.is_further = is_further;
        known.rest(has_failed, was_due, now);
        known.due.since(now).as_secs() / RETRY_MIN.as_secs()
    };
    assert_eq!([pause(false, true, true), pause(false, true, true), pause(false, true, true)], [1, 2, 4]);
    assert_eq!((pause(true, true, true), pause(false, true, true)), (1, 2));
    assert_eq!(pause(false, false, true), 1, "only the ring could not be told");
    assert_eq!([pause(false, true, false), pause(false, true, false)], [2, 2], "changes of the schema");
}

/// A build that fails again and again does not flush its base each time, and ends once nothing
/// fails any more.
#[test]
fn a_build_that_fails_is_tried_again_without_another_flush() {
    let machine = with_keyspace(keyspace_with_view("1"));
    machine.node.engine.apply(&written(10)).expect("applied");
    let base = |machine: &SimNode| machine.node.engine.table(table("ks", "t").id).expect("the base");
    machine.sim.block_on(machine.node.engine.flush(&base(&machine))).expect("flushed");
    sync(&machine);
    let machine = machine.after_power_cut();
    show_everything(&machine.node.engine);
    let node = &machine.node;
    machine.sim.disk().inject(Fault { times: u64::MAX, ..Fault::next(Op::Read, "/ks/t-") });
    node.start_view_builds();
    machine.sim.block_on(node.env.sleep(Duration::from_secs(1)));
    let flushed = base(&machine).view().sstables.len();
    for _ in 0..20 {
        machine.sim.block_on(node.env.sleep(Duration::from_secs(60)));
        // written without its entry: a write would have to read the row
        node.engine.apply(&written(20)).expect("applied");
    }
    assert!(!built::state(&node.engine, "ks", "by_v").expect("readable").0, "its base cannot be read");
    assert_eq!(base(&machine).view().sstables.len(), flushed);
    machine.sim.disk().heal();
    build(&machine, "by_v");
    assert_eq!(machine.count("ks", "by_v"), 20);
}

/// Whether a machine of a ring builds a view.
fn builds(ring: &SimRing, machine: usize) -> bool {
    ring.node(machine).engine.compactions.running().iter().any(|running| running.kind == Kind::ViewBuild)
}

/// A node comes to hold a range while it builds a view, and the rows of that range came without
/// their entries: they are built too.
#[test]
fn ranges_that_come_during_a_build_are_built() {
    let ring = SimRing::new(15, &["dc1", "dc1"]);
    create_on(&ring, &keyspace_of("1", vec![table("ks", "t")]));
    let (own, foreign) = (owned_by(&ring, 0, 1)[0], owned_by(&ring, 1, 1)[0]);
    ring.apply_alone(0, &[ring.row("ks", own, 1, 1, 10), ring.row("ks", foreign, 1, 2, 10)]);
    let held = ring.node(0).replica.try_lock_base(table("ks", "t").id, &own.to_be_bytes()).expect("nobody has it");
    change_on(&ring, &keyspace_with_view("1"));
    assert!(ring.world.run_until(Duration::from_secs(60), || builds(&ring, 0)));
    ring.world.run_for(Duration::from_secs(5));
    assert!(builds(&ring, 0), "it waits for the lock");
    change_on(&ring, &keyspace_with_view("2"));
    drop(held);
    assert!(ring.world.run_until(Duration::from_secs(60), || !builds(&ring, 0)));
    ring.world.run_for(Duration::from_secs(1));
    assert!(built::state(&ring.node(0).engine, "ks", "by_v").expect("readable").0);
    assert_eq!(ring.count(0, "ks", "by_v"), 2);
}

/// A build that an operator has stopped rests until its keyspace changes.
#[test]
fn a_build_that_was_stopped_rests() {
    let machine = with_keyspace(keyspace_with_view("1"));
    let node = &machine.node;
    node.engine.apply(&written(3)).expect("applied");
    let held = node.replica.try_lock_base(table("ks", "t").id, &1_i32.to_be_bytes()).expect("nobody has it");
    let builds = || node.engine.compactions.running().iter().any(|running| running.kind == Kind::ViewBuild);
    node.start_view_builds();
    machine.sim.block_on(node.env.sleep(Duration::from_secs(1)));
    assert!(builds());
    node.engine.compactions.stop_kind(Kind::ViewBuild);
    drop(held);
    for _ in 0..60 {
        machine.sim.block_on(node.env.sleep(Duration::from_secs(1)));
        assert!(!builds());
    }
    assert_eq!(machine.count("ks", "by_v"), 0);
    let mut more = keyspace_of_notes("1", &[]);
    more.tables.extend(keyspace_with_view("1").tables);
    let changed = machine.sim.block_on(node.change_schema(move |schema| Ok::<_, ()>(schema.with_keyspace(more))));
    assert!(changed.expect("stored").is_ok(), "not refused");
    build(&machine, "by_v");
    assert_eq!(machine.count("ks", "by_v"), 3);
}

/// The tables `t` and `notes` with their views. `by_v`: the id of the view of `t`; None: there is
/// none.
fn tables_of(factor: &str, by_v: Option<u8>, of_notes: &[&str]) -> KeyspaceMetadata {
    let mut keyspace = keyspace_of_notes(factor, of_notes);
    let base = table("ks", "t");
    let view = by_v.map(|id| view_by_v(&base, "by_v", TableId([id; 16]), &[]));
    keyspace.tables.extend(view.into_iter().chain([base]).map(|table| (table.name.clone(), table)));
    keyspace
}

/// Whether so many nodes have a status of their build of `by_v`, within a minute.
fn comes(ring: &SimRing, status: &str, count: usize) -> bool {
    (0..60).any(|_| {
        ring.world.run_for(Duration::from_secs(1));
        let told = ring.world.block_on(build_statuses(ring.node(1), "ks", "by_v")).expect("readable");
        told.iter().filter(|(_, told)| told == status).count() == count
    })
}

/// While a node builds one view, another one is dropped and made again, and other nodes build it:
/// what they have told the ring stays, and what is told of the dropped view goes at once.
#[test]
fn what_others_have_told_of_a_view_stays() {
    let ring = SimRing::new(16, &["dc1", "dc1"]);
    create_on(&ring, &tables_of("2", Some(9), &[]));
    assert!(comes(&ring, "SUCCESS", 2), "both have built it");
    ring.apply_alone(0, &[note(1, 10)]);
    let held = ring.node(0).replica.try_lock_base(notes().id, &1_i32.to_be_bytes()).expect("nobody has it");
    change_on(&ring, &tables_of("2", Some(9), &["slow"]));
    assert!(ring.world.run_until(Duration::from_secs(60), || builds(&ring, 0)));
    change_on(&ring, &tables_of("2", None, &["slow"]));
    assert!(comes(&ring, "UNKNOWN", 2), "nothing is told of the dropped one");
    change_on(&ring, &tables_of("2", Some(10), &["slow"]));
    assert!(comes(&ring, "SUCCESS", 1), "the second node has built the new one");
    assert!(builds(&ring, 0), "the first one builds the other view");
    drop(held);
    assert!(comes(&ring, "SUCCESS", 2), "the first one builds it, too");
}

/// A view is dropped and made again while a node is down that has built the first one: that node is
/// not taken for one that has built the second one.
#[test]
fn a_node_that_is_down_has_not_built_another_view() {
    let mut ring = SimRing::new(17, &["dc1", "dc1", "dc1"]);
    create_on(&ring, &tables_of("3", Some(9), &[]));
    assert!(comes(&ring, "SUCCESS", 3), "all have built it");
    ring.kill(2);
    ring.agree();
    change_on(&ring, &tables_of("3", None, &[]));
    assert!(comes(&ring, "UNKNOWN", 3), "nothing is told of the dropped one");
    change_on(&ring, &tables_of("3", Some(10), &[]));
    assert!(comes(&ring, "SUCCESS", 2), "the others have built the new one");
    assert!(comes(&ring, "UNKNOWN", 1), "the one that is down has not");
}
