//! Which replica of a view has the rows that follow from a replica's rows of the base.
//!
//! The replicas of a base row and those of its entry in a view are paired by their places: the
//! first of one with the first of the other, among those of this data center that do not hold both.
//! A node that holds both is paired with itself. So each replica of the view is told by one replica
//! of the base. A node that is about to hold the entry is told by all.
//!
//! Agrees with `org.apache.cassandra.db.view.ViewUtils.getViewNaturalEndpoint`.

use std::sync::Arc;

use ring::{EndpointId, Placement, Replication, Ring};
use rows::views::Entry;
use storage::materialized::ViewChange;
use types::Token;

use super::remote::PeerViewChanges;
use crate::node::Node;
use crate::replica::views::DividedViewChanges;

/// The replica of the view with which this node, a replica of the base, is paired. None: it is no
/// replica of the base, or the ring is changing.
pub(super) fn paired(ring: &Ring, placement: &Placement, base: Token, view: Token) -> Option<EndpointId> {
    let local = ring.local_id();
    let (of_base, of_view) = (placement.natural(base), placement.natural(view));
    if of_view.contains(&local) {
        return Some(local);
    }
    let is_near = |id: EndpointId| match &placement.replication {
        Replication::NetworkTopology { .. } => ring.endpoint(id).data_center == ring.local_data_center(),
        _ => true,
    };
    let only = |these: &[EndpointId], others: &[EndpointId]| -> Vec<EndpointId> {
        these.iter().copied().filter(|id| !others.contains(id) && is_near(*id)).collect()
    };
    let (of_base, of_view) = (only(of_base, of_view), only(of_view, of_base));
    let place = of_base.iter().position(|id| *id == local)?;
    of_view.get(place).copied()
}

/// Divides changes of views into those of this node and those of others.
pub(super) fn pair(node: &Arc<Node>, changes: Vec<ViewChange>) -> DividedViewChanges {
    let ring = node.ring();
    let mut remote = PeerViewChanges::new(node);
    let mut here = Vec::with_capacity(changes.len());
    for change in changes {
        let ViewChange { base, view, entries } = change;
        let placement = ring.placement(&view.table.keyspace);
        let mut targets: Vec<(Option<EndpointId>, Vec<EndpointId>)> = Vec::with_capacity(entries.len());
        for entry in &entries {
            targets.push(match placement {
                Some(placement) if ring.local().owns_tokens() => {
                    let pending = placement.pending(entry.key.token);
                    (paired(&ring, placement, base.token, entry.key.token), pending.to_vec())
                }
                // not a member yet: the batch log sends everything once the ring is known
                _ => (None, Vec::new()),
            });
        }
        let mut own: Vec<Entry> = Vec::new();
        for (entry, (paired, pending)) in entries.into_iter().zip(targets) {
            let is_here = paired == Some(ring.local_id());
            let mut others: Vec<EndpointId> =
                paired.into_iter().chain(pending).filter(|id| *id != ring.local_id()).collect();
            others.dedup();
            if !is_here || !others.is_empty() {
                remote.add(&view, entry.clone(), paired.is_some(), &others, &ring);
            }
            if is_here {
                own.push(entry);
            }
        }
        if !own.is_empty() {
            here.push(ViewChange { base, view, entries: own });
        }
    }
    DividedViewChanges { here, remote: remote.unless_empty() }
}

#[cfg(test)]
mod tests {
    use ring::{Endpoint, State};

    use super::*;

    /// Nodes as data centers, each with one token, in the order of the tokens.
    fn ring(nodes: &[&str], local: u32, replication: Replication) -> Ring {
        let endpoint = |(number, data_center): (u8, &&str)| Endpoint {
            address: ([127, 0, 0, number], 7000).into(),
            native: ([127, 0, 0, number], 9042).into(),
            host_id: [number; 16],
            data_center: (*data_center).to_owned(),
            rack: "1".to_owned(),
            tokens: vec![Token(i64::from(number) * 100)],
            is_up: true,
            state: State::Normal,
        };
        let ring = Ring::new((0..).zip(nodes).map(endpoint).collect(), EndpointId(local));
        ring.with_keyspaces([("ks".to_owned(), Ok(replication))])
    }

    /// For each node the number of the node with which it is paired.
    fn pairs(nodes: &[&str], replication: &Replication, base: i64, view: i64) -> Vec<Option<u32>> {
        let all = 0..u32::try_from(nodes.len()).expect("few");
        let of = |local| {
            let ring = ring(nodes, local, replication.clone());
            let placement = ring.placement("ks").expect("placed");
            paired(&ring, placement, Token(base), Token(view)).map(|id| id.0)
        };
        all.map(of).collect()
    }

    #[test]
    fn replicas_of_base_and_view_are_paired_by_their_places() {
        let simple = |factor| Replication::Simple { factor };
        let one = ["a"; 4];
        // one copy each
        assert_eq!(pairs(&one, &simple(1), 50, 250), [None, Some(3), None, Some(3)]);
        // base on 1, 2, 3 and view on 2, 3, 0: who has both is paired with itself
        assert_eq!(pairs(&one, &simple(3), 50, 150), [Some(0), Some(0), Some(2), Some(3)]);
        // base on 1, 2 and view on 3, 0
        assert_eq!(pairs(&one, &simple(2), 50, 250), [Some(0), Some(3), Some(0), Some(3)]);
    }

    #[test]
    fn pairs_stay_within_a_data_centre() {
        let factors = [("a".to_owned(), 1), ("b".to_owned(), 1)].into_iter().collect();
        let replication = Replication::NetworkTopology { factors };
        // base on 1 (a) and 2 (b), view on 3 (a) and 0 (b)
        let nodes = ["b", "a", "b", "a"];
        assert_eq!(pairs(&nodes, &replication, 50, 250), [Some(0), Some(3), Some(0), Some(3)]);
    }
}
