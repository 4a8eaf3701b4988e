//! The materialized views of base tables as writers need them: by the id of the base, ready to be
//! maintained.
//!
//! An immutable snapshot, made again when a schema with views comes into force, with a number that
//! only grows. A writer remembers the number under which it computed the changes of views;
//! memtables take its write only while the number holds ([`crate::write`]). So a view that is built
//! finds every row that was written without it, and no write misses a view that is there.
//!
//! The WHERE of a view is text, which the storage does not read: the program that opens the engine
//! gives a [`FilterMaker`]. Before that, if the maker refuses a view, and where a view is left out
//! of the schema because it cannot be read, the base table takes no writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::views::{View, ViewFilter};
use schema::{Schema, TableId, TableMetadata};

/// Makes the condition of a view from the schema, the base table and the view. Err: why it cannot
/// be made.
pub type FilterMaker =
    Box<dyn Fn(&Arc<Schema>, &Arc<TableMetadata>, &TableMetadata) -> Result<Arc<dyn ViewFilter>, String> + Send + Sync>;

/// The views of one base table.
#[derive(Clone, Default)]
pub struct ViewsOfBase {
    /// The views, by name.
    pub views: Vec<Arc<View>>,
    /// Why the base takes no writes: a view cannot be maintained. None: all views can.
    pub refusal: Option<String>,
}

impl ViewsOfBase {
    /// Notes that the base takes no writes because of a view.
    fn refuse(&mut self, keyspace: &str, view: &str, why: &str) {
        let refusal = format!("the materialized view {keyspace}.{view} cannot be kept: {why}");
        tracing::warn!(why = refusal, "a table takes no writes");
        self.refusal.get_or_insert(refusal);
    }
}

/// All views under one schema.
#[derive(Default)]
pub struct BaseViews {
    /// A number that grows with every schema that has views or had some.
    pub number: u64,
    by_base: BTreeMap<TableId, ViewsOfBase>,
}

impl BaseViews {
    /// The views of a schema.
    pub fn of(schema: &Arc<Schema>, maker: Option<&FilterMaker>, number: u64) -> Self {
        let mut by_base: BTreeMap<TableId, ViewsOfBase> = BTreeMap::new();
        for table in schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
            let Some(definition) = &table.view else { continue };
            let entry = by_base.entry(definition.base_id).or_default();
            match view(schema, table, maker) {
                Ok(view) => entry.views.push(view),
                Err(why) => entry.refuse(&table.keyspace, &table.name, &why),
            }
        }
        for ((keyspace, name), left_out) in schema.left_out.iter().filter(|(_, table)| table.is_view) {
            // once it can be read again, the view would lack what its base takes meanwhile
            if let Some(base) = left_out.base_id.filter(|base| schema.table_by_id(*base).is_some()) {
                let why = "its schema cannot be read, and it is left out until it is dropped";
                by_base.entry(base).or_default().refuse(keyspace, name, why);
            }
        }
        Self { number, by_base }
    }

    /// Whether no table has a view.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_base.is_empty()
    }

    /// The views of a table; None: it has none.
    #[inline]
    pub fn of_base(&self, base: TableId) -> Option<&ViewsOfBase> {
        if self.by_base.is_empty() {
            return None;
        }
        self.by_base.get(&base)
    }

    /// A view by its own id.
    pub fn by_id(&self, view: TableId) -> Option<&Arc<View>> {
        self.by_base.values().flat_map(|of| &of.views).find(|of| of.table.id == view)
    }

    /// All views.
    pub fn all(&self) -> impl Iterator<Item = &Arc<View>> {
        self.by_base.values().flat_map(|of| &of.views)
    }
}

fn view(schema: &Arc<Schema>, table: &Arc<TableMetadata>, maker: Option<&FilterMaker>) -> Result<Arc<View>, String> {
    let definition = table.view.as_ref().ok_or("the table is no view")?;
    let base = schema.table_by_id(definition.base_id).ok_or("its base table is not known")?;
    let maker = maker.ok_or("nothing here reads its WHERE")?;
    let filter = maker(schema, base, table)?;
    let view = View::new(base, table, filter).ok_or("its columns do not fit its base table")?;
    Ok(Arc::new(view))
}

#[cfg(test)]
mod tests {
    use schema::LeftOutTable;

    use super::*;

    /// A view that is left out would lack the rows that its base takes without it.
    #[test]
    fn the_base_of_a_view_that_is_left_out_takes_no_writes() {
        let mut schema = schema::system::schema();
        let base = schema.table("system", "local").expect("it is built in").id;
        let unknown = TableId([9; 16]);
        for (name, base) in [("v", base), ("w", unknown)] {
            let view =
                LeftOutTable { id: TableId([1; 16]), is_view: true, base_id: Some(base), allow_auto_snapshot: None };
            schema.left_out.insert(("ks".to_owned(), name.to_owned()), view);
        }
        let views = BaseViews::of(&Arc::new(schema), None, 1);
        let refusal = views.of_base(base).and_then(|of_base| of_base.refusal.as_deref());
        assert!(refusal.is_some_and(|why| why.starts_with("the materialized view ks.v cannot be kept")), "{refusal:?}");
        assert!(views.of_base(unknown).is_none());
    }
}
