//! When the record of a logged batch goes, and which records are applied again.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use rows::Row;
use types::Consistency;

use super::replay::{PERIOD, Page, of_each};
use super::*;
use crate::coordinator::error::RequestError;
use crate::replica::apply::WriteError;
use crate::stripes::StripeGuards;
use crate::testing::views::{keyspace_of_notes, notes, show_everything, with_keyspace};
use crate::testing::{SimNode, WINDOW, poll, rows_of_unreadable_table};

const SECOND: i64 = 1_000_000;
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

impl SimNode {
    /// Five roles as a batch of which the node has nothing but the record, written so many
    /// microseconds ago.
    fn leave_a_record(&self, age_micros: i64) {
        let mutations: Vec<Mutation> = (0..5u8).map(|k| self.role(k, 1)).collect();
        let id = types::timeuuid::from_micros(self.node.env.clock.now_micros() - age_micros, 7);
        let record = self.node.record(&self.node.batches_table(), &id, &mutations);
        self.node.engine.apply(&[record]).expect("applied");
        assert_eq!(self.counts(), (1, 0));
    }

    /// A record of roles 10 to 12, written so many microseconds ago, beside those that there are.
    fn leave_another_record(&self, age_micros: i64) {
        let mutations: Vec<Mutation> = (10..13u8).map(|k| self.role(k, 1)).collect();
        let id = types::timeuuid::from_micros(self.node.env.clock.now_micros() - age_micros, 9);
        self.node.engine.apply(&[self.node.record(&self.node.batches_table(), &id, &mutations)]).expect("applied");
    }

    /// Records in the batch log, and roles.
    fn counts(&self) -> (usize, usize) {
        (self.count("system", "batches"), self.count("system_auth", "roles"))
    }
}

/// The mutations of a record that Cassandra 3 has left have the form of today. A record of an
/// unknown version stays.
#[test]
fn records_of_older_versions_are_applied() {
    for (version, left) in [(9i32, (1, 0)), (10, (0, 5)), (11, (0, 5)), (12, (0, 5)), (14, (1, 0))] {
        let machine = SimNode::new(WRITE_TIMEOUT);
        machine.leave_a_record(0);
        let node = &machine.node;
        let table = node.batches_table();
        let rows = system_rows::read(&node.engine, &table, None).expect("readable");
        let versioned = |(key, _): &(DecoratedKey, Row)| {
            let row = SystemRow::new(&table, &[&key.key], &[], node.clock.next_micros(), None);
            row.set("version", version.to_be_bytes().to_vec()).finish()
        };
        node.engine.apply(&rows.iter().map(versioned).collect::<Vec<_>>()).expect("applied");
        node.replay_batches().expect("a sound disk");
        assert_eq!(machine.counts(), left, "version {version}");
    }
}

/// A crash between the record and the mutations leaves the record alone.
#[test]
fn a_batch_that_was_only_recorded_is_applied() {
    let machine = SimNode::new(WRITE_TIMEOUT);
    machine.leave_a_record(0);
    assert_eq!(machine.node.replay_batches(), Ok(1));
    assert_eq!(machine.counts(), (0, 5));
    assert_eq!(machine.node.replay_batches(), Ok(0));
}

#[test]
fn the_record_goes_though_the_request_times_out() {
    let machine = SimNode::new(WINDOW / 3);
    let batch = vec![machine.role(1, 1), machine.role(2, 1)];
    let written = machine.sim.block_on(async {
        let wait = machine.node.write_batch(batch, Consistency::One, None).await?;
        wait.expect("it waits for the log").await
    });
    let Err(RequestError::Write(failed)) = written else { panic!("{written:?}") };
    assert_eq!(failed.cause, WriteError::TimedOut);
    assert_eq!(machine.counts(), (0, 2));
}

/// The connection that asked for the batch is reset: its futures are dropped.
#[test]
fn the_record_goes_though_nobody_waits_for_the_request() {
    let machine = SimNode::new(WRITE_TIMEOUT);
    {
        let batch = vec![machine.role(1, 1), machine.role(2, 1)];
        let Poll::Ready(Ok(Some(wait))) = poll(pin!(machine.node.write_batch(batch, Consistency::One, None))) else {
            panic!("it waits for the log");
        };
        assert!(poll(pin!(wait)).is_pending());
    }
    machine.sim.advance(WINDOW * 2);
    machine.sim.run_until_idle();
    assert_eq!(machine.counts(), (0, 2));
    assert_eq!(machine.after_power_cut().counts(), (0, 2));
}

#[test]
fn a_table_truncated_since_is_left_out() {
    let machine = SimNode::new(WRITE_TIMEOUT);
    machine.leave_a_record(10 * SECOND);
    machine.sim.block_on(machine.node.truncate("system_auth", "roles")).expect("truncated");
    assert_eq!(machine.node.replay_batches(), Ok(1));
    assert_eq!(machine.counts(), (0, 0));
    // truncations are known after a restart too
    machine.leave_a_record(10 * SECOND);
    machine.sim.block_on(async { machine.node.engine.log.sync().await }).expect("synced");
    assert_eq!(machine.after_power_cut().counts(), (0, 0));
}

/// A table whose schema cannot be read may be read again, and other nodes may have it: a record of
/// it stays until it is old, or the table is dropped.
#[test]
fn a_record_of_a_table_that_is_left_out_waits() {
    for (age, waits) in [(10 * SECOND, true), (1_000_000 * SECOND, false)] {
        let machine = with_keyspace(keyspace_of_notes("1", &[]));
        let node = &machine.node;
        let merged = storage::schema_change::merge(&node.engine, rows_of_unreadable_table(node).to_vec());
        assert!(merged.expect("stored").is_some());
        let left_out = node.schema().left_out_table("ks", "strange").map(|table| table.id);
        let mut mutation = machine.role(1, 1);
        for update in &mut mutation.updates {
            Arc::make_mut(&mut update.table).id = left_out.expect("it cannot be read");
        }
        let id = types::timeuuid::from_micros(node.env.clock.now_micros() - age, 7);
        node.engine.apply(&[node.record(&node.batches_table(), &id, &[mutation])]).expect("applied");
        node.replay_batches().expect("a sound disk");
        assert_eq!(machine.counts(), (usize::from(waits), 0), "age {age}");
        let drops = |schema: &schema::Schema| Ok::<_, ()>(schema.without_left_out("ks", "strange"));
        assert!(storage::schema_change::change(&node.engine, drops).expect("stored").is_ok());
        node.replay_batches().expect("a sound disk");
        assert_eq!(machine.counts(), (0, 0), "age {age}");
    }
}

#[test]
fn records_older_than_gc_grace_are_left_out() {
    let machine = SimNode::new(WRITE_TIMEOUT);
    let schema = machine.node.schema();
    let grace = schema.table("system_auth", "roles").expect("a built-in table").params.gc_grace_seconds;
    for (age, roles) in [(i64::from(grace) * SECOND, 0), (i64::from(grace) * SECOND - 5 * SECOND, 5)] {
        machine.leave_a_record(age);
        assert_eq!(machine.node.replay_batches(), Ok(1));
        assert_eq!(machine.counts(), (0, roles), "age {age}");
    }
}

/// Records that the start could not apply are applied later; those of requests that may be under
/// way are not.
#[test]
fn records_are_applied_again_while_the_node_runs() {
    let machine = SimNode::new(WRITE_TIMEOUT);
    machine.leave_a_record(0);
    machine.node.batch_replay.expect_records();
    machine.sim.advance(PERIOD);
    machine.sim.run_until_idle();
    assert_eq!(machine.counts(), (0, 5));
    let young = SimNode::new(PERIOD * 2);
    young.leave_a_record(0);
    young.node.batch_replay.expect_records();
    for round in 0..3 {
        young.sim.advance(PERIOD);
        young.sim.run_until_idle();
        assert_eq!(young.counts(), (1, 0), "round {round}");
    }
    young.sim.advance(PERIOD * 2);
    young.sim.run_until_idle();
    assert_eq!(young.counts(), (0, 5));
}

/// After a page of records, replay pauses for as long as the bytes that it applied take at the rate
/// of `batchlog_replay_throttle`.
#[test]
fn pages_are_paced() {
    let page = |bytes| Page { records: 1, failed: 0, bytes, is_last: false };
    assert_eq!(page(3 << 20).pause(1 << 20), Duration::from_secs(3));
    assert_eq!(page(3 << 20).pause(0), Duration::ZERO);
    assert_eq!(Page { is_last: true, ..page(1) }.pause(1 << 20), PERIOD);
    assert_eq!(page(1).without(1).pause(0), PERIOD, "it is not tried again at once");
}

/// Records with mutations that the node does not take any more stay; those before and behind them
/// are applied, and the node goes on to look.
#[test]
fn records_that_fail_do_not_stop_others() {
    let machine = SimNode::new(WRITE_TIMEOUT);
    let records: Vec<Mutation> = (1..10u8)
        .map(|k| {
            let bytes = if k % 2 == 0 { 1 << 20 } else { 100 };
            let id = types::timeuuid::from_micros(machine.node.env.clock.now_micros() - 10 * SECOND + i64::from(k), 7);
            machine.node.record(&machine.node.batches_table(), &id, &[machine.role(k, bytes)])
        })
        .collect();
    machine.node.engine.apply(&records).expect("applied");
    machine.sim.block_on(async { machine.node.engine.log.sync().await }).expect("synced");
    let machine = machine.after_power_cut_with(256 << 10);
    assert_eq!(machine.counts(), (4, 5), "a page has room for three of those that fail");
    assert_eq!(machine.node.replay_batches(), Ok(0));
    machine.leave_another_record(10 * SECOND);
    machine.sim.advance(PERIOD * 2);
    machine.sim.run_until_idle();
    assert_eq!(machine.counts(), (4, 8), "the record that was left is applied while the node runs");
}

/// The changes of a view that follow from a record are more than a mutation may have. They are
/// applied in parts; the other mutation of the record is applied as well, and the record goes.
#[test]
fn a_record_whose_changes_of_views_are_too_large_is_applied_in_parts() {
    const ROWS: i32 = 6000;
    let machine = with_keyspace(keyspace_of_notes("1", &["shown"]));
    let key = system_rows::partition_key(&notes(), &[&1_i32.to_be_bytes()]);
    let mut rows = PartitionUpdate::new(notes(), key.clone());
    for c in 0..ROWS {
        let row = SystemRow::new(&notes(), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], 10, None);
        rows.add_row(row.set("v", 7_i32.to_be_bytes().to_vec()).finish().updates[0].rows.remove(0));
    }
    machine.sim.block_on(machine.node.replica.apply(&[Mutation::of(rows)], StripeGuards::new())).expect("applied");
    machine.sim.block_on(async { machine.node.engine.log.sync().await }).expect("synced");
    let machine = machine.after_power_cut_with(32 << 10);
    show_everything(&machine.node.engine);
    let clock = &machine.node.env.clock;
    let mut deletion = PartitionUpdate::new(notes(), key);
    deletion.deletion = DeletionTime::new(clock.now_micros(), clock.now_seconds());
    let id = types::timeuuid::from_micros(clock.now_micros(), 7);
    let batch = [Mutation::of(deletion), machine.role(1, 1)];
    machine.node.engine.apply(&[machine.node.record(&machine.node.batches_table(), &id, &batch)]).expect("applied");
    assert_eq!((machine.count("ks", "notes"), machine.count("ks", "shown")), (ROWS as usize, ROWS as usize));
    // full memtables: only a first part is applied, and the rest comes later
    let (_, budget) = machine.node.engine.memory.usage();
    machine.node.engine.memory.take(budget);
    assert_eq!(machine.node.replay_batches(), Ok(0));
    let left = machine.count("ks", "notes");
    assert!((1..ROWS as usize).contains(&left), "{left} rows are left");
    assert_eq!((machine.count("ks", "shown"), machine.counts()), (left, (1, 0)));
    machine.node.engine.memory.release(budget);
    assert_eq!(machine.node.replay_batches(), Ok(1));
    assert_eq!((machine.count("ks", "notes"), machine.count("ks", "shown")), (0, 0));
    assert_eq!(machine.counts(), (0, 1));
}

/// A record whose batch panics is one that fails: the records behind it have their turn.
#[test]
fn a_record_that_panics_does_not_stop_others() {
    let machine = SimNode::new(WRITE_TIMEOUT);
    machine.leave_a_record(10 * SECOND);
    machine.leave_another_record(10 * SECOND);
    let (due, _) = machine.node.due_records(Duration::ZERO).expect("a sound disk reads");
    let mut number = 0;
    let came = of_each(due, |_| {
        number += 1;
        assert_ne!(number, 1, "the first record cannot be applied");
        Ok(number)
    });
    assert_eq!(came, (vec![2], 1));
}
