//! Workers, connections, requests: introduces protocol, CQL and the cluster to each other.
//!
//! Connections are crates `transport` and `native`; what comes over them goes to [`CqlHandler`], of
//! which each worker has its own. [`running`] starts a whole node and ends it; [`directory`]
//! recognises what a data directory is. [`coordinator`] puts the node behind the trait that
//! statements use, [`admin_api`] behind the verbs of operators; [`auth`] has users and permissions,
//! [`virtual_tables`] the tables whose rows are made up.

pub mod admin_api;
pub mod auth;
mod certificates;
mod client_encryption;
mod commitlog_options;
mod console;
pub mod coordinator;
pub mod directory;
pub mod errors;
pub mod events;
mod guardrails;
mod handoff;
mod joining;
pub mod log_lines;
#[cfg(test)]
#[path = "../tests/tests/machine.rs"]
mod machine;
pub mod memory;
pub mod ops;
pub mod otlp;
mod pools;
pub mod prepared;
mod replay_watch;
pub mod request;
mod resurrection;
pub mod running;
mod server_encryption;
pub mod services;
mod slow_log;
mod start_error;
mod topology_file;
pub mod trace;
mod traffic;
pub mod virtual_tables;

pub use request::CqlHandler;
pub use services::Services;
