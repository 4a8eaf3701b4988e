//! The admin port and its client: what an operator asks of a node and has done.
//!
//! - [`verb`]: what a verb is: a request, an answer and a function of the node;
//! - [`verbs`]: all verbs with their requests and answers;
//! - [`http`]: verbs over HTTP, server and client, with `/metrics` for Prometheus ([`prometheus`]);
//!   who may call what;
//! - [`nodetool`]: `helenus nodetool VERB`, layouts as Cassandra prints them.
//!
//! Nothing here knows storage: the functions of the verbs are the server's.

pub mod histogram;
pub mod http;
pub mod nodetool;
pub mod prometheus;
mod units;
pub mod verb;
pub mod verbs;

#[cfg(test)]
mod fake;

pub use verb::{AdminApi, AdminError, Functions, LocalAdminApi, Result, ServedApi};
