//! A node as the others know it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use types::Token;

/// The position of an endpoint in one [`crate::Ring`]. Means nothing in another snapshot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EndpointId(pub u32);

impl EndpointId {
    /// The position as an index into [`crate::Ring::endpoints`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Endpoints that have come to their tokens a moment ago, each with the tokens that it owned
/// before: none, or others. Nodes that have not heard of the change yet read from the former
/// replicas, so writes go to these too.
pub type FormerTokens = BTreeMap<EndpointId, Vec<Token>>;

/// The part that an endpoint takes in the ring (`nodetool status` shows the first letter).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The endpoint owns its tokens.
    Normal,
    /// The endpoint is about to own its tokens: it receives writes and answers no reads.
    Joining,
    /// The endpoint is about to own the tokens of another one, which it replaces: the address of
    /// that one.
    Replacing(SocketAddr),
    /// The endpoint owns its tokens until others have its data.
    Leaving,
    /// The endpoint is about to own this token instead of its own, which it owns until it has the
    /// data.
    Moving(Token),
}

impl State {
    /// Whether the endpoint is on its way in: its data is still being fetched.
    pub fn is_joining(self) -> bool {
        matches!(self, Self::Joining | Self::Replacing(_))
    }

    /// The letter of `nodetool status`.
    pub fn letter(self) -> char {
        match self {
            Self::Normal => 'N',
            Self::Joining | Self::Replacing(_) => 'J',
            Self::Leaving => 'L',
            Self::Moving(_) => 'M',
        }
    }
}

/// A node as the others know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Address and storage port by which other nodes reach it (`broadcast_address`). Identifies it
    /// in the ring.
    pub address: SocketAddr,
    /// Address and port at which drivers connect (`broadcast_rpc_address`).
    pub native: SocketAddr,
    /// The host id. Chosen at the endpoint's first start and never changed.
    pub host_id: [u8; 16],
    /// Name of the endpoint's data center.
    pub data_center: String,
    /// Name of the endpoint's rack, within the data center.
    pub rack: String,
    /// The endpoint's tokens, ascending.
    pub tokens: Vec<Token>,
    /// Whether requests may be sent to the endpoint, by the failure detector.
    pub is_up: bool,
    /// The part that the endpoint takes in the ring.
    pub state: State,
}

impl Endpoint {
    /// Whether the endpoint owns its tokens, so that it serves reads and writes of their ranges.
    pub fn owns_tokens(&self) -> bool {
        !self.state.is_joining()
    }

    /// Whether an endpoint at the same position would hold the same ranges, whatever the
    /// replication: data center, rack, tokens and part in the ring are the same.
    pub(crate) fn has_same_placement_as(&self, other: &Endpoint) -> bool {
        let place = |of: &Endpoint| (of.address, of.state);
        place(self) == place(other)
            && self.data_center == other.data_center
            && self.rack == other.rack
            && self.tokens == other.tokens
    }

    /// The two letters of `nodetool status`: `UN`.
    pub fn letters(&self) -> String {
        let up = if self.is_up { 'U' } else { 'D' };
        [up, self.state.letter()].into_iter().collect()
    }
}
