//! The guardrails on the sizes of what storage-attached indexes hold: `sai_string_term_size`,
//! `sai_frozen_term_size`, `sai_vector_term_size`.
//!
//! Must agree with: `StorageAttachedIndex.validateTermSizeForCell` and `validateTermSize`. A value
//! counts by its length in the form of the index, but only if the value itself is too long.

use bytes::Bytes;
use rows::{Cell, ColumnData, PartitionUpdate, Row};
use schema::index::attached::is_attached;
use schema::index::definition::{IndexDefinition, IndexPart};

use types::CqlType;

use super::threshold::{Guard, Threshold, level};
use super::write::WriteGuards;
use crate::error::CqlError;
use crate::keys;

/// Checks what an update gives to the storage-attached indexes of its table.
pub(super) fn check(
    guards: &WriteGuards,
    update: &PartitionUpdate,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    let kinds = [&guards.string_term_size, &guards.frozen_term_size, &guards.vector_term_size];
    if kinds.iter().all(|threshold| threshold.is_off()) {
        return Ok(());
    }
    for index in update.table.indexes.values().filter(|index| is_attached(index)) {
        let Some(index) = IndexDefinition::of(&update.table, index, false) else { continue };
        let guarded = GuardedIndex::of(guards, &index);
        let rows = update.rows.iter().filter(|_| !index.column.is_static());
        for row in rows.chain(update.static_row.as_ref().filter(|_| index.column.is_static())) {
            guarded.check_row(update, row, warnings)?;
        }
    }
    Ok(())
}

/// An index, and the guardrail on its terms.
struct GuardedIndex<'i> {
    index: &'i IndexDefinition,
    guard: Guard,
    threshold: &'i Threshold,
}

impl<'i> GuardedIndex<'i> {
    fn of(guards: &'i WriteGuards, index: &'i IndexDefinition) -> Self {
        let ty = &index.column.ty;
        let is_frozen =
            !ty.is_multi_cell() && (ty.is_collection() || matches!(ty, CqlType::Tuple(_) | CqlType::Udt(..)));
        let (name, threshold) = match (index.vectors.is_some(), is_frozen) {
            (true, _) => ("sai_vector_term_size", &guards.vector_term_size),
            (false, true) => ("sai_frozen_term_size", &guards.frozen_term_size),
            (false, false) => ("sai_string_term_size", &guards.string_term_size),
        };
        Self { index, guard: Guard::new(name), threshold }
    }

    fn check_row(&self, update: &PartitionUpdate, row: &Row, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let mut check = |value: &[u8]| self.check_term(value, warnings);
        match self.index.part {
            IndexPart::PartitionKey(position) => {
                let components = keys::decompose(&update.key.key, update.table.partition_key.len());
                components.get(position).map_or(Ok(()), |value| check(value))
            }
            IndexPart::Clustering(position) => {
                row.clustering.get(position).and_then(Option::as_ref).map_or(Ok(()), |value| check(value))
            }
            part => match row.column(self.index.column.id) {
                None => Ok(()),
                Some(ColumnData::Simple(cell)) if cell.is_tombstone() => Ok(()),
                Some(ColumnData::Simple(cell)) => check(&cell.value),
                Some(ColumnData::Complex(complex)) => {
                    let mut cells = complex.cells.iter().filter(|cell| !cell.is_tombstone());
                    cells.try_for_each(|cell| check(&term_of(cell, part)))
                }
            },
        }
    }

    fn check_term(&self, value: &[u8], warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let least = self.threshold.warn.or(self.threshold.fail).unwrap_or(i64::MAX);
        if size_of(value) <= least {
            return Ok(());
        }
        let size = match self.index.attached {
            Some(form) => size_of(&form.apply(value)),
            None => size_of(value),
        };
        let message = |is_warning: bool, threshold: i64| {
            let (name, which) = (&self.index.column.name, level(is_warning));
            format!("Value of column '{name}' has size {size}, this exceeds the {which} threshold of {threshold}.")
        };
        self.threshold.at_most(self.guard, size, &message, warnings)
    }
}

/// The part of a cell that the index holds; of entries the key and the value together.
fn term_of(cell: &Cell, part: IndexPart) -> Bytes {
    let path = cell.path.clone().unwrap_or_default();
    match part {
        IndexPart::Keys => path,
        IndexPart::Entries => keys::compose(&[path, cell.value.clone()]).unwrap_or_default(),
        _ => cell.value.clone(),
    }
}

fn size_of(value: &[u8]) -> i64 {
    i64::try_from(value.len()).unwrap_or(i64::MAX)
}
