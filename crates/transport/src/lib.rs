//! Connections: workers, buffers, turns, limits, events, TLS.
//!
//! [`server`] starts one [`worker`] per core; a worker accepts connections and runs each as one
//! task ([`connection`]); requests go to a [`RequestHandler`], of which each worker has its own.
//! This crate knows no statement, no table and no database: a server with canned answers links it
//! alone.

pub mod authenticator;
mod connection;
pub mod event_hub;
pub mod handler;
pub mod limits;
pub mod server;
pub mod stats;
pub mod tls;
mod worker;

pub use authenticator::{AllowAll, AuthOutcome, Authenticator, PASSWORD_AUTHENTICATOR};
pub use event_hub::EventHub;
pub use handler::{ConnectionInfo, Handled, RequestHandler};
pub use limits::ServerLimits;
pub use server::{ResumeError, Server, ServerHandle, ServerOptions};
pub use stats::{ClientDetails, ConnectionRegistry, ConnectionStats, Counter, Stage, WorkerStats};
