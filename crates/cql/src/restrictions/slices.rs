//! Evaluating the restrictions on clustering columns: the slices of rows that they select.
//!
//! Agrees with `valuesAsClustering` and `boundsAsClustering` of
//! `org.apache.cassandra.cql3.restrictions.ClusteringColumnRestrictions`.

use bytes::Bytes;
use rows::{Bound, ClusteringValues, Slice, Slices};
use schema::{ClusteringComparator, TableMetadata};
use smallvec::SmallVec;

use super::{ClusteringRestriction, ClusteringTest, Restrictions, RowTerm, RowTerms};
use crate::context::Bindings;
use crate::error::CqlError;
use crate::values;
use crate::values::BoundValue;

/// The values of clustering columns that follow each other.
type RowValues = SmallVec<[Bytes; 2]>;

/// The slices that the restrictions select in each partition.
pub(super) fn build(
    restrictions: &Restrictions,
    table: &TableMetadata,
    bindings: &Bindings<'_>,
) -> Result<Slices, CqlError> {
    let mut prefixes = vec![ClusteringValues::new()];
    for restriction in &restrictions.clustering {
        if let ClusteringTest::Slice { lower, upper, except, between } = &restriction.test {
            let lower = end(restriction, lower.as_ref(), *between, table, bindings)?;
            let upper = end(restriction, upper.as_ref(), *between, table, bindings)?;
            let slices = ranges(&table.comparator, restriction.first, &prefixes, lower, upper)?;
            if except.is_empty() {
                return Ok(slices);
            }
            let (mut parts, mut named) = (vec![slices], 0);
            for one in except {
                parts.push(not_in_slices(one, &prefixes, &mut named, table, bindings)?);
            }
            return Ok(intersections(parts, &table.comparator));
        }
        extend(&mut prefixes, restriction, table, bindings)?;
        if prefixes.is_empty() {
            break;
        }
    }
    if let [_] = prefixes.as_slice() {
        return Ok(prefixes.into_iter().map(Slice::of_prefix).collect());
    }
    let slices = prefixes.into_iter().map(Slice::of_prefix).collect();
    Ok(Slices::normalized(slices, &table.comparator))
}

/// The clusterings, or their leading parts, that `=` and `IN` select.
pub(super) fn clusterings(
    restrictions: &Restrictions,
    table: &TableMetadata,
    bindings: &Bindings<'_>,
) -> Result<Vec<ClusteringValues>, CqlError> {
    let mut prefixes = vec![ClusteringValues::new()];
    for restriction in &restrictions.clustering {
        extend(&mut prefixes, restriction, table, bindings)?;
        // after an empty IN the other restrictions are not evaluated
        if prefixes.is_empty() {
            break;
        }
    }
    if prefixes.len() > 1 {
        prefixes.sort_by(|a, b| table.comparator.compare_values(a, b));
        prefixes.dedup_by(|later, first| table.comparator.compare_values(later, first).is_eq());
    }
    Ok(prefixes)
}

fn extend(
    prefixes: &mut Vec<ClusteringValues>,
    restriction: &ClusteringRestriction,
    table: &TableMetadata,
    bindings: &Bindings<'_>,
) -> Result<(), CqlError> {
    let rows = match &restriction.test {
        ClusteringTest::Eq(row) => {
            let row = row_values(row, restriction, table, bindings)?;
            for prefix in prefixes {
                prefix.extend(row.iter().cloned().map(Some));
            }
            return Ok(());
        }
        ClusteringTest::In(rows) => in_rows(rows, restriction, table, bindings)?,
        ClusteringTest::Slice { .. } => return Ok(()),
    };
    super::check_combinations(prefixes.len(), rows.len())?;
    let mut longer = Vec::with_capacity(prefixes.len() * rows.len());
    for prefix in prefixes.iter() {
        for row in &rows {
            let mut next = prefix.clone();
            next.extend(row.iter().cloned().map(Some));
            longer.push(next);
        }
    }
    *prefixes = longer;
    Ok(())
}

fn column_name(table: &TableMetadata, position: usize) -> &str {
    table.clustering.get(position).map_or("", |column| &column.name)
}

fn required(
    value: BoundValue,
    restriction: &ClusteringRestriction,
    table: &TableMetadata,
    position: usize,
) -> Result<Bytes, CqlError> {
    let name = column_name(table, position);
    match value {
        BoundValue::Bytes(bytes) => Ok(bytes),
        BoundValue::Null => Err(null_value(restriction, table, position)),
        BoundValue::Unset if restriction.multi => Err(CqlError::invalid(format!(
            "Invalid unset value for tuple field number {}",
            position - restriction.first
        ))),
        BoundValue::Unset => Err(CqlError::invalid(format!("Invalid unset value for column {name}"))),
    }
}

/// The error for a null or unset value; its words depend on the kind of the restriction.
fn null_value(restriction: &ClusteringRestriction, table: &TableMetadata, position: usize) -> CqlError {
    let name = column_name(table, position);
    CqlError::invalid(match restriction.test {
        ClusteringTest::In(_) if restriction.multi => {
            let columns = table.clustering.iter().skip(restriction.first).take(restriction.width);
            let names: Vec<_> = columns.map(|column| column.name.as_str()).collect();
            format!("Invalid null value in condition for columns: [{}]", names.join(", "))
        }
        ClusteringTest::Eq(_) if restriction.multi => format!("Invalid null value for column {name}"),
        _ => format!("Invalid null value in condition for column {name}"),
    })
}

fn row_values(
    row: &RowTerm,
    restriction: &ClusteringRestriction,
    table: &TableMetadata,
    bindings: &Bindings<'_>,
) -> Result<RowValues, CqlError> {
    let first = restriction.first;
    match row {
        RowTerm::Columns(terms) => terms
            .iter()
            .enumerate()
            .map(|(at, term)| required(term.eval(bindings)?, restriction, table, first + at))
            .collect(),
        RowTerm::Tuple(term) => {
            let tuple = required(term.eval(bindings)?, restriction, table, first)?;
            tuple_values(&tuple, restriction, table)
        }
    }
}

/// The values of the fields of a tuple. Trailing fields that it lacks are null, as in a value of a
/// column.
fn tuple_values(
    tuple: &Bytes,
    restriction: &ClusteringRestriction,
    table: &TableMetadata,
) -> Result<RowValues, CqlError> {
    let fields = values::split_tuple(tuple)?;
    if fields.len() > restriction.width {
        return Err(CqlError::invalid(format!(
            "Tuple value contained too many fields (expected {}, got {})",
            restriction.width,
            fields.len()
        )));
    }
    let null = |at: usize| null_value(restriction, table, restriction.first + at);
    let values: RowValues =
        fields.into_iter().enumerate().map(|(at, field)| field.ok_or_else(|| null(at))).collect::<Result<_, _>>()?;
    // The end of a range may name the first columns only. `=` and IN name rows, and a row has a
    // value for each clustering column.
    let is_end = matches!(restriction.test, ClusteringTest::Slice { .. });
    if values.len() < restriction.width && !is_end {
        return Err(null(values.len()));
    }
    Ok(values)
}

fn in_rows(
    rows: &RowTerms,
    restriction: &ClusteringRestriction,
    table: &TableMetadata,
    bindings: &Bindings<'_>,
) -> Result<Vec<RowValues>, CqlError> {
    match rows {
        RowTerms::List(rows) => {
            let values: Result<Vec<_>, CqlError> =
                rows.iter().map(|row| row_values(row, restriction, table, bindings)).collect();
            values.or_else(|error| {
                // as in Cassandra all values are read before one is refused, and null is told
                // before unset
                let terms = rows.iter().flat_map(RowTerm::terms);
                let bound = terms.map(|term| term.eval(bindings)).collect::<Result<Vec<_>, _>>()?;
                let is_null = restriction.width == 1 && bound.contains(&BoundValue::Null);
                Err(if is_null { null_value(restriction, table, restriction.first) } else { error })
            })
        }
        RowTerms::Bind(term) => {
            let name = column_name(table, restriction.first);
            let list = match term.eval(bindings)? {
                BoundValue::Bytes(bytes) => bytes,
                BoundValue::Null => return Err(CqlError::invalid(format!("Invalid null value for column {name}"))),
                BoundValue::Unset => return Err(CqlError::invalid(format!("Invalid unset value for column {name}"))),
            };
            let elements = values::split_list(&list)?;
            if !restriction.multi {
                return Ok(elements.into_iter().map(|element| RowValues::from_iter([element])).collect());
            }
            elements.iter().map(|tuple| tuple_values(tuple, restriction, table)).collect()
        }
    }
}

/// The values of one end of a slice, and whether it is inclusive. A null sorts before every value.
type End = Option<(Vec<Option<Bytes>>, bool)>;

fn end(
    restriction: &ClusteringRestriction,
    end: Option<&(RowTerm, bool)>,
    refuses_null: bool,
    table: &TableMetadata,
    bindings: &Bindings<'_>,
) -> Result<End, CqlError> {
    let Some((row, inclusive)) = end else { return Ok(None) };
    if let (RowTerm::Columns(terms), false) = (row, restriction.multi || refuses_null)
        && let [term] = terms.as_slice()
        && term.eval(bindings)? == BoundValue::Null
    {
        return Ok(Some((vec![None], *inclusive)));
    }
    let values = row_values(row, restriction, table, bindings)?;
    Ok(Some((values.into_iter().map(Some).collect(), *inclusive)))
}

/// The slices of each prefix between two ends, which begin at column `first`. In columns whose
/// orders differ an end takes a slice for each column: the number of all is bounded.
fn ranges(
    comparator: &ClusteringComparator,
    first: usize,
    prefixes: &[ClusteringValues],
    lower: End,
    upper: End,
) -> Result<Slices, CqlError> {
    let mut found = Vec::new();
    for prefix in prefixes {
        let above = match &lower {
            Some((values, inclusive)) => slices_beyond(comparator, first, prefix, values, *inclusive, true),
            None => vec![Slice::of_prefix(prefix.clone())],
        };
        let below = match &upper {
            Some((values, inclusive)) => slices_beyond(comparator, first, prefix, values, *inclusive, false),
            None => vec![Slice::of_prefix(prefix.clone())],
        };
        match (above.as_slice(), below.as_slice()) {
            ([one], [other]) => found.push(intersect(comparator, one, other)),
            _ => {
                super::check_combinations(prefixes.len(), above.len() + below.len())?;
                let (above, below) = (Slices::normalized(above, comparator), Slices::normalized(below, comparator));
                found.extend(intersection(&above, &below, comparator).0.iter().cloned());
            }
        }
    }
    Ok(Slices::normalized(found, comparator))
}

/// The rows of each prefix but those that an IN names: what NOT IN selects. `named`: the gaps of
/// all NOT INs so far, whose number is bounded.
fn not_in_slices(
    left_out: &ClusteringRestriction,
    prefixes: &[ClusteringValues],
    named: &mut usize,
    table: &TableMetadata,
    bindings: &Bindings<'_>,
) -> Result<Slices, CqlError> {
    let ClusteringTest::In(rows) = &left_out.test else { return Ok(Slices::all()) };
    let comparator = &table.comparator;
    let rows = in_rows(rows, left_out, table, bindings)?;
    *named += rows.len() + 1;
    super::check_combinations(prefixes.len(), *named)?;
    let mut gaps = Vec::with_capacity(prefixes.len() * (rows.len() + 1));
    for prefix in prefixes {
        let longer = |row: &RowValues| prefix.iter().cloned().chain(row.iter().cloned().map(Some)).collect();
        let mut named: Vec<ClusteringValues> = rows.iter().map(longer).collect();
        named.sort_by(|a, b| comparator.compare_values(a, b));
        named.dedup_by(|later, first| comparator.compare_values(later, first).is_eq());
        let mut start = Bound::start(prefix.clone(), true);
        for row in named {
            gaps.push(Slice { start, end: Bound::end(row.clone(), false) });
            start = Bound::start(row, false);
        }
        gaps.push(Slice { start, end: Bound::end(prefix.clone(), true) });
    }
    Ok(Slices::normalized(gaps, comparator))
}

/// The rows that lie in slices of each of some. Pairs become one until one is left, so that many
/// take no square of their number.
fn intersections(mut parts: Vec<Slices>, comparator: &ClusteringComparator) -> Slices {
    while parts.len() > 1 {
        let joined = parts.chunks(2).map(|pair| match pair {
            [one, other] => intersection(one, other, comparator),
            rest => rest.first().cloned().unwrap_or_else(Slices::all),
        });
        parts = joined.collect();
    }
    parts.pop().unwrap_or_else(Slices::all)
}

/// The rows that lie in slices of both, each of which ascend.
fn intersection(one: &Slices, other: &Slices, comparator: &ClusteringComparator) -> Slices {
    let (mut left, mut right) = (one.0.iter().peekable(), other.0.iter().peekable());
    let mut found = Vec::new();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        found.push(intersect(comparator, a, b));
        match a.end.compare(&b.end, comparator).is_lt() {
            true => left.next(),
            false => right.next(),
        };
    }
    Slices::normalized(found, comparator)
}

fn intersect(comparator: &ClusteringComparator, one: &Slice, other: &Slice) -> Slice {
    let start = if one.start.compare(&other.start, comparator).is_lt() { &other.start } else { &one.start };
    let end = if one.end.compare(&other.end, comparator).is_lt() { &one.end } else { &other.end };
    Slice { start: start.clone(), end: end.clone() }
}

fn with(prefix: &ClusteringValues, values: &[Option<Bytes>]) -> ClusteringValues {
    prefix.iter().cloned().chain(values.iter().cloned()).collect()
}

/// The slices of a prefix whose next columns are, as a tuple, greater (or less) than values. If all
/// those columns have the same order it is one slice, otherwise one for each column.
fn slices_beyond(
    comparator: &ClusteringComparator,
    first: usize,
    prefix: &ClusteringValues,
    values: &[Option<Bytes>],
    inclusive: bool,
    above: bool,
) -> Vec<Slice> {
    let reversed = |at: usize| comparator.columns.get(first + at).is_some_and(|(_, reversed)| *reversed);
    let slice = |within: &[Option<Bytes>], bound: &[Option<Bytes>], inclusive: bool, reversed: bool| {
        let within = with(prefix, within);
        let bound = with(prefix, bound);
        if above != reversed {
            Slice { start: Bound::start(bound, inclusive), end: Bound::end(within, true) }
        } else {
            Slice { start: Bound::start(within, true), end: Bound::end(bound, inclusive) }
        }
    };
    if (1..values.len()).all(|at| reversed(at) == reversed(0)) {
        return vec![slice(&[], values, inclusive, reversed(0))];
    }
    (0..values.len())
        .map(|at| {
            let last = at + 1 == values.len();
            slice(&values[..at], &values[..=at], inclusive && last, reversed(at))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::CqlType;

    fn values_of(numbers: &[i32]) -> Vec<Option<Bytes>> {
        numbers.iter().map(|number| Some(Bytes::copy_from_slice(&number.to_be_bytes()))).collect()
    }

    /// Rows between two tuples, of columns in all mixtures of orders, for each of two prefixes.
    #[test]
    fn ranges_have_the_rows_between_their_ends() {
        for orders in 0..4u8 {
            let columns: Vec<_> = (0..3).map(|at| (CqlType::Int, at > 0 && orders & (1 << (at - 1)) != 0)).collect();
            let comparator = ClusteringComparator::new(columns);
            let prefixes: Vec<ClusteringValues> =
                [0, 2].iter().map(|number| values_of(&[*number]).into_iter().collect()).collect();
            for bounds in 0..256 {
                let [a, b, c, d] = [0, 2, 4, 6].map(|shift| (bounds >> shift) & 3);
                let (lower, upper) = ((values_of(&[a, b]), a % 2 == 0), (values_of(&[c, d]), b % 2 == 0));
                let slices = ranges(&comparator, 1, &prefixes, Some(lower), Some(upper)).expect("few");
                for row in 0..64 {
                    let [k, x, y] = [0, 2, 4].map(|shift| (row >> shift) & 3);
                    let is_above = (x, y) > (a, b) || (a % 2 == 0 && (x, y) == (a, b));
                    let is_below = (x, y) < (c, d) || (b % 2 == 0 && (x, y) == (c, d));
                    let values = values_of(&[k, x, y]);
                    let found = slices.0.iter().any(|slice| slice.contains(&values, &comparator));
                    assert_eq!(found, k % 2 == 0 && is_above && is_below, "{orders} {bounds} {row}");
                    assert_eq!(slices.contains(&values, &comparator), found, "{orders} {bounds} {row}");
                }
            }
        }
    }

    /// Some kilobytes of CQL would stand for gigabytes of slices: each row of IN has one for each
    /// pair of columns.
    #[test]
    fn ranges_of_many_columns_in_mixed_orders_have_a_bound() {
        let columns: Vec<_> = (0..201).map(|at| (CqlType::Int, at % 2 == 0)).collect();
        let comparator = ClusteringComparator::new(columns);
        let prefixes: Vec<ClusteringValues> =
            (0..100).map(|number| values_of(&[number]).into_iter().collect()).collect();
        let end = |number: i32| Some((values_of(&[number; 200]), true));
        assert_eq!(ranges(&comparator, 1, &prefixes[..2], end(1), end(5)).map(|slices| slices.0.len() > 400), Ok(true));
        let refused = ranges(&comparator, 1, &prefixes, end(1), end(5)).expect_err("40,000 slices");
        assert!(refused.to_string().starts_with("The IN restrictions select more than"), "{refused}");
    }

    /// Every row of a small space lies in the slices exactly if the comparison of tuples holds for
    /// it.
    #[test]
    fn slices_mean_what_the_comparison_of_tuples_means() {
        for orders in 0..4u8 {
            let columns: Vec<_> = (0..2).map(|at| (CqlType::Int, orders & (1 << at) != 0)).collect();
            let comparator = ClusteringComparator::new(columns);
            for bounds in 0..64 {
                let (a, b) = (bounds % 4, bounds / 4 % 4);
                let inclusive = bounds & 16 != 0;
                let width = 1 + usize::from(bounds & 32 != 0);
                let values = values_of(&[a, b][..width]);
                for above in [true, false] {
                    let slices = Slices::normalized(
                        slices_beyond(&comparator, 0, &ClusteringValues::new(), &values, inclusive, above),
                        &comparator,
                    );
                    for row in 0..16 {
                        let numbers = [row % 4, row / 4];
                        let order = numbers[..width].cmp(&[a, b][..width]);
                        let expected = match above {
                            true => order.is_gt() || (inclusive && order.is_eq()),
                            false => order.is_lt() || (inclusive && order.is_eq()),
                        };
                        let row = values_of(&numbers);
                        let found = slices.0.iter().any(|slice| slice.contains(&row, &comparator));
                        assert_eq!(found, expected, "{numbers:?} {a} {b} {inclusive} {width} {above} {orders}");
                    }
                }
            }
        }
    }
}
