//! Whether the values of a row are values of their types. Agrees with
//! `UnfilteredRowIterators.withValidation` and `ColumnMetadata.validateCell`.

use rows::{Cell, ColumnData, Row, Unfiltered};
use schema::{ColumnMetadata, TableMetadata};
use types::CqlType;
use types::validate::validate;

/// The name of the first column whose value its type does not allow; None: all are sound.
pub fn invalid_column<'a>(table: &'a TableMetadata, unfiltered: &Unfiltered) -> Option<&'a str> {
    let of_clustering = table
        .clustering
        .iter()
        .zip(unfiltered.values())
        .find(|(column, value)| value.as_ref().is_some_and(|value| validate(&column.ty, value).is_err()));
    if let Some((column, _)) = of_clustering {
        return Some(&column.name);
    }
    match unfiltered {
        Unfiltered::Row(row) => invalid_column_of_row(table, row),
        Unfiltered::Marker(_) => None,
    }
}

/// The name of the first column of a row or static row whose cells are not sound; None: all are.
pub fn invalid_column_of_row<'a>(table: &'a TableMetadata, row: &Row) -> Option<&'a str> {
    row.columns.iter().find_map(|data| {
        let (id, cells) = match data {
            ColumnData::Simple(cell) => (cell.column, std::slice::from_ref(cell)),
            ColumnData::Complex(complex) => (complex.column, complex.cells.as_slice()),
        };
        // of a column that was dropped nothing is known
        let column = table.column(id)?;
        cells.iter().any(|cell| !is_valid(column, cell)).then_some(column.name.as_str())
    })
}

fn is_valid(column: &ColumnMetadata, cell: &Cell) -> bool {
    if column.ty.is_counter() {
        return true;
    }
    let value = |ty: &CqlType| cell.is_tombstone() || validate(ty, &cell.value).is_ok();
    let Some(path) = cell.path.as_deref().filter(|_| column.ty.is_multi_cell()) else { return value(&column.ty) };
    match &column.ty {
        CqlType::List { element, .. } => validate(&CqlType::TimeUuid, path).is_ok() && value(element),
        CqlType::Set { element, .. } => validate(element, path).is_ok(),
        CqlType::Map { key, value: of_value, .. } => validate(key, path).is_ok() && value(of_value),
        CqlType::Udt(udt, _) => {
            let field = path.try_into().ok().map(|bytes| usize::from(u16::from_be_bytes(bytes)));
            field.and_then(|field| udt.fields.get(field)).is_some_and(|(_, ty)| value(ty))
        }
        ty => value(ty),
    }
}
