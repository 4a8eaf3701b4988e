//! Rows as text: tables and expanded rows as cqlsh prints them, JSON, CSV.

use types::json::{put_json, put_json_string};
use unicode_width::UnicodeWidthStr;

use crate::connection::{Column, Page};
use crate::value::{self, RESET, Style};

/// The forms in which rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// cqlsh's tables.
    Table,
    /// One JSON object a line.
    Json,
    /// CSV with a header.
    Csv,
}

/// A text with its width in columns of the terminal and its colour.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The text.
    pub text: String,
    width: usize,
    color: &'static str,
}

impl Cell {
    /// A cell; an empty colour is none.
    pub fn new(text: String, color: &'static str) -> Self {
        Self { width: text.width(), text, color }
    }

    fn put(&self, out: &mut String, width: usize, right: bool, colored: bool) {
        let padding = " ".repeat(width.saturating_sub(self.width));
        if right {
            out.push_str(&padding);
        }
        match colored && !self.color.is_empty() {
            true => [self.color, &self.text, RESET].iter().for_each(|part| out.push_str(part)),
            false => out.push_str(&self.text),
        }
        if !right {
            out.push_str(&padding);
        }
    }
}

/// Names and values of a page as cells.
pub fn cells(page: &Page, style: &Style) -> Result<(Vec<Cell>, Vec<Vec<Cell>>), stdx::CursorError> {
    let names = page.columns.iter().map(|column| Cell::new(escaped(&column.name), value::MAGENTA)).collect();
    let mut rows = Vec::new();
    page.each_row(|row| {
        let cells = row.iter().zip(page.columns.iter()).map(|(bytes, column)| {
            Cell::new(value::show(&column.ty, *bytes, style), value::color(&column.ty, bytes.is_none()))
        });
        rows.push(cells.collect());
        Ok::<(), stdx::CursorError>(())
    })?;
    Ok((names, rows))
}

fn escaped(name: &str) -> String {
    value::show(&types::CqlType::Text, Some(name.as_bytes()), &Style::default())
}

fn widths(names: &[Cell], rows: &[Vec<Cell>]) -> Vec<usize> {
    let mut widths: Vec<usize> = names.iter().map(|name| name.width).collect();
    for row in rows {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.width));
    }
    widths
}

/// Columns of the terminal that a table takes.
pub fn width(names: &[Cell], rows: &[Vec<Cell>]) -> usize {
    widths(names, rows).iter().map(|width| width + 3).sum::<usize>().saturating_sub(1)
}

/// A table.
pub fn table(names: &[Cell], rows: &[Vec<Cell>], header: bool, colored: bool) -> String {
    let widths = widths(names, rows);
    let mut out = String::new();
    if header {
        let mut line = String::from(" ");
        for (at, (name, width)) in names.iter().zip(&widths).enumerate() {
            line.push_str(if at == 0 { "" } else { " | " });
            name.put(&mut line, *width, false, colored);
        }
        out.push_str(line.trim_end());
        out.push('\n');
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        out.push_str(&rules.join("+"));
        out.push('\n');
    }
    for row in rows {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            out.push_str(if at == 0 { " " } else { " | " });
            cell.put(&mut out, *width, true, colored);
        }
        out.push('\n');
    }
    out
}

/// Each row as lines of a name and a value. `first` is the number of the first row.
pub fn expanded(names: &[Cell], rows: &[Vec<Cell>], first: usize, colored: bool) -> String {
    let name_width = names.iter().map(|name| name.width).max().unwrap_or(0);
    let value_width = rows.iter().flatten().map(|cell| cell.width).max().unwrap_or(0);
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        out.push_str(&format!("@ Row {}\n", first + at));
        out.push_str(&format!("{}+{}\n", "-".repeat(name_width + 2), "-".repeat(value_width + 2)));
        for (name, cell) in names.iter().zip(row) {
            out.push(' ');
            name.put(&mut out, name_width, false, colored);
            out.push_str(" | ");
            cell.put(&mut out, 0, false, colored);
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

/// The rows of a page as JSON objects, one a line; the values are those of SELECT JSON.
pub fn json(page: &Page) -> Result<String, stdx::CursorError> {
    let mut out = String::new();
    page.each_row(|row| {
        for (at, (bytes, column)) in row.iter().zip(page.columns.iter()).enumerate() {
            out.push_str(if at == 0 { "{" } else { ", " });
            put_json_string(&mut out, &column.name);
            out.push_str(": ");
            match bytes {
                Some(bytes) => put_json(&mut out, &column.ty, bytes),
                None => out.push_str("null"),
            }
        }
        out.push_str("}\n");
        Ok::<(), stdx::CursorError>(())
    })?;
    Ok(out)
}

/// The names of columns as a line of CSV.
pub fn csv_header(columns: &[Column]) -> String {
    csv_line(columns.iter().map(|column| (column.name.clone(), false)))
}

/// The rows of a page as CSV. A null is an empty field, an empty text is `""`.
pub fn csv(page: &Page, style: &Style) -> Result<String, stdx::CursorError> {
    let style = Style { null: String::new(), escape: false, ..style.clone() };
    let mut out = String::new();
    page.each_row(|row| {
        let fields = row.iter().zip(page.columns.iter());
        out.push_str(&csv_line(
            fields
                .map(|(bytes, column)| (value::show(&column.ty, *bytes, &style), bytes.is_some_and(<[u8]>::is_empty))),
        ));
        Ok::<(), stdx::CursorError>(())
    })?;
    Ok(out)
}

/// A line of fields; a field with `true` stands in quotes in any case.
fn csv_line(fields: impl Iterator<Item = (String, bool)>) -> String {
    let mut out = String::new();
    for (at, (field, in_quotes)) in fields.enumerate() {
        out.push_str(if at == 0 { "" } else { "," });
        match field.as_str() {
            text if in_quotes || text.contains([',', '"', '\n', '\r']) => {
                out.push('"');
                out.push_str(&text.replace('"', "\"\""));
                out.push('"');
            }
            text => out.push_str(text),
        }
    }
    out.push('\n');
    out
}

/// Names in columns, filled downwards, as wide as `width` allows; cqlsh's lists.
pub fn columnize(names: &[String], width: usize) -> String {
    if names.is_empty() {
        return "<empty>\n".to_owned();
    }
    let count = names.len();
    for rows in 1..=count {
        let columns = count.div_ceil(rows);
        let column = |at: usize| names.iter().skip(at * rows).take(rows);
        let widths: Vec<usize> =
            (0..columns).map(|at| column(at).map(|name| name.width()).max().unwrap_or(0)).collect();
        let total = widths.iter().sum::<usize>() + 2 * (columns - 1);
        if total > width && rows < count {
            continue;
        }
        let mut out = String::new();
        for row in 0..rows {
            let cells = (0..columns).filter_map(|at| column(at).nth(row).map(|name| (name, widths[at])));
            let cells: Vec<String> =
                cells.map(|(name, width)| format!("{name}{}", " ".repeat(width - name.width()))).collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        return out;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(texts: &[&str]) -> Vec<Cell> {
        texts.iter().map(|text| Cell::new((*text).to_owned(), "")).collect()
    }

    #[test]
    fn tables_and_expanded_rows() {
        let (names, rows) = (cells(&["k", "name"]), vec![cells(&["1", "a"]), cells(&["10", "日本"])]);
        assert_eq!(table(&names, &rows, true, false), " k  | name\n----+------\n  1 |    a\n 10 | 日本\n");
        assert_eq!(width(&names, &rows), 11);
        let text = "@ Row 1\n------+----\n k    | 1\n name | a\n\n";
        assert_eq!(expanded(&names, &rows[..1], 1, false), text.replace("----\n k", "---\n k"));
    }

    #[test]
    fn lists_of_names() {
        let names: Vec<String> = ["b", "a", "ccc", "d"].map(String::from).to_vec();
        assert_eq!(columnize(&names, 80), "b  a  ccc  d\n");
        assert_eq!(columnize(&names, 8), "b  ccc\na  d\n");
        assert_eq!(columnize(&[], 80), "<empty>\n");
    }

    #[test]
    fn fields_of_csv() {
        let fields = [("a", false), ("", false), ("", true), ("x,\"y\"", false)];
        let line = csv_line(fields.into_iter().map(|(text, quoted)| (text.to_owned(), quoted)));
        assert_eq!(line, "a,,\"\",\"x,\"\"y\"\"\"\n");
    }
}
