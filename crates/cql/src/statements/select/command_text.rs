//! The read that a SELECT makes of a partition, or of a range of them, as CQL: how a warning of
//! tombstones names it.
//!
//! Agrees with `org.apache.cassandra.db.ReadCommand.toCQLString` and what it calls, down to `ALLOW
//! FILTERING` behind every one.

use rows::command::RingBound;
use rows::{Bound, PartitionRange, PrefixKind, Slice, Slices};
use schema::{ColumnMetadata, TableMetadata};
use types::DecoratedKey;
use types::ident::{maybe_quote, qualified};

use super::page::PageInput;
use super::{SelectPlan, limit_value};
use crate::context::Bindings;
use crate::error::CqlError;
use crate::keys;
use crate::options::QueryOptions;
use crate::paging::UNLIMITED;

/// Rows that a page of an unpaged aggregate is read in, there.
const AGGREGATE_PAGE: u32 = 10_000;
/// Of a longer text the beginning is shown.
const TEXT_MAX: usize = 512;

/// The read in which the partition of `key` was passed last.
pub(super) fn of(
    plan: &SelectPlan,
    key: &DecoratedKey,
    bindings: &Bindings<'_>,
    options: &QueryOptions,
    input: &PageInput,
) -> Result<String, CqlError> {
    let table = &*plan.table;
    let resumed =
        input.resume.as_ref().and_then(|state| state.key.clone().or_else(|| input.single_key.then(|| key.key.clone())));
    let mut slices = plan.restrictions.slices(table, bindings)?;
    let mut conditions = Vec::new();
    if plan.restrictions.names_keys() {
        conditions.extend(key_conditions(table, &key.key));
        let row =
            input.resume.as_ref().filter(|_| resumed.as_ref() == Some(&key.key)).and_then(|state| state.row.as_ref());
        if let Some(row) = row {
            slices = slices.behind(row, plan.reversed, &plan.table.comparator);
        }
    } else if let Some(PartitionRange::Range { start, end }) = plan.restrictions.range(table, bindings)? {
        let start = match resumed {
            Some(key) => RingBound::Key { key: table.decorate(key), inclusive: true },
            None => start,
        };
        conditions.extend(ring_condition(table, &start, '>'));
        conditions.extend(ring_condition(table, &end, '<'));
    }
    conditions.extend(of_slices(table, &slices));
    for filter in &plan.restrictions.filters {
        conditions.push(filter.text(bindings)?);
    }
    if let Some(ann_ordering) = &plan.ann_ordering {
        conditions.push(ann_ordering.text(bindings)?);
    }
    let mut text = format!("SELECT {} FROM {}", columns(plan), qualified(&table.keyspace, &table.name));
    if !conditions.is_empty() {
        text.push_str(" WHERE ");
        text.push_str(&conditions.join(" AND "));
    }
    if plan.reversed {
        let order = table.clustering.iter().map(|column| {
            let direction = if column.reversed { "ASC" } else { "DESC" };
            format!("{} {direction}", maybe_quote(&column.name))
        });
        text.push_str(" ORDER BY ");
        text.push_str(&order.collect::<Vec<_>>().join(", "));
    }
    text.push_str(&limits(plan, bindings, options, input)?);
    text.push_str(" ALLOW FILTERING");
    Ok(match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    })
}

fn columns(plan: &SelectPlan) -> String {
    let regular = plan.table.statics.iter().chain(&plan.table.regulars);
    let named = regular.filter(|column| plan.named.contains(&column.id));
    let mut names: Vec<_> = named.map(|column| maybe_quote(&column.name)).collect();
    names.sort();
    if names.is_empty() { "*".to_owned() } else { names.join(", ") }
}

fn limits(
    plan: &SelectPlan,
    bindings: &Bindings<'_>,
    options: &QueryOptions,
    input: &PageInput,
) -> Result<String, CqlError> {
    let page = options.page_size.filter(|size| *size > 0);
    let rows = match plan.aggregates() {
        true => page.unwrap_or(AGGREGATE_PAGE),
        false => page.unwrap_or(UNLIMITED).min(input.remaining),
    };
    let mut text = String::new();
    if plan.group_by.is_some() {
        text = format!(" GROUP LIMIT {rows}");
    }
    if rows != UNLIMITED {
        text = format!("{text} LIMIT {rows}");
    }
    let per_partition = if plan.distinct { 1 } else { limit_value(plan.per_partition_limit.as_ref(), bindings)? };
    if per_partition != UNLIMITED {
        text = format!("{text} PER PARTITION LIMIT {per_partition}");
    }
    Ok(text)
}

fn literal(column: &ColumnMetadata, bytes: &[u8]) -> String {
    types::to_text(&column.ty, bytes)
}

fn key_conditions(table: &TableMetadata, key: &bytes::Bytes) -> Vec<String> {
    let components = keys::decompose(key, table.partition_key.len());
    let condition = |(value, column): (&bytes::Bytes, &ColumnMetadata)| {
        format!("{} = {}", maybe_quote(&column.name), literal(column, value))
    };
    components.iter().zip(&table.partition_key).map(condition).collect()
}

fn ring_condition(table: &TableMetadata, bound: &RingBound, operator: char) -> Option<String> {
    let names: Vec<_> = table.partition_key.iter().map(|column| maybe_quote(&column.name)).collect();
    let (value, inclusive) = match bound {
        RingBound::Open => return None,
        RingBound::Token { token, .. } if *token == types::Token::MIN => return None,
        RingBound::Token { token, inclusive } => (token.0.to_string(), *inclusive),
        RingBound::Key { key, inclusive } => {
            let components = keys::decompose(&key.key, table.partition_key.len());
            let values = components.iter().zip(&table.partition_key).map(|(value, column)| literal(column, value));
            (format!("token({})", values.collect::<Vec<_>>().join(", ")), *inclusive)
        }
    };
    let equal = if inclusive { "=" } else { "" };
    Some(format!("token({}) {operator}{equal} {value}", names.join(", ")))
}

fn of_slices(table: &TableMetadata, slices: &Slices) -> Vec<String> {
    if slices.is_all() || slices.0.is_empty() {
        return Vec::new();
    }
    let is_row = |slice: &Slice| {
        slice.start.values.len() == table.clustering.len()
            && slice.start.values == slice.end.values
            && (slice.start.kind, slice.end.kind) == (PrefixKind::InclStartBound, PrefixKind::InclEndBound)
    };
    if slices.0.iter().all(is_row) {
        return vec![of_names(table, slices)];
    }
    let mut conditions = Vec::new();
    for (index, column) in table.clustering.iter().enumerate() {
        // as CQL makes them, all slices say the same of a column, or each names a value
        let mut parts = slices.0.iter().filter_map(|slice| part(table, slice, index)).peekable();
        let Some((start, end)) = parts.peek().cloned() else { break };
        let name = maybe_quote(&column.name);
        match (start, end) {
            (Some((first, _)), Some((last, _))) if first == last => {
                let mut values: Vec<String> = parts.filter_map(|(start, _)| start).map(|(value, _)| value).collect();
                values.dedup();
                conditions.push(match values.as_slice() {
                    [only] => format!("{name} = {only}"),
                    several => format!("{name} IN ({})", several.join(", ")),
                });
            }
            (start, end) => {
                let turned = |operator: &'static str| match (operator, column.reversed) {
                    (">", true) => "<",
                    ("<", true) => ">",
                    (operator, _) => operator,
                };
                for (bound, operator) in [(start, ">"), (end, "<")] {
                    if let Some((value, inclusive)) = bound {
                        let equal = if inclusive { "=" } else { "" };
                        conditions.push(format!("{name} {}{equal} {value}", turned(operator)));
                    }
                }
            }
        }
    }
    conditions
}

/// A bound's value of a column, and whether the bound includes it.
type Part = Option<(String, bool)>;

/// The bounds that a slice sets for a column: its start and its end.
fn part(table: &TableMetadata, slice: &Slice, index: usize) -> Option<(Part, Part)> {
    let of = |bound: &Bound, included: PrefixKind| -> Part {
        Some((values(table, bound).into_iter().nth(index)?, bound.kind == included))
    };
    let (start, end) = (of(&slice.start, PrefixKind::InclStartBound), of(&slice.end, PrefixKind::InclEndBound));
    (start.is_some() || end.is_some()).then_some((start, end))
}

fn of_names(table: &TableMetadata, slices: &Slices) -> String {
    let names: Vec<_> = table.clustering.iter().map(|column| maybe_quote(&column.name)).collect();
    let grouped =
        |parts: Vec<String>| if parts.len() == 1 { parts.join("") } else { format!("({})", parts.join(", ")) };
    let row = |slice: &Slice| grouped(values(table, &slice.start));
    let rows: Vec<_> = slices.0.iter().map(row).collect();
    match rows.as_slice() {
        [only] => format!("{} = {only}", grouped(names)),
        several => format!("{} IN ({})", grouped(names), several.join(", ")),
    }
}

fn values(table: &TableMetadata, bound: &Bound) -> Vec<String> {
    let text = |(value, column): (&Option<bytes::Bytes>, &ColumnMetadata)| {
        value.as_ref().map_or_else(|| "null".to_owned(), |value| literal(column, value))
    };
    bound.values.iter().zip(&table.clustering).map(text).collect()
}
