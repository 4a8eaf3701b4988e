//! The next repairs of the schedule: plain functions from the state of things to a choice.

use internode::payload::token_ranges::Tokens;
use schema::TableId;
use types::Token;

/// Most ranges of one repair. Further ranges are repaired by the next one.
const RANGES_MAX: usize = 256;
/// Most parts into which one range is cut.
const PARTS_MAX: u64 = 1 << 12;
/// Share of gc_grace since the last repair from which on nothing holds the next one back any more.
const URGENT: f64 = 0.8;

/// Ranges of a table that are repaired at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepairUnit {
    /// The table.
    pub id: TableId,
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// The ranges, which the same nodes hold.
    pub ranges: Vec<Tokens>,
    /// gc_grace_seconds of the table.
    pub grace: i64,
    /// Since when all of the ranges are repaired, seconds since 1970.
    pub repaired_at: i64,
}

impl RepairUnit {
    /// By when the ranges have to be repaired again, seconds since 1970: from then on a replica
    /// may forget a deletion that another one has not heard of.
    pub fn deadline(&self) -> i64 {
        self.repaired_at.saturating_add(self.grace)
    }

    /// Whether nothing may hold the repair back any more.
    pub fn is_urgent(&self, now: i64) -> bool {
        share_of_grace(self, now) >= URGENT
    }
}

/// The time since the last repair, as a share of gc_grace.
fn share_of_grace(unit: &RepairUnit, now: i64) -> f64 {
    now.saturating_sub(unit.repaired_at).max(0) as f64 / unit.grace.max(1) as f64
}

/// Ranges are repaired again after this time, seconds: half of gc_grace, or `interval_min` if that
/// is longer, and at most three quarters of gc_grace.
pub fn due_after(grace: i64, interval_min: i64) -> i64 {
    (grace / 2).max(interval_min.min(grace / 4 * 3)).max(1)
}

/// Units that are due, the most urgent first.
pub fn due(units: Vec<RepairUnit>, now: i64, interval_min: i64) -> Vec<RepairUnit> {
    let is_due = |unit: &RepairUnit| now.saturating_sub(unit.repaired_at) >= due_after(unit.grace, interval_min);
    let mut due: Vec<RepairUnit> = units.into_iter().filter(is_due).collect();
    due.sort_by(|a, b| {
        let key = |unit: &RepairUnit| (unit.keyspace.clone(), unit.table.clone(), unit.ranges.first().copied());
        share_of_grace(b, now).total_cmp(&share_of_grace(a, now)).then_with(|| key(a).cmp(&key(b)))
    });
    due
}

/// Cuts ranges that the same nodes hold into groups with about `bytes_max` each, by an estimate of
/// the bytes in a range.
pub fn cut(ranges: &[Tokens], bytes_max: u64, bytes: impl Fn(Tokens) -> u64) -> Vec<Vec<Tokens>> {
    let bytes_max = bytes_max.max(1);
    let (mut groups, mut group, mut filled) = (Vec::new(), Vec::new(), 0u64);
    for range in ranges {
        let total = bytes(*range);
        let parts = total.div_ceil(bytes_max).clamp(1, PARTS_MAX);
        for part in split(*range, parts) {
            if !group.is_empty() && (filled + total / parts > bytes_max || group.len() == RANGES_MAX) {
                groups.push(std::mem::take(&mut group));
                filled = 0;
            }
            group.push(part);
            filled += total / parts;
        }
    }
    groups.extend((!group.is_empty()).then_some(group));
    let is_bounded = |group: &Vec<Tokens>| (1..=RANGES_MAX).contains(&group.len());
    assert!(groups.iter().all(is_bounded), "a repair has some ranges, and a bounded number of them");
    groups
}

/// The number of tokens in a range; of the whole ring all but one.
pub fn width(range: Tokens) -> u64 {
    match (range.end.0.wrapping_sub(range.start.0)) as u64 {
        0 => u64::MAX,
        width => width,
    }
}

/// Cuts a range into parts of equal width.
fn split(range: Tokens, parts: u64) -> Vec<Tokens> {
    let step = width(range) / parts.max(1);
    if parts <= 1 || step == 0 {
        return vec![range];
    }
    let at = |part: u64| Token(range.start.0.wrapping_add((step * part) as i64));
    let part =
        |number: u64| Tokens { start: at(number), end: if number + 1 == parts { range.end } else { at(number + 1) } };
    (0..parts).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> Tokens {
        Tokens { start: Token(start), end: Token(end) }
    }

    fn unit(table: &str, grace: i64, repaired_at: i64) -> RepairUnit {
        let ranges = vec![range(0, 10)];
        RepairUnit {
            id: TableId([1; 16]),
            keyspace: "ks".to_owned(),
            table: table.to_owned(),
            ranges,
            grace,
            repaired_at,
        }
    }

    #[test]
    fn repairs_come_again_within_gc_grace() {
        const DAY: i64 = 86_400;
        for (grace, interval, expected) in [
            (10 * DAY, DAY, 5 * DAY),
            (10 * DAY, 7 * DAY, 7 * DAY),
            (10 * DAY, 30 * DAY, 10 * DAY / 4 * 3),
            (3600, DAY, 2700),
            (3600, 0, 1800),
            (1, DAY, 1),
        ] {
            assert_eq!(due_after(grace, interval), expected, "{grace}, {interval}");
        }
    }

    #[test]
    fn the_most_urgent_is_first_by_its_share_of_gc_grace() {
        let units =
            vec![unit("later", 1000, 900), unit("long", 10_000, 0), unit("short", 100, 900), unit("b", 100, 900)];
        let names: Vec<String> = due(units, 1000, 0).into_iter().map(|unit| unit.table).collect();
        assert_eq!(names, ["b", "short"], "a tenth of the others has passed");
        let old = unit("old", 1000, 100);
        assert!(old.is_urgent(900) && !old.is_urgent(899));
        assert_eq!(old.deadline(), 1100);
    }

    #[test]
    fn ranges_are_cut_by_their_bytes_and_none_is_left_out() {
        let ranges = [range(0, 100), range(100, 200), range(i64::MAX - 10, i64::MIN + 10)];
        let groups = cut(&ranges, 60, width);
        let lengths: Vec<u64> = groups.iter().map(|group| group.iter().map(|range| width(*range)).sum()).collect();
        assert!(lengths.iter().all(|length| *length <= 60), "{lengths:?}");
        let parts: Vec<Tokens> = groups.concat();
        assert!(
            parts.windows(2).all(|two| two[0].end == two[1].start || ranges.iter().any(|one| one.end == two[0].end))
        );
        let total = |ranges: &[Tokens]| ranges.iter().map(|range| width(*range)).sum::<u64>();
        assert_eq!(total(&parts), total(&ranges));
        assert_eq!(cut(&ranges, u64::MAX, |_| 0), [ranges.to_vec()]);
        assert_eq!(cut(&[range(7, 7)], 1, |_| 4).concat().len(), 4, "the whole ring");
        assert!(cut(&[], 1, |_| 4).is_empty());
    }
}
