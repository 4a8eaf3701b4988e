//! The admin port and its client: what an operator asks of a node.
//!
//! - [`api`]: the questions and verbs, as a trait that the node implements;
//! - [`model`]: the answers;
//! - [`http`]: the trait over HTTP, server and client, with `/metrics` for Prometheus ([`prometheus`]);
//! - [`nodetool`]: `helenus nodetool VERB`, layouts as Cassandra prints them.
//!
//! Nothing here knows storage: the node side of [`api::AdminApi`] is implemented where all rooms meet.

pub mod api;
pub mod http;
pub mod model;
pub mod nodetool;
pub mod prometheus;

#[cfg(test)]
mod fake;

pub use api::{AdminApi, AdminError, TimeoutKind};
