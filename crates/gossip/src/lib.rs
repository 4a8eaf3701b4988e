//! Gossip: how a node learns who is in the ring, what each node tells of itself, and which nodes
//! are alive.
//!
//! Pure: [`Gossip`] takes messages and ticks with the time at which they come, and gives messages
//! to send and [`Event`]s. It knows no socket, clock, random number or storage; whoever drives it
//! has those, the simulator among them.
//!
//! Each node has a counter. Its heartbeat and every value that it tells of itself carry the
//! counter's value of their last change, so that one number a node says how much of it is known.
//! Once a second a node sends the numbers that it has of all nodes to one or more others (SYN);
//! they answer with what they know better and with what they ask for (ACK); the first one sends
//! that (ACK2).
//!
//! - [`options`]: who this node is, and the constants
//! - [`status`]: the values of STATUS_WITH_PORT
//! - [`local`]: what this node tells of itself
//! - [`detector`]: how long a silence is too long
//! - [`peer`]: what is known of another node
//! - [`exchange`]: SYN, ACK, ACK2
//! - [`apply`]: what becomes of states that are received
//! - [`assassinate`]: the removal of an endpoint that does not come back
//! - [`removal`]: the removal of an endpoint whose data others fetch
//! - [`round`]: what happens every second
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
