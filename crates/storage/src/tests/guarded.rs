//! Guardrails that flushes and compactions look at: their lines in the log.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::{Arc, Mutex};

use env::sim::{DATA, Sim};
use rows::{Cell, Liveness, Mutation, PartitionUpdate, Row};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use types::{CqlType, DecoratedKey};

use super::common::{self, int};
use crate::compaction::operation::{Operation, Work};
use crate::guardrails::{CollectionGuards, GuardrailValues, PartitionGuards, Threshold};
use crate::strategy::kind::Kind;
use crate::{EngineOptions, schema_change};

const ID: TableId = TableId([9; 16]);

/// The messages of the log, with their levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// The lines about guardrails since the last look.
    fn take(&self) -> Vec<String> {
        let lines = std::mem::take(&mut *self.0.lock().expect("no panic inside"));
        lines.into_iter().filter(|line| line.contains("Guardrail")).collect()
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().expect("no panic inside").push(format!("{} {}", event.metadata().level(), message.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

fn table() -> TableMetadata {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int),
        spec("c", ColumnKind::Clustering, CqlType::Int),
        spec("tags", ColumnKind::Regular, CqlType::Set { element: Arc::new(CqlType::Int), frozen: false }),
    ];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    TableMetadata::new(ID, "guarded", "t", kind, flags, params, specs, BTreeMap::new(), None)
}

/// A collection that many statements make large is named when it is flushed, and when a compaction
/// puts it together.
#[test]
fn whole_collections_are_looked_at() {
    let sim = Sim::new(1);
    let items = Threshold { warn: Some(2), fail: Some(4) };
    let size = Threshold { warn: None, fail: Some(100) };
    let guards = GuardrailValues {
        searches: rows::command::IndexLimits::NONE,
        partitions: PartitionGuards::default(),
        collections: CollectionGuards { size, items },
    };
    let options =
        EngineOptions { guards: Arc::new(guards.into()), ..EngineOptions::with_small_budgets(Path::new(DATA)) };
    let (engine, _) = crate::open(&sim.env(), options).expect("a sound disk opens");
    let keyspace = common::keyspace("guarded", Some(Arc::new(table())));
    let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
    assert!(changed.is_ok_and(|changed| changed.is_ok()));
    let store = engine.table(ID).expect("the table is open");
    let add = |tags: &[i32]| {
        for tag in tags {
            let table = store.table();
            let column = table.column_by_name("tags").expect("a column").id;
            let mut row = Row::new([Some(int(7))].into_iter().collect());
            row.liveness = Liveness::new(i64::from(*tag));
            row.add_complex_cell(&table, Cell::live(column, i64::from(*tag), Default::default()).at(int(*tag)));
            let mut update = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(int(1)));
            update.add_row(row);
            engine.apply(&[Mutation::of(update)]).expect("a sound disk takes writes");
        }
    };
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let flush = || sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
        add(&[1, 2]);
        flush();
        assert_eq!(log.take(), [""; 0]);
        add(&[3, 4, 5]);
        flush();
        let line = |level: &str, name: &str, what: &str, which: &str| {
            format!(
                "{level} Guardrail {name} violated: Detected collection tags in row (1, 7) in table guarded.t {what}, this exceeds \
                 the {which}."
            )
        };
        let warning = line("WARN", "items_per_collection", "with 3 items", "warning threshold of 2");
        assert_eq!(log.take(), [warning]);
        let operation = Operation::new(Kind::MajorCompaction, Work::Major { split: false }, 1);
        sim.block_on(engine.operate(&store, operation)).expect("a sound disk compacts");
        // five elements of 4 bytes, with 20 bytes for the times of each, and 12 for the deletion
        let failures = [
            line("ERROR", "collection_size", "of size 132", "failure threshold of 100"),
            line("ERROR", "items_per_collection", "with 5 items", "failure threshold of 4"),
        ];
        assert_eq!(log.take(), failures);
    });
}
