//! The ranges of a repair and the nodes that hold them, by a snapshot of the ring. Agrees with
//! `ActiveRepairService.getNeighbors` and `RepairCoordinator`.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use internode::payload::token_ranges::Tokens;
use repair::tree::contains;
use ring::{Placement, Ring};

use crate::repair_state::options::RepairOptions;

/// Ranges that the same other nodes hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CommonRange {
    /// The nodes, without this one.
    pub neighbours: BTreeSet<SocketAddr>,
    /// The ranges.
    pub ranges: Vec<Tokens>,
    /// Some of the nodes that hold the ranges are left out because they are down.
    pub has_skipped: bool,
}

impl fmt::Display for CommonRange {
    /// Prints the range as Cassandra does; there are no transient replicas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints: Vec<_> = self.neighbours.iter().map(|address| format!("/{address}")).collect();
        let ranges: Vec<_> = self.ranges.iter().map(ToString::to_string).collect();
        write!(
            f,
            "CommonRange{{endpoints=[{}], transEndpoints=[], ranges=[{}], hasSkippedReplicas={}}}",
            endpoints.join(", "),
            ranges.join(", "),
            self.has_skipped
        )
    }
}

/// The ranges that a repair without named ranges is about: all ranges of this node, or those of
/// which it is the first replica.
pub(super) fn of_node(ring: &Ring, placement: &Placement, options: &RepairOptions) -> Vec<Tokens> {
    if !options.ranges.is_empty() {
        return options.ranges.clone();
    }
    let local = ring.local_id();
    let tokens = |(start, end)| Tokens { start, end };
    match (options.is_primary_range, options.data_centers.is_empty()) {
        (true, true) => placement.primary_ranges(local).into_iter().map(tokens).collect(),
        (true, false) => {
            let near = |id: &&ring::EndpointId| ring.endpoint(**id).data_center == ring.local_data_center();
            let first = placement.ranges().filter(|(.., replicas)| replicas.iter().find(near) == Some(&local));
            first.map(|(start, end, _)| tokens((start, end))).collect()
        }
        (false, _) => {
            let held = placement.ranges().filter(|(.., replicas)| replicas.contains(&local));
            held.map(|(start, end, _)| tokens((start, end))).collect()
        }
    }
}

/// The ranges among some that this node holds.
pub(super) fn held(ring: &Ring, placement: &Placement, ranges: &[Tokens]) -> Vec<Tokens> {
    let local = ring.local_id();
    let held = placement.ranges().filter(|(.., holders)| holders.contains(&local));
    let held: Vec<Tokens> = held.map(|(start, end, _)| Tokens { start, end }).collect();
    ranges.iter().copied().filter(|range| held.iter().any(|outer| includes(*outer, *range))).collect()
}

/// The nodes beside this one that hold a range. Empty: there are none. Err: the range is not within
/// one range of the ring, or hosts were named that do not hold it.
pub(super) fn neighbours(
    ring: &Ring,
    placement: &Placement,
    keyspace: &str,
    range: Tokens,
    options: &RepairOptions,
) -> Result<BTreeSet<SocketAddr>, String> {
    let local = ring.local_id();
    let mut replicas = None;
    for (start, end, holders) in placement.ranges().filter(|(.., holders)| holders.contains(&local)) {
        let held = Tokens { start, end };
        if includes(held, range) {
            replicas = Some(holders);
            break;
        }
        if intersects(held, range) {
            return Err(format!(
                "Requested range {range} intersects a local range ({held}) but is not fully contained in one; this \
                 would lead to imprecise repair. keyspace: {keyspace}"
            ));
        }
    }
    let Some(replicas) = replicas else { return Ok(BTreeSet::new()) };
    let others = replicas.iter().filter(|id| **id != local).map(|id| ring.endpoint(*id));
    if !options.data_centers.is_empty() {
        let is_meant = |data_center: &String| options.data_centers.contains(data_center);
        return Ok(others.filter(|one| is_meant(&one.data_center)).map(|one| one.address).collect());
    }
    let others: BTreeSet<SocketAddr> = others.map(|one| one.address).collect();
    match options.hosts.is_empty() {
        true => Ok(others),
        false => of_hosts(ring, others, range, options),
    }
}

fn of_hosts(
    ring: &Ring,
    others: BTreeSet<SocketAddr>,
    range: Tokens,
    options: &RepairOptions,
) -> Result<BTreeSet<SocketAddr>, String> {
    let local = ring.local().address;
    let mut named = BTreeSet::new();
    for host in &options.hosts {
        let address = parse(host, local.port()).ok_or_else(|| format!("Unknown host specified {host}"))?;
        if address == local || others.contains(&address) {
            named.insert(address);
        }
    }
    if !named.remove(&local) {
        return Err("The current host must be part of the repair".to_owned());
    }
    if named.is_empty() {
        let hosts = options.hosts.join(", ");
        let others: Vec<_> = others.iter().map(|other| format!("/{other}")).collect();
        return Err(format!(
            "Specified hosts [{hosts}] do not share range {range} needed for repair. Either restrict repair ranges with \
             -st/-et options, or specify one of the neighbors that share this range with this node: [{}].",
            others.join(", ")
        ));
    }
    Ok(named)
}

/// An address with or without its port.
fn parse(host: &str, port: u16) -> Option<SocketAddr> {
    let host = host.trim();
    host.parse().ok().or_else(|| host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port)))
}

/// Adds a range to those of the same nodes.
pub(super) fn add(common: &mut Vec<CommonRange>, range: Tokens, neighbours: BTreeSet<SocketAddr>) {
    match common.iter_mut().find(|one| one.neighbours == neighbours) {
        Some(one) => one.ranges.push(range),
        None => common.push(CommonRange { neighbours, ranges: vec![range], has_skipped: false }),
    }
}

/// The ranges of a repair, grouped by the nodes that hold them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Groups {
    /// The groups in which another node than this one takes part.
    pub common: Vec<CommonRange>,
    /// A node that holds some of the ranges is left out because it is down. It may have been the
    /// only other node of a group, which is missing in `common` then.
    pub leaves_out: bool,
}

/// Leaves out nodes that are down, and ranges of which no node is left.
pub(super) fn without_dead(common: Vec<CommonRange>, is_up: impl Fn(SocketAddr) -> bool) -> Groups {
    // each node is looked at once: it may come up or go down meanwhile
    let holders: BTreeSet<SocketAddr> = common.iter().flat_map(|one| &one.neighbours).copied().collect();
    let dead: BTreeSet<SocketAddr> = holders.into_iter().filter(|address| !is_up(*address)).collect();
    let living = |one: CommonRange| {
        let neighbours: BTreeSet<_> = one.neighbours.difference(&dead).copied().collect();
        let has_skipped = neighbours.len() < one.neighbours.len();
        (!neighbours.is_empty()).then_some(CommonRange { neighbours, has_skipped, ..one })
    };
    Groups { common: common.into_iter().filter_map(living).collect(), leaves_out: !dead.is_empty() }
}

/// Whether all of a range lies in another.
fn includes(outer: Tokens, inner: Tokens) -> bool {
    if outer.start == outer.end || outer == inner {
        return true;
    }
    let is_whole = inner.start == inner.end;
    // from the start of the outer range on the ring is a line
    let from = |token: types::Token| token.0.wrapping_sub(outer.start.0) as u64;
    !is_whole && from(inner.start) < from(inner.end) && from(inner.end) <= from(outer.end)
}

/// Whether ranges have tokens in common.
pub(super) fn intersects(a: Tokens, b: Tokens) -> bool {
    contains(a, b.end) || contains(b, a.end)
}

#[cfg(test)]
mod tests {
    use types::Token;

    use super::*;

    fn range(start: i64, end: i64) -> Tokens {
        Tokens { start: Token(start), end: Token(end) }
    }

    #[test]
    fn ranges_within_ranges() {
        let (inner, outer) = (range(3, 7), range(0, 10));
        assert!(includes(outer, inner) && includes(outer, outer) && !includes(inner, outer));
        assert!(includes(range(0, 0), inner), "the whole ring");
        let over_the_end = range(90, -90);
        assert!(includes(over_the_end, range(95, -95)) && includes(over_the_end, range(-100, -90)));
        assert!(!includes(over_the_end, range(-95, -80)) && !includes(over_the_end, outer));
        assert!(!includes(outer, range(5, 0)), "over the end");
        assert!(intersects(over_the_end, range(-95, -80)) && !intersects(over_the_end, outer));
        assert!(intersects(outer, range(10, 9)) && !intersects(outer, range(10, 0)));
    }

    #[test]
    fn ranges_are_grouped_by_their_nodes() {
        let nodes = |numbers: &[u8]| -> BTreeSet<SocketAddr> {
            numbers.iter().map(|number| SocketAddr::from(([10, 0, 0, *number], 7000))).collect()
        };
        let mut common = Vec::new();
        for (start, holders) in [(0, nodes(&[1, 2])), (10, nodes(&[2])), (20, nodes(&[1, 2])), (30, nodes(&[3]))] {
            add(&mut common, range(start, start + 10), holders);
        }
        assert_eq!(common.len(), 3);
        assert_eq!(common[0].ranges, [range(0, 10), range(20, 30)]);
        let living = without_dead(common, |address| address.ip() != IpAddr::from([10, 0, 0, 3]));
        assert_eq!(living.common.len(), 2, "nobody is left of the third");
        assert!(living.leaves_out && !living.common.iter().any(|one| one.has_skipped), "its group is gone as a whole");
        assert!(!without_dead(living.common.clone(), |_| true).leaves_out);
        let Groups { common: living, .. } =
            without_dead(living.common, |address| address.ip() != IpAddr::from([10, 0, 0, 1]));
        assert_eq!((living[0].neighbours.clone(), living[0].has_skipped), (nodes(&[2]), true));
        assert_eq!((living[1].neighbours.clone(), living[1].has_skipped), (nodes(&[2]), false));
    }
}
