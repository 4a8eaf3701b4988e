//! A table: its columns, in the orders that files and CQL need, and its options.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use types::{CqlType, CustomType, DecoratedKey};

use crate::schema_row::{SchemaRow, SchemaTable};
use crate::{
    ClusteringComparator, ColumnId, ColumnKind, ColumnMask, ColumnMetadata, DroppedColumn, IndexMetadata, TableId,
    TableParams,
};

/// The kind of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableKind {
    /// A table with stored rows.
    Regular,
    /// A materialized view.
    View,
    /// The hidden table of a legacy secondary index.
    Index,
    /// A table whose rows are computed when they are read.
    Virtual,
}

/// `system_schema.tables.flags`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableFlags {
    /// Set for every CQL table without COMPACT STORAGE.
    pub compound: bool,
    /// Set for counter tables.
    pub counter: bool,
    /// Set for dense compact tables.
    pub dense: bool,
    /// Set for super column families.
    pub super_: bool,
}

impl TableFlags {
    /// The flags of an ordinary CQL table.
    pub const COMPOUND: Self = Self { compound: true, counter: false, dense: false, super_: false };

    /// The names in the set `system_schema.tables.flags`, ascending.
    pub fn names(self) -> impl Iterator<Item = String> {
        [("compound", self.compound), ("counter", self.counter), ("dense", self.dense), ("super", self.super_)]
            .into_iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(name, _)| name.to_owned())
    }

    /// Reads the set `system_schema.tables.flags`.
    pub fn from_names(names: &[String]) -> Self {
        let has = |name: &str| names.iter().any(|known| known == name);
        Self { compound: has("compound"), counter: has("counter"), dense: has("dense"), super_: has("super") }
    }
}

/// The definition of a materialized view: the columns of `system_schema.views` that a table does
/// not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViewDefinition {
    /// The id of the table that the view shows.
    pub base_id: TableId,
    /// The name of that table, which is in the same keyspace.
    pub base_name: String,
    /// Whether the view was made with `SELECT *`.
    pub include_all_columns: bool,
    /// The text after WHERE.
    pub where_clause: String,
    /// Whether the key of the view has a column that is not in the key of the base. A row of the
    /// view is then live only while its liveness is, whatever cells it has: the base row has moved
    /// otherwise. Not stored: computed of both tables when the schema is read.
    pub has_base_column_in_key: bool,
}

/// A table. [`TableMetadata::new`] builds it and puts the columns in order.
#[derive(Clone, PartialEq, Debug)]
pub struct TableMetadata {
    /// The id, which names the table's directory.
    pub id: TableId,
    /// The name of the keyspace.
    pub keyspace: String,
    /// The name of the table.
    pub name: String,
    /// The kind of the table.
    pub kind: TableKind,
    /// The flags that the schema tables store.
    pub flags: TableFlags,
    /// The options.
    pub params: TableParams,
    /// The partition key columns, by position.
    pub partition_key: Vec<ColumnMetadata>,
    /// The clustering columns, by position.
    pub clustering: Vec<ColumnMetadata>,
    /// The static columns in file order: simple ones by name, then complex ones by name.
    pub statics: Vec<ColumnMetadata>,
    /// The regular columns in file order: simple ones by name, then complex ones by name.
    pub regulars: Vec<ColumnMetadata>,
    /// The dropped columns by name.
    pub dropped: BTreeMap<String, DroppedColumn>,
    /// The secondary indexes by name.
    pub indexes: BTreeMap<String, IndexMetadata>,
    /// The definition of the view; None: the table is not a materialized view.
    pub view: Option<ViewDefinition>,
    /// The masks of columns, by the columns' names.
    pub masks: BTreeMap<String, ColumnMask>,
    /// Stored rows of its triggers, kept unchanged because triggers are not executed yet.
    pub trigger_rows: Vec<SchemaRow>,
    /// The order of rows in a partition.
    pub comparator: ClusteringComparator,
    /// The type of the partition key as one value: that of the column, or a composite of several.
    pub partition_key_type: CqlType,
    /// The type that orders the partitions of an index's hidden table. None: tokens order them.
    pub local_order: Option<CqlType>,
    by_name: HashMap<String, (ColumnKind, usize)>,
    by_id: Vec<Option<(ColumnKind, usize)>>,
    /// The ids of the dropped columns that were not added again, by name.
    dropped_ids: BTreeMap<String, ColumnId>,
    next_id: u16,
}

/// A column before it has an id, as CREATE statements and the schema tables give it.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnSpec {
    /// The name.
    pub name: String,
    /// The part that the column plays.
    pub kind: ColumnKind,
    /// The position among the key columns of its kind; 0 for other columns.
    pub position: usize,
    /// The type, without ReversedType.
    pub ty: CqlType,
    /// Whether rows are in descending order of this column.
    pub reversed: bool,
}

/// The order of column names in files: by bytes, except that names whose first byte is not ASCII
/// come first. Cassandra compares the first bytes as one number with its top bit flipped
/// (`ColumnMetadata.comparisonOrder`).
fn name_order(name: &str) -> (u8, &[u8]) {
    (name.as_bytes().first().copied().unwrap_or(0) ^ 0x80, name.as_bytes())
}

/// Whether a column stands before another in files: simple ones by name, then complex ones by
/// name. Each is given by whether it is complex and its name.
pub fn column_precedes(a: (bool, &str), b: (bool, &str)) -> bool {
    (a.0, name_order(a.1)) < (b.0, name_order(b.1))
}

/// Gives the next column id. Who adds columns asks [`TableMetadata::column_room`] before.
fn next_of(next_id: &mut u16) -> ColumnId {
    let id = *next_id;
    *next_id = id.checked_add(1).expect("the statement was refused where no id is left");
    ColumnId(id)
}

impl TableMetadata {
    /// Builds a table: puts its columns in order and gives them ids. `previous` is the same table
    /// before an ALTER; columns that it had (same name, kind and type) keep their ids, those that
    /// it had dropped included.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        id: TableId,
        keyspace: &str,
        name: &str,
        kind: TableKind,
        flags: TableFlags,
        params: TableParams,
        specs: Vec<ColumnSpec>,
        dropped: BTreeMap<String, DroppedColumn>,
        previous: Option<&TableMetadata>,
    ) -> Self {
        let mut partition_key = Vec::new();
        let mut clustering = Vec::new();
        let mut statics = Vec::new();
        let mut regulars = Vec::new();
        for spec in specs {
            let list = match spec.kind {
                ColumnKind::PartitionKey => &mut partition_key,
                ColumnKind::Clustering => &mut clustering,
                ColumnKind::Static => &mut statics,
                ColumnKind::Regular => &mut regulars,
            };
            list.push(ColumnMetadata {
                id: ColumnId(u16::MAX),
                name: spec.name,
                kind: spec.kind,
                position: spec.position,
                ty: spec.ty,
                reversed: spec.reversed,
            });
        }
        partition_key.sort_by_key(|column| column.position);
        clustering.sort_by_key(|column| column.position);
        for list in [&mut statics, &mut regulars] {
            list.sort_by(|a, b| (a.is_complex(), name_order(&a.name)).cmp(&(b.is_complex(), name_order(&b.name))));
        }
        let mut next_id = previous.map_or(0, |table| table.next_id);
        for column in partition_key.iter_mut().chain(&mut clustering).chain(&mut statics).chain(&mut regulars) {
            let former = previous.and_then(|table| table.former_id(&column.name, column.kind, column.is_complex()));
            column.id = former.unwrap_or_else(|| next_of(&mut next_id));
        }
        let present: HashSet<&str> = statics.iter().chain(&regulars).map(|column| column.name.as_str()).collect();
        let gone = dropped.values().filter(|column| !present.contains(column.name.as_str()));
        let dropped_ids = gone
            .map(|column| {
                let complex = column.ty.is_multi_cell();
                let former = previous.and_then(|table| table.former_id(&column.name, column.kind, complex));
                (column.name.clone(), former.unwrap_or_else(|| next_of(&mut next_id)))
            })
            .collect();
        let comparator =
            ClusteringComparator::new(clustering.iter().map(|c| (c.ty.clone(), c.reversed)).collect::<Vec<_>>());
        let partition_key_type = match partition_key.as_slice() {
            [column] => column.ty.clone(),
            columns => {
                let types = columns.iter().map(|column| column.ty.clone()).collect();
                CqlType::Custom(Arc::new(CustomType::Composite(types)))
            }
        };
        let mut table = Self {
            id,
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            kind,
            flags,
            params,
            partition_key,
            clustering,
            statics,
            regulars,
            dropped,
            indexes: previous.map(|table| table.indexes.clone()).unwrap_or_default(),
            view: previous.and_then(|table| table.view.clone()),
            masks: previous.map(|table| table.masks.clone()).unwrap_or_default(),
            trigger_rows: previous.map(|table| table.trigger_rows.clone()).unwrap_or_default(),
            comparator,
            partition_key_type,
            local_order: None,
            by_name: HashMap::new(),
            by_id: vec![None; usize::from(next_id)],
            dropped_ids,
            next_id,
        };
        table.index_columns();
        // a mask is dropped with its column
        let by_name = &table.by_name;
        table.masks.retain(|column, _| by_name.contains_key(column));
        table.check();
        table
    }

    /// Asserts the invariants of columns: ids are unique and below `next_id`; static and regular
    /// columns stand in file order. Rows in memory and in files rely on both.
    fn check(&self) {
        let all = [&self.partition_key, &self.clustering, &self.statics, &self.regulars];
        let present = all.into_iter().flatten().map(|column| column.id);
        let mut ids: Vec<u16> = present.chain(self.dropped_ids.values().copied()).map(|id| id.0).collect();
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|a, b| a < b), "column ids of {}.{} are unique", self.keyspace, self.name);
        assert!(ids.last().is_none_or(|last| *last < self.next_id), "column ids are below the next one");
        let ascend = |a: &ColumnMetadata, b: &ColumnMetadata| {
            (a.is_complex(), name_order(&a.name)) < (b.is_complex(), name_order(&b.name))
        };
        for columns in [&self.statics, &self.regulars] {
            assert!(columns.is_sorted_by(&ascend), "columns of {}.{} stand in file order", self.keyspace, self.name);
        }
    }

    /// How many columns can be added or renamed yet. Ids have 16 bits, and a column keeps its id
    /// while the node runs, also when it is dropped.
    pub fn column_room(&self) -> usize {
        usize::from(u16::MAX - self.next_id)
    }

    /// The id that a column of this name, kind and form has here, or had when it was dropped.
    fn former_id(&self, name: &str, kind: ColumnKind, complex: bool) -> Option<ColumnId> {
        if let Some(column) = self.column_by_name(name) {
            return (column.kind == kind && column.is_complex() == complex).then_some(column.id);
        }
        let dropped = self.dropped.get(name)?;
        let is_same = dropped.kind == kind && dropped.ty.is_multi_cell() == complex;
        self.dropped_ids.get(name).copied().filter(|_| is_same)
    }

    fn index_columns(&mut self) {
        let mut by_name = HashMap::new();
        for list in [&self.partition_key, &self.clustering, &self.statics, &self.regulars] {
            for (index, column) in list.iter().enumerate() {
                by_name.insert(column.name.clone(), (column.kind, index));
                self.by_id[usize::from(column.id.0)] = Some((column.kind, index));
            }
        }
        self.by_name = by_name;
    }

    fn at(&self, place: (ColumnKind, usize)) -> &ColumnMetadata {
        match place.0 {
            ColumnKind::PartitionKey => &self.partition_key[place.1],
            ColumnKind::Clustering => &self.clustering[place.1],
            ColumnKind::Static => &self.statics[place.1],
            ColumnKind::Regular => &self.regulars[place.1],
        }
    }

    /// A column by name.
    pub fn column_by_name(&self, name: &str) -> Option<&ColumnMetadata> {
        self.by_name.get(name).map(|place| self.at(*place))
    }

    /// A column by its id. None: the column was dropped.
    pub fn column(&self, id: ColumnId) -> Option<&ColumnMetadata> {
        self.by_id.get(usize::from(id.0)).copied().flatten().map(|place| self.at(place))
    }

    /// The dropped columns that were not added again, with their ids: rows may have cells of them
    /// that are newer than the drop and count once more when the column is added again.
    pub fn dropped_columns(&self) -> impl Iterator<Item = (ColumnId, &DroppedColumn)> {
        self.dropped_ids.iter().filter_map(|(name, id)| Some((*id, self.dropped.get(name)?)))
    }

    /// The type of a column by its id, or of a dropped column that was not added again.
    pub fn type_of(&self, id: ColumnId) -> Option<&CqlType> {
        let dropped = || self.dropped_columns().find(|(dropped, _)| *dropped == id).map(|(_, column)| &column.ty);
        self.column(id).map(|column| &column.ty).or_else(dropped)
    }

    /// The id of a dropped column that was not added again.
    pub fn dropped_column_id(&self, name: &str) -> Option<ColumnId> {
        self.dropped_ids.get(name).copied()
    }

    /// One more than the greatest column id that was ever given.
    pub fn column_id_end(&self) -> u16 {
        self.next_id
    }

    /// The columns of `SELECT *` in its order: keys, then static and regular columns together by
    /// name. Hidden columns are left out.
    pub fn columns_in_select_order(&self) -> Vec<&ColumnMetadata> {
        let mut rest: Vec<_> = self.statics.iter().chain(&self.regulars).collect();
        rest.sort_by(|a, b| {
            (a.kind == ColumnKind::Regular, name_order(&a.name))
                .cmp(&(b.kind == ColumnKind::Regular, name_order(&b.name)))
        });
        let all = self.partition_key.iter().chain(&self.clustering).chain(rest);
        all.filter(|column| !self.is_hidden(column)).collect()
    }

    /// The types of all columns, dropped ones included.
    pub fn types(&self) -> impl Iterator<Item = &CqlType> {
        let columns = [&self.partition_key, &self.clustering, &self.statics, &self.regulars].into_iter().flatten();
        columns.map(|column| &column.ty).chain(self.dropped.values().map(|column| &column.ty))
    }

    /// The specifications of all columns, from which an altered table is built.
    pub fn specs(&self) -> Vec<ColumnSpec> {
        [&self.partition_key, &self.clustering, &self.statics, &self.regulars]
            .into_iter()
            .flatten()
            .map(|column| ColumnSpec {
                name: column.name.clone(),
                kind: column.kind,
                position: column.position,
                ty: column.ty.clone(),
                reversed: column.reversed,
            })
            .collect()
    }

    /// Whether the table has counters.
    pub fn is_counter(&self) -> bool {
        self.flags.counter
    }

    /// Whether the table has COMPACT STORAGE. CQL then does not show some of its columns.
    pub fn is_compact(&self) -> bool {
        self.flags.dense || self.flags.super_ || !self.flags.compound
    }

    /// Whether the table has COMPACT STORAGE and, for CQL, no clustering. A partition is then a
    /// row: its columns are stored as static columns, beside a hidden clustering column and a
    /// hidden value.
    pub fn is_static_compact(&self) -> bool {
        !self.flags.dense && !self.flags.super_ && !self.flags.compound
    }

    /// The value column of a table with COMPACT STORAGE. Its rows have no liveness: a row exists
    /// while this column has a value.
    pub fn compact_value(&self) -> Option<&ColumnMetadata> {
        if self.is_compact() { self.regulars.first() } else { None }
    }

    /// Whether CQL does not show the column: the value of a compact table that has only keys, or
    /// the clustering and value of a static compact table.
    pub fn is_hidden(&self, column: &ColumnMetadata) -> bool {
        let is_place = matches!(column.kind, ColumnKind::Clustering | ColumnKind::Regular);
        self.is_compact() && (column.ty == CqlType::Empty || (self.is_static_compact() && is_place))
    }

    /// The names of its triggers.
    pub fn triggers(&self) -> impl Iterator<Item = String> {
        let triggers = self.trigger_rows.iter().filter(|row| row.table == SchemaTable::Triggers);
        triggers.filter_map(|row| row.clustering.get(1)).map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// A partition key with its position among the partitions of the table.
    pub fn decorate(&self, key: Bytes) -> DecoratedKey {
        match &self.local_order {
            None => DecoratedKey::new(key),
            Some(ty) => DecoratedKey::local(ty, key),
        }
    }

    /// A partition key as `AbstractType.getString` prints it, with colons between the components of
    /// a composite.
    pub fn partition_key_text(&self, key: &[u8]) -> String {
        types::literal::to_plain_text(&self.partition_key_type, key)
    }

    /// Whether reads of the table may filter without ALLOW FILTERING.
    pub fn filters_implicitly(&self) -> bool {
        self.is_virtual() && self.name != "system_logs"
    }

    /// Whether rows of the table are live only while their liveness is, whatever cells they have.
    /// Agrees with `TableMetadata.enforceStrictLiveness`.
    #[inline]
    pub fn is_liveness_strict(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.has_base_column_in_key)
    }

    /// Whether the key of this table, as a view of `base`, has a column that is none of the base's
    /// key.
    pub fn has_column_in_key_beyond(&self, base: &TableMetadata) -> bool {
        let is_beyond = |column: &ColumnMetadata| {
            base.column_by_name(&column.name).is_some_and(|of_base| !of_base.is_primary_key())
        };
        self.partition_key.iter().chain(&self.clustering).any(is_beyond)
    }

    /// Whether the rows of the table are computed when they are read.
    pub fn is_virtual(&self) -> bool {
        self.kind == TableKind::Virtual
    }
}
