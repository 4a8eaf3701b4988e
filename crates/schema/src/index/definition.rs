//! The parts of a legacy index: the column that it indexes, which part of the column, and the
//! hidden table that holds the entries.
//!
//! The partitions of the hidden table are the indexed values, ordered by their type. Its rows are
//! the positions in the base table at which the value stands: partition key, then clustering. A row
//! has no columns; its liveness is the entry. Agrees with
//! `org.apache.cassandra.index.internal.{CassandraIndex.indexCfsMetadata,CassandraIndexFunctions}`
//! and `index.TargetParser`.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{CqlType, CustomType};

use crate::params::compaction::short_class;
use crate::table::ColumnSpec;
use crate::{
    ColumnKind, ColumnMetadata, IndexKind, IndexMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams,
};

/// The part of its column that an index holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexPart {
    /// The value of a simple column, static or not.
    Value,
    /// A component of the partition key.
    PartitionKey(usize),
    /// A clustering column.
    Clustering(usize),
    /// Elements of a set, keys of a map.
    Keys,
    /// Elements of a list, values of a map.
    Values,
    /// Keys of a map with their values.
    Entries,
    /// The value of a column of a static compact table, where a partition is a row. Kind KEYS.
    StaticCompact,
}

/// The operator of a restriction that an index may answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexOperator {
    /// `=`, on the column or on an entry of a map.
    Eq,
    /// CONTAINS
    Contains,
    /// CONTAINS KEY
    ContainsKey,
}

/// An index that this node maintains.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexDefinition {
    /// The name of the index.
    pub name: Arc<str>,
    /// The column that it indexes.
    pub column: ColumnMetadata,
    /// The part of the column that it holds.
    pub part: IndexPart,
    /// The hidden table with the entries.
    pub table: Arc<TableMetadata>,
}

/// Takes a `target` option apart, for instance `keys(c)` or `"Quoted"`: the word before the
/// parentheses, None without them, and the column.
pub fn parse_target(target: &str) -> (Option<&str>, String) {
    let parts = ["keys", "entries", "values", "full"].into_iter().find_map(|word| {
        let inside = target.strip_prefix(word)?.strip_prefix('(')?.strip_suffix(')')?;
        Some((word, inside))
    });
    let (word, name) = parts.map_or((None, target), |(word, inside)| (Some(word), inside));
    let name = match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_owned(),
    };
    (word, name)
}

impl IndexDefinition {
    /// The definition of a legacy index. None: the index belongs to another class, or its target is
    /// not understood. `compatible`: the types of the hidden table are written as Cassandra 4
    /// writes them (`storage_compatibility_mode`).
    pub fn of(base: &TableMetadata, index: &IndexMetadata, compatible: bool) -> Option<Self> {
        if index.kind == IndexKind::Custom {
            return None;
        }
        let (word, name) = parse_target(index.options.get("target")?);
        let column = base.column_by_name(&name)?;
        let part = part_of(column, word, index.kind)?;
        let table = hidden_table(base, index, column, part, compatible);
        Some(Self { name: Arc::from(index.name.as_str()), column: column.clone(), part, table: Arc::new(table) })
    }

    /// Whether the index can answer a restriction of its column with this operator.
    pub fn supports(&self, operator: IndexOperator) -> bool {
        match (self.part, operator) {
            (IndexPart::Keys, IndexOperator::ContainsKey) => true,
            (IndexPart::Keys, IndexOperator::Contains) => matches!(self.column.ty, CqlType::Set { .. }),
            (IndexPart::Values, IndexOperator::Contains) => true,
            (IndexPart::Keys | IndexPart::Values, _) => false,
            (_, operator) => operator == IndexOperator::Eq,
        }
    }

    /// Whether the index is on a key column, so that every row has an entry.
    pub fn is_of_key(&self) -> bool {
        matches!(self.part, IndexPart::PartitionKey(_) | IndexPart::Clustering(_))
    }
}

fn part_of(column: &ColumnMetadata, word: Option<&str>, kind: IndexKind) -> Option<IndexPart> {
    if kind == IndexKind::Keys {
        return Some(IndexPart::StaticCompact);
    }
    if column.ty.is_multi_cell() {
        return match &column.ty {
            CqlType::List { .. } => Some(IndexPart::Values),
            CqlType::Set { .. } => Some(IndexPart::Keys),
            CqlType::Map { .. } => match word {
                Some("keys") => Some(IndexPart::Keys),
                Some("entries") => Some(IndexPart::Entries),
                _ => Some(IndexPart::Values),
            },
            _ => None,
        };
    }
    Some(match column.kind {
        ColumnKind::PartitionKey => IndexPart::PartitionKey(column.position),
        ColumnKind::Clustering => IndexPart::Clustering(column.position),
        ColumnKind::Static | ColumnKind::Regular => IndexPart::Value,
    })
}

/// The types of the names and of the values of a collection's cells.
fn cell_types(ty: &CqlType) -> (CqlType, CqlType) {
    match ty {
        CqlType::List { element, .. } => (CqlType::TimeUuid, (**element).clone()),
        CqlType::Set { element, .. } => ((**element).clone(), CqlType::Empty),
        CqlType::Map { key, value, .. } => ((**key).clone(), (**value).clone()),
        other => (CqlType::Empty, other.clone()),
    }
}

fn hidden_table(
    base: &TableMetadata,
    index: &IndexMetadata,
    column: &ColumnMetadata,
    part: IndexPart,
    compatible: bool,
) -> TableMetadata {
    let (names, values) = cell_types(&column.ty);
    // a descending clustering column has ReversedType, and its values are in descending order here
    // as well
    let own = match column.reversed {
        true => CqlType::Custom(Arc::new(CustomType::Reversed(column.ty.clone()))),
        false => column.ty.clone(),
    };
    let (order, key_type) = match part {
        IndexPart::Keys => (names.clone(), names.clone()),
        IndexPart::Values => (values.clone(), values),
        IndexPart::Entries => {
            (CqlType::Custom(Arc::new(CustomType::Composite(vec![names.clone(), values]))), column.ty.clone())
        }
        _ => (own.clone(), own.clone()),
    };
    let key_type = if compatible { own } else { key_type };
    let base_key = (!compatible).then(|| base.partition_key_type.clone());
    let mut specs = vec![
        spec(&column.name, ColumnKind::PartitionKey, 0, key_type, false),
        spec(
            "partition_key",
            ColumnKind::Clustering,
            0,
            CqlType::Custom(Arc::new(CustomType::PartitionerDefinedOrder(base_key))),
            false,
        ),
    ];
    let mut position = 1;
    let mut add = |name: &str, ty: CqlType, reversed: bool| {
        specs.push(spec(name, ColumnKind::Clustering, position, ty, reversed));
        position += 1;
    };
    if part != IndexPart::StaticCompact {
        for own in base.clustering.iter().filter(|own| part != IndexPart::Clustering(own.position)) {
            add(&own.name, own.ty.clone(), own.reversed);
        }
    }
    if part == IndexPart::Values {
        add("cell_path", names, false);
    }
    let name = format!("{}.{}", base.name, index.name);
    let id = TableId::of_system_table(&base.keyspace, &name);
    let mut table = TableMetadata::new(
        id,
        &base.keyspace,
        &name,
        TableKind::Index,
        TableFlags::COMPOUND,
        params(&base.params),
        specs,
        BTreeMap::new(),
        None,
    );
    table.local_order = Some(order);
    table
}

fn spec(name: &str, kind: ColumnKind, position: usize, ty: CqlType, reversed: bool) -> ColumnSpec {
    ColumnSpec { name: name.to_owned(), kind, position, ty, reversed }
}

/// The options of the hidden table. Deleted entries need no grace time, because each node has its
/// own index.
fn params(base: &TableParams) -> TableParams {
    let mut params = base.clone();
    params.gc_grace_seconds = 0;
    params.default_time_to_live = 0;
    // the other strategies divide by token, and the keys of this table have none
    if short_class(&params.compaction) != "SizeTieredCompactionStrategy" {
        params.compaction = TableParams::default().compaction;
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        assert_eq!(parse_target("v"), (None, "v".to_owned()));
        assert_eq!(parse_target("keys(m)"), (Some("keys"), "m".to_owned()));
        assert_eq!(parse_target("full(\"A\"\"b\")"), (Some("full"), "A\"b".to_owned()));
        assert_eq!(parse_target("\"values(x)\""), (None, "values(x)".to_owned()));
    }
}
