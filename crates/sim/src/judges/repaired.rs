//! Each range of each table is repaired within gc_grace, over and over: between the beginnings of
//! two repairs of a token, before the first and behind the last, no more than gc_grace passes.
//!
//! The judge knows nothing of a schedule: it looks at the repairs that came to a good end on any
//! node. Not checked: tokens between two probes, and that a repair has done what it says
//! (`judges::equal`).

use super::Finding;

/// A repair that came to a good end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// Keyspace and table.
    pub table: String,
    /// Ranges, each from its start (excluded) to its end (included). A range that ends before it
    /// starts goes over the end of the ring.
    pub ranges: Vec<(i64, i64)>,
    /// When the repair began, seconds.
    pub at: i64,
}

/// Whether a token lies in a range.
fn contains((start, end): (i64, i64), token: i64) -> bool {
    match start < end {
        true => start < token && token <= end,
        false => start < token || token <= end,
    }
}

/// Judges the repairs between two times, seconds, at `probes` tokens of each table. `tables`:
/// names, and gc_grace in seconds.
pub fn check(tables: &[(String, i64)], repairs: &[Repaired], from: i64, until: i64, probes: u32) -> Vec<Finding> {
    let step = u64::MAX / u64::from(probes.max(1));
    let tokens = (0..u64::from(probes)).map(|number| i64::MIN.wrapping_add((step / 2 + number * step) as i64));
    let tokens: Vec<i64> = tokens.collect();
    let of_table = |(table, grace): &(String, i64)| {
        let of_token = |token: &i64| {
            let holds = |repair: &&Repaired| {
                repair.table == *table && repair.ranges.iter().any(|range| contains(*range, *token))
            };
            let mut times: Vec<i64> = repairs.iter().filter(holds).map(|repair| repair.at).collect();
            times.extend([from, until]);
            times.sort_unstable();
            let (begun, ended) = times.windows(2).map(|two| (two[0], two[1])).find(|(a, b)| b - a > *grace)?;
            let what =
                format!("token {token} of {table} is not repaired between {begun} and {ended}, gc_grace {grace}");
            Some(Finding { judge: "repaired", what })
        };
        tokens.iter().find_map(of_token)
    };
    tables.iter().filter_map(of_table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(ranges: &[(i64, i64)], at: i64) -> Repaired {
        Repaired { table: "t".to_owned(), ranges: ranges.to_vec(), at }
    }

    #[test]
    fn a_gap_is_found_wherever_it_is() {
        let tables = [("t".to_owned(), 10)];
        let found = |repairs: &[Repaired], until| check(&tables, repairs, 0, until, 16).len();
        let whole = [(5, 5)];
        assert_eq!(found(&[], 10), 0);
        assert_eq!(found(&[], 11), 1, "never");
        assert_eq!(found(&[repaired(&whole, 9), repaired(&whole, 19)], 29), 0);
        assert_eq!(found(&[repaired(&whole, 9), repaired(&whole, 20)], 29), 1, "late");
        assert_eq!(found(&[repaired(&whole, 9)], 29), 1, "not again");
        let half = repaired(&[(0, i64::MAX)], 9);
        assert_eq!(found(std::slice::from_ref(&half), 15), 1, "not all");
        assert_eq!(found(&[half, repaired(&[(i64::MAX, 0)], 8)], 15), 0, "over the end");
        let other = Repaired { table: "u".to_owned(), ..repaired(&whole, 9) };
        assert_eq!(found(&[other], 15), 1, "another table");
    }
}
