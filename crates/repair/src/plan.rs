//! The exchanges between replicas, planned after the trees of all of them are there.
//!
//! Standard: each two replicas whose trees differ exchange the ranges in which they differ.
//! Optimised: of several replicas with the same data in a range, a replica fetches the range from
//! a single one: if possible one of its own data center, and the one whose address follows its
//! own. Agrees with `org.apache.cassandra.repair.RepairJob` and `repair.asymmetric`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use internode::payload::token_ranges::Tokens;
use types::Token;

/// The ranges in which two replicas differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Two different replicas.
    pub between: [SocketAddr; 2],
    /// The ranges; not empty.
    pub ranges: Vec<Tokens>,
}

/// One exchange of data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sync {
    /// The node that opens the streams and receives.
    pub source: SocketAddr,
    /// The node that sends.
    pub destination: SocketAddr,
    /// The ranges.
    pub ranges: Vec<Tokens>,
    /// True: the source also sends.
    pub is_mutual: bool,
}

/// Each two replicas that differ exchange their differences. `local` is the node that coordinates:
/// it opens its own streams, and only receives in a `pull`.
pub fn standard(differences: Vec<Difference>, local: SocketAddr, pull: bool) -> Vec<Sync> {
    let sync = |difference: Difference| {
        let [first, second] = difference.between;
        assert!(first != second, "a replica is compared with others alone");
        let (source, destination) = if second == local { (second, first) } else { (first, second) };
        let is_mutual = !(pull && source == local);
        Sync { source, destination, ranges: difference.ranges, is_mutual }
    };
    differences.into_iter().map(sync).collect()
}

/// Each replica fetches each differing range once from each group of replicas that have the same
/// data in it. `is_near` says whether two replicas are of one data center.
///
/// The ring is cut at all ends of ranges. A sweep goes over the parts in the order of their tokens,
/// with a cursor in the ranges of each difference, and plans each part by itself:
/// O(n log n) in the number of ranges.
pub fn optimised(differences: &[Difference], is_near: &dyn Fn(SocketAddr, SocketAddr) -> bool) -> Vec<Sync> {
    let mut planner = Planner::new(differences, is_near);
    let mut cursors: Vec<RangeCursor> =
        differences.iter().map(|difference| RangeCursor::new(&difference.ranges)).collect();
    let ranges = differences.iter().flat_map(|difference| &difference.ranges);
    let mut cuts: Vec<Token> = ranges.flat_map(|range| [range.start, range.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
        let holds: Vec<bool> = cursors.iter_mut().map(|cursor| cursor.holds(*end)).collect();
        planner.plan(Tokens { start: *start, end: *end }, &holds);
    }
    if let (Some(end), Some(start)) = (cuts.first(), cuts.last()) {
        // the last part goes over the end of the ring, or is all of it
        cursors.iter_mut().for_each(RangeCursor::rewind);
        let holds: Vec<bool> = cursors.iter_mut().map(|cursor| cursor.holds(*end)).collect();
        planner.plan(Tokens { start: *start, end: *end }, &holds);
    }
    planner.finish()
}

/// The ranges of one difference on the line of tokens.
struct RangeCursor {
    /// The first and the last token of each range, both included, in the order of the first ones.
    /// A range over the end of the ring becomes two spans. Spans do not overlap.
    spans: Vec<(i64, i64)>,
    /// Index of the first span that does not end before the last token that was asked for.
    at: usize,
}

impl RangeCursor {
    fn new(ranges: &[Tokens]) -> Self {
        let mut spans = Vec::with_capacity(ranges.len() + 1);
        for range in ranges {
            let (start, end) = (range.start.0, range.end.0);
            // no token is behind the last one
            let first = start.checked_add(1);
            match start < end {
                true => spans.extend(first.map(|first| (first, end))),
                false => {
                    spans.push((i64::MIN, end));
                    spans.extend(first.map(|first| (first, i64::MAX)));
                }
            }
        }
        spans.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::with_capacity(spans.len());
        for (first, end) in spans {
            match joined.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((first, end)),
            }
        }
        assert!(joined.windows(2).all(|pair| pair[0].1 < pair[1].0), "the spans of a difference do not overlap");
        Self { spans: joined, at: 0 }
    }

    /// Whether a range has a token. Tokens are asked for in ascending order.
    fn holds(&mut self, token: Token) -> bool {
        while self.spans.get(self.at).is_some_and(|(_, last)| *last < token.0) {
            self.at += 1;
        }
        self.spans.get(self.at).is_some_and(|(first, _)| *first <= token.0)
    }

    /// Goes back to the beginning, so that any token may be asked for next.
    fn rewind(&mut self) {
        self.at = 0;
    }
}

/// Plans, part by part, which replica fetches from which.
struct Planner {
    /// The replicas in the order of their addresses.
    nodes: Vec<SocketAddr>,
    /// The position of each replica in the order of addresses as texts, which Cassandra compares.
    ranks: Vec<usize>,
    /// The two replicas of each difference, as indexes in `nodes`.
    between: Vec<[usize; 2]>,
    /// Whether two replicas `a` and `b` are of one data center, at index `a * nodes + b`.
    near: Vec<bool>,
    /// Whether two replicas differ in the part that is planned, at the same index.
    differs: Vec<bool>,
    /// By the indexes of two replicas, the parts that the first fetches from the second. Parts
    /// that touch are joined.
    fetched: BTreeMap<(usize, usize), Vec<Tokens>>,
}

impl Planner {
    fn new(differences: &[Difference], is_near: &dyn Fn(SocketAddr, SocketAddr) -> bool) -> Self {
        let nodes: BTreeSet<SocketAddr> = differences.iter().flat_map(|difference| difference.between).collect();
        let nodes: Vec<SocketAddr> = nodes.into_iter().collect();
        let mut by_text: Vec<usize> = (0..nodes.len()).collect();
        by_text.sort_by_key(|node| nodes[*node].to_string());
        let mut ranks = vec![0; nodes.len()];
        by_text.into_iter().enumerate().for_each(|(rank, node)| ranks[node] = rank);
        let places: BTreeMap<SocketAddr, usize> = nodes.iter().enumerate().map(|(at, node)| (*node, at)).collect();
        let between = differences.iter().map(|difference| difference.between.map(|node| places[&node])).collect();
        let near = nodes.iter().flat_map(|a| nodes.iter().map(|b| is_near(*a, *b))).collect();
        let differs = vec![false; nodes.len() * nodes.len()];
        Self { ranks, between, near, differs, nodes, fetched: BTreeMap::new() }
    }

    /// Plans a part. `holds`: for each difference, whether it has the part.
    fn plan(&mut self, part: Tokens, holds: &[bool]) {
        let count = self.nodes.len();
        self.differs.fill(false);
        for ([a, b], _) in self.between.iter().zip(holds).filter(|(_, holds)| **holds) {
            self.differs[a * count + b] = true;
            self.differs[b * count + a] = true;
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for node in 0..count {
            let differs = |a: usize, b: usize| self.differs[a * count + b];
            groups.clear();
            for other in (0..count).filter(|other| differs(node, *other)) {
                match groups.iter_mut().find(|group| !differs(group[0], other)) {
                    Some(group) => group.push(other),
                    None => groups.push(vec![other]),
                }
            }
            for group in &groups {
                let from = self.chosen(node, group);
                add(self.fetched.entry((node, from)).or_default(), part);
            }
        }
    }

    /// The replica of a group from which `node` fetches: the next one in the order of addresses as
    /// texts, of its own data center if there is one.
    fn chosen(&self, node: usize, group: &[usize]) -> usize {
        let is_near = |other: usize| self.near[node * self.nodes.len() + other];
        let rank = self.ranks[node];
        let order = |other: &usize| (!is_near(*other), self.ranks[*other] < rank, self.ranks[*other]);
        group.iter().copied().min_by_key(order).expect("a group has a node")
    }

    fn finish(self) -> Vec<Sync> {
        let node = |at: usize| self.nodes[at];
        let sync = |((source, destination), ranges)| {
            assert!(source != destination, "a replica fetches from others alone");
            let (source, destination) = (node(source), node(destination));
            Sync { source, destination, ranges, is_mutual: false }
        };
        self.fetched.into_iter().map(sync).collect()
    }
}

/// Adds a part behind others. A part that touches the last one is joined with it.
fn add(parts: &mut Vec<Tokens>, part: Tokens) {
    match parts.last_mut() {
        Some(last) if last.end == part.start => last.end = part.end,
        _ => parts.push(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::contains;

    fn node(number: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, number], 7000))
    }

    fn range(start: i64, end: i64) -> Tokens {
        Tokens { start: Token(start), end: Token(end) }
    }

    fn difference(a: u8, b: u8, ranges: &[(i64, i64)]) -> Difference {
        let ranges = ranges.iter().map(|(start, end)| range(*start, *end)).collect();
        Difference { between: [node(a), node(b)], ranges }
    }

    fn told(syncs: &[Sync]) -> Vec<String> {
        let told = |sync: &Sync| {
            let arrow = if sync.is_mutual { "<->" } else { "<-" };
            let ranges: String = sync.ranges.iter().map(ToString::to_string).collect();
            format!("{} {arrow} {} {ranges}", sync.source.ip(), sync.destination.ip())
        };
        syncs.iter().map(told).collect()
    }

    #[test]
    fn each_two_that_differ_exchange_it() {
        let found = || vec![difference(2, 3, &[(0, 5)]), difference(2, 1, &[(5, 9)])];
        assert_eq!(
            told(&standard(found(), node(1), false)),
            ["127.0.0.2 <-> 127.0.0.3 (0,5]", "127.0.0.1 <-> 127.0.0.2 (5,9]"]
        );
        assert_eq!(told(&standard(found()[1..].to_vec(), node(1), true)), ["127.0.0.1 <- 127.0.0.2 (5,9]"]);
    }

    #[test]
    fn nodes_that_have_the_same_are_fetched_from_once() {
        // 2 and 3 have the same; 1 lacks something
        let found = [difference(1, 2, &[(0, 8)]), difference(1, 3, &[(0, 8)])];
        let plan = |is_near: &dyn Fn(SocketAddr, SocketAddr) -> bool| told(&optimised(&found, is_near));
        assert_eq!(
            plan(&|_, _| true),
            ["127.0.0.1 <- 127.0.0.2 (0,8]", "127.0.0.2 <- 127.0.0.1 (0,8]", "127.0.0.3 <- 127.0.0.1 (0,8]"]
        );
        let of_one = |a: SocketAddr, b: SocketAddr| [a, b].iter().all(|one| *one != node(2));
        assert_eq!(plan(&of_one)[0], "127.0.0.1 <- 127.0.0.3 (0,8]", "of its own data center");
    }

    #[test]
    fn ranges_that_overlap_are_cut_and_joined_again() {
        let found = [difference(1, 2, &[(0, 8)]), difference(1, 3, &[(4, 12)]), difference(2, 3, &[(0, 4), (8, 12)])];
        let plan = told(&optimised(&found, &|_, _| true));
        assert_eq!(
            plan,
            [
                "127.0.0.1 <- 127.0.0.2 (0,8]",
                "127.0.0.1 <- 127.0.0.3 (8,12]",
                "127.0.0.2 <- 127.0.0.1 (4,8]",
                "127.0.0.2 <- 127.0.0.3 (0,4](8,12]",
                "127.0.0.3 <- 127.0.0.1 (4,12]",
                "127.0.0.3 <- 127.0.0.2 (0,4]",
            ]
        );
    }

    /// The plan of [`optimised`], found by looking at all ranges for each part.
    fn model(differences: &[Difference], is_near: &dyn Fn(SocketAddr, SocketAddr) -> bool) -> Vec<Sync> {
        let mut fetched: BTreeMap<(SocketAddr, SocketAddr), Vec<Tokens>> = BTreeMap::new();
        for part in parts(differences) {
            let holds = |difference: &&Difference| difference.ranges.iter().any(|range| contains(*range, part.end));
            let differing: BTreeSet<[SocketAddr; 2]> =
                differences.iter().filter(holds).map(|one| one.between).collect();
            let differs = |a: SocketAddr, b: SocketAddr| differing.contains(&[a, b]) || differing.contains(&[b, a]);
            let nodes: BTreeSet<SocketAddr> = differing.iter().flatten().copied().collect();
            for node in &nodes {
                let mut groups: Vec<Vec<SocketAddr>> = Vec::new();
                for other in nodes.iter().filter(|other| differs(*node, **other)) {
                    match groups.iter_mut().find(|group| !differs(group[0], *other)) {
                        Some(group) => group.push(*other),
                        None => groups.push(vec![*other]),
                    }
                }
                for group in groups {
                    fetched.entry((*node, chosen(*node, &group, is_near))).or_default().push(part);
                }
            }
        }
        let sync = |((source, destination), parts): (_, Vec<Tokens>)| {
            let ranges = joined(&parts);
            Sync { source, destination, ranges, is_mutual: false }
        };
        fetched.into_iter().map(sync).collect()
    }

    /// The node of a group from which another fetches: the next in the order of addresses.
    fn chosen(node: SocketAddr, group: &[SocketAddr], is_near: &dyn Fn(SocketAddr, SocketAddr) -> bool) -> SocketAddr {
        let near: Vec<_> = group.iter().copied().filter(|other| is_near(node, *other)).collect();
        let mut among = if near.is_empty() { group.to_vec() } else { near };
        // Cassandra compares the addresses as texts
        among.sort_by_key(ToString::to_string);
        let text = node.to_string();
        let next = among.iter().find(|other| other.to_string() > text).or(among.first());
        *next.expect("a group has a node")
    }

    /// All ranges cut at each other's ends, in the order of their starts.
    fn parts(differences: &[Difference]) -> Vec<Tokens> {
        let ranges = || differences.iter().flat_map(|difference| &difference.ranges);
        let cuts: BTreeSet<Token> = ranges().flat_map(|range| [range.start, range.end]).collect();
        let ends = cuts.iter().skip(1).chain(cuts.first());
        let parts = cuts.iter().zip(ends).map(|(start, end)| Tokens { start: *start, end: *end });
        parts.filter(|part| ranges().any(|range| contains(*range, part.end))).collect()
    }

    /// Neighbouring parts as one.
    fn joined(parts: &[Tokens]) -> Vec<Tokens> {
        let mut joined: Vec<Tokens> = Vec::new();
        for part in parts {
            match joined.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => joined.push(*part),
            }
        }
        joined
    }

    /// A number below a bound, of a sequence that `state` begins.
    fn draw(state: &mut u64, bound: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % bound
    }

    /// The differences of a few nodes, of few tokens, so that many ranges touch or overlap; some of
    /// the ranges are over the end of the ring.
    fn drawn(state: &mut u64) -> Vec<Difference> {
        let token = |state: &mut u64| match draw(state, 40) {
            0 => Token(i64::MIN),
            1 => Token(i64::MAX),
            other => Token(other as i64),
        };
        let nodes = 2 + draw(state, 4) as u8;
        let pairs = (1..=nodes).flat_map(|a| (a + 1..=nodes).map(move |b| [node(7 * a), node(7 * b)]));
        let mut differences = Vec::new();
        for between in pairs {
            let ranges = (0..draw(state, 6)).map(|_| Tokens { start: token(state), end: token(state) }).collect();
            differences.push(Difference { between, ranges });
        }
        differences.retain(|difference| !difference.ranges.is_empty());
        differences
    }

    #[test]
    fn a_sweep_plans_what_looking_at_all_ranges_plans() {
        let mut state = 1;
        let mut planned = 0;
        for round in 0..2000 {
            let differences = drawn(&mut state);
            let is_near = |a: SocketAddr, b: SocketAddr| round % 2 == 0 || a.to_string().len() == b.to_string().len();
            let found = optimised(&differences, &is_near);
            assert_eq!(found, model(&differences, &is_near), "{differences:?}");
            planned += found.len();
        }
        assert!(planned > 10_000, "{planned} exchanges");
    }

    /// Each of two differences has more ranges than could be looked at for each part.
    #[test]
    fn many_ranges_are_planned() {
        let ranges: Vec<_> = (0..100_000).map(|at| (at * 10, at * 10 + 5)).collect();
        let plan = optimised(&[difference(1, 2, &ranges), difference(1, 3, &ranges)], &|_, _| true);
        let counts: Vec<_> = plan.iter().map(|sync| sync.ranges.len()).collect();
        assert_eq!(counts, [100_000; 3]);
    }
}
