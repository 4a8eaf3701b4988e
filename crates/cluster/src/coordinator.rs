//! The verbs that a coordinator carries out for a request, one a file.
//!
//! A verb asks the ring for the replicas of the request ([`plan`]: refused at once where too few
//! are up), sends it to them, and waits for as many answers as its level needs. Replicas are spoken
//! to in one way: what was sent gives an answer later ([`acknowledgement`]). This node, where it is
//! a replica, is called without serialisation ([`crate::replica`]); the answer of another node is a
//! message that arrives. The answers of a write are counted in one place ([`write_answers`]), its
//! timeout and its error carry the counts and the failures by endpoint.
//!
//! Knows nothing of CQL and of clients: `server::coordinator` puts these verbs behind the trait
//! that statements use.

pub mod acknowledgement;
pub mod batch;
pub mod cas;
pub(crate) mod contacts;
pub mod counter;
mod distributed_read;
pub mod error;
#[cfg(test)]
mod fault_tests;
mod filtering;
mod part_read;
pub(crate) mod parts;
pub(crate) mod pending_write;
mod plan;
mod protection;
mod protection_reads;
mod range;
pub mod read;
mod read_repair;
pub(crate) mod scan;
mod speculation;
pub mod truncate;
pub mod write;
pub mod write_answers;
