//! Keys, bounds, numbers and times as the words of EXPLAIN.

use rows::{Bound, ClusteringValues, PrefixKind, Slice, Slices};
use schema::TableMetadata;
use types::{CqlType, DecoratedKey};

use super::lines::shortened;
use crate::keys;

/// Characters of a value that are shown.
const VALUE_MAX: usize = 20;

/// Slices that are told of one by one.
const SLICES_SHOWN: usize = 2;

/// A number with commas.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let first = (digits.len() - 1) % 3 + 1;
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index >= first && (index - first).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number and what is counted: `1 row`, `3,112 rows`.
pub(super) fn count(of: u64, what: &str) -> String {
    format!("{} {what}{}", number(of), if of == 1 { "" } else { "s" })
}

/// A time of the clock, to the minute: `2026-12-01 10:00 UTC`.
pub(super) fn time(seconds: u32) -> String {
    let millis = i64::from(seconds) * 1000;
    let text = types::literal::to_plain_text(&CqlType::Timestamp, &millis.to_be_bytes());
    let text = text.replace('T', " ");
    format!("{} UTC", text.get(..16).unwrap_or(&text))
}

fn value(ty: &CqlType, bytes: &[u8]) -> String {
    shortened(&types::to_text(ty, bytes), VALUE_MAX)
}

/// A partition key.
pub(super) fn key(table: &TableMetadata, key: &DecoratedKey) -> String {
    let components = keys::decompose(&key.key, table.partition_key.len());
    let values = components.iter().zip(&table.partition_key).map(|(bytes, column)| value(&column.ty, bytes));
    joined(values.collect())
}

fn joined(values: Vec<String>) -> String {
    match values.as_slice() {
        [only] => only.clone(),
        several => format!("({})", several.join(", ")),
    }
}

/// Values of leading clustering columns.
pub(super) fn clustering(table: &TableMetadata, values: &ClusteringValues) -> String {
    let text = |(bytes, column): (&Option<bytes::Bytes>, &schema::ColumnMetadata)| {
        bytes.as_ref().map_or("null".to_owned(), |bytes| value(&column.ty, bytes))
    };
    joined(values.iter().zip(&table.clustering).map(text).collect())
}

fn bound(table: &TableMetadata, bound: &Bound) -> String {
    if bound.values.is_empty() {
        let open = if bound.kind.is_start() { "the start" } else { "the end" };
        return open.to_owned();
    }
    let values = clustering(table, &bound.values);
    match bound.kind {
        PrefixKind::ExclStartBound => format!("behind {values}"),
        PrefixKind::ExclEndBound => format!("before {values}"),
        _ => values,
    }
}

/// The slice is one row.
pub(super) fn is_row(table: &TableMetadata, slice: &Slice) -> bool {
    slice.start.values.len() == table.clustering.len() && slice.start.values == slice.end.values
}

fn slice(table: &TableMetadata, slice: &Slice) -> String {
    if slice.is_all() {
        return "the whole partition".to_owned();
    }
    if slice.start.values == slice.end.values {
        return clustering(table, &slice.start.values);
    }
    format!("{} to {}", bound(table, &slice.start), bound(table, &slice.end))
}

/// Slices, in the order of the table.
pub(super) fn slices(table: &TableMetadata, slices: &Slices) -> String {
    let shown: Vec<_> = slices.0.iter().take(SLICES_SHOWN).map(|each| slice(table, each)).collect();
    let more = slices.0.len().saturating_sub(SLICES_SHOWN);
    let more = if more > 0 { format!("; {} more", number(more as u64)) } else { String::new() };
    format!("{}{more}", shown.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times() {
        assert_eq!([0, 12, 999, 1_000, 1_234_567].map(number), ["0", "12", "999", "1,000", "1,234,567"]);
        assert_eq!((count(1, "row"), count(2_000, "row")), ("1 row".to_owned(), "2,000 rows".to_owned()));
        assert_eq!(time(1_796_119_200), "2026-12-01 10:00 UTC");
    }
}
