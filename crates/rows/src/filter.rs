//! Conditions on rows that a node applies before it answers: those of ALLOW FILTERING, and those
//! that an index search leaves to check.
//!
//! Conditions on the partition key and on static columns decide about a whole partition, the others
//! about each row. A partition of which no row and no range tombstone is left is dropped if there
//! is a condition on rows.
//!
//! A condition is checked against the data that is live at the time of the read. If the answers of
//! several replicas will be merged (`needs_reconciliation`), deletions and expired cells are not
//! taken away first: a row that another replica has changed must be seen by the coordinator.
//!
//! Agrees with `org.apache.cassandra.db.filter.RowFilter` and `cql3.Operator.isSatisfiedBy`.

use std::sync::Arc;

use bytes::Bytes;
use schema::index::attached::TextForm;
use schema::index::definition::{IndexClass, IndexOperator, has_text_forms, text_form};
use schema::{ColumnId, ColumnKind, ColumnMetadata, TableMetadata};
use types::{CqlType, DecoratedKey};

use crate::{Cell, ColumnData, PartitionHead, PartitionStream, ReadError, Row, Unfiltered, counter};

/// A comparison of a column's value with a given one. The discriminants are the numbers in messages
/// between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operator {
    /// `=`
    Eq = 0,
    /// `>=`
    Gte = 1,
    /// `>`
    Gt = 2,
    /// `<=`
    Lte = 3,
    /// `<`
    Lt = 4,
    /// CONTAINS
    Contains = 5,
    /// CONTAINS KEY
    ContainsKey = 6,
    /// IN; the given value is a list.
    In = 7,
    /// `!=`
    Neq = 8,
    /// LIKE 'text%'
    LikePrefix = 10,
    /// LIKE '%text'
    LikeSuffix = 11,
    /// LIKE '%text%'
    LikeContains = 12,
    /// LIKE 'text'
    LikeMatches = 13,
    /// ANN OF; every row passes.
    Ann = 15,
}

impl Operator {
    const ALL: [Self; 14] = [
        Self::Eq,
        Self::Gte,
        Self::Gt,
        Self::Lte,
        Self::Lt,
        Self::Contains,
        Self::ContainsKey,
        Self::In,
        Self::Neq,
        Self::LikePrefix,
        Self::LikeSuffix,
        Self::LikeContains,
        Self::LikeMatches,
        Self::Ann,
    ];

    /// The operator with a number. None: rows cannot be filtered by it.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| *operator as i32 == number)
    }
}

// each operator is listed once
const _: () = {
    let mut at = 1;
    while at < Operator::ALL.len() {
        assert!((Operator::ALL[at - 1] as u8) < Operator::ALL[at] as u8);
        at += 1;
    }
};

/// One condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expression {
    /// `column operator value`
    Simple {
        /// The column, of any kind.
        column: ColumnId,
        /// The comparison.
        operator: Operator,
        /// The given value.
        value: Bytes,
    },
    /// `column[key] = value`
    MapEquality {
        /// The map.
        column: ColumnId,
        /// The key.
        key: Bytes,
        /// The given value.
        value: Bytes,
    },
    /// `expr(index, value)`: only the index knows what it means, and every row passes.
    Custom {
        /// The id of the index.
        index: [u8; 16],
        /// The given value.
        value: Bytes,
    },
}

impl Expression {
    /// The column; None: the condition is not about one.
    pub fn column(&self) -> Option<ColumnId> {
        match self {
            Self::Simple { column, .. } | Self::MapEquality { column, .. } => Some(*column),
            Self::Custom { .. } => None,
        }
    }
}

/// The rows that a statement looks for. The node that coordinates the statement checks the
/// conditions; replicas may check some of them before they answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantedRows {
    /// Conditions that the rows meet. The statement may have others.
    pub expressions: Vec<Expression>,
    /// Rows that meet these conditions that are wanted; `u32::MAX`: all, or the statement has other
    /// conditions.
    pub rows: u32,
}

/// Conditions that must all hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowFilter {
    /// The conditions.
    pub expressions: Vec<Expression>,
    /// Whether the answers of several replicas will be merged.
    pub needs_reconciliation: bool,
}

impl RowFilter {
    /// Whether every row passes.
    pub fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    /// Whether some condition is about a clustering or regular column.
    pub fn is_about_rows(&self, table: &TableMetadata) -> bool {
        self.expressions.iter().any(|expression| !is_of_partition(expression, table))
    }
}

fn is_of_partition(expression: &Expression, table: &TableMetadata) -> bool {
    let column = expression.column().and_then(|id| table.column(id));
    column.is_some_and(|column| matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static))
}

/// A condition, and the form in which text is compared: that of a storage-attached index on the
/// column.
struct Condition {
    expression: Expression,
    form: Option<TextForm>,
}

impl Condition {
    /// `index_class`: the class of indexes that answers the statement; None: no index has a form.
    fn of(expression: Expression, table: &TableMetadata, index_class: Option<IndexClass>) -> Self {
        let form = match &expression {
            // no index on entries has a form
            Expression::MapEquality { .. } => None,
            _ => condition(&expression, table)
                .zip(index_class)
                .and_then(|((column, operator), index_class)| text_form(table, column, operator, index_class)),
        };
        Self { expression, form }
    }
}

/// The class of indexes that answers the conditions. None: text is compared as it is anyway.
fn index_class(filter: &RowFilter, table: &TableMetadata) -> Option<IndexClass> {
    let conditions = || filter.expressions.iter().filter_map(|expression| condition(expression, table));
    has_text_forms(table).then(|| IndexClass::of(table, conditions()))
}

/// The column of a condition, and the operator by which an index may answer the condition in its
/// own form of text.
fn condition<'t>(expression: &Expression, table: &'t TableMetadata) -> Option<(&'t ColumnMetadata, IndexOperator)> {
    let column = expression.column().and_then(|id| table.column(id))?;
    let operator = match expression {
        Expression::Simple { operator, .. } => compares(*operator)?,
        Expression::MapEquality { .. } => IndexOperator::Eq,
        Expression::Custom { .. } => return None,
    };
    Some((column, operator))
}

/// An operator as indexes know it. None: the condition compares text as it is.
fn compares(operator: Operator) -> Option<IndexOperator> {
    match operator {
        Operator::Eq => Some(IndexOperator::Eq),
        Operator::Contains => Some(IndexOperator::Contains),
        Operator::ContainsKey => Some(IndexOperator::ContainsKey),
        Operator::LikePrefix | Operator::LikeSuffix | Operator::LikeContains | Operator::LikeMatches => {
            Some(IndexOperator::Like)
        }
        Operator::Gte | Operator::Gt | Operator::Lte | Operator::Lt | Operator::In | Operator::Neq | Operator::Ann => {
            None
        }
    }
}

/// The partitions and rows of a stream that meet a filter. Range tombstones and deletions of
/// partitions that are kept pass unchanged.
pub struct FilteredStream<S> {
    stream: S,
    table: Arc<TableMetadata>,
    of_partition: Vec<Condition>,
    of_rows: Vec<Condition>,
    needs_reconciliation: bool,
    now: u32,
    key: Option<DecoratedKey>,
    /// The first item of the partition, read to find out whether there is one.
    first: Option<Unfiltered>,
}

impl<S: PartitionStream> FilteredStream<S> {
    /// The rows of `stream` that meet `filter` at the time `now`, seconds.
    pub fn new(stream: S, table: &Arc<TableMetadata>, filter: &RowFilter, now: u32) -> Self {
        let (of_partition, of_rows): (Vec<_>, Vec<_>) =
            filter.expressions.iter().cloned().partition(|expression| is_of_partition(expression, table));
        let index_class = index_class(filter, table);
        let conditions =
            |list: Vec<Expression>| list.into_iter().map(|one| Condition::of(one, table, index_class)).collect();
        Self {
            stream,
            table: Arc::clone(table),
            of_partition: conditions(of_partition),
            of_rows: conditions(of_rows),
            needs_reconciliation: filter.needs_reconciliation,
            now,
            key: None,
            first: None,
        }
    }

    fn passes(&self, conditions: &[Condition], key: &DecoratedKey, row: Option<&Row>, live_only: bool) -> bool {
        let is_met = |condition: &Condition| {
            let form = condition.form.unwrap_or(TextForm::PLAIN);
            let view = View { table: &self.table, key, row, now: self.now, live_only, form };
            view.satisfies(&condition.expression)
        };
        conditions.iter().all(is_met)
    }

    fn keeps(&self, row: &Row) -> bool {
        if self.of_rows.is_empty() && (self.needs_reconciliation || self.of_partition.is_empty()) {
            return true;
        }
        if !self.needs_reconciliation && !has_live_data(row, &self.table, self.now) {
            return false;
        }
        self.key.as_ref().is_some_and(|key| self.passes(&self.of_rows, key, Some(row), !self.needs_reconciliation))
    }

    fn next_kept(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            match self.stream.next_unfiltered()? {
                Some(Unfiltered::Row(row)) if !self.keeps(&row) => {}
                other => return Ok(other),
            }
        }
    }
}

/// Whether anything of a row is left once its deletions and what is dead are taken away.
fn has_live_data(row: &Row, table: &TableMetadata, now: u32) -> bool {
    if table.is_liveness_strict() && !row.liveness.is_live(now) {
        return false;
    }
    row.is_live(now)
}

impl<S: PartitionStream> PartitionStream for FilteredStream<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.first = None;
        while let Some(head) = self.stream.next_partition()? {
            if !self.passes(&self.of_partition, &head.key, head.static_row.as_deref(), true) {
                continue;
            }
            self.key = Some(head.key.clone());
            if self.of_rows.is_empty() {
                return Ok(Some(head));
            }
            self.first = self.next_kept()?;
            if self.first.is_some() {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.next_kept(),
        }
    }
}

/// A row as conditions see it.
struct View<'a> {
    table: &'a TableMetadata,
    key: &'a DecoratedKey,
    row: Option<&'a Row>,
    now: u32,
    /// Whether cells that are dead do not count.
    live_only: bool,
    /// The form in which text is compared.
    form: TextForm,
}

impl View<'_> {
    fn satisfies(&self, expression: &Expression) -> bool {
        match expression {
            Expression::Custom { .. } => true,
            Expression::Simple { column, operator, value } => {
                self.table.column(*column).is_some_and(|column| self.compares(column, *operator, value))
            }
            Expression::MapEquality { column, key, value } => {
                self.table.column(*column).is_some_and(|column| self.maps(column, key, value))
            }
        }
    }

    /// The value of a column that is not stored cell by cell.
    fn value(&self, column: &ColumnMetadata) -> Option<Bytes> {
        match column.kind {
            ColumnKind::PartitionKey => {
                let components = types::composite::decompose(&self.key.key, self.table.partition_key.len())?;
                components.get(column.position).map(|component| self.key.key.slice_ref(component))
            }
            ColumnKind::Clustering => self.row?.clustering.get(column.position)?.clone(),
            ColumnKind::Static | ColumnKind::Regular => match self.row?.column(column.id)? {
                ColumnData::Simple(cell) if cell.is_live(self.now) => Some(cell.value.clone()),
                ColumnData::Simple(_) | ColumnData::Complex(_) => None,
            },
        }
    }

    fn is_equal(&self, ty: &CqlType, found: &[u8], given: &[u8]) -> bool {
        match is_text(ty) {
            true => self.form.apply(found) == self.form.apply(given),
            false => types::compare(ty, found, given).is_eq(),
        }
    }

    /// The cells of a column that is stored cell by cell.
    fn cells(&self, column: &ColumnMetadata) -> impl Iterator<Item = &Cell> {
        let data = self.row.and_then(|row| row.column(column.id));
        let cells: &[Cell] = match data {
            Some(ColumnData::Complex(complex)) => &complex.cells,
            Some(ColumnData::Simple(_)) | None => &[],
        };
        cells.iter().filter(|cell| !self.live_only || cell.is_live(self.now))
    }

    fn compares(&self, column: &ColumnMetadata, operator: Operator, given: &Bytes) -> bool {
        match operator {
            Operator::Contains => self.contains(column, given),
            Operator::ContainsKey => self.entry(column, given).is_some(),
            _ => self.value(column).is_some_and(|found| match &column.ty {
                CqlType::Counter => holds(operator, &CqlType::BigInt, &counter::total(&found).to_be_bytes(), given),
                ty if is_text(ty) => holds(operator, ty, &self.form.apply(&found), &self.form.apply(given)),
                ty => holds(operator, ty, &found, given),
            }),
        }
    }

    fn maps(&self, column: &ColumnMetadata, key: &Bytes, given: &Bytes) -> bool {
        let CqlType::Map { value, .. } = &column.ty else { return false };
        self.entry(column, key).is_some_and(|found| self.is_equal(value, &found, given))
    }

    fn contains(&self, column: &ColumnMetadata, given: &Bytes) -> bool {
        let (CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Map { value: element, .. }) =
            &column.ty
        else {
            return false;
        };
        let is_same = |found: &[u8]| self.is_equal(element, found, given);
        if column.is_complex() {
            let is_set = matches!(column.ty, CqlType::Set { .. });
            let element = |cell: &Cell| if is_set { cell.path.clone().unwrap_or_default() } else { cell.value.clone() };
            return self.cells(column).any(|cell| is_same(&element(cell)));
        }
        let Some(found) = self.value(column) else { return false };
        match &column.ty {
            CqlType::Map { .. } => types::collection::entries(&found).any(|(_, value)| is_same(value)),
            _ => types::collection::elements(&found).any(is_same),
        }
    }

    /// The value of a map under a key.
    fn entry(&self, column: &ColumnMetadata, wanted: &Bytes) -> Option<Bytes> {
        let CqlType::Map { key, .. } = &column.ty else { return None };
        let is_wanted = |found: &[u8]| self.is_equal(key, found, wanted);
        if column.is_complex() {
            let mut cells = self.cells(column);
            return cells
                .find(|cell| is_wanted(cell.path.as_deref().unwrap_or_default()))
                .map(|cell| cell.value.clone());
        }
        let found = self.value(column)?;
        let entry = types::collection::entries(&found).find(|(key, _)| is_wanted(key));
        entry.map(|(_, value)| found.slice_ref(value))
    }
}

fn is_text(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Text | CqlType::Ascii)
}

fn holds(operator: Operator, ty: &CqlType, found: &[u8], given: &[u8]) -> bool {
    let order = || types::compare(ty, found, given);
    let holds_text = || given.is_empty() || found.windows(given.len()).any(|part| part == given);
    match operator {
        Operator::Eq => order().is_eq(),
        Operator::Gte => order().is_ge(),
        Operator::Gt => order().is_gt(),
        Operator::Lte => order().is_le(),
        Operator::Lt => order().is_lt(),
        Operator::Neq => order().is_ne(),
        Operator::In => types::collection::elements(given).any(|given| types::compare(ty, found, given).is_eq()),
        Operator::LikePrefix => found.starts_with(given),
        Operator::LikeSuffix => found.ends_with(given),
        Operator::LikeContains | Operator::LikeMatches => holds_text(),
        Operator::Ann => true,
        Operator::Contains | Operator::ContainsKey => false,
    }
}
