//! How nodetool writes tables, sizes and times. Agrees with `TableBuilder` and
//! `FBUtilities.prettyPrintMemory`.

use std::io::{self, Write};

pub(crate) use stdx::memory_text as memory;

pub(crate) use crate::units::{date_time, file_size};

/// Rows in columns as wide as their widest cell, padded to the end.
pub(crate) struct Table {
    delimiter: &'static str,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Columns one blank apart.
    pub(crate) fn new() -> Self {
        Self { delimiter: " ", rows: Vec::new() }
    }

    /// Columns two blanks apart.
    pub(crate) fn wide() -> Self {
        Self { delimiter: "  ", rows: Vec::new() }
    }

    /// Columns with a bar between them.
    pub(crate) fn barred() -> Self {
        Self { delimiter: " | ", rows: Vec::new() }
    }

    /// Adds a row; rows may differ in length.
    pub(crate) fn add<T: Into<String>>(&mut self, row: impl IntoIterator<Item = T>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// The widths of columns that several tables share.
    pub(crate) fn widths_of(tables: &[Self]) -> Vec<usize> {
        let rows = || tables.iter().flat_map(|table| &table.rows);
        let columns = rows().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| rows().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }

    /// Writes all rows.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        self.print_in(&Self::widths_of(std::slice::from_ref(self)), out)
    }

    /// Writes all rows in columns of these widths.
    pub(crate) fn print_in(&self, widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
        for row in &self.rows {
            let cell = |column: usize| row.get(column).map_or("", String::as_str);
            let cells: Vec<String> =
                widths.iter().enumerate().map(|(column, width)| format!("{:<width$}", cell(column))).collect();
            writeln!(out, "{}", cells.join(self.delimiter))?;
        }
        Ok(())
    }
}

/// A time as `2026-11-23 04:35:34,012`, in UTC.
pub(crate) fn log_time(millis: i64) -> String {
    let second = date_time(millis - millis.rem_euclid(1000)).replace('T', " ");
    format!("{second},{:03}", millis.rem_euclid(1000))
}

/// A number with some decimals, as `12.345`; `NaN` for None.
pub(crate) fn decimals(value: Option<f64>, digits: usize) -> String {
    value.map_or("NaN".to_owned(), |value| format!("{value:.digits$}"))
}
