//! Waiting until others have the schema, or this node has theirs.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use internode::Verb;
use membership::{Pending, Request};
use schema::system::is_system_keyspace;

use crate::node::Node;

/// Longest time that a change of the schema waits for the nodes that are up, as drivers do by
/// default.
pub const AGREEMENT_WAIT: Duration = Duration::from_secs(10);
/// Longest time that a node that is new in its ring waits for the schema before it goes on.
pub(crate) const FIRST_SCHEMA_WAIT: Duration = Duration::from_secs(10);
/// Pauses between two looks: the first, which doubles, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));
/// Time after which a node that does not answer is asked again.
const ROUND: Duration = Duration::from_secs(1);

/// A node of which no right version has come.
struct PendingNode {
    address: SocketAddr,
    /// Whether the node has answered, with another version.
    has_answered: bool,
}

impl Node {
    /// Waits until the nodes that are up have the schema that this node has. Gives the nodes that
    /// do not have it in the end. Nodes on their way in are waited for too, because they get
    /// writes of their ranges. A node alone does not wait.
    pub async fn wait_for_schema_agreement(&self, limit: Duration) -> Vec<SocketAddr> {
        let up = || self.schema_followers().into_iter().map(|neighbour| neighbour.address).collect::<Vec<_>>();
        let lacking = self.wait_for_versions(limit, up, |version| version == self.schema().version).await;
        lacking.into_iter().map(|node| node.address).collect()
    }

    /// Waits until this node has the schemas of all members that are up and exchange theirs. Gives
    /// the members whose schema is not here in the end. Members are asked themselves: gossip is
    /// some rounds late. A member that has not answered at all until the end counts by the version
    /// that it tells in gossip: where the way between the two nodes is cut, news of it come by
    /// others.
    pub(crate) async fn wait_for_schemas_of_members(&self, limit: Duration) -> Vec<SocketAddr> {
        let up = || {
            let members = self.schema_neighbours().into_iter().filter(|neighbour| neighbour.exchanges);
            members.map(|neighbour| neighbour.address).collect::<Vec<_>>()
        };
        let lacking = self.wait_for_versions(limit, up, |version| self.has_schema(version)).await;
        let neighbours = self.schema_neighbours();
        let is_told_here = |node: &PendingNode| {
            let told = neighbours.iter().find(|neighbour| neighbour.address == node.address);
            !node.has_answered && told.is_some_and(|neighbour| self.has_schema(&neighbour.version))
        };
        let (silent, lacking): (Vec<_>, Vec<_>) = lacking.into_iter().partition(is_told_here);
        for PendingNode { address, .. } in silent {
            tracing::warn!(%address, "a member does not answer; the schema that it tells by gossip is here");
        }
        lacking.into_iter().map(|node| node.address).collect()
    }

    /// Asks nodes for the versions of their schemas until each has given one that is `right`, or
    /// is not among those that are `up` any more. Gives the nodes that have not in the end.
    async fn wait_for_versions(
        &self,
        limit: Duration,
        up: impl Fn() -> Vec<SocketAddr>,
        is_right: impl Fn(&[u8]) -> bool,
    ) -> Vec<PendingNode> {
        let Some(messenger) = self.messenger() else { return Vec::new() };
        let begun = self.env.now();
        let new = |address| PendingNode { address, has_answered: false };
        let mut lacking: Vec<PendingNode> = up().into_iter().map(new).collect();
        let mut pause = PAUSE.0;
        loop {
            let ask = |node: &PendingNode| {
                let request = Request::new(Verb::SchemaVersionReq, Bytes::new(), ROUND).without_failure_response();
                (node.address, messenger.request(node.address, request))
            };
            let asked: Vec<(SocketAddr, Pending)> = lacking.iter().map(ask).collect();
            let round = self.env.now();
            for (peer, answer) in asked {
                let left = ROUND.saturating_sub(self.env.elapsed(round));
                let answer = tokio::select! {
                    answer = answer => answer.ok(),
                    () = self.env.sleep(left) => None,
                };
                let Some(answer) = answer else { continue };
                match is_right(&answer.payload) {
                    true => lacking.retain(|node| node.address != peer),
                    false => {
                        lacking.iter_mut().filter(|node| node.address == peer).for_each(|node| node.has_answered = true)
                    }
                }
            }
            // who has gone down meanwhile takes the schema over when it comes back
            let alive = up();
            lacking.retain(|node| alive.contains(&node.address));
            if lacking.is_empty() || self.env.elapsed(begun) >= limit {
                return lacking;
            }
            self.env.sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// The version of the schema that each endpoint of the ring has, by address; None: it is down,
    /// or does not answer within the request timeout. Agrees with
    /// `org.apache.cassandra.service.StorageProxy.describeSchemaVersions`.
    pub async fn schema_versions(&self) -> Vec<(SocketAddr, Option<[u8; 16]>)> {
        let (ring, limit) = (self.ring(), self.timeouts().misc);
        let mut versions = vec![(self.identity.broadcast, Some(self.schema().version))];
        let begun = self.env.now();
        let asked: Vec<(SocketAddr, Option<Pending>)> = ring
            .peers()
            .map(|peer| {
                let request = || Request::new(Verb::SchemaVersionReq, Bytes::new(), limit).without_failure_response();
                let messenger = self.messenger().filter(|_| peer.is_up);
                (peer.address, messenger.map(|messenger| messenger.request(peer.address, request())))
            })
            .collect();
        for (peer, answer) in asked {
            let left = limit.saturating_sub(self.env.elapsed(begun));
            let answer = match answer {
                None => None,
                Some(answer) => tokio::select! {
                    // an answer counts that came while another one was waited for
                    biased;
                    answer = answer => answer.ok(),
                    () = self.env.sleep(left) => None,
                },
            };
            versions.push((peer, answer.and_then(|answer| answer.payload.as_ref().try_into().ok())));
        }
        versions.sort_by_key(|(address, _)| *address);
        versions
    }

    /// A node without a schema of its own waits until it has that of its ring: until then it could
    /// answer no request. The first node of a ring does not wait. False: no node has given its
    /// schema within `limit`.
    pub(crate) async fn wait_for_first_schema(&self, limit: Duration) -> bool {
        let has_own = self.schema().keyspaces.keys().any(|name| !is_system_keyspace(name));
        let Some(messenger) = self.messenger() else { return true };
        let knows_others = messenger.with_gossip(|gossip| gossip.peers().values().any(|peer| peer.is_member()));
        if has_own || !knows_others {
            return true;
        }
        let begun = self.env.now();
        while self.env.elapsed(begun) < limit {
            let neighbours = self.schema_neighbours();
            if !neighbours.is_empty() && neighbours.iter().all(|neighbour| self.has_schema(&neighbour.version)) {
                return true;
            }
            self.env.sleep(PAUSE.1).await;
        }
        false
    }
}
