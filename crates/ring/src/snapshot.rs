//! The ring at one moment: its endpoints, their tokens, and the placement of each keyspace.
//!
//! Immutable. A change makes a new snapshot, and reuses the parts that stay
//! ([`Ring::with_endpoints`], [`Ring::with_keyspaces`]). Placements of keyspaces with the same
//! replication are shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::Token;

use crate::endpoint::{Endpoint, EndpointId, FormerTokens};
use crate::placement::{Placement, tokens_of};
use crate::replication::{Replication, ReplicationError};

/// The ring at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    endpoints: Vec<Endpoint>,
    /// The id of this node.
    local: EndpointId,
    /// Tokens of the endpoints that own theirs, ascending.
    tokens: Vec<(Token, EndpointId)>,
    /// The endpoints that have come to their tokens a moment ago.
    former: FormerTokens,
    /// The placement of each keyspace, by its name; Err: why it cannot be placed.
    keyspaces: BTreeMap<String, Result<Arc<Placement>, ReplicationError>>,
}

impl Ring {
    /// A ring of these endpoints, without keyspaces. The endpoint at position `local` is this
    /// node.
    pub fn new(endpoints: Vec<Endpoint>, local: EndpointId) -> Self {
        assert!(local.index() < endpoints.len(), "this node is one of the ring");
        let tokens = tokens_of(&endpoints, |_, endpoint| &endpoint.tokens);
        Self { endpoints, local, tokens, former: FormerTokens::new(), keyspaces: BTreeMap::new() }
    }

    /// The same endpoints with these keyspaces and no others.
    pub fn with_keyspaces(
        &self,
        keyspaces: impl IntoIterator<Item = (String, Result<Replication, ReplicationError>)>,
    ) -> Self {
        let mut placements: BTreeMap<Replication, Arc<Placement>> = BTreeMap::new();
        for placement in self.keyspaces.values().flatten() {
            placements.entry(placement.replication.clone()).or_insert_with(|| Arc::clone(placement));
        }
        let mut place = |replication: Replication| {
            let made = || Arc::new(Placement::new(replication.clone(), &self.endpoints, self.local, &self.former));
            Arc::clone(placements.entry(replication.clone()).or_insert_with(made))
        };
        let placed = |(name, replication): (String, Result<_, _>)| (name, replication.map(&mut place));
        let keyspaces = keyspaces.into_iter().map(placed).collect();
        Self { keyspaces, ..self.clone() }
    }

    /// A snapshot with the keyspaces of this one on other endpoints. If no endpoint has come, gone
    /// or changed its tokens, as when endpoints only go up or down, each keyspace keeps its
    /// placement. `former`: the endpoints of which nodes may not have heard yet that they own
    /// their tokens.
    pub fn with_endpoints(&self, endpoints: Vec<Endpoint>, local: EndpointId, former: FormerTokens) -> Self {
        let are_the_same = self.endpoints.len() == endpoints.len()
            && self.endpoints.iter().zip(&endpoints).all(|(one, other)| one.has_same_placement_as(other));
        let is_known = |id: &EndpointId| id.index() < endpoints.len();
        assert!(former.keys().all(is_known), "a former owner is an endpoint of the ring");
        if are_the_same && self.local == local && self.former == former {
            return Self { endpoints, ..self.clone() };
        }
        let replication = |placement: &Arc<Placement>| placement.replication.clone();
        let replications = self.keyspaces.iter().map(|(name, placement)| {
            (name.clone(), placement.as_ref().map(replication).map_err(ReplicationError::clone))
        });
        Self { former, ..Self::new(endpoints, local) }.with_keyspaces(replications)
    }

    /// All endpoints. The position of each is its id.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The endpoint with this id.
    pub fn endpoint(&self, id: EndpointId) -> &Endpoint {
        &self.endpoints[id.index()]
    }

    /// The endpoints of which nodes may not have heard yet that they own their tokens.
    pub fn former(&self) -> &FormerTokens {
        &self.former
    }

    /// This node's id.
    pub fn local_id(&self) -> EndpointId {
        self.local
    }

    /// This node.
    pub fn local(&self) -> &Endpoint {
        self.endpoint(self.local)
    }

    /// The data center of this node.
    pub fn local_data_center(&self) -> &str {
        &self.local().data_center
    }

    /// Every other endpoint.
    pub fn peers(&self) -> impl Iterator<Item = &Endpoint> {
        let local = self.local.index();
        self.endpoints.iter().enumerate().filter(move |(index, _)| *index != local).map(|(_, endpoint)| endpoint)
    }

    /// Tokens with their owners, ascending.
    pub fn tokens(&self) -> impl Iterator<Item = (Token, &Endpoint)> {
        self.tokens.iter().map(|(token, owner)| (*token, self.endpoint(*owner)))
    }

    pub(crate) fn owners(&self) -> &[(Token, EndpointId)] {
        &self.tokens
    }

    /// The placement of a keyspace; None: there is no such keyspace, or its replication cannot be
    /// placed.
    pub fn placement(&self, keyspace: &str) -> Option<&Arc<Placement>> {
        self.placed(keyspace)?.ok()
    }

    /// The placements of all keyspaces that can be placed.
    pub fn placements(&self) -> impl Iterator<Item = &Placement> {
        self.keyspaces.values().flatten().map(Arc::as_ref)
    }

    /// The placement of a keyspace, or why it cannot be placed; None: there is no such keyspace.
    pub fn placed(&self, keyspace: &str) -> Option<Result<&Arc<Placement>, &ReplicationError>> {
        self.keyspaces.get(keyspace).map(Result::as_ref)
    }

    /// The data centers that have endpoints, each with the number of those that own tokens.
    pub fn data_centers(&self) -> BTreeMap<&str, usize> {
        let mut centers = BTreeMap::new();
        for endpoint in &self.endpoints {
            *centers.entry(endpoint.data_center.as_str()).or_default() += usize::from(endpoint.owns_tokens());
        }
        centers
    }
}
