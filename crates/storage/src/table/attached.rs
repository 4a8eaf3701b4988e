//! Attached indexes as part of a table's state: which of the components that SSTables carry belong
//! to an index that the table has now.
//!
//! A component says by its fingerprint for which definition of an index it was made. How components
//! are made and read is in `crate::index::attached`.
//!
//! An open component stays open when a user type in the type of the column gets another field, or
//! another name for one: the terms of existing values stay the same.

use std::sync::Arc;

use schema::index::definition::IndexDefinition;
use sstable::SSTable;

use super::indexes::IndexStore;
use super::view::View;

/// The attached indexes of a table.
pub fn of(indexes: &[Arc<IndexStore>]) -> impl Iterator<Item = &Arc<IndexStore>> {
    indexes.iter().filter(|index| index.definition.is_attached())
}

/// The facts on which the terms of an index depend: the column, the part of it, its type, the form
/// of text.
pub fn fingerprint(definition: &IndexDefinition) -> Vec<u8> {
    let (before, behind) = around_type(definition);
    format!("{before}{:?}{behind}", definition.column.ty).into_bytes()
}

/// The facts of a fingerprint that stand before the type of the column, and those behind it.
fn around_type(definition: &IndexDefinition) -> (String, String) {
    let IndexDefinition { name, column, part, attached, vectors, .. } = definition;
    let function = vectors.map_or_else(String::new, |function| format!(" {}", function.name()));
    let form = attached.as_ref().map_or("None".to_owned(), |form| format!("Some({})", form.fact()));
    (format!("{name} {} {part:?} ", column.name), format!(" {form}{function}"))
}

/// Whether a fingerprint is that of an index, now or before a user type in the type of its column
/// was altered. Nothing else alters the type of a column that has an index.
pub fn is_of(fingerprint: &[u8], definition: &IndexDefinition) -> bool {
    let (before, behind) = around_type(definition);
    let rest = fingerprint.strip_prefix(before.as_bytes());
    rest.is_some_and(|rest| rest.ends_with(behind.as_bytes()))
}

/// Forgets components of SSTables that are about to come into a view whose indexes are other ones:
/// an index was dropped since they were made. Otherwise a later index of the same name would take
/// them for its own.
pub fn leave_present(view: &View, sstables: &[Arc<SSTable>]) {
    let is_present = |made_for: &[u8]| of(&view.indexes).any(|index| is_of(made_for, &index.definition));
    let with_components = sstables.iter().filter(|sstable| sstable.attached().keys().is_some());
    with_components.for_each(|sstable| sstable.attached().retain(is_present));
}
