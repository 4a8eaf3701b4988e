//! Workers, connections, requests: introduces protocol, CQL and the cluster to each other.
//!
//! The connection layer: [`server`] starts one [`worker`] per core; a worker accepts connections and runs each as one task
//! ([`connection`]); requests go to a [`RequestHandler`], of which each worker has its own.

pub mod admin_api;
pub mod auth;
mod connection;
pub mod coordinator;
pub mod directory;
pub mod errors;
pub mod event_hub;
pub mod events;
mod guardrails;
pub mod handler;
pub mod limits;
pub mod log_lines;
mod log_options;
pub mod memory;
pub mod ops;
pub mod prepared;
mod replay_watch;
pub mod request;
pub mod running;
pub mod server;
pub mod services;
mod slow_log;
pub mod stats;
pub mod tls;
pub mod trace;
pub mod virtual_tables;
mod worker;

pub use auth::{AllowAll, AuthOutcome, Authenticator, PASSWORD_AUTHENTICATOR};
pub use event_hub::EventHub;
pub use handler::{ConnectionInfo, Handled, RequestHandler};
pub use limits::ServerLimits;
pub use request::CqlHandler;
pub use server::{Server, ServerHandle, ServerOptions};
pub use services::Services;
pub use stats::{ClientDetails, ConnectionRegistry, ConnectionStats, Counter, Stage, WorkerStats};
