//! Which endpoints hold which range of the ring, for one replication.
//!
//! A strategy is a function from the ring's tokens and a range to the endpoints that hold it, in
//! the order in which they are met; the first is the primary replica. One file a strategy. The
//! answers for all ranges are computed when a snapshot is made, so that a request only looks its
//! range up.

mod network_topology;
mod simple;

use smallvec::SmallVec;
use types::Token;

use crate::endpoint::{Endpoint, EndpointId, State};
use crate::replication::Replication;

/// The endpoints that hold a range, the primary replica first, none twice.
pub type Natural = SmallVec<[EndpointId; 6]>;

/// Tokens with their owners, ascending; no token twice.
pub(crate) type Tokens = [(Token, EndpointId)];

/// Which endpoints hold which range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The replication from which the placement was computed.
    pub replication: Replication,
    /// The last tokens of the ranges, ascending.
    ends: Vec<Token>,
    /// The endpoints that hold the range that ends at the token of the same position. One element
    /// where all ranges have the same; empty where the ring has no tokens.
    natural: Vec<Natural>,
    /// Endpoints that are about to hold a range; empty where nobody joins or leaves.
    pending: Vec<Natural>,
}

impl Placement {
    /// Of a ring. `local`: the endpoint that holds everything of LocalStrategy.
    pub(crate) fn new(replication: Replication, endpoints: &[Endpoint], local: EndpointId) -> Self {
        let owned = tokens_of(endpoints, |endpoint| endpoint.owns_tokens());
        let is_changing = endpoints.iter().any(|endpoint| !matches!(endpoint.state, State::Normal));
        let mut ends: Vec<Token> = match is_changing {
            false => owned.iter().map(|(token, _)| *token).collect(),
            true => tokens_of(endpoints, |_| true).iter().map(|(token, _)| *token).collect(),
        };
        if replication == Replication::Local {
            ends.truncate(1);
            return Self { replication, ends, natural: vec![SmallVec::from_slice(&[local])], pending: Vec::new() };
        }
        let natural = |tokens: &Tokens| -> Vec<Natural> {
            ends.iter().map(|end| natural(&replication, endpoints, tokens, *end)).collect()
        };
        let mut now = natural(&owned);
        let pending = if is_changing { pending(endpoints, &now, natural) } else { Vec::new() };
        if now.windows(2).all(|pair| pair[0] == pair[1]) {
            now.truncate(1);
        }
        Self { replication, ends, natural: now, pending }
    }

    /// The position of the range that a token is in: the first that ends at it or after it.
    fn position(&self, token: Token) -> usize {
        match self.ends.partition_point(|end| *end < token) {
            past if past == self.ends.len() => 0,
            position => position,
        }
    }

    /// The endpoints that hold a token, the primary replica first.
    pub fn natural(&self, token: Token) -> &[EndpointId] {
        match self.natural.as_slice() {
            [] => &[],
            [all] => all,
            several => &several[self.position(token)],
        }
    }

    /// The endpoints that are about to hold a token and do not yet.
    pub fn pending(&self, token: Token) -> &[EndpointId] {
        match self.pending.is_empty() {
            true => &[],
            false => &self.pending[self.position(token)],
        }
    }

    /// The ranges in the order of the ring, each from a token (excluded) to a token (included),
    /// with the endpoints that hold it. The first wraps around the end of the ring.
    pub fn ranges(&self) -> impl Iterator<Item = (Token, Token, &[EndpointId])> {
        let last = self.ends.last().copied();
        let starts = last.into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| (start, *end, self.natural(*end)))
    }
}

/// The tokens of some endpoints. Where two name the same token the later endpoint has it.
pub(crate) fn tokens_of(endpoints: &[Endpoint], which: impl Fn(&Endpoint) -> bool) -> Vec<(Token, EndpointId)> {
    let ids = (0u32..).map(EndpointId);
    let of_endpoints = ids.zip(endpoints).filter(|(_, endpoint)| which(endpoint));
    let mut tokens: Vec<_> =
        of_endpoints.flat_map(|(id, endpoint)| endpoint.tokens.iter().map(move |token| (*token, id))).collect();
    tokens.sort_by_key(|(token, id)| (*token, std::cmp::Reverse(*id)));
    tokens.dedup_by_key(|(token, _)| *token);
    assert!(tokens.windows(2).all(|pair| pair[0].0 < pair[1].0), "tokens of a ring ascend");
    tokens
}

/// The endpoints that hold a token by a strategy.
fn natural(replication: &Replication, endpoints: &[Endpoint], tokens: &Tokens, token: Token) -> Natural {
    let walk = clockwise(tokens, token);
    let natural = match replication {
        Replication::Local => Natural::new(),
        Replication::Simple { factor } => simple::natural(walk, *factor),
        Replication::NetworkTopology { factors } => network_topology::natural(walk, endpoints, tokens, factors),
    };
    let is_repeated = |(index, id): (usize, &EndpointId)| natural[..index].contains(id);
    assert!(!natural.iter().enumerate().any(is_repeated), "an endpoint holds a range once");
    natural
}

/// Owners of tokens from the first token at or after `token` on, once around.
fn clockwise(tokens: &Tokens, token: Token) -> impl Iterator<Item = EndpointId> {
    let first = tokens.partition_point(|(known, _)| *known < token);
    let (before, after) = tokens.split_at(first);
    after.iter().chain(before).map(|(_, owner)| *owner)
}

/// Endpoints that will hold a range when everybody who leaves has left, and do not now; and those
/// who join, each as if it were the only one (`TokenMetadata.calculatePendingRanges`).
fn pending(endpoints: &[Endpoint], now: &[Natural], natural: impl Fn(&Tokens) -> Vec<Natural>) -> Vec<Natural> {
    let stays = |endpoint: &Endpoint| matches!(endpoint.state, State::Normal | State::Moving);
    let after_leaving = natural(&tokens_of(endpoints, stays));
    let mut pending: Vec<Natural> = after_leaving
        .iter()
        .zip(now)
        .map(|(after, now)| after.iter().filter(|id| !now.contains(id)).copied().collect())
        .collect();
    let joining = (0u32..).map(EndpointId).zip(endpoints).filter(|(_, endpoint)| endpoint.state == State::Joining);
    for (id, joining) in joining {
        let with = natural(&tokens_of(endpoints, |endpoint| stays(endpoint) || std::ptr::eq(endpoint, joining)));
        for (range, with) in pending.iter_mut().zip(with) {
            if with.contains(&id) && !range.contains(&id) {
                range.push(id);
            }
        }
    }
    pending
}
