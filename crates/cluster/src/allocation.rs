//! The tokens of a node that is new in its ring, chosen by what the ring looks like
//! (`allocate_tokens_for_local_replication_factor`).
//!
//! Before the node opens, because its tokens are for ever: a look at the ring (shadow round), the
//! choice ([`ring::allocation`]), and the tokens become those of the identity. A node that is
//! started on a directory that has tokens does not come here. Agrees with
//! `org.apache.cassandra.dht.BootStrapper.getBootstrapTokens`.

use std::net::SocketAddr;
use std::sync::Arc;

use env::Env;
use gossip::{Event, Gossip};
use internode::{Envelope, LinkType};
use links::Peer;
use membership::{Follower, Introduction, JoinError, JoinOptions, Membership, Messenger};
use ring::Endpoint;
use ring::allocation::{Wish, allocate};

use crate::identity::{IdentityOptions, RELEASE_VERSION};
use crate::joined::SeedNames;
use crate::membership::JoinSettings;
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
    let members = members(env, identity, settings).await.map_err(AllocationError::Unseen)?;
    let usual = ("datacenter1".to_owned(), "rack1".to_owned());
    let (data_center, rack) = identity.place.as_ref().unwrap_or(&usual);
    let wish = Wish { data_center, rack, copies: copies as usize, tokens: identity.num_tokens.max(1) as usize };
    let tokens = allocate(&members, wish, &mut || env.random.next_u64()).map_err(AllocationError::Refused)?;
    tracing::info!(members = members.len(), copies, "tokens are allocated: {}", text_of(&tokens));
    Ok(tokens.into_iter().map(|token| token.0).collect())
}

/// The node that another one is to replace, as the ring knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replaced {
    /// Its tokens.
    pub tokens: Vec<i64>,
    /// Its host id, if the new node has its address: the new node goes on with this id, so that
    /// hints for it are its own.
    pub host_id: Option<[u8; 16]>,
}

/// Looks up the node that another one is to replace. It must be a member of the ring; that it is
/// down shows when the new node follows gossip.
/// `org.apache.cassandra.service.StorageService.prepareForReplacement`.
pub async fn replaced(
    env: &Env,
    identity: &IdentityOptions,
    settings: JoinSettings,
) -> Result<Replaced, AllocationError> {
    let replaced = settings.movements.replaces;
    if settings.seeds.contains(&identity.broadcast) {
        return Err(AllocationError::Refused(
            "Replacing a node without bootstrapping risks invalidating consistency guarantees, and a seed does not \
             bootstrap: name other seeds for this start"
                .to_owned(),
        ));
    }
    let members = members(env, identity, settings).await.map_err(AllocationError::Unseen)?;
    let found = members.iter().find(|endpoint| Some(endpoint.address) == replaced && endpoint.owns_tokens());
    let Some(found) = found else {
        let address = replaced.map(|address| address.to_string()).unwrap_or_default();
        return Err(AllocationError::Refused(format!(
            "Cannot replace_address {address} because it doesn't exist in gossip"
        )));
    };
    let host_id = (found.address == identity.broadcast).then_some(found.host_id);
    Ok(Replaced { tokens: found.tokens.iter().map(|token| token.0).collect(), host_id })
}

fn text_of(tokens: &[types::Token]) -> String {
    tokens.iter().map(|token| token.0.to_string()).collect::<Vec<_>>().join(", ")
}

/// The other members of the ring, as they tell of themselves.
async fn members(env: &Env, identity: &IdentityOptions, settings: JoinSettings) -> Result<Vec<Endpoint>, JoinError> {
    let (places, replaced) = (settings.places.clone(), settings.movements.replaces);
    let options = JoinOptions {
        links: settings.links(identity.listen, identity.broadcast),
        gossip: settings.gossip(identity.broadcast, &identity.cluster_name),
        generation: 0,
        is_member: false,
        joining: None,
        replaces: settings.movements.replaces,
        prefers_local: false,
        introduction: nobody(identity, &settings),
        remembered: Vec::new(),
    };
    let told = Membership::scout(env, options, Arc::new(Nobody(settings.seed_names))).await?;
    // a node that takes the place and the address of another sees that one there
    let is_other = |address: &SocketAddr| *address != identity.broadcast || replaced == Some(*address);
    let others = told.iter().filter(|(address, _)| is_other(address));
    let endpoint = |(address, state): &(SocketAddr, _)| {
        let endpoint = topology::endpoint_of(*address, state, true)?;
        Some(match places.of(address.ip()).cloned() {
            Some((data_center, rack)) => Endpoint { data_center, rack, ..endpoint },
            None => endpoint,
        })
    };
    Ok(others.filter_map(endpoint).collect())
}

/// A node that only looks tells nothing of itself.
fn nobody(identity: &IdentityOptions, settings: &JoinSettings) -> Introduction {
    Introduction {
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

/// Nobody follows a ring that is only looked at, and nobody is answered.
struct Nobody(Option<SeedNames>);

impl Follower for Nobody {
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
}
