//! Which endpoints hold which range of the ring, for one replication.
//!
//! A strategy is a function from the ring's tokens and a range to the endpoints that hold it, in
//! the order in which they are met; the first is the primary replica. There is one file for each
//! strategy. The answers for all ranges are computed when a snapshot is made, so that a request
//! only looks its range up.

mod former;
mod network_topology;
mod pending;
mod simple;

use network_topology::NetworkTopology;
use smallvec::SmallVec;
use types::Token;

use crate::endpoint::{Endpoint, EndpointId, FormerTokens, State};
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
    /// The last token of each range, ascending.
    ends: Vec<Token>,
    /// The endpoints that hold the range that ends at the token of the same position. One element
    /// if all ranges have the same endpoints; empty if the ring has no tokens.
    natural: Vec<Natural>,
    /// For each range the endpoints that are about to hold it; empty if no endpoint joins, leaves
    /// or moves.
    pending: Vec<Natural>,
    /// For each range the endpoints that held it until a moment ago; empty if no endpoint has come
    /// to tokens lately.
    former: Vec<Natural>,
}

impl Placement {
    /// The placement of a replication in a ring. `local`: the endpoint that holds all ranges of
    /// LocalStrategy.
    pub(crate) fn new(
        replication: Replication,
        endpoints: &[Endpoint],
        local: EndpointId,
        former: &FormerTokens,
    ) -> Self {
        let owned = tokens_of(endpoints, |_, endpoint| &endpoint.tokens);
        let is_changing = endpoints.iter().any(|endpoint| !matches!(endpoint.state, State::Normal));
        let mut ends: Vec<Token> = match is_changing {
            false => owned.iter().map(|(token, _)| *token).collect(),
            true => pending::all_tokens(endpoints),
        };
        former::add_tokens(&mut ends, former);
        if replication == Replication::Local {
            ends.truncate(1);
            let natural = vec![SmallVec::from_slice(&[local])];
            return Self { replication, ends, natural, pending: Vec::new(), former: Vec::new() };
        }
        let natural = |members: &Members| -> Vec<Natural> {
            let strategy = Strategy::new(&replication, endpoints, members);
            ends.iter().map(|end| strategy.natural(*end)).collect()
        };
        let members = Members::of(owned);
        let mut now = natural(&members);
        let pending = if is_changing { pending::of(endpoints, &members, &now, natural) } else { Vec::new() };
        let former =
            if former.is_empty() { Vec::new() } else { former::of(endpoints, former, &now, &pending, natural) };
        assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "the ends of ranges ascend");
        let is_of_all = |lists: &[Natural]| lists.is_empty() || lists.len() == ends.len();
        assert!(is_of_all(&pending) && is_of_all(&former), "all ranges have pending and former endpoints, or none has");
        if now.windows(2).all(|pair| pair[0] == pair[1]) {
            now.truncate(1);
        }
        Self { replication, ends, natural: now, pending, former }
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

    /// The endpoints that are about to hold a token and do not hold it yet.
    pub fn pending(&self, token: Token) -> &[EndpointId] {
        match self.pending.is_empty() {
            true => &[],
            false => &self.pending[self.position(token)],
        }
    }

    /// The endpoints that held a token until a moment ago, do not hold it any more, and may still
    /// be read by nodes that have not heard of that.
    pub fn former(&self, token: Token) -> &[EndpointId] {
        match self.former.is_empty() {
            true => &[],
            false => &self.former[self.position(token)],
        }
    }

    /// The last tokens of ranges between two tokens (both excluded), in the order of the ring; if
    /// both are the same, of all other ranges. None if all ranges have the same endpoints. The
    /// work is that of a search for the first one, not of a pass over the ring.
    pub(crate) fn ends_between(&self, start: Token, end: Token) -> impl Iterator<Item = Token> {
        let ends: &[Token] = if self.natural.len() > 1 { &self.ends[..] } else { &[] };
        let behind = ends.partition_point(|token| *token <= start);
        let before = ends.partition_point(|token| *token < end);
        let (first, second) = match start < end {
            true => (&ends[behind..before], &ends[..0]),
            false => (&ends[behind..], &ends[..before]),
        };
        first.iter().chain(second).copied()
    }

    /// The ranges in the order of the ring, each from a token (excluded) to a token (included),
    /// with the endpoints that hold it. The first wraps around the end of the ring.
    pub fn ranges(&self) -> impl Iterator<Item = (Token, Token, &[EndpointId])> {
        let last = self.ends.last().copied();
        let starts = last.into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| (start, *end, self.natural(*end)))
    }
}

/// The tokens of the endpoints that own theirs; `of` gives the tokens of each. If two endpoints
/// name the same token the later one has it.
pub(crate) fn tokens_of<'a>(
    endpoints: &'a [Endpoint],
    of: impl Fn(EndpointId, &'a Endpoint) -> &'a [Token],
) -> Vec<(Token, EndpointId)> {
    let ids = (0u32..).map(EndpointId);
    let owners = ids.zip(endpoints).filter(|(_, endpoint)| endpoint.owns_tokens());
    let mut tokens: Vec<_> =
        owners.flat_map(|(id, endpoint)| of(id, endpoint).iter().map(move |token| (*token, id))).collect();
    tokens.sort_by_key(|(token, id)| (*token, std::cmp::Reverse(*id)));
    tokens.dedup_by_key(|(token, _)| *token);
    assert!(tokens.windows(2).all(|pair| pair[0].0 < pair[1].0), "tokens of a ring ascend");
    tokens
}

/// The endpoints among which a strategy chooses.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    tokens: Vec<(Token, EndpointId)>,
    /// Every member, ascending. A member without tokens counts for the size of its data center and
    /// its rack, and holds nothing.
    ids: Vec<EndpointId>,
}

impl Members {
    /// The members with these tokens and their owners.
    pub(crate) fn of(tokens: Vec<(Token, EndpointId)>) -> Self {
        let mut ids: Vec<EndpointId> = tokens.iter().map(|(_, owner)| *owner).collect();
        ids.sort_unstable();
        ids.dedup();
        Self { tokens, ids }
    }

    /// These members after an endpoint has taken over tokens from their owners, and given up its
    /// own. An endpoint that loses its last token stays a member, as in Cassandra's
    /// `TokenMetadata`.
    pub(crate) fn with(&self, taker: EndpointId, taken: &[Token]) -> Self {
        let is_kept = |(token, owner): &&(Token, EndpointId)| *owner != taker && !taken.contains(token);
        let mut tokens: Vec<_> = self.tokens.iter().filter(is_kept).copied().collect();
        tokens.extend(taken.iter().map(|token| (*token, taker)));
        tokens.sort_unstable();
        let mut ids = self.ids.clone();
        if let Err(place) = ids.binary_search(&taker) {
            ids.insert(place, taker);
        }
        Self { tokens, ids }
    }

    /// The tokens, ascending.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.tokens.iter().map(|(token, _)| *token)
    }

    /// These members with one more range that ends at a token. The owner of the range around it
    /// owns it, too.
    pub(crate) fn split_at(&self, token: Token) -> Self {
        let owner = clockwise(&self.tokens, token).next();
        let mut split = self.clone();
        if let (Some(owner), Err(place)) = (owner, split.tokens.binary_search_by_key(&token, |(token, _)| *token)) {
            split.tokens.insert(place, (token, owner));
        }
        split
    }

    /// These members without those for which `is_gone` is true.
    pub(crate) fn without(&self, is_gone: impl Fn(EndpointId) -> bool) -> Self {
        let tokens = self.tokens.iter().filter(|(_, owner)| !is_gone(*owner)).copied().collect();
        Self { tokens, ids: self.ids.iter().filter(|id| !is_gone(**id)).copied().collect() }
    }
}

/// A replication among some members, prepared for questions about many ranges.
pub(crate) struct Strategy<'a> {
    members: &'a Members,
    /// The copies that the replication asks for. A small ring has fewer.
    copies_max: usize,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Local,
    Simple { factor: u32 },
    NetworkTopology(NetworkTopology<'a>),
}

impl<'a> Strategy<'a> {
    pub(crate) fn new(replication: &'a Replication, endpoints: &'a [Endpoint], members: &'a Members) -> Self {
        let kind = match replication {
            Replication::Local => Kind::Local,
            Replication::Simple { factor } => Kind::Simple { factor: *factor },
            Replication::NetworkTopology { factors } => {
                Kind::NetworkTopology(NetworkTopology::new(endpoints, &members.ids, factors))
            }
        };
        Self { members, copies_max: replication.factor() as usize, kind }
    }

    /// The endpoints that hold a token.
    pub(crate) fn natural(&self, token: Token) -> Natural {
        let walk = clockwise(&self.members.tokens, token);
        let natural = match &self.kind {
            Kind::Local => Natural::new(),
            Kind::Simple { factor } => simple::natural(walk, *factor),
            Kind::NetworkTopology(strategy) => strategy.natural(walk),
        };
        let is_repeated = |(index, id): (usize, &EndpointId)| natural[..index].contains(id);
        assert!(!natural.iter().enumerate().any(is_repeated), "an endpoint holds a range once");
        assert!(natural.len() <= self.copies_max, "a range has no more copies than its replication says");
        natural
    }
}

/// The owners of tokens, from the first token at or after `token` once around the ring.
fn clockwise(tokens: &Tokens, token: Token) -> impl Iterator<Item = EndpointId> {
    let first = tokens.partition_point(|(known, _)| *known < token);
    let (before, after) = tokens.split_at(first);
    after.iter().chain(before).map(|(_, owner)| *owner)
}
