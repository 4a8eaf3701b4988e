//! `MASKED WITH` of columns that are created, added or altered.
//!
//! A mask is prepared once, here; the schema keeps its function's name and the values of its
//! arguments. Agrees with `org.apache.cassandra.cql3.functions.masking.ColumnMask.Raw`.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use schema::{ColumnMask, KeyspaceMetadata, Schema, TableMetadata};
use types::CqlType;

use super::DdlContext;
use crate::ast::{self, Ident, QualifiedName};
use crate::context::PrepareContext;
use crate::error::CqlError;
use crate::selection::Mask;

/// Cassandra's refusal of masks where they are off, which is the default.
const MASKING_DISABLED: &str = "Cannot mask columns because dynamic data masking is not enabled. You can \
     enable it with the dynamic_data_masking_enabled property on cassandra.yaml";

/// Refuses masks where they are off. What comes back from a backup keeps its masks.
pub(super) fn check_enabled<'a, 's: 'a>(
    mut masks: impl Iterator<Item = &'a Option<ast::ColumnMask<'s>>>,
    context: &DdlContext,
) -> Result<(), CqlError> {
    if masks.any(Option::is_some) && !context.switches.masking && !context.restoring {
        return Err(CqlError::invalid(MASKING_DISABLED));
    }
    Ok(())
}

/// Prepares the masks of the columns of one table.
pub(super) struct MaskPreparer<'k> {
    keyspace: &'k KeyspaceMetadata,
    table: &'k str,
    /// The keyspace as a schema: made once, for the first column that has a mask.
    schema: OnceCell<Arc<Schema>>,
}

impl<'k> MaskPreparer<'k> {
    pub fn new(keyspace: &'k KeyspaceMetadata, table: &'k str) -> Self {
        Self { keyspace, table, schema: OnceCell::new() }
    }

    /// The mask of a column of a type.
    pub fn prepare(
        &self,
        mask: &ast::ColumnMask<'_>,
        column: &Ident<'_>,
        ty: &CqlType,
    ) -> Result<ColumnMask, CqlError> {
        let schema = self.schema.get_or_init(|| Arc::new(Schema::default().with_keyspace(self.keyspace.clone())));
        let mut context = PrepareContext::new(schema, &[]);
        context.keyspace = Arc::from(self.keyspace.name.as_str());
        context.table = Arc::from(self.table);
        let ident = |text| Ident { text: Cow::Borrowed(text), quoted: false, pos: column.pos };
        let default = QualifiedName { keyspace: Some(ident("system")), name: ident("mask_default") };
        let function = mask.function.as_ref().unwrap_or(&default);
        Ok(Mask::prepare(&mut context, function, &mask.arguments, column.as_str(), ty)?.definition())
    }
}

/// The masks of the columns of a new table, of which the types are known.
pub(super) fn of_columns(
    columns: &[ast::ColumnDefinition<'_>],
    types: &BTreeMap<String, CqlType>,
    keyspace: &KeyspaceMetadata,
    table: &str,
) -> Result<BTreeMap<String, ColumnMask>, CqlError> {
    let (mut masks, masking) = (BTreeMap::new(), MaskPreparer::new(keyspace, table));
    for column in columns {
        if let (Some(mask), Some(ty)) = (&column.mask, types.get(column.name.as_str())) {
            let mask = masking.prepare(mask, &column.name, ty)?;
            masks.insert(column.name.as_str().to_owned(), mask);
        }
    }
    Ok(masks)
}

/// `ALTER c MASKED WITH …`, or without one `ALTER c DROP MASKED`: the table, altered.
pub(super) fn with_mask(
    keyspace: &KeyspaceMetadata,
    table: &TableMetadata,
    column: &Ident<'_>,
    if_exists: bool,
    mask: &Option<ast::ColumnMask<'_>>,
) -> Result<TableMetadata, CqlError> {
    let mut altered = table.clone();
    let Some(found) = table.column_by_name(column.as_str()).filter(|column| !table.is_hidden(column)) else {
        if if_exists {
            return Ok(altered);
        }
        return Err(CqlError::invalid(format!("Column with name '{column}' doesn't exist on table '{}'", table.name)));
    };
    match mask {
        None => {
            altered.masks.remove(&found.name);
        }
        Some(mask) => {
            let mask = MaskPreparer::new(keyspace, &table.name).prepare(mask, column, &found.ty)?;
            if table.masks.get(&found.name).is_none_or(|before| !before.is_same(&mask)) {
                altered.masks.insert(found.name.clone(), mask);
            }
        }
    }
    Ok(altered)
}

/// A table's materialized views show its columns with its masks.
pub(super) fn mask_views_of(keyspace: &mut KeyspaceMetadata, table: &TableMetadata, column: &str) {
    for view in keyspace.tables.values_mut() {
        let shows = view.view.as_ref().is_some_and(|view| view.base_id == table.id);
        if !shows || view.column_by_name(column).is_none() {
            continue;
        }
        let mut altered = TableMetadata::clone(view);
        match table.masks.get(column) {
            Some(mask) => altered.masks.insert(column.to_owned(), mask.clone()),
            None => altered.masks.remove(column),
        };
        *view = Arc::new(altered);
    }
}
