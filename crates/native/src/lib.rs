//! The native protocol on connections: framing, handshake, login, events, answers.
//!
//! Stands between `protocol`, which is values and bytes, and `transport`, which is sockets, buffers
//! and limits. QUERY, PREPARE, EXECUTE and BATCH go to a [`RequestHandler`], of which each worker
//! has its own; all other requests are answered here. This crate knows no statement, no table and
//! no database: the null server of `bench/` is canned answers on it.

pub mod authenticator;
pub mod details;
mod framing;
pub mod handler;
mod limits;
pub mod server;
mod session;
mod weight;

pub use authenticator::{AllowAll, AuthOutcome, Authenticator, PASSWORD_AUTHENTICATOR};
pub use details::{Client, ClientDetails, Native, Stage};
pub use handler::{ConnectionInfo, Handled, RequestHandler};
pub use server::{ServerOptions, start};
pub use transport::{Counter, ResumeError, ServerLimits, WorkerStats};

/// A running native transport.
pub type Server = transport::Server<Native>;
/// A view of a running native transport.
pub type ServerHandle = transport::ServerHandle<Native>;
/// The hub from which EVENTs come.
pub type EventHub = transport::EventHub<Native>;
/// One connection of a client.
pub type ConnectionStats = transport::ConnectionStats<Client>;
/// All connections of clients.
pub type ConnectionRegistry = transport::ConnectionRegistry<Client>;
