//! The part of each SSTable that each replica is to get.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use env::Env;
use ring::Ring;
use sending::{ChosenSections, OutgoingFile};
use sstable::SSTable;
use streaming::data::outgoing::normalized;
use streaming::{Received, TokenRange};

/// SSTables that go whole to one node. Their files, up to ten for each, are open until the load
/// ends; further SSTables go in sections, for which the files suffice that are open anyway.
const ENTIRE_MAX: usize = 128;

/// A node, and the files for it.
pub(crate) struct PeerShare {
    /// Its broadcast address with the storage port.
    pub peer: SocketAddr,
    /// Whether it stands in another data center than the node that was asked for the ring.
    pub is_far: bool,
    /// The files of each session with the node. None is empty.
    pub sessions: Vec<Vec<OutgoingFile>>,
}

/// A node and the ranges that it replicates.
pub(crate) struct Replica {
    peer: SocketAddr,
    is_far: bool,
    ranges: Vec<TokenRange>,
}

/// The replicas of a keyspace without those that are left out. Err: there is none, or one that is
/// to be left out is not in the ring: the node that was meant would get its share.
pub(crate) fn replicas(ring: &Ring, keyspace: &str, ignored: &[IpAddr]) -> Result<Vec<Replica>, String> {
    let is_here = |ip: &IpAddr| ring.endpoints().iter().any(|endpoint| endpoint.address.ip() == *ip);
    if let Some(stranger) = ignored.iter().find(|ip| !is_here(ip)) {
        let known: Vec<String> = ring.endpoints().iter().map(|endpoint| endpoint.address.ip().to_string()).collect();
        return Err(format!(
            "no node of the ring has the address {stranger}, which is to be left out; nodes are named by the addresses \
             by which they know each other: {}",
            known.join(", ")
        ));
    }
    let placement = ring.placement(keyspace).ok_or_else(|| format!("keyspace {keyspace} is nowhere in the ring"))?;
    let mut ranges: BTreeMap<_, Vec<TokenRange>> = BTreeMap::new();
    for (left, right, endpoints) in placement.ranges() {
        for endpoint in endpoints {
            ranges.entry(*endpoint).or_default().push(TokenRange { left, right });
        }
    }
    let replica = |(id, ranges): (_, Vec<TokenRange>)| {
        let endpoint = ring.endpoint(id);
        let is_far = endpoint.data_center != ring.local_data_center();
        Replica { peer: endpoint.address, is_far, ranges: normalized(&ranges) }
    };
    let replicas = ranges.into_iter().map(replica).filter(|replica| !ignored.contains(&replica.peer.ip()));
    let replicas: Vec<Replica> = replicas.collect();
    match replicas.is_empty() {
        true => Err(format!("no node is left that has rows of keyspace {keyspace}")),
        false => Ok(replicas),
    }
}

/// The share of one replica. None: it gets nothing. Waits for the disk.
pub(crate) fn share(
    env: &Env,
    replica: &Replica,
    sstables: &[SSTable],
    connections: usize,
) -> Result<Option<PeerShare>, String> {
    let mut sessions: Vec<Vec<OutgoingFile>> = Vec::new();
    let (mut entire, mut count) = (0, 0);
    for sstable in sstables {
        let sections = ChosenSections::of(env, sstable, &replica.ranges, entire < ENTIRE_MAX);
        let Some(sections) = sections.map_err(|error| error.to_string())? else { continue };
        entire += usize::from(sections.entire.is_some());
        let place = count % connections.max(1);
        count += 1;
        if place == sessions.len() {
            sessions.push(Vec::new());
        }
        let session = &mut sessions[place];
        let sequence = i32::try_from(session.len()).map_err(|_| "too many SSTables".to_owned())?;
        let id = Received { table: sstable.table().id, sequence };
        session.push(sections.named(id, sstable, false).map_err(|error| error.to_string())?);
    }
    let Replica { peer, is_far, .. } = *replica;
    Ok((!sessions.is_empty()).then_some(PeerShare { peer, is_far, sessions }))
}

#[cfg(test)]
mod tests {
    use ring::{Endpoint, EndpointId, Replication, State};
    use types::Token;

    use super::*;

    #[test]
    fn a_node_that_is_left_out_is_one_of_the_ring() {
        let endpoint = |number: u8| {
            let address = SocketAddr::from(([10, 0, 0, number], 7000));
            Endpoint {
                address,
                native: address,
                host_id: [number; 16],
                data_center: "dc1".to_owned(),
                rack: "rack1".to_owned(),
                tokens: vec![Token(number.into())],
                is_up: true,
                state: State::Normal,
            }
        };
        let factor = BTreeMap::from([("replication_factor".to_owned(), "2".to_owned())]);
        let replication = Replication::parse("SimpleStrategy", &factor);
        let ring = Ring::new(vec![endpoint(1), endpoint(2)], EndpointId(0));
        let ring = ring.with_keyspaces([("ks".to_owned(), replication)]);
        let left = |ignored: [u8; 4]| replicas(&ring, "ks", &[IpAddr::from(ignored)]).map(|left| left.len());
        assert_eq!(left([10, 0, 0, 2]), Ok(1));
        let refused = left([10, 0, 0, 3]).expect_err("a slip");
        assert!(refused.contains("the address 10.0.0.3") && refused.ends_with(": 10.0.0.1, 10.0.0.2"), "{refused}");
    }
}
