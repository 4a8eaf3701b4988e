//! The tokens of a node that is new in its ring, chosen by what the ring looks like
//! (`allocate_tokens_for_local_replication_factor`).
//!
//! This happens before the node opens, because a node cannot choose its tokens again later: the
//! node looks at the ring (shadow round), chooses ([`ring::allocation`]), and takes the tokens
//! into its identity. A node that is started on a directory that has tokens comes here only where
//! it is to replace another one and has not joined yet. Agrees with
//! `org.apache.cassandra.dht.BootStrapper.getBootstrapTokens`.

use std::net::SocketAddr;
use std::sync::Arc;

use env::Env;
use gossip::shadow::{as_member, is_hearsay};
use gossip::{Event, Gossip};
use internode::payload::gossip::EndpointState;
use internode::{Envelope, LinkType};
use links::Peer;
use membership::{JoinError, JoinOptions, LocalApplicationStates, Membership, MembershipHandler, Messenger};
use ring::allocation::{AllocationRequest, allocate};
use ring::{Endpoint, State};

use crate::identity::{IdentityOptions, RELEASE_VERSION, Saved};
use crate::membership::JoinSettings;
use crate::membership_state::SeedNames;
use crate::range_movement_state::BootstrapState;
use crate::topology;

/// Why no tokens were chosen.
#[derive(Debug)]
pub enum AllocationError {
    /// The ring could not be looked at.
    Unseen(JoinError),
    /// The ring gives no good choice.
    Refused(String),
}

/// Chooses tokens for `copies` copies in the data center of the node. The place is that of the
/// snitch.
pub async fn allocate_tokens(
    env: &Env,
    identity: &IdentityOptions,
    settings: JoinSettings,
    copies: u32,
) -> Result<Vec<i64>, AllocationError> {
    let mut members = endpoints(env, identity, settings).await.map_err(AllocationError::Unseen)?;
    members.retain(|endpoint| endpoint.address != identity.broadcast);
    let usual = ("datacenter1".to_owned(), "rack1".to_owned());
    let (data_center, rack) = identity.place.as_ref().unwrap_or(&usual);
    let request =
        AllocationRequest { data_center, rack, copies: copies as usize, tokens: identity.num_tokens.max(1) as usize };
    let tokens = allocate(&members, request, &mut || env.random.next_u64()).map_err(AllocationError::Refused)?;
    tracing::info!(members = members.len(), copies, "tokens are allocated: {}", text_of(&tokens));
    Ok(tokens.into_iter().map(|token| token.0).collect())
}

/// The node that another one is to replace, as the ring knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplacedNode {
    /// Its tokens.
    pub tokens: Vec<i64>,
    /// Its host id, if the new node has its address: the new node goes on with this id, so that
    /// hints for it are its own.
    pub host_id: Option<[u8; 16]>,
}

/// Looks up the node that another one is to replace. It must be a member of the ring; that it is
/// down shows when the new node follows gossip.
///
/// `saved`: the directory of the new node has tokens of an earlier start. They give way to those of
/// the replaced node, as in Cassandra, unless ranges of them are in the directory or in the ring.
/// `org.apache.cassandra.service.StorageService.prepareForReplacement`.
pub async fn replaced(
    env: &Env,
    identity: &IdentityOptions,
    saved: Option<&Saved>,
    settings: JoinSettings,
) -> Result<ReplacedNode, AllocationError> {
    let replaced = settings.movements.replaces;
    if settings.seeds.contains(&identity.broadcast) {
        return Err(AllocationError::Refused(
            "Replacing a node without bootstrapping risks invalidating consistency guarantees, and a seed does not \
             bootstrap: name other seeds for this start"
                .to_owned(),
        ));
    }
    let endpoints = endpoints(env, identity, settings).await.map_err(AllocationError::Unseen)?;
    choose(&endpoints, replaced, identity.broadcast, saved).map_err(AllocationError::Refused)
}

/// The choice of [`replaced`] among the endpoints of the ring. Err: a sentence.
fn choose(
    endpoints: &[Endpoint],
    replaced: Option<SocketAddr>,
    local: SocketAddr,
    saved: Option<&Saved>,
) -> Result<ReplacedNode, String> {
    let numbers = |tokens: &[types::Token]| tokens.iter().map(|token| token.0).collect();
    let address = replaced.map(|address| address.to_string()).unwrap_or_default();
    let own = endpoints.iter().find(|endpoint| endpoint.address == local && replaced != Some(local));
    let found = endpoints.iter().find(|endpoint| Some(endpoint.address) == replaced && endpoint.owns_tokens());
    let Some(found) = found else {
        // the others have forgotten it while this node was on its way
        let has_begun = |own: &Endpoint| replaced.is_some_and(|replaced| own.state == State::Replacing(replaced));
        return match saved.filter(|_| own.is_some_and(has_begun)) {
            Some(saved) => Ok(ReplacedNode { tokens: numbers(&saved.tokens), host_id: None }),
            None => Err(format!("Cannot replace_address {address} because it doesn't exist in gossip")),
        };
    };
    if let Some(saved) = saved.filter(|saved| saved.tokens != found.tokens) {
        if own.is_some_and(Endpoint::owns_tokens) {
            return Err(format!(
                "this node owns tokens in the ring already, and cannot replace {address}: decommission it first \
                 (replace_address_first_boot)"
            ));
        }
        if saved.state == BootstrapState::InProgress {
            return Err(format!(
                "the data directory has ranges of a bootstrap with other tokens than those of {address} that was \
                 interrupted: empty the directory, and start again with replace_address_first_boot"
            ));
        }
    }
    Ok(ReplacedNode { tokens: numbers(&found.tokens), host_id: (found.address == local).then_some(found.host_id) })
}

fn text_of(tokens: &[types::Token]) -> String {
    tokens.iter().map(|token| token.0.to_string()).collect::<Vec<_>>().join(", ")
}

/// The endpoints of the ring, as they tell of themselves, or as others remember them. One of them
/// may have the address of this node.
async fn endpoints(env: &Env, identity: &IdentityOptions, settings: JoinSettings) -> Result<Vec<Endpoint>, JoinError> {
    let places = settings.places.clone();
    let options = JoinOptions {
        links: settings.links(identity.listen, identity.broadcast),
        gossip: settings.gossip(identity.broadcast, &identity.cluster_name),
        generation: 0,
        is_member: false,
        joining: None,
        replaces: settings.movements.replaces,
        prefers_local: false,
        local_states: observer_states(identity, &settings),
        remembered: Vec::new(),
    };
    let told = Membership::run_shadow_round(env, options, Arc::new(GossipObserver(settings.seed_names))).await?;
    let endpoint = |(address, state): (SocketAddr, EndpointState)| {
        let state = if is_hearsay(&state) { as_member(state) } else { state };
        let endpoint = topology::endpoint_of(address, &state, true)?;
        Some(match places.of(address.ip()).cloned() {
            Some((data_center, rack)) => Endpoint { data_center, rack, ..endpoint },
            None => endpoint,
        })
    };
    Ok(told.into_iter().filter_map(endpoint).collect())
}

/// The states of a node that only looks at a ring: it tells nothing of itself.
fn observer_states(identity: &IdentityOptions, settings: &JoinSettings) -> LocalApplicationStates {
    LocalApplicationStates {
        host_id: String::new(),
        tokens: Vec::new(),
        data_center: String::new(),
        rack: String::new(),
        release_version: RELEASE_VERSION.to_owned(),
        native: identity.native,
        internal: None,
        schema: String::new(),
        version: settings.version,
        sstable_versions: settings.sstable_versions.clone(),
    }
}

/// The handler of a node that only looks at a ring: it follows no change of the ring and answers
/// no request. The names are those of the seeds; None: the seeds are given as addresses.
struct GossipObserver(Option<SeedNames>);

impl MembershipHandler for GossipObserver {
    fn ring_changed(&self, _gossip: &Gossip, _events: &[Event]) {}

    fn schema_version(&self) -> [u8; 16] {
        [0; 16]
    }

    fn seeds(&self) -> Option<Vec<SocketAddr>> {
        self.0.as_ref().map(|names| (names.0)())
    }

    fn requested(&self, _via: &Messenger, _from: &Peer, _link: LinkType, _message: Envelope) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::SimRing;

    /// A node that looks at a ring of four, of which it was one, halves ranges of the other three;
    /// it joins after it has looked.
    #[test]
    fn a_new_node_looks_at_the_ring() {
        let mut ring = SimRing::new(31, &["dc1", "dc1", "dc1", "dc1"]);
        let taken: BTreeSet<i64> = ring.node(0).ring().tokens().map(|(token, _)| token.0).collect();
        ring.kill(3);
        ring.agree();
        let (env, (identity, settings)) = (ring.world.env(3), ring.options(3));
        let place = Some(("dc1".to_owned(), "rack1".to_owned()));
        let identity = IdentityOptions { num_tokens: 1, initial_tokens: Vec::new(), place, ..identity };
        let tokens = ring.world.block_on(allocate_tokens(&env, &identity, settings, 1)).expect("a ring is there");
        // the third node stands for half of the ring now: the middle of it
        let quarter = i128::from(tokens[0]) * 4 / (1 << 62);
        assert!((-9..=9).contains(&quarter) && tokens.len() == 1, "{tokens:?} {taken:?}");
        assert!(!taken.contains(&tokens[0]));
        ring.start(3);
        ring.agree();
    }

    /// The tokens of the directory of a node that is to replace 10.0.0.9 give way to that one's,
    /// unless something of them is in the ring or in the directory.
    #[test]
    fn the_place_of_another_is_taken() {
        let address = |last: u8| SocketAddr::from(([10, 0, 0, last], 7000));
        let endpoint = |last: u8, state: State, token: i64| Endpoint {
            address: address(last),
            native: address(last),
            host_id: [last; 16],
            data_center: "dc1".to_owned(),
            rack: "rack1".to_owned(),
            tokens: vec![types::Token(token)],
            is_up: false,
            state,
        };
        let saved = |token: i64, state| Saved { tokens: vec![types::Token(token)], state };
        let (new, begun) = (BootstrapState::NeedsBootstrap, BootstrapState::InProgress);
        let dead = endpoint(9, State::Normal, 5);
        let replacing = endpoint(1, State::Replacing(address(9)), 5);
        let cases = [
            (vec![dead.clone()], 1, None, Ok((5, None))),
            (vec![dead.clone()], 9, None, Ok((5, Some([9; 16])))),
            (vec![dead.clone()], 1, Some(saved(7, new)), Ok((5, None))),
            (vec![dead.clone()], 9, Some(saved(7, new)), Ok((5, Some([9; 16])))),
            (vec![dead.clone()], 1, Some(saved(7, begun)), Err("that was interrupted: empty the directory")),
            (vec![dead.clone()], 9, Some(saved(5, begun)), Ok((5, Some([9; 16])))),
            (vec![dead.clone(), replacing.clone()], 1, Some(saved(5, begun)), Ok((5, None))),
            (vec![dead, endpoint(1, State::Normal, 7)], 1, Some(saved(7, new)), Err("owns tokens in the ring already")),
            (vec![replacing.clone()], 1, Some(saved(5, begun)), Ok((5, None))),
            (vec![replacing], 1, None, Err("because it doesn't exist in gossip")),
            (vec![], 1, Some(saved(5, begun)), Err("because it doesn't exist in gossip")),
        ];
        for (at, (endpoints, local, saved, expected)) in cases.into_iter().enumerate() {
            match (choose(&endpoints, Some(address(9)), address(local), saved.as_ref()), expected) {
                (Ok(chosen), Ok((token, host_id))) => {
                    assert_eq!(chosen, ReplacedNode { tokens: vec![token], host_id }, "case {at}");
                }
                (Err(why), Err(expected)) => assert!(why.contains(expected), "case {at}: {why}"),
                (chosen, expected) => panic!("case {at}: {chosen:?}, not {expected:?}"),
            }
        }
    }
}
