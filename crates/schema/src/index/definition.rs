//! The parts of an index: the column that it indexes, which part of the column, and the hidden
//! table that holds the entries. Of a storage-attached index the hidden table has memtables only:
//! on disk its entries stand beside each SSTable of the base (docs/formats/attached-index.md).
//!
//! The partitions of the hidden table are the indexed values, ordered by their type. Its rows are
//! the positions in the base table at which the value stands: partition key, then clustering. A row
//! has no columns; its liveness is the entry. Agrees with
//! `org.apache.cassandra.index.internal.{CassandraIndex.indexCfsMetadata,CassandraIndexFunctions}`
//! and `index.TargetParser`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use types::similarity::float_dimension;
use types::{CqlType, CustomType, DecoratedKey, Similarity};

use super::attached::{OPTIMIZE_FOR, TextForm, has_ranges, is_attached, is_supported, similarity_of};
use super::sasi::{LikeKind, Sasi, is_sasi};
use crate::params::compaction::short_class;
use crate::table::ColumnSpec;
use crate::{
    ColumnKind, ColumnMetadata, IndexKind, IndexMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams,
};

/// The name of the indexed clustering column among the clustering columns of a hidden table. A
/// table that has it is never written to disk.
const INDEXED_CLUSTERING: &str = "indexed_clustering";

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
    /// `<`, `<=`, `>`, `>=`
    Range,
    /// ANN OF
    Ann,
    /// LIKE; which kind it is follows from its value.
    Like,
    /// LIKE of a kind.
    LikeOf(LikeKind),
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
    /// The form in which a storage-attached or SASI index compares text; None: a legacy index.
    pub attached: Option<TextForm>,
    /// The settings of a SASI index; None: an index of another class.
    pub sasi: Option<Sasi>,
    /// The function by which an index on vectors compares them; None: an index on anything else.
    pub vectors: Option<Similarity>,
    /// A search among vectors compares more candidates, so that it misses fewer of the nearest
    /// (`optimize_for: RECALL`).
    pub optimizes_recall: bool,
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
    /// The definition of an index. None: the index belongs to a class that is not kept up, or its
    /// target, type or options are not understood. `compatible`: the types of the hidden table are
    /// written as Cassandra 4 writes them (`storage_compatibility_mode`).
    pub fn of(base: &TableMetadata, index: &IndexMetadata, compatible: bool) -> Option<Self> {
        let (word, name) = parse_target(index.options.get("target")?);
        let column = base.column_by_name(&name)?;
        let sasi = if is_sasi(index) { Some(Sasi::of(index, &column.ty)?) } else { None };
        let attached = match index.kind {
            IndexKind::Custom if is_attached(index) => Some(TextForm::of(index)),
            IndexKind::Custom => Some(sasi?.form),
            IndexKind::Keys | IndexKind::Composites => None,
        };
        let part = part_of(column, word, index.kind)?;
        let vectors = match float_dimension(&column.ty) {
            Some(_) if attached.is_some() && sasi.is_none() && has_one_value(part) => Some(similarity_of(index)?),
            _ => None,
        };
        if attached.is_some() && vectors.is_none() && !has_terms(column, part) {
            return None;
        }
        let table = hidden_table(base, index, column, part, compatible, attached);
        let name = Arc::from(index.name.as_str());
        let optimizes_recall =
            index.options.get(OPTIMIZE_FOR).is_some_and(|value| value.eq_ignore_ascii_case("RECALL"));
        let table = Arc::new(table);
        Some(Self { name, column: column.clone(), part, table, attached, sasi, vectors, optimizes_recall })
    }

    /// Whether the entries of the index are kept as those of storage-attached ones are.
    pub fn is_attached(&self) -> bool {
        self.attached.is_some()
    }

    /// The class of the index.
    pub fn class(&self) -> IndexClass {
        match (&self.sasi, &self.attached) {
            (Some(_), _) => IndexClass::Sasi,
            (None, Some(_)) => IndexClass::Attached,
            (None, None) => IndexClass::Legacy,
        }
    }

    /// Whether an entry stands for a whole partition: the column has one value in it.
    pub fn is_of_partition(&self) -> bool {
        self.column.is_static() || matches!(self.part, IndexPart::PartitionKey(_))
    }

    /// The term by which an index finds a value: its byte-comparable form, of text in the form of
    /// the index. Two values that are equal by their type have one term.
    pub fn term(&self, value: Bytes) -> DecoratedKey {
        self.table.decorate(self.apply_text_form(&value))
    }

    /// A text in the form of the index.
    pub fn apply_text_form(&self, value: &Bytes) -> Bytes {
        match self.attached {
            Some(form) if !form.is_plain() && is_text(&self.column.ty, self.part) => {
                Bytes::from(form.apply(value).into_owned())
            }
            _ => value.clone(),
        }
    }

    /// Whether a value has an entry. As in Cassandra, an empty number, address or UUID has none in
    /// a storage-attached index, and is left out of what a read gives beside ([`excludes_empty`]).
    pub fn has_entry_for(&self, value: &[u8]) -> bool {
        if !value.is_empty() || self.class() != IndexClass::Attached {
            return true;
        }
        let (names, values) = cell_types(&self.column.ty);
        let ty = match self.part {
            IndexPart::Keys => &names,
            IndexPart::Values => &values,
            _ => &self.column.ty,
        };
        has_empty_terms(ty)
    }

    /// Whether the index can answer a restriction of its column with this operator.
    pub fn supports(&self, operator: IndexOperator) -> bool {
        if let Some(sasi) = &self.sasi {
            return match operator {
                IndexOperator::Eq => true,
                IndexOperator::Range => sasi.has_ranges(),
                IndexOperator::Like => sasi.is_literal,
                IndexOperator::LikeOf(kind) => sasi.answers(kind),
                IndexOperator::Contains | IndexOperator::ContainsKey | IndexOperator::Ann => false,
            };
        }
        match (self.part, operator) {
            (_, IndexOperator::Like | IndexOperator::LikeOf(_)) => false,
            (_, IndexOperator::Ann) => self.vectors.is_some(),
            _ if self.vectors.is_some() => false,
            (part @ (IndexPart::Keys | IndexPart::Values), operator) => answers(part, &self.column.ty, operator),
            (IndexPart::Entries | IndexPart::StaticCompact, IndexOperator::Range) => false,
            (_, IndexOperator::Range) => {
                self.is_attached() && (has_ranges(&self.column.ty) || is_falling_uuid(&self.column))
            }
            (_, operator) => operator == IndexOperator::Eq,
        }
    }

    /// The position of the clustering column that the places of entries leave out, because the
    /// term is its value. None: the places have every clustering column.
    pub fn omitted_clustering(&self) -> Option<usize> {
        omitted_clustering(self.part, self.attached)
    }

    /// Whether the index is on a key column, so that every row has an entry.
    pub fn is_of_key(&self) -> bool {
        matches!(self.part, IndexPart::PartitionKey(_) | IndexPart::Clustering(_))
    }
}

/// As [`IndexDefinition::omitted_clustering`]. A SASI index may be on a clustering column and
/// compare text in a form of its own: the term does not tell the value then, and several rows of a
/// partition may have one term.
fn omitted_clustering(part: IndexPart, attached: Option<TextForm>) -> Option<usize> {
    match part {
        IndexPart::Clustering(position) if attached.is_none_or(|form| form.is_plain()) => Some(position),
        _ => None,
    }
}

/// Whether a row has one value that an index on this part of a column is about.
fn has_one_value(part: IndexPart) -> bool {
    matches!(part, IndexPart::Value | IndexPart::Clustering(_) | IndexPart::PartitionKey(_))
}

/// The class of the indexes that answer a statement. Where several could, those of one class do, as
/// in Cassandra with its defaults: SASI before legacy ones, storage-attached ones last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum IndexClass {
    /// SASI indexes.
    Sasi,
    /// A legacy index.
    Legacy,
    /// Storage-attached indexes, or none.
    #[default]
    Attached,
}

impl IndexClass {
    /// The class that answers conditions, given as columns with their operators.
    pub fn of<'c>(
        table: &TableMetadata,
        conditions: impl Iterator<Item = (&'c ColumnMetadata, IndexOperator)>,
    ) -> Self {
        let definitions: Vec<_> =
            table.indexes.values().filter_map(|index| IndexDefinition::of(table, index, false)).collect();
        let classes = conditions.flat_map(|(column, operator)| {
            let is_able = move |one: &&IndexDefinition| one.column.name == column.name && one.supports(operator);
            definitions.iter().filter(is_able).map(IndexDefinition::class)
        });
        classes.min().unwrap_or(Self::Attached)
    }
}

/// Whether some index of a table compares text in a form of its own.
pub fn has_text_forms(table: &TableMetadata) -> bool {
    let is_plain = |index: &IndexMetadata| match is_sasi(index) {
        true => index.options.len() <= 2,
        false => !is_attached(index) || TextForm::of(index).is_plain(),
    };
    !table.indexes.values().all(is_plain)
}

/// The form in which a condition on a column compares text: that of a storage-attached or SASI
/// index that answers its operator, where indexes of that class answer the statement. None: text is
/// compared as it is, as in entries of maps, whose indexes have no other form.
pub fn text_form(
    table: &TableMetadata,
    column: &ColumnMetadata,
    operator: IndexOperator,
    index_class: IndexClass,
) -> Option<TextForm> {
    let is_kept = |index: &&IndexMetadata| match index_class {
        IndexClass::Sasi => is_sasi(index),
        IndexClass::Legacy => false,
        IndexClass::Attached => is_attached(index),
    };
    let forms = table.indexes.values().filter(is_kept).filter_map(|index| {
        let (word, name) = parse_target(index.options.get("target")?);
        if name != column.name || !answers(part_of(column, word, index.kind)?, &column.ty, operator) {
            return None;
        }
        match index_class {
            IndexClass::Sasi => Sasi::of(index, &column.ty).map(|sasi| sasi.form),
            _ => Some(TextForm::of(index)),
        }
    });
    forms.into_iter().find(|form| !form.is_plain())
}

/// Whether no row meets a comparison by an empty value of a column: storage-attached indexes answer
/// the comparison, and have no entries of such values. The rows that a read gives may have them all
/// the same, because an entry of a value that was replaced names the row, or because the read is a
/// scan. An index of another class on the column has such entries.
pub fn excludes_empty(table: &TableMetadata, column: &ColumnMetadata, operator: IndexOperator) -> bool {
    let is_answered = match operator {
        IndexOperator::Eq => true,
        IndexOperator::Range => has_ranges(&column.ty) || is_falling_uuid(column),
        _ => false,
    };
    let has_no_entry = is_answered && is_supported(&column.ty) && !has_empty_terms(&column.ty);
    if column.ty.is_multi_cell() || !has_no_entry {
        return false;
    }
    let target = |index: &IndexMetadata| index.options.get("target").map(|target| parse_target(target).1);
    let mut on_column = table.indexes.values().filter(|index| target(index).as_ref() == Some(&column.name)).peekable();
    on_column.peek().is_some() && on_column.all(is_attached)
}

/// Whether a column is a descending clustering column of UUIDs: only there does an attached index
/// answer ranges of them, as in Cassandra.
fn is_falling_uuid(column: &ColumnMetadata) -> bool {
    column.reversed && column.ty == CqlType::Uuid
}

/// Whether a storage-attached index has entries of empty values of a type.
fn has_empty_terms(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Text | CqlType::Ascii | CqlType::Boolean | CqlType::Tuple(_) | CqlType::Udt(..))
}

/// Whether an index on this part of a column is about what a condition compares.
fn answers(part: IndexPart, ty: &CqlType, operator: IndexOperator) -> bool {
    match (part, operator) {
        (IndexPart::Keys, IndexOperator::ContainsKey) | (IndexPart::Values, IndexOperator::Contains) => true,
        (IndexPart::Keys, IndexOperator::Contains) => matches!(ty, CqlType::Set { .. }),
        (IndexPart::Keys | IndexPart::Values | IndexPart::Entries, _) => false,
        (_, IndexOperator::Contains | IndexOperator::ContainsKey) => false,
        (_, _) => true,
    }
}

/// Whether all terms of an index have a type that storage-attached indexes take.
fn has_terms(column: &ColumnMetadata, part: IndexPart) -> bool {
    let (names, values) = cell_types(&column.ty);
    let is_of_entry = |ty: &CqlType| is_supported(ty) || matches!(ty, CqlType::Vector { .. });
    match part {
        IndexPart::Keys => is_supported(&names),
        IndexPart::Values => is_supported(&values),
        IndexPart::Entries => is_of_entry(&names) && is_of_entry(&values),
        _ => is_supported(&column.ty),
    }
}

/// Whether the terms of an index are text.
fn is_text(ty: &CqlType, part: IndexPart) -> bool {
    let (names, values) = cell_types(ty);
    let ty = match part {
        IndexPart::Keys => names,
        IndexPart::Values => values,
        IndexPart::Entries => return false,
        _ => ty.clone(),
    };
    matches!(ty, CqlType::Text | CqlType::Ascii)
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
    attached: Option<TextForm>,
) -> TableMetadata {
    let (names, values) = cell_types(&column.ty);
    // a descending clustering column has ReversedType, and its values are in descending order here
    // as well; those of a storage-attached index ascend, so that `<` and `>` are ranges of terms
    let own = match column.reversed && attached.is_none() {
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
        let omitted = omitted_clustering(part, attached);
        for own in base.clustering.iter().filter(|own| omitted != Some(own.position)) {
            // the partition key of this table has the name of the indexed column
            let is_indexed = part == IndexPart::Clustering(own.position);
            let name: &str = if is_indexed { INDEXED_CLUSTERING } else { &own.name };
            add(name, own.ty.clone(), own.reversed);
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

    /// A table with a map and a text, and indexes: name, kind, target, whether they fold cases.
    fn table(indexes: &[(&str, IndexKind, &str, bool)]) -> TableMetadata {
        let spec = |name: &str, kind, ty: &str| ColumnSpec {
            name: name.to_owned(),
            kind,
            position: 0,
            ty: types::cql_name::parse(ty, &|_| None).expect("a type"),
            reversed: false,
        };
        let specs = vec![
            spec("k", ColumnKind::PartitionKey, "int"),
            spec("m", ColumnKind::Regular, "map<text, text>"),
            spec("t", ColumnKind::Regular, "text"),
        ];
        let id = TableId::from_hex("66cc4370e59011f18d07ad9415c13406").expect("hex");
        let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
        let mut table =
            TableMetadata::new(id, "ks", "t", kind, flags, TableParams::default(), specs, BTreeMap::new(), None);
        for (name, kind, target, folds) in indexes {
            let mut options = BTreeMap::from([("target".to_owned(), (*target).to_owned())]);
            if *kind == IndexKind::Custom {
                options.insert("class_name".to_owned(), "sai".to_owned());
            }
            if *folds {
                options.insert("case_sensitive".to_owned(), "false".to_owned());
            }
            let name = (*name).to_owned();
            table.indexes.insert(name.clone(), IndexMetadata { name, kind: *kind, options });
        }
        table
    }

    #[test]
    fn comparisons_of_numbers_exclude_empty_values_where_attached_indexes_alone_answer() {
        use IndexOperator::{Contains, Eq, Range};
        let excludes = |indexes: &[(&str, IndexKind, &str, bool)], name: &str| {
            let table = table(indexes);
            let column = table.column_by_name(name).expect("a column");
            [Eq, Range, Contains].map(|operator| excludes_empty(&table, column, operator))
        };
        let attached = ("attached", IndexKind::Custom, "k", false);
        assert_eq!(excludes(&[attached], "k"), [true, true, false]);
        assert_eq!(excludes(&[], "k"), [false; 3]);
        assert_eq!(excludes(&[attached, ("legacy", IndexKind::Composites, "k", false)], "k"), [false; 3]);
        assert_eq!(excludes(&[("text", IndexKind::Custom, "t", false)], "t"), [false; 3]);
        assert_eq!(excludes(&[("keys", IndexKind::Custom, "keys(m)", false)], "m"), [false; 3]);
    }

    #[test]
    fn text_has_the_form_of_the_index_that_answers() {
        use IndexOperator::{Contains, ContainsKey, Eq};
        let has_form = |table: &TableMetadata, column: &str, operator, index_class| {
            let column = table.column_by_name(column).expect("a column");
            text_form(table, column, operator, index_class).is_some()
        };
        let keyed = table(&[
            ("keys", IndexKind::Custom, "keys(m)", true),
            ("values", IndexKind::Custom, "values(m)", false),
            ("text", IndexKind::Custom, "t", true),
        ]);
        assert!(has_text_forms(&keyed));
        assert!(has_form(&keyed, "m", ContainsKey, IndexClass::Attached));
        assert!(!has_form(&keyed, "m", Contains, IndexClass::Attached));
        // an entry of the map
        assert!(!has_form(&keyed, "m", Eq, IndexClass::Attached));
        assert!(has_form(&keyed, "t", Eq, IndexClass::Attached));
        assert!(!has_form(&keyed, "t", Eq, IndexClass::Legacy));

        let both =
            table(&[("attached", IndexKind::Custom, "t", true), ("legacy", IndexKind::Composites, "values(m)", false)]);
        let conditions = |wanted: &[(&str, IndexOperator)]| {
            let column = |name: &str| both.column_by_name(name).expect("a column");
            IndexClass::of(&both, wanted.iter().map(|(name, operator)| (column(name), *operator)))
        };
        assert_eq!(conditions(&[("t", Eq)]), IndexClass::Attached);
        assert_eq!(conditions(&[("t", Eq), ("m", Contains)]), IndexClass::Legacy);
        assert_eq!(conditions(&[("t", Eq), ("m", ContainsKey)]), IndexClass::Attached);
        assert!(!has_text_forms(&table(&[("legacy", IndexKind::Composites, "t", false)])));
    }
}
