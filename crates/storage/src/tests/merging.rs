//! Rows of schema tables that another node has written: what is in force, and what is on the disk.

use std::path::Path;
use std::sync::Arc;

use env::sim::{DATA, Sim};
use rows::{ColumnData, Mutation};
use schema::{Schema, TableId, TableMetadata};

use super::common::remove;
use super::restart::{check, open, options, table, write};
use crate::schema_change::{self, Changed};
use crate::{Engine, StorageError};

const HOUR: i64 = 3_600_000_000;

fn commented(engine: &Engine, comment: &str) -> Changed {
    let decide = |schema: &Schema| {
        let mut keyspace = schema.keyspaces["restart"].as_ref().clone();
        let mut table = TableMetadata::clone(&keyspace.tables["t"]);
        comment.clone_into(&mut table.params.comment);
        keyspace.tables.insert("t".to_owned(), Arc::new(table));
        Ok::<_, ()>(schema.with_keyspace(keyspace))
    };
    schema_change::change(engine, decide).expect("stored").expect("not refused")
}

fn comment(engine: &Engine) -> String {
    engine.schema().table("restart", "t").expect("it was made").params.comment.clone()
}

/// The same writes at other times.
fn later(mut mutations: Vec<Mutation>, by: i64) -> Vec<Mutation> {
    let rows = mutations.iter_mut().flat_map(|mutation| &mut mutation.updates).flat_map(|update| &mut update.rows);
    for row in rows {
        if !row.deletion.is_live() {
            row.deletion.marked_for_delete_at += by;
        }
        if !row.liveness.is_empty() {
            row.liveness.timestamp += by;
        }
        for data in &mut row.columns {
            let ColumnData::Simple(cell) = data else { panic!("collections are frozen") };
            cell.timestamp += by;
        }
    }
    mutations
}

/// After a change by a node whose clock is an hour ahead, changes of this node have an effect that
/// a restart does not undo; rows that are older than what is here have none.
#[test]
fn a_change_is_newer_than_what_other_nodes_have_written() {
    let sim = Sim::new(5);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    let old = commented(&engine, "of the other").written;
    commented(&engine, "mine");
    let merged = schema_change::merge(&engine, later(old.clone(), HOUR)).expect("stored").expect("new rows");
    assert_eq!((comment(&engine).as_str(), merged.dropped.len()), ("of the other", 0));
    commented(&engine, "mine again");
    assert!(schema_change::merge(&engine, old).expect("read").is_none(), "older rows change nothing");
    let version = engine.schema().version;
    sim.block_on(engine.drain()).expect("drained");
    drop(engine);
    sim.kill();
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    assert_eq!((comment(&engine).as_str(), engine.schema().version), ("mine again", version));
}

/// Rows of tables that are no schema tables, and of keyspaces that each node has for itself, are
/// not taken from others.
#[test]
fn only_shared_rows_are_merged() {
    let sim = Sim::new(6);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    let version = engine.schema().version;
    let of_users = super::restart::mutation(&engine, 1, 1, 1);
    let mut of_system = later(commented(&engine, "x").written, HOUR);
    for mutation in &mut of_system {
        mutation.key = types::DecoratedKey::new(bytes::Bytes::from_static(b"system"));
        mutation.updates.iter_mut().for_each(|update| update.key = mutation.key.clone());
    }
    of_system.push(of_users);
    let before = engine.schema();
    assert_ne!(before.version, version);
    assert!(schema_change::merge(&engine, of_system).expect("read").is_none());
    assert!(Arc::ptr_eq(&before, &engine.schema()));
}

/// A table lies in a directory without its id, as Cassandra before 2.1 has made it, and another
/// node has dropped it and made it again: the new table must not have the files of the old one.
#[test]
fn a_table_that_is_made_again_does_not_share_a_directory_without_id() {
    let sim = Sim::new(7);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    write(&engine, 0);
    sim.block_on(engine.drain()).expect("drained");
    let with_id = engine.table_by_name("restart", "t").expect("open").directory.clone();
    drop(engine);
    sim.kill();
    sim.env().disk.rename(&with_id, &with_id.with_file_name("t")).expect("a sound disk renames");
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    check(&engine, 3);

    let twin = Sim::new(8);
    let (other, _) = open(&twin.env(), options(Path::new(DATA), 16 << 20));
    let changed = |made: Option<Arc<TableMetadata>>| {
        let decide = |schema: &Schema| {
            let mut keyspace = schema.keyspaces["restart"].as_ref().clone();
            keyspace.tables.remove("t");
            keyspace.tables.extend(made.map(|table| (table.name.clone(), table)));
            Ok::<_, ()>(schema.with_keyspace(keyspace))
        };
        schema_change::change(&other, decide).expect("stored").expect("not refused").written
    };
    let rows = later([changed(None), changed(Some(table(9, "t")))].concat(), HOUR);

    let first = schema_change::merge(&engine, rows.clone()).expect("stored").expect("new rows");
    assert!(first.continues && engine.schema().table("restart", "t").is_none());
    let early = schema_change::merge(&engine, rows.clone());
    assert!(matches!(early, Err(StorageError::FilesOfDropped { .. })), "the files are there");
    remove(&sim, &engine, &first.dropped);
    assert!(!schema_change::merge(&engine, rows).expect("stored").expect("new rows").continues);
    let store = engine.table_by_name("restart", "t").expect("it was made");
    assert_eq!((store.id, store.view().sstables.len()), (TableId([9; 16]), 0));
}
