//! The selection for users without the UNMASK permission: the same selectors, with a mask around
//! every column that is masked.
//!
//! Only the result is masked. Rows are found, grouped and sorted by the stored values, and write
//! times are not masked.
//! Agrees with `org.apache.cassandra.cql3.selection.SimpleSelector`.

use std::collections::BTreeMap;

use schema::{ColumnKind, TableMetadata};

use super::Mask;
use super::cell_attributes::AttributeTarget;
use super::{Column, Selection, Selector};

/// The masks of columns by the places of these. A table may have tens of thousands of masked
/// columns, and a statement may select more: the masks are not passed for each of them.
type Masks = BTreeMap<Place, Mask>;

/// The kind of a column, and its position in the key or its id.
type Place = (ColumnKind, usize);

fn place(column: &Column) -> Place {
    match column {
        Column::PartitionKey { position, .. } => (ColumnKind::PartitionKey, *position),
        Column::Clustering { position, .. } => (ColumnKind::Clustering, *position),
        Column::Static { id, .. } => (ColumnKind::Static, usize::from(id.0)),
        Column::Regular { id, .. } => (ColumnKind::Regular, usize::from(id.0)),
    }
}

impl Selection {
    /// The masks of the columns of a table.
    pub fn with_masks(&self, table: &TableMetadata) -> Self {
        let masks: Masks = table
            .masks
            .iter()
            .filter_map(|(name, mask)| {
                let column = table.column_by_name(name)?;
                Some((place(&Column::of(column)), Mask::restore(mask, &column.ty)))
            })
            .collect();
        let mut masked = self.clone();
        let arguments = masked.aggregates.iter_mut().flat_map(|aggregate| {
            let user = aggregate.user.iter_mut().flat_map(|(_, arguments)| arguments);
            aggregate.argument.iter_mut().chain(user)
        });
        masked.selectors.iter_mut().chain(arguments).for_each(|selector| apply_masks(selector, &masks));
        masked
    }
}

fn apply_masks(selector: &mut Selector, masks: &Masks) {
    match selector {
        Selector::Column(column) => {
            if let Some(mask) = masks.get(&place(column)) {
                *selector = mask.of_column(column.clone());
            }
        }
        Selector::Term(_) | Selector::RowId(_) | Selector::Aggregate(_) => {}
        Selector::Attribute(_, target) => apply_masks_to_target(target, masks),
        Selector::Field(inner, _) => apply_masks(inner, masks),
        Selector::Element(_, inner, key, _) => {
            apply_masks(inner, masks);
            apply_masks(key, masks);
        }
        Selector::Slice(_, inner, from, to) => {
            apply_masks(inner, masks);
            [from, to].into_iter().flatten().for_each(|end| apply_masks(end, masks));
        }
        Selector::Call(_, parts)
        | Selector::Tuple(parts)
        | Selector::List(parts)
        | Selector::Set(_, parts)
        | Selector::Vector(_, parts) => parts.iter_mut().for_each(|part| apply_masks(part, masks)),
        Selector::Map(_, entries) => entries.iter_mut().for_each(|(key, value)| {
            apply_masks(key, masks);
            apply_masks(value, masks);
        }),
    }
}

/// In `writetime(c[k])` the element is looked for in the masked value of the collection.
fn apply_masks_to_target(target: &mut AttributeTarget, masks: &Masks) {
    match target {
        AttributeTarget::Column(_) => {}
        AttributeTarget::Field(of, selector, _) => {
            apply_masks_to_target(of, masks);
            apply_masks(selector, masks);
        }
        AttributeTarget::Element(of, _, selector, key, _) => {
            apply_masks_to_target(of, masks);
            apply_masks(selector, masks);
            apply_masks(key, masks);
        }
        AttributeTarget::Slice(of, _, selector, from, to) => {
            apply_masks_to_target(of, masks);
            apply_masks(selector, masks);
            [from, to].into_iter().flatten().for_each(|end| apply_masks(end, masks));
        }
    }
}
