//! Writes to a table with a view, on one machine.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use internode::payload::paxos::{Ballot, BallotFlag, Commit};
use rows::{DeletionTime, Mutation, PartitionUpdate};
use storage::StorageError;

use crate::replica::apply::{WhenBusy, WriteError};
use crate::stripes::StripeGuards;
use crate::system_rows::{self, SystemRow};
use crate::testing::views::{keyspace_of_notes, keyspace_with_view, notes, show_everything, with_keyspace};
use crate::testing::{SimNode, poll, table};

/// A node with the table `t` (k, c, v) and its view `by_v` (v, k, c).
fn with_view() -> SimNode {
    with_keyspace(keyspace_with_view("1"))
}

/// A row of the partition 1 of `t`.
fn row(c: i32, timestamp: i64) -> Mutation {
    let row = SystemRow::new(&table("ks", "t"), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], timestamp, None);
    row.set("v", c.to_be_bytes().to_vec()).finish()
}

/// The deletion of a partition reads all of its rows for the view, which may take longer than
/// anybody waits. It happens all the same, and gives its locks back.
#[test]
fn a_wide_write_ends_though_nobody_waits_for_it() {
    const ROWS: i32 = 100;
    let machine = with_view();
    let counts = || (machine.count("ks", "t"), machine.count("ks", "by_v"));
    let base = table("ks", "t");
    let write = |c: i32, timestamp: i64| {
        machine.sim.block_on(machine.node.replica.apply(&[row(c, timestamp)], StripeGuards::new())).expect("applied");
    };
    (0..ROWS).for_each(|c| write(c, 10));
    assert_eq!(counts(), (ROWS as usize, ROWS as usize));
    let key = system_rows::partition_key(&base, &[&1_i32.to_be_bytes()]);
    let mut update = PartitionUpdate::new(Arc::clone(&base), key);
    update.deletion = DeletionTime::new(20, machine.node.env.clock.now_seconds());
    let deletion = [Mutation::of(update)];
    assert!(
        poll(pin!(machine.node.replica.apply(&deletion, StripeGuards::new()))).is_pending(),
        "a job reads the rows"
    );
    // the future is dropped
    assert_eq!(counts(), (ROWS as usize, ROWS as usize));
    machine.sim.run_until_idle();
    assert_eq!(counts(), (0, 0));
    write(1, 30);
    assert_eq!(counts(), (1, 1));
}

/// A TRUNCATE waits for the writes that have begun, and these may take minutes. Those that come
/// later are not held up for as long.
#[test]
fn a_truncation_that_waits_for_a_wide_write_lets_others_pass() {
    let machine = with_view();
    let node = &machine.node;
    let wide = Arc::clone(&node.replica.views.gate).try_read_owned().expect("nobody closes the gate");
    let writes = async {
        for c in 0..5 {
            node.env.sleep(Duration::from_millis(400)).await;
            let write = [row(c, 10)];
            let applied =
                node.env.timeout(node.timeouts().write, node.replica.apply(&write, StripeGuards::new())).await;
            applied.expect("in time").expect("applied");
        }
        assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (5, 5));
        drop(wide);
    };
    let (truncated, ()) = machine.sim.block_on(async { tokio::join!(node.truncate("ks", "t"), writes) });
    truncated.expect("truncated");
    assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (0, 0));
}

/// A write that the full buffer of the commit log does not take waits for room outside of the gate.
#[test]
fn a_write_that_waits_for_the_log_leaves_the_gate_to_a_truncation() {
    let machine = with_view();
    let node = &machine.node;
    machine.fill_log();
    let write = [row(1, 10)];
    let mut applied = pin!(node.replica.apply_admitted(&write, &[], StripeGuards::new(), WhenBusy::Waits));
    assert!(poll(applied.as_mut()).is_pending(), "there is no room");
    assert!(Arc::clone(&node.replica.views.gate).try_write_owned().is_ok(), "the write has passed the gate");
    machine.sim.block_on(applied).expect("applied");
    assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (1, 1));
}

/// A TRUNCATE that is given up in the middle empties a table and its views all the same: no repair
/// would take the rows of a view away.
#[test]
fn a_truncation_ends_with_its_views_though_nobody_waits_for_it() {
    let machine = with_view();
    let node = &machine.node;
    machine.sim.block_on(node.replica.apply(&[row(1, 10)], StripeGuards::new())).expect("applied");
    let given_up = node.env.timeout(Duration::from_millis(1), node.truncate("ks", "t"));
    assert!(machine.sim.block_on(given_up).is_err(), "its client goes away");
    machine.sim.block_on(node.env.sleep(Duration::from_secs(5)));
    assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (0, 0));
}

/// A row of the partition 1 of `notes`.
fn note(c: i32, v: i32, bytes: usize, timestamp: i64) -> Mutation {
    let row = SystemRow::new(&notes(), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], timestamp, None);
    let row = row.set("v", v.to_be_bytes().to_vec());
    if bytes == 0 { row.finish() } else { row.set("b", vec![b'x'; bytes]).finish() }
}

/// A node with rows of the partition 1 of `notes` and their entries in the view `shown`, which
/// takes mutations of 32 KiB from now on.
fn with_notes(written: Vec<Mutation>) -> SimNode {
    let machine = with_keyspace(keyspace_of_notes("1", &["shown"]));
    let mut update = PartitionUpdate::new(notes(), written[0].key.clone());
    written.into_iter().flat_map(|one| one.updates).flat_map(|one| one.rows).for_each(|row| update.add_row(row));
    machine.sim.block_on(machine.node.replica.apply(&[Mutation::of(update)], StripeGuards::new())).expect("applied");
    machine.sim.block_on(async { machine.node.engine.log.sync().await }).expect("synced");
    let machine = machine.after_power_cut_with(32 << 10);
    show_everything(&machine.node.engine);
    machine
}

/// Live rows of `notes` and `shown`.
fn notes_of(machine: &SimNode) -> (usize, usize) {
    (machine.count("ks", "notes"), machine.count("ks", "shown"))
}

/// The deletion of the partition 1 of `notes`, as of now.
fn deletion_of_notes(machine: &SimNode) -> PartitionUpdate {
    let clock = &machine.node.env.clock;
    let mut deletion = PartitionUpdate::new(notes(), system_rows::partition_key(&notes(), &[&1_i32.to_be_bytes()]));
    deletion.deletion = DeletionTime::new(clock.now_micros(), clock.now_seconds());
    deletion
}

/// Applies what Paxos has decided.
fn commit(machine: &SimNode, update: PartitionUpdate) {
    let ballot = Ballot::new(update.max_timestamp(), BallotFlag::Global, 7);
    machine.sim.block_on(machine.node.replica.paxos_commit(&Commit { ballot, update })).expect("committed");
}

/// The deletion of a wide partition changes more of its view than a mutation may have. A write is
/// refused then; a change that Paxos has decided is applied in parts.
#[test]
fn a_commit_is_applied_in_parts() {
    const ROWS: i32 = 6000;
    let machine = with_notes((0..ROWS).map(|c| note(c, 7, 0, 10)).collect());
    assert_eq!(notes_of(&machine), (ROWS as usize, ROWS as usize));
    let deletion = deletion_of_notes(&machine);
    let deletions = [Mutation::of(deletion.clone())];
    let refused = machine.sim.block_on(machine.node.replica.apply(&deletions, StripeGuards::new()));
    assert!(matches!(refused, Err(WriteError::Storage(StorageError::MutationTooLarge { .. }))), "{refused:?}");
    commit(&machine, deletion);
    assert_eq!(notes_of(&machine), (0, 0));
}

/// A deletion that comes late, behind rows that are newer, deletes none of them. It is applied in
/// parts where it is too large with their entries: its last part changes no entry again.
#[test]
fn a_late_deletion_of_many_newer_rows_is_applied_in_parts() {
    const ROWS: i32 = 6000;
    let machine = with_notes((0..ROWS).map(|c| note(c, 7, 0, 10)).collect());
    let mut late = deletion_of_notes(&machine);
    late.deletion.marked_for_delete_at = 5;
    let late = [Mutation::of(late)];
    machine.sim.block_on(machine.node.replica.apply_or_in_parts(&late, &[], StripeGuards::new())).expect("applied");
    assert_eq!(notes_of(&machine), (ROWS as usize, ROWS as usize));
}

/// Behind each part of a write its base and the view agree, whatever else is written in between.
#[test]
fn base_and_view_agree_behind_each_part() {
    const ROWS: i32 = 2000;
    let machine = with_notes((0..ROWS).map(|c| note(c, 7, 0, 10)).collect());
    let deletion = deletion_of_notes(&machine);
    let later = deletion.max_timestamp() + 1;
    let mut parts = machine.node.replica.parts_of(&[Mutation::of(deletion)]);
    let mut passed = 0;
    while machine.sim.block_on(parts.apply_next()).expect("applied") {
        passed += 1;
        let (base, view) = notes_of(&machine);
        assert_eq!(base, view, "behind part {passed}");
        if passed == 2 {
            assert!((2..ROWS as usize).contains(&base), "{base} rows are left");
            // the first of these rows is deleted already
            for (c, v) in [(1, 8), (ROWS - 1, 9)] {
                machine
                    .sim
                    .block_on(machine.node.replica.apply(&[note(c, v, 0, later)], StripeGuards::new()))
                    .expect("applied");
            }
        }
    }
    assert!(passed > 2);
    assert_eq!(notes_of(&machine), (2, 2));
}

/// A write deletes a partition and has all of its rows anew. Behind each of its parts a reader
/// finds every row, as it was or as it is.
#[test]
fn rows_that_are_replaced_in_parts_are_never_missing() {
    const ROWS: i32 = 600;
    let machine = with_notes((0..ROWS).map(|c| note(c, 7, 0, 10)).collect());
    let mut replaced = deletion_of_notes(&machine);
    let later = replaced.max_timestamp() + 1;
    (0..ROWS).flat_map(|c| note(c, 8, 0, later).updates.remove(0).rows).for_each(|row| replaced.add_row(row));
    let mut parts = machine.node.replica.parts_of(&[Mutation::of(replaced)]);
    while machine.sim.block_on(parts.apply_next()).expect("applied") {
        assert_eq!(notes_of(&machine), (ROWS as usize, ROWS as usize));
    }
    assert_eq!(notes_of(&machine), (ROWS as usize, ROWS as usize));
}

/// A TRUNCATE between two parts of a write removes the rows of those before it. The others do not
/// come behind it.
#[test]
fn a_truncation_ends_a_write_in_parts() {
    let machine = with_notes(vec![note(1, 7, 0, 10)]);
    let mut update = note(2, 7, 0, 10).updates.remove(0);
    (3..600).flat_map(|c| note(c, 7, 0, 10).updates.remove(0).rows).for_each(|row| update.add_row(row));
    let mut parts = machine.node.replica.parts_of(&[Mutation::of(update)]);
    assert!(machine.sim.block_on(parts.apply_next()).expect("applied"), "there are further parts");
    machine.sim.block_on(machine.node.truncate("ks", "notes")).expect("truncated");
    while machine.sim.block_on(parts.apply_next()).expect("no part fails") {}
    assert_eq!(notes_of(&machine), (0, 0));
}

/// A conditional change of a few bytes moves a row in a view, with more columns than a mutation may
/// have. It is committed, and the view has neither the row nor what it was before.
#[test]
fn an_entry_that_the_log_does_not_take_is_left_out_of_a_commit() {
    let machine = with_notes(vec![note(1, 7, 40 << 10, 10), note(2, 7, 10, 10)]);
    assert_eq!(notes_of(&machine), (2, 2));
    let moved = |v: i32| note(1, v, 0, machine.node.env.clock.now_micros()).updates.remove(0);
    let refused = machine.sim.block_on(machine.node.replica.apply(&[Mutation::of(moved(8))], StripeGuards::new()));
    assert!(matches!(refused, Err(WriteError::Storage(StorageError::MutationTooLarge { .. }))), "{refused:?}");
    for v in [8, 9] {
        commit(&machine, moved(v));
        assert_eq!(notes_of(&machine), (2, 1), "v = {v}");
    }
    commit(&machine, deletion_of_notes(&machine));
    assert_eq!(notes_of(&machine), (0, 0));
}

/// A table gets its first view while a write to it and to a table with a view is computed: the
/// write takes the lock of that partition too before it changes the new view.
#[test]
fn a_write_that_meets_a_new_view_takes_its_lock() {
    let of = |views: &[&str]| {
        let mut keyspace = keyspace_of_notes("1", views);
        keyspace.tables.extend(keyspace_with_view("1").tables);
        keyspace
    };
    let machine = with_keyspace(of(&[]));
    let node = &machine.node;
    let key = 1_i32.to_be_bytes();
    let mut wide = row(1, 20);
    wide.updates[0].rows.clear();
    wide.updates[0].deletion = DeletionTime::new(20, node.env.clock.now_seconds());
    let note = SystemRow::new(&notes(), &[&key], &[&1_i32.to_be_bytes()], 20, None);
    let write = [wide, note.set("v", key.to_vec()).finish()];
    let mut applied = pin!(node.replica.apply(&write, StripeGuards::new()));
    assert!(poll(applied.as_mut()).is_pending(), "a job reads the rows");
    let changed =
        storage::schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(of(&["shown"]))));
    assert!(changed.expect("stored").is_ok(), "not refused");
    let locked = node.replica.try_lock_base(notes().id, &key).expect("the table had no view");
    for _ in 0..3 {
        machine.sim.run_until_idle();
        assert!(poll(applied.as_mut()).is_pending(), "somebody else has the lock");
    }
    assert_eq!((machine.count("ks", "notes"), machine.count("ks", "shown")), (0, 0));
    drop(locked);
    machine.sim.block_on(applied).expect("applied");
    assert_eq!((machine.count("ks", "notes"), machine.count("ks", "shown")), (1, 1));
}
