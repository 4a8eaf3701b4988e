//! A node as the others know it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use types::Token;

/// The position of an endpoint in one [`crate::Ring`]. Means nothing in another snapshot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EndpointId(pub u32);

impl EndpointId {
    /// As an index into [`crate::Ring::endpoints`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Endpoints that have come to their tokens a moment ago, each with the tokens that it owned
/// before: none, or others. Nodes that have not heard of it yet read where the data lay before, so
/// that writes go there too.
pub type Former = BTreeMap<EndpointId, Vec<Token>>;

/// The part that an endpoint takes in the ring (`nodetool status` shows the first letter).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The endpoint owns its tokens.
    Normal,
    /// The endpoint is about to own its tokens: it receives writes and answers no reads.
    Joining,
    /// The endpoint is about to own the tokens of another, which it replaces: that one's address.
    Replacing(SocketAddr),
    /// The endpoint owns its tokens until others have its data.
    Leaving,
    /// The endpoint owns its tokens until it has the data of this one.
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
    /// Address and storage port by which other nodes reach it (`broadcast_address`). Names it in
    /// the ring.
    pub address: SocketAddr,
    /// Address and port that drivers are told (`broadcast_rpc_address`).
    pub native: SocketAddr,
    /// The host id. Chosen at its first start and never changed.
    pub host_id: [u8; 16],
    /// Name of its data center.
    pub data_center: String,
    /// Name of its rack, within the data center.
    pub rack: String,
    /// Its tokens, ascending.
    pub tokens: Vec<Token>,
    /// Whether requests may be sent to it: what the failure detector says.
    pub is_up: bool,
    /// The part that the endpoint takes in the ring.
    pub state: State,
}

impl Endpoint {
    /// Whether the endpoint owns its tokens: reads and writes of their ranges are its business.
    pub fn owns_tokens(&self) -> bool {
        !self.state.is_joining()
    }

    /// Whether an endpoint at the same position would hold the same ranges, whatever the
    /// replication: data center, rack, tokens and part in the ring are the same.
    pub(crate) fn holds_as(&self, other: &Endpoint) -> bool {
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
