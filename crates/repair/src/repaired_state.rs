//! The times at which ranges of a table were repaired, from the sessions that have ended well: for
//! each part of the ring the latest session counts.
//!
//! Agrees with `org.apache.cassandra.repair.consistent.RepairedState`.

use std::fmt;

use internode::payload::token_ranges::Tokens;
use types::Token;

/// The place behind the last token on the line of tokens. As the end of a range it is the least
/// token.
const LINE_END: i128 = 1 << 63;

/// A range, and the time when it was repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// The range. It does not go over the end of the ring.
    pub range: Tokens,
    /// The time of the repair, milliseconds since 1970; 0: never repaired.
    pub repaired_at: i64,
}

impl fmt::Display for Section {
    /// Prints the section as Cassandra does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Section{{range={}, repairedAt={}}}", self.range, self.repaired_at)
    }
}

/// A part of the line of tokens, from a place (excluded) to a place (included).
type Part = (i128, i128);

/// The ranges of a table that were repaired.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RepairedState {
    /// Parts that do not overlap, in ascending order, each with its time, milliseconds since 1970.
    parts: Vec<(Part, i64)>,
}

impl RepairedState {
    /// The ranges that sessions have repaired. Sessions come in any order, each with its ranges
    /// and its time, milliseconds since 1970.
    pub fn new<'a>(sessions: impl IntoIterator<Item = (&'a [Tokens], i64)>) -> Self {
        let mut sessions: Vec<_> = sessions.into_iter().collect();
        sessions.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
        let mut repaired = Self::default();
        for (ranges, at) in sessions {
            let covered: Vec<Part> = repaired.parts.iter().map(|(part, _)| *part).collect();
            let new = without(&normalized(ranges), &covered);
            repaired.parts.extend(new.into_iter().map(|part| (part, at)));
            repaired.parts.sort_unstable();
        }
        let is_apart = |pair: &[(Part, i64)]| pair[0].0.1 <= pair[1].0.0;
        assert!(repaired.parts.windows(2).all(is_apart), "parts that were repaired do not overlap");
        repaired
    }

    /// Ranges divided into parts of equal times, in ascending order; also parts that were never
    /// repaired.
    pub fn sections(&self, ranges: &[Tokens]) -> Vec<Section> {
        let wanted = normalized(ranges);
        let mut found: Vec<(Part, i64)> = Vec::new();
        for part in &wanted {
            for (of, at) in &self.parts {
                let common = (part.0.max(of.0), part.1.min(of.1));
                if common.0 < common.1 {
                    found.push((common, *at));
                }
            }
        }
        let covered: Vec<Part> = found.iter().map(|(part, _)| *part).collect();
        found.extend(without(&wanted, &covered).into_iter().map(|part| (part, 0)));
        found.sort_unstable();
        let width = |part: &Part| part.1 - part.0;
        let of_found: i128 = found.iter().map(|(part, _)| width(part)).sum();
        assert_eq!(of_found, wanted.iter().map(width).sum::<i128>(), "the sections of ranges are the ranges");
        let section = |((start, end), repaired_at)| Section { range: range_of(start, end), repaired_at };
        found.into_iter().map(section).collect()
    }

    /// The earliest time of a part of the ranges, milliseconds since 1970; 0: some part was never
    /// repaired.
    pub fn since(&self, ranges: &[Tokens]) -> i64 {
        self.sections(ranges).iter().map(|section| section.repaired_at).min().unwrap_or(0)
    }
}

fn range_of(start: i128, end: i128) -> Tokens {
    // both are within the line, whose end is written as the least token
    let token = |place: i128| Token(i64::try_from(place).unwrap_or(i64::MIN));
    Tokens { start: token(start), end: token(end) }
}

/// Ranges cut at the end of the ring, in ascending order; ranges that touch are joined.
fn normalized(ranges: &[Tokens]) -> Vec<Part> {
    let line_start = i128::from(i64::MIN);
    let mut parts: Vec<Part> = Vec::with_capacity(ranges.len() + 1);
    for range in ranges {
        let (start, end) = (i128::from(range.start.0), i128::from(range.end.0));
        match (start < end, end == line_start) {
            (true, _) => parts.push((start, end)),
            (false, true) => parts.push((start, LINE_END)),
            (false, false) => parts.extend([(start, LINE_END), (line_start, end)]),
        }
    }
    parts.sort_unstable();
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for (start, end) in parts {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// The tokens that are both in `ranges` and in `others`, as ascending ranges that are cut at the
/// end of the ring.
pub fn common(ranges: &[Tokens], others: &[Tokens]) -> Vec<Tokens> {
    let others = normalized(others);
    let mut found = Vec::new();
    let mut at = 0;
    for part in normalized(ranges) {
        // those before end before all parts that follow
        at += others[at..].iter().take_while(|other| other.1 <= part.0).count();
        for other in others[at..].iter().take_while(|other| other.0 < part.1) {
            found.push(range_of(part.0.max(other.0), part.1.min(other.1)));
        }
    }
    found
}

/// Parts without those that `covered` covers; both ascend.
fn without(parts: &[Part], covered: &[Part]) -> Vec<Part> {
    let mut covered = covered.to_vec();
    covered.sort_unstable();
    let mut left = Vec::new();
    for (start, end) in parts {
        let mut from = *start;
        for (other_start, other_end) in &covered {
            if *other_end <= from || *other_start >= *end {
                continue;
            }
            if *other_start > from {
                left.push((from, *other_start));
            }
            from = from.max(*other_end);
        }
        if from < *end {
            left.push((from, *end));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> Tokens {
        Tokens { start: Token(start), end: Token(end) }
    }

    fn told(sections: &[Section]) -> String {
        let told = |section: &Section| format!("{}={}", section.range, section.repaired_at);
        sections.iter().map(told).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_latest_session_counts() {
        let (all, some, more) = ([range(0, 100)], [range(10, 20), range(90, 110)], [range(15, 30)]);
        let repaired = RepairedState::new([(&all[..], 5), (&some[..], 9), (&more[..], 7)]);
        assert_eq!(
            told(&repaired.sections(&[range(0, 120)])),
            "(0,10]=5 (10,20]=9 (20,30]=7 (30,90]=5 (90,110]=9 (110,120]=0"
        );
        assert_eq!((repaired.since(&[range(12, 25)]), repaired.since(&[range(105, 111)])), (7, 0));
        assert_eq!(RepairedState::default().since(&all), 0);
    }

    #[test]
    fn ranges_have_parts_in_common() {
        let told = |ranges: &[Tokens], others: &[Tokens]| {
            common(ranges, others).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let some = [range(0, 10), range(20, 30), range(90, -90)];
        assert_eq!(told(&some, &[range(5, 25), range(95, 100), range(26, 27)]), "(5,10] (20,25] (26,27] (95,100]");
        assert_eq!(told(&some, &[range(7, 7)]), told(&some, &some), "the whole ring");
        assert_eq!(told(&some, &[range(10, 20)]), "");
        assert_eq!(told(&[range(0, 100)], &some), "(0,10] (20,30] (90,100]");
    }

    #[test]
    fn ranges_go_over_the_end_of_the_ring() {
        let repaired = RepairedState::new([(&[range(50, -50)][..], 3)]);
        let least = i64::MIN;
        assert_eq!(told(&repaired.sections(&[range(7, 7)])), format!("({least},-50]=3 (-50,50]=0 (50,{least}]=3"));
        assert_eq!(repaired.since(&[range(60, least)]), 3);
        assert_eq!(told(&RepairedState::default().sections(&[])), "");
    }
}
