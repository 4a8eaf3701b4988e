//! `system.compaction_history`: a row for each compaction that ended, for a week.
//!
//! Agrees with `org.apache.cassandra.db.SystemKeyspace.updateCompactionHistory`: compactions of the
//! table itself are left out.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use rows::ReadError;
use storage::Engine;
use storage::compaction::progress::Finished;
use types::CqlType;

use crate::system_rows::{self, SystemRow};

/// `default_time_to_live` of the table.
const TTL: u32 = 7 * 24 * 3600;

const TABLE: (&str, &str) = ("system", "compaction_history");

/// A compaction of the last week.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The id of the compaction.
    pub id: [u8; 16],
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// When the compaction ended, milliseconds since 1970.
    pub compacted_at: i64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Pairs: a number of SSTables, and the partitions that were merged from so many.
    pub rows_merged: Vec<(u32, u64)>,
    /// `compaction_type` and others.
    pub properties: Vec<(String, String)>,
}

/// Records the compactions of the engine from now on.
pub(crate) fn keep(engine: &Arc<Engine>) {
    let weak: Weak<Engine> = Arc::downgrade(engine);
    engine.compactions.set_on_finished(Box::new(move |finished| {
        if let Some(engine) = weak.upgrade().filter(|engine| !engine.is_draining()) {
            write(&engine, finished);
        }
    }));
}

fn write(engine: &Engine, finished: &Finished) {
    let schema = engine.schema();
    let Some(table) = schema.table(TABLE.0, TABLE.1) else { return };
    if (finished.keyspace.as_str(), finished.table.as_str()) == TABLE {
        return;
    }
    let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX).to_be_bytes();
    let merged = finished.merged.iter().map(|(sources, partitions)| {
        let sources = i32::try_from(*sources).unwrap_or(i32::MAX);
        (Bytes::copy_from_slice(&sources.to_be_bytes()), Bytes::copy_from_slice(&count(*partitions)))
    });
    let properties = vec![(&b"compaction_type"[..], finished.kind.name().as_bytes())];
    let now = engine.env.clock.now_micros();
    let row = SystemRow::new(table, &[&finished.id], &[], now, Some((TTL, engine.env.clock.now_seconds())))
        .set("keyspace_name", text(&finished.keyspace))
        .set("columnfamily_name", text(&finished.table))
        .set("compacted_at", finished.at_millis.to_be_bytes().to_vec())
        .set("bytes_in", count(finished.bytes_in).to_vec())
        .set("bytes_out", count(finished.bytes_out).to_vec())
        .set("compaction_properties", types::collection::build_map(&CqlType::Text, properties))
        .set_elements("rows_merged", merged);
    if let Err(error) = engine.apply(&[row.finish()]) {
        tracing::warn!(%error, "a compaction cannot be written to system.compaction_history");
    }
}

/// All compactions that are kept.
pub fn read(engine: &Engine) -> Result<Vec<Entry>, ReadError> {
    let schema = engine.schema();
    let Some(table) = schema.table(TABLE.0, TABLE.1) else { return Ok(Vec::new()) };
    let rows = system_rows::read(engine, table, None)?;
    let entry = |(key, row): (types::DecoratedKey, rows::Row)| {
        let number = |name: &str| {
            let value = system_rows::value(table, &row, name)?;
            Some(i64::from_be_bytes(value.as_ref().try_into().ok()?))
        };
        let bytes = |name: &str| number(name).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        let pair = |(sources, partitions): (Bytes, Bytes)| {
            let sources = u32::from_be_bytes(sources.as_ref().try_into().ok()?);
            Some((sources, u64::from_be_bytes(partitions.as_ref().try_into().ok()?)))
        };
        Some(Entry {
            id: key.key.as_ref().try_into().ok()?,
            keyspace: system_rows::text(table, &row, "keyspace_name")?,
            table: system_rows::text(table, &row, "columnfamily_name")?,
            compacted_at: number("compacted_at")?,
            bytes_in: bytes("bytes_in"),
            bytes_out: bytes("bytes_out"),
            rows_merged: system_rows::pairs(table, &row, "rows_merged").into_iter().filter_map(pair).collect(),
            properties: system_rows::value(table, &row, "compaction_properties").map(properties).unwrap_or_default(),
        })
    };
    Ok(rows.into_iter().filter_map(entry).collect())
}

fn properties(map: &Bytes) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    types::collection::entries(map).map(|(key, value)| (text(key), text(value))).collect()
}
