//! Which views are complete, and how far the builds of others are: the tables `built_views` and
//! `view_builds_in_progress` of keyspace system.
//!
//! A build covers ranges of tokens, each with the last token that was passed and the partitions
//! that were. A range whose last token is its end is done. Agrees with
//! `SystemKeyspace.{isViewBuilt,isViewStatusReplicated,setViewBuilt,setViewBuiltReplicated,
//! updateViewBuildStatus,finishViewBuildStatus,getViewBuildStatus}`.

use std::sync::Arc;

use bytes::Bytes;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{Cell, ColumnData, DeletionTime, Liveness, Mutation, PartitionUpdate, Row, Slice};
use schema::TableMetadata;
use types::{DecoratedKey, Token};

use crate::engine::Engine;
use crate::error::StorageError;

const BUILT: &str = "built_views";
const IN_PROGRESS: &str = "view_builds_in_progress";
const REPLICATED: &str = "status_replicated";

/// A range of a build: tokens above `start` up to `end`, and how far it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuiltRange {
    /// The token before the range, which is not part of it.
    pub start: Token,
    /// The last token of the range.
    pub end: Token,
    /// The last token that was passed; None: none was yet.
    pub last: Option<Token>,
    /// Partitions that were passed.
    pub keys: i64,
}

impl BuiltRange {
    /// Whether the whole range was passed.
    pub fn is_done(&self) -> bool {
        self.last == Some(self.end)
    }
}

fn table(engine: &Engine, name: &str) -> Result<Arc<TableMetadata>, StorageError> {
    let unknown = || StorageError::UnknownTable { table: format!("system.{name}") };
    engine.schema().table("system", name).cloned().ok_or_else(unknown)
}

fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// The rows of a keyspace in one of the tables.
fn rows_of(engine: &Engine, name: &str, keyspace: &str) -> Result<Vec<Row>, StorageError> {
    let Some(store) = engine.table_by_name("system", name) else { return Ok(Vec::new()) };
    let now = engine.env.clock.now_seconds();
    let mut stream = crate::read::read_all(&store, now)?;
    let mut live = LiveRows::new(stream.as_mut(), store.table(), now, TombstoneLimits::NONE);
    let mut rows = Vec::new();
    while let Some(partition) = live.next_partition()? {
        while let Some(row) = live.next_row()? {
            if *partition.key.key == *keyspace.as_bytes() {
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

fn is_of(row: &Row, view: &str) -> bool {
    row.clustering.first().is_some_and(|name| name.as_deref() == Some(view.as_bytes()))
}

/// Two answers: whether a view is complete on this node, and whether the others were told so.
pub fn state(engine: &Engine, keyspace: &str, view: &str) -> Result<(bool, bool), StorageError> {
    let column = table(engine, BUILT)?.column_by_name(REPLICATED).map(|column| column.id);
    let rows = rows_of(engine, BUILT, keyspace)?;
    let Some(row) = rows.iter().find(|row| is_of(row, view)) else { return Ok((false, false)) };
    let is_told = column.and_then(|column| row.column(column)).is_some_and(|data| match data {
        ColumnData::Simple(cell) => *cell.value == [1],
        ColumnData::Complex(_) => false,
    });
    Ok((true, is_told))
}

/// Notes that a view is complete, and whether the others were told of that. Its ranges are
/// removed.
pub fn finish(engine: &Engine, keyspace: &str, view: &str, is_told: bool) -> Result<(), StorageError> {
    let built = table(engine, BUILT)?;
    let micros = engine.next_timestamp(1);
    let mut row = Row::new(std::iter::once(Some(text(view))).collect());
    row.liveness = Liveness::new(micros);
    if let Some(column) = built.column_by_name(REPLICATED) {
        row.add_cell(Cell::live(column.id, micros, Bytes::copy_from_slice(&[u8::from(is_told)])));
    }
    let mut update = PartitionUpdate::new(built, DecoratedKey::new(text(keyspace)));
    update.add_row(row);
    let forgotten = forgotten(engine, keyspace, view, micros)?;
    engine.apply_whole(&[Mutation { key: update.key.clone(), updates: vec![update, forgotten] }]).map(drop)
}

/// Removes the state of a view that was dropped, or has to be built anew.
pub fn forget(engine: &Engine, keyspace: &str, view: &str) -> Result<(), StorageError> {
    let micros = engine.next_timestamp(1);
    let mut row = Row::new(std::iter::once(Some(text(view))).collect());
    row.deletion = DeletionTime::new(micros, engine.env.clock.now_seconds());
    let mut update = PartitionUpdate::new(table(engine, BUILT)?, DecoratedKey::new(text(keyspace)));
    update.add_row(row);
    let forgotten = forgotten(engine, keyspace, view, micros)?;
    engine.apply_whole(&[Mutation { key: update.key.clone(), updates: vec![update, forgotten] }]).map(drop)
}

/// The mutation that removes the ranges of a view.
fn forgotten(engine: &Engine, keyspace: &str, view: &str, micros: i64) -> Result<PartitionUpdate, StorageError> {
    let mut update = PartitionUpdate::new(table(engine, IN_PROGRESS)?, DecoratedKey::new(text(keyspace)));
    let deletion = DeletionTime::new(micros, engine.env.clock.now_seconds());
    update.range_deletions.push((Slice::of_prefix(std::iter::once(Some(text(view))).collect()), deletion));
    Ok(update)
}

/// The ranges of a build that has begun.
pub fn ranges(engine: &Engine, keyspace: &str, view: &str) -> Result<Vec<BuiltRange>, StorageError> {
    let table = table(engine, IN_PROGRESS)?;
    let token = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<i64>().ok().map(Token);
    let cell = |row: &Row, name: &str| match row.column(table.column_by_name(name)?.id)? {
        ColumnData::Simple(cell) => Some(cell.value.clone()),
        ColumnData::Complex(_) => None,
    };
    let of_row = |row: Row| {
        let bound = |position: usize| token(row.clustering.get(position)?.as_deref()?);
        let keys = cell(&row, "keys_built").and_then(|value| value.as_ref().try_into().ok().map(i64::from_be_bytes));
        let last = cell(&row, "last_token").and_then(|value| token(&value));
        Some(BuiltRange { start: bound(1)?, end: bound(2)?, last, keys: keys.unwrap_or(0) })
    };
    let rows = rows_of(engine, IN_PROGRESS, keyspace)?;
    Ok(rows.into_iter().filter(|row| is_of(row, view)).filter_map(of_row).collect())
}

/// Notes how far a range is.
pub fn note(engine: &Engine, keyspace: &str, view: &str, range: &BuiltRange) -> Result<(), StorageError> {
    let table = table(engine, IN_PROGRESS)?;
    let micros = engine.next_timestamp(1);
    let of_token = |token: Token| text(&token.0.to_string());
    let clustering = [text(view), of_token(range.start), of_token(range.end)];
    let mut row = Row::new(clustering.into_iter().map(Some).collect());
    row.liveness = Liveness::new(micros);
    if let Some(column) = table.column_by_name("keys_built") {
        row.add_cell(Cell::live(column.id, micros, Bytes::copy_from_slice(&range.keys.to_be_bytes())));
    }
    if let (Some(column), Some(last)) = (table.column_by_name("last_token"), range.last) {
        row.add_cell(Cell::live(column.id, micros, of_token(last)));
    }
    let mut update = PartitionUpdate::new(table, DecoratedKey::new(text(keyspace)));
    update.add_row(row);
    engine.apply(&[Mutation::of(update)]).map(drop)
}
