//! The place of this node among the others: gossip over links, and the answers to questions that
//! every neighbour asks.
//!
//! [`Membership`] owns the [`links::Links`] of the node and its [`gossip::Gossip`]. It looks at the
//! ring before it shows itself (the shadow round), begins a round of gossip each second, answers
//! ECHO, PING and SCHEMA_VERSION, and tells a [`MembershipHandler`] which nodes have come,
//! changed, gone up or down. All other verbs go to the handler.
//!
//! - [`local_states`]: the values that this node tells of itself
//! - [`callbacks`]: requests that wait for their answer
//! - [`answer`]: messages that come from a neighbour
//! - [`request`], [`messenger`]: asking others, and answering them
//! - [`verbs`]: messages counted by their verb
//! - [`logged_nodes`]: nodes that the log has named
//! - [`start`]: the way in
//! - [`stop`]: the way out
//!
//! Knows no storage. `org.apache.cassandra.service.StorageService`, `gms.Gossiper`,
//! `net.RequestCallbacks`.

mod answer;
pub mod callbacks;
pub mod local_states;
mod logged_nodes;
pub mod messenger;
pub mod request;
mod shared;
pub mod start;
pub mod stop;
pub mod verbs;

pub use local_states::LocalApplicationStates;
pub use request::{KeptBytes, Pending, Request, RequestCallback, RequestFailure};
pub use shared::{MembershipHandler, Messenger};
pub use start::{JoinError, JoinOptions, Membership};
pub use verbs::VerbCounts;

#[cfg(test)]
mod tests;
