//! The exchanges between replicas, planned after the trees of all of them are there.
//!
//! Standard: each two replicas whose trees differ exchange the ranges in which they do. Optimised:
//! a replica fetches each range from one of several replicas that have the same there, of its own
//! data center if it can be, the one whose address follows its own. Agrees with
//! `org.apache.cassandra.repair.RepairJob` and `repair.asymmetric`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use internode::payload::token_ranges::Tokens;
use types::Token;

use crate::tree::contains;

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
    /// The source sends too.
    pub is_mutual: bool,
}

/// Each two replicas that differ exchange what differs. `local` is the node that coordinates: it
/// opens its own streams, and only receives in a `pull`.
pub fn standard(differences: Vec<Difference>, local: SocketAddr, pull: bool) -> Vec<Sync> {
    let sync = |difference: Difference| {
        let [first, second] = difference.between;
        let (source, destination) = if second == local { (second, first) } else { (first, second) };
        let is_mutual = !(pull && source == local);
        Sync { source, destination, ranges: difference.ranges, is_mutual }
    };
    differences.into_iter().map(sync).collect()
}

/// Each replica fetches each range that differs once from each group of replicas that have the same
/// there. `is_near` says whether two replicas are of one data center.
pub fn optimised(differences: &[Difference], is_near: &dyn Fn(SocketAddr, SocketAddr) -> bool) -> Vec<Sync> {
    let mut fetched: BTreeMap<(SocketAddr, SocketAddr), Vec<Tokens>> = BTreeMap::new();
    for part in parts(differences) {
        let holds = |difference: &&Difference| difference.ranges.iter().any(|range| contains(*range, part.end));
        let differing: BTreeSet<[SocketAddr; 2]> = differences.iter().filter(holds).map(|one| one.between).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
