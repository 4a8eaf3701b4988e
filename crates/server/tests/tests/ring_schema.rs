//! Schemas as nodes of Cassandra 5.0.8 exchanged them (`testdata/ring_schema`): each statement with
//! the rows that its coordinator pushed, and the version of the whole schema at some points
//! between.
//!
//! The captures are three rings: messaging version 12, version 13, and version 13 with two data
//! centres.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cluster::schema_agreement::messages;
use cql::ddl::{DdlContext, Switches};
use env::sim::{DATA, Sim};
use rows::{ColumnData, DeletionTime, Mutation, PartitionUpdate};
use schema::system_schema::{self, SchemaRow};
use schema::{Schema, TableId};
use serde_json::Value;
use storage::schema_change::{self, Changed};
use storage::{Engine, EngineOptions};

const RINGS: [(&str, &str); 3] = [
    ("v12", include_str!("../../testdata/ring_schema/v12.jsonl")),
    ("v13", include_str!("../../testdata/ring_schema/v13.jsonl")),
    ("v13b", include_str!("../../testdata/ring_schema/v13b.jsonl")),
];

/// The version of a new node of Cassandra.
const FIRST: &str = "d03783d7-b468-3c1a-82f1-8e30b2edde8b";

struct Machine {
    _sim: Sim,
    engine: Arc<Engine>,
}

impl Machine {
    fn new() -> Self {
        let sim = Sim::new(1);
        let (engine, _) = storage::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).unwrap();
        Self { _sim: sim, engine }
    }

    fn version(&self) -> String {
        types::literal::print_uuid(&self.engine.schema().version)
    }

    /// The schema in force, as it would be stored.
    fn rows(&self) -> Vec<SchemaRow> {
        let schema = self.engine.schema();
        let stored = schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
        stored.flat_map(|keyspace| system_schema::rows_of(keyspace)).collect()
    }

    fn merge(&self, payload: &Bytes) -> Option<Changed> {
        let mutations = messages::decode(payload, &self.engine.schema()).unwrap();
        schema_change::merge(&self.engine, mutations).unwrap()
    }

    /// Executes a statement with a table id and a time. `None`: it is refused.
    fn execute(&self, text: &str, id: TableId, now_micros: i64) -> Option<Changed> {
        let context = DdlContext {
            keyspace: None,
            now_micros,
            new_table_id: id,
            datacenters: ["datacenter1", "dc1", "dc2"].map(|name| (name.to_owned(), 1)).into(),
            moving: Vec::new(),
            default_index: Some("legacy_local_table".to_owned()),
            default_compaction: Arc::new(schema::TableParams::default().compaction),
            restoring: false,
            switches: Switches { views: true, user_functions: true, ..Switches::default() },
            guardrails: None,
        };
        let change = cql::ddl::change(text.into(), context);
        let decide = |schema: &Schema| (change.apply)(schema).ok().flatten().map(|(after, _)| after).ok_or(());
        schema_change::change(&self.engine, decide).unwrap().ok()
    }
}

fn lines(text: &str) -> Vec<(Option<Bytes>, Value)> {
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let hex = line.get("push").or(line.get("pull")).and_then(Value::as_str);
        (hex.map(bytes_of), line)
    };
    text.lines().map(read).collect()
}

fn bytes_of(hex: &str) -> Bytes {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The writes of mutations, a line each row and deletion, with every timestamp as its distance from
/// the newest.
fn shown(mutations: &[Mutation]) -> Vec<String> {
    let updates = || mutations.iter().flat_map(|mutation| &mutation.updates);
    let newest = updates().map(PartitionUpdate::max_timestamp).max().unwrap();
    let deletion = |deletion: &DeletionTime| match deletion.is_live() {
        true => String::new(),
        false => format!(" deleted {}", deletion.marked_for_delete_at - newest),
    };
    let mut lines = Vec::new();
    for update in updates() {
        let name = format!("{} {:?}", update.table.name, update.key.key);
        assert!(update.static_row.is_none() && update.range_deletions.is_empty());
        if !update.deletion.is_live() {
            lines.push(format!("{name}{}", deletion(&update.deletion)));
        }
        for row in &update.rows {
            let mut line = format!("{name} {:?}{}", row.clustering, deletion(&row.deletion));
            if !row.liveness.is_empty() {
                line += &format!(" live {}", row.liveness.timestamp - newest);
            }
            for data in &row.columns {
                let ColumnData::Simple(cell) = data else { panic!("collections are frozen") };
                let column = &update.table.column(cell.column).unwrap().name;
                line += &format!(" {column}={:?} {}", cell.value, cell.timestamp - newest);
            }
            lines.push(line);
        }
    }
    lines.sort();
    lines
}

/// The value of a cell of a schema table, if the mutations write one.
fn cell(mutations: &[Mutation], table: &str, column: &str) -> Option<Bytes> {
    let updates = mutations.iter().flat_map(|mutation| &mutation.updates).filter(|update| update.table.name == table);
    let find = |update: &PartitionUpdate| {
        let id = update.table.column_by_name(column)?.id;
        update.rows.iter().find_map(|row| match row.column(id) {
            Some(ColumnData::Simple(cell)) => Some(cell.value.clone()),
            _ => None,
        })
    };
    updates.filter_map(find).last()
}

/// A new node has Cassandra's schema to the timestamp, and stays with what it has over a restart.
#[test]
fn a_new_node_agrees_with_a_new_node_of_cassandra() {
    let sim = Sim::new(1);
    for _ in 0..2 {
        let (engine, _) = storage::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).unwrap();
        assert_eq!(types::literal::print_uuid(&engine.schema().version), FIRST);
        drop(engine);
        sim.kill();
    }
}

/// The rows that nodes push are enough to reach their versions, and to pull all at once is too.
#[test]
fn rows_of_cassandra_make_its_versions() {
    for (ring, text) in RINGS {
        let pushed = Machine::new();
        for (number, (payload, line)) in lines(text).iter().enumerate() {
            match (payload, line["version"].as_str()) {
                (Some(payload), None) => drop(pushed.merge(payload)),
                (payload, Some(version)) => {
                    assert_eq!(pushed.version(), version, "{ring}, line {}", number + 1);
                    let Some(payload) = payload else { continue };
                    let pulling = Machine::new();
                    pulling.merge(payload);
                    assert_eq!(pulling.version(), version, "{ring}, line {}", number + 1);
                    assert_eq!(pulling.rows(), pushed.rows());
                    assert!(pulling.merge(payload).is_none(), "nothing of it is new");
                    // and the answer to the next node is what was pulled
                    let given = messages::encode(&schema_change::all_rows(&pulling.engine).unwrap());
                    let third = Machine::new();
                    assert!(third.merge(&Bytes::from(given)).is_some() || version == FIRST);
                    assert_eq!(third.version(), version);
                }
                (None, None) => panic!("{ring}: a line that says nothing"),
            }
        }
    }
}

/// The rows that a statement writes here are those of Cassandra: same rows, cells, deletions, and
/// the same distances between their timestamps.
#[test]
fn statements_write_the_rows_of_cassandra() {
    let mut equal = 0;
    for (ring, text) in RINGS {
        let machine = Machine::new();
        for (payload, line) in lines(text) {
            let (Some(payload), Some(text)) = (payload, line["cql"].as_str()) else { continue };
            let theirs = messages::decode(&payload, &machine.engine.schema()).unwrap();
            let made = |table| cell(&theirs, table, "id").and_then(|id| id.as_ref().try_into().ok());
            let id = TableId(made("views").or(made("tables")).unwrap_or_default());
            let dropped = cell(&theirs, "dropped_columns", "dropped_time");
            let millis = dropped.map_or(0, |time| i64::from_be_bytes(time.as_ref().try_into().unwrap()));
            let ours = machine.execute(text, id, millis * 1000).unwrap_or_else(|| panic!("{ring}: refused: {text}"));
            assert_eq!(shown(&ours.written), shown(&theirs), "{ring}: {text}");
            equal += 1;
        }
    }
    assert_eq!(equal, 76, "all statements of the captures");
}
