//! The part of each SSTable that each replica is to get.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use env::Env;
use ring::Ring;
use sending::{Choice, Outgoing};
use sstable::SSTable;
use streaming::data::outgoing::normalized;
use streaming::{Received, TokenRange};

/// SSTables that go whole to one node. Their files, up to ten for each, are open until the load
/// ends; further SSTables go in sections, for which the files suffice that are open anyway.
const ENTIRE_MAX: usize = 128;

/// A node, and the files for it.
pub(crate) struct Share {
    /// Its broadcast address with the storage port.
    pub peer: SocketAddr,
    /// Whether it stands in another data center than the node that was asked for the ring.
    pub is_far: bool,
    /// The files of each session with the node. None is empty.
    pub sessions: Vec<Vec<Outgoing>>,
}

/// A node and the ranges that it replicates.
pub(crate) struct Replica {
    peer: SocketAddr,
    is_far: bool,
    ranges: Vec<TokenRange>,
}

/// The replicas of a keyspace without those that are left out. Err: there is none.
pub(crate) fn replicas(ring: &Ring, keyspace: &str, ignored: &[IpAddr]) -> Result<Vec<Replica>, String> {
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
) -> Result<Option<Share>, String> {
    let mut sessions: Vec<Vec<Outgoing>> = Vec::new();
    let (mut entire, mut count) = (0, 0);
    for sstable in sstables {
        let choice = Choice::of(env, sstable, &replica.ranges, entire < ENTIRE_MAX);
        let Some(choice) = choice.map_err(|error| error.to_string())? else { continue };
        entire += usize::from(choice.entire.is_some());
        let place = count % connections.max(1);
        count += 1;
        if place == sessions.len() {
            sessions.push(Vec::new());
        }
        let session = &mut sessions[place];
        let sequence = i32::try_from(session.len()).map_err(|_| "too many SSTables".to_owned())?;
        let id = Received { table: sstable.table().id, sequence };
        session.push(choice.named(id, sstable, false).map_err(|error| error.to_string())?);
    }
    let Replica { peer, is_far, .. } = *replica;
    Ok((!sessions.is_empty()).then_some(Share { peer, is_far, sessions }))
}
