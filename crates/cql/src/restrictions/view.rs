//! The WHERE of a materialized view: which rows of the base table are in the view.
//!
//! The terms are evaluated once, when the condition is made. `IS NOT NULL` says nothing beyond what
//! the key of the view demands. Agrees with `org.apache.cassandra.db.view.View.{getReadQuery,
//! matchesViewFilter}`.

use std::sync::Arc;

use bytes::Bytes;
use rows::views::ViewFilter;
use rows::{Row, Slices};
use schema::{Schema, TableMetadata};
use types::DecoratedKey;

use super::filter::BoundFilter;
use super::{StatementKind, prepare};
use crate::ast::{Relation, WhereClause};
use crate::context::{Bindings, MadeValues, PrepareContext, find_column};
use crate::error::CqlError;
use crate::keys;
use crate::selection::RowView;
use crate::sources::NoSources;

/// The condition of a view, bound.
#[derive(Debug)]
pub(crate) struct ViewWhere {
    table: Arc<TableMetadata>,
    /// The partitions in their order; None: all, as far as the filters let them.
    keys: Option<Vec<DecoratedKey>>,
    /// The rows of each partition.
    slices: Slices,
    /// Conditions on columns of the key of the base.
    of_keys: Vec<BoundFilter>,
    /// Conditions on other columns: views of earlier versions have them.
    of_rows: Vec<BoundFilter>,
}

/// Makes the condition of a view by its text in the schema. Err: why it cannot be.
pub fn view_filter(
    schema: &Arc<Schema>,
    base: &Arc<TableMetadata>,
    view: &TableMetadata,
) -> Result<Arc<dyn ViewFilter>, String> {
    let text = view.view.as_ref().map_or("", |view| view.where_clause.as_str());
    let clause = match text.trim() {
        "" => WhereClause::default(),
        text => crate::parse::where_clause(text).map_err(|error| error.to_string())?,
    };
    let found = of_view(schema, base, &clause).map_err(|error| error.to_string())?;
    Ok(Arc::new(found))
}

/// The condition of a view of `base`.
pub(crate) fn of_view(
    schema: &Arc<Schema>,
    base: &Arc<TableMetadata>,
    clause: &WhereClause<'_>,
) -> Result<ViewWhere, CqlError> {
    let mut table = TableMetadata::clone(base);
    // indexes of the base have no part in it
    table.indexes.clear();
    let mut tests = WhereClause::default();
    for relation in &clause.relations {
        match relation {
            Relation::IsNotNull { column } => drop(find_column(&table, column.as_str())?),
            other => tests.relations.push(other.clone()),
        }
    }
    let mut context = PrepareContext::new(schema, &[]);
    context.set_table(&table);
    let restrictions = prepare(&mut context, StatementKind::Select, &table, &tests, false, true)?;
    // neither slices nor filters have such a condition: the view would have rows that it excludes
    if let Some(why) = restrictions.refused {
        return Err(CqlError::invalid(why));
    }
    let bindings = Bindings { values: &[], sources: &NoSources, made: &MadeValues::default() };
    let keys = match restrictions.names_keys() {
        true => {
            let mut keys = restrictions.keys(&table, &bindings)?;
            keys.sort_unstable();
            Some(keys)
        }
        false => None,
    };
    let slices = restrictions.slices(&table, &bindings)?;
    let filters = restrictions.filters.iter().map(|filter| filter.bind(&bindings).map(BoundFilter::plain));
    let filters = filters.collect::<Result<Vec<_>, _>>()?;
    let (of_keys, of_rows) = filters.into_iter().partition(BoundFilter::is_of_key);
    Ok(ViewWhere { table: Arc::new(table), keys, slices, of_keys, of_rows })
}

impl ViewWhere {
    fn hold(&self, filters: &[BoundFilter], key: &DecoratedKey, view: &RowView<'_>) -> bool {
        if filters.is_empty() {
            return true;
        }
        let components = keys::decompose(&key.key, self.table.partition_key.len());
        let view = RowView { key: &components, ..*view };
        filters.iter().all(|filter| filter.holds(&view))
    }
}

impl ViewFilter for ViewWhere {
    fn selects(&self, key: &DecoratedKey, clustering: &[Option<Bytes>]) -> bool {
        if self.keys.as_ref().is_some_and(|keys| keys.binary_search(key).is_err()) {
            return false;
        }
        let comparator = &self.table.comparator;
        if !self.table.clustering.is_empty() && !self.slices.contains(clustering, comparator) {
            return false;
        }
        let view = RowView { key: &[], clustering, static_row: None, row: None, now: 0, aggregates: &[] };
        self.hold(&self.of_keys, key, &view)
    }

    fn matches(&self, key: &DecoratedKey, row: &Row, now: u32) -> bool {
        if self.of_rows.is_empty() {
            return true;
        }
        // filters see what is live
        let mut live = row.clone();
        live.columns.retain_mut(|data| match data {
            rows::ColumnData::Simple(cell) => cell.is_live(now),
            rows::ColumnData::Complex(complex) => {
                complex.cells.retain(|cell| cell.is_live(now));
                !complex.cells.is_empty()
            }
        });
        let clustering = &row.clustering;
        let view = RowView { key: &[], clustering, static_row: None, row: Some(&live), now, aggregates: &[] };
        self.hold(&self.of_rows, key, &view)
    }
}

#[cfg(test)]
mod tests {
    use schema::TableId;

    use super::*;
    use crate::ddl::restore::{RestoreOptions, restore};

    /// The keys of IN are made in the order of their values, which is not that of their tokens.
    #[test]
    fn the_keys_of_in_are_selected_and_no_others() {
        let text = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
            CREATE TABLE ks.t (k int PRIMARY KEY, v int);";
        let restoring = RestoreOptions { keyspace: None, now_micros: 1, id_of: &TableId::of_system_table };
        let schema = Arc::new(restore(text, &restoring, Schema::default()).expect("statements").schema);
        let base = schema.table("ks", "t").expect("it was made");
        let clause = crate::parse::where_clause("k IN (1, 2, 3, 4, 5, 6) AND v IS NOT NULL").expect("a condition");
        let condition = of_view(&schema, base, &clause).expect("of the table");
        let selects = |k: &i32| condition.selects(&base.decorate(Bytes::copy_from_slice(&k.to_be_bytes())), &[]);
        let selected: Vec<i32> = (0..10).filter(selects).collect();
        assert_eq!(selected, [1, 2, 3, 4, 5, 6]);
    }
}
