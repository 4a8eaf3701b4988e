//! Gossip: how a node learns which nodes are in the ring, what each of them tells of itself, and
//! which are alive.
//!
//! Pure: [`Gossip`] takes messages and ticks with the time at which they come, and gives messages
//! to send and [`Event`]s. It knows no socket, clock, random number or storage; its driver has
//! these, the node or the simulator.
//!
//! Each node has a counter. Its heartbeat and every value that it tells of itself carry the
//! counter's value of their last change, so that one number for each node says how much of its
//! state is known. Once a second a node sends the numbers that it has of all nodes to one or more
//! others (SYN); they answer with the states that they know better and with the numbers of those
//! that they lack (ACK); the first node sends these states (ACK2).
//!
//! - [`options`]: the identity of this node, and the constants
//! - [`status`]: the values of STATUS_WITH_PORT
//! - [`local`]: the state that this node tells of itself
//! - [`detector`]: how long a silence is too long
//! - [`peer`]: another node, as this one knows it
//! - [`exchange`]: SYN, ACK, ACK2
//! - [`apply`]: takes received states in
//! - [`assassinate`]: the removal of an endpoint that does not come back
//! - [`removal`]: the removal of an endpoint whose data others fetch
//! - [`round`]: the round that runs every second
//! - [`shadow`]: the look at the ring before this node shows itself
//! - [`presence`]: whether others may have forgotten a node that joins
//!
//! Must agree with `org.apache.cassandra.gms.Gossiper` and `FailureDetector` of Cassandra 5.0.8.

pub mod apply;
pub mod assassinate;
pub mod detector;
pub mod exchange;
pub mod local;
pub mod machine;
pub mod options;
pub mod peer;
pub mod presence;
pub mod removal;
pub mod round;
pub mod shadow;
pub mod status;

pub use detector::ArrivalWindow;
pub use local::Local;
pub use machine::{Event, Gossip, Message, Now, Output};
pub use options::Options;
pub use peer::Peer;
pub use presence::Absence;
pub use status::Status;

#[cfg(test)]
mod tests;
