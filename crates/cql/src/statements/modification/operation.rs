//! Operations of a statement on one column of a row. `apply` carries them out.
//!
//! Agrees with the `Operation` classes in
//! `org.apache.cassandra.cql3.{Constants,Lists,Sets,Maps,UserTypes}`.

use schema::{ColumnId, ColumnMetadata};
use types::CqlType;

use crate::terms::Term;

/// A column and its type.
#[derive(Clone, Debug)]
pub(crate) struct TypedColumn {
    /// The id of the column.
    pub id: ColumnId,
    /// The type of the column.
    pub ty: CqlType,
}

impl From<&ColumnMetadata> for TypedColumn {
    fn from(column: &ColumnMetadata) -> Self {
        Self { id: column.id, ty: column.ty.clone() }
    }
}

/// An operation on a column.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// A value for a column of one cell.
    Set(ColumnId, Term),
    /// A value for a column of many cells: what was there goes.
    SetComplex(TypedColumn, Term),
    /// `c = c + n`, of a counter.
    Increment(ColumnId, Term),
    /// `c = c - n`, of a counter.
    Decrement(ColumnId, Term),
    /// `n = n + 1`, `t = t + 'x'` in a conditional statement.
    AddValue(TypedColumn, Term),
    /// Elements for a collection of many cells.
    Add(TypedColumn, Term),
    /// Elements before those of a list.
    Prepend(TypedColumn, Term),
    /// `l = l - […]`: elements equal to these go.
    DiscardFromList(ColumnId, Term),
    /// `s = s - {…}`, `m = m - {…}`: these go.
    Discard(TypedColumn, Term),
    /// `m[k] = v`
    SetKey(ColumnId, Term, Term),
    /// `l[i] = v`
    SetIndex(ColumnId, Term, Term),
    /// `u.f = v`
    SetField(ColumnId, usize, Term),
    /// `DELETE c`, of one cell or many.
    Delete(ColumnId, bool),
    /// `DELETE m[k]`, `DELETE s[e]`
    DeleteKey(TypedColumn, Term),
    /// `DELETE l[i]`
    DeleteIndex(ColumnId, Term),
    /// `DELETE u.f`
    DeleteField(ColumnId, usize),
}

impl Operation {
    /// The column.
    pub fn column(&self) -> ColumnId {
        match self {
            Self::Set(id, _)
            | Self::Increment(id, _)
            | Self::Decrement(id, _)
            | Self::DiscardFromList(id, _)
            | Self::SetKey(id, ..)
            | Self::SetIndex(id, ..)
            | Self::SetField(id, ..)
            | Self::Delete(id, _)
            | Self::DeleteIndex(id, _)
            | Self::DeleteField(id, _) => *id,
            Self::SetComplex(column, _)
            | Self::AddValue(column, _)
            | Self::Add(column, _)
            | Self::Prepend(column, _)
            | Self::Discard(column, _)
            | Self::DeleteKey(column, _) => column.id,
        }
    }

    /// Must see the row as it is.
    pub fn requires_read(&self) -> bool {
        matches!(self, Self::AddValue(..) | Self::DiscardFromList(..) | Self::SetIndex(..) | Self::DeleteIndex(..))
    }

    /// Whether each time that the operation is applied adds something: an increment, or elements of
    /// a list, which have places of their own. Others write the same again.
    pub fn adds_up(&self) -> bool {
        match self {
            Self::Increment(..) | Self::Decrement(..) | Self::Prepend(..) => true,
            Self::SetComplex(column, _) | Self::Add(column, _) => matches!(column.ty, CqlType::List { .. }),
            _ => false,
        }
    }

    /// The name that guardrails give to an operation that reads a list before it writes; None: it
    /// reads nothing.
    pub fn reading_list(&self) -> Option<&'static str> {
        match self {
            Self::SetIndex(..) => Some("Setting of list items by index requiring read before write"),
            Self::DiscardFromList(..) => Some("Removal of list items requiring read before write"),
            Self::DeleteIndex(..) => Some("Removal of list items by index requiring read before write"),
            _ => None,
        }
    }
}
