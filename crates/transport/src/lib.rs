//! Connections of any protocol: listeners, buffers, turns, limits, requests in flight, TLS.
//!
//! A protocol brings a [`Service`], of which each worker has one, and a [`Session`] for each
//! connection: framing, handshake, the handling of requests. This crate does the rest, for any
//! protocol: [`server`] starts one [`worker`] per core; a worker accepts connections and runs each
//! as one task ([`connection`]), which reads, executes, writes, takes turns with the others and
//! holds to the [`limits`].
//!
//! The crate knows no request, no statement and no data. The native protocol's sessions are crate
//! `native`.

mod connection;
mod control;
pub mod event_hub;
mod in_flight;
mod input;
pub mod limits;
pub mod output;
pub mod protocol;
pub mod server;
pub mod session;
mod shared;
pub mod stats;
mod worker;
mod worker_core;

pub use control::Link;
pub use event_hub::EventHub;
pub use limits::ServerLimits;
pub use output::Output;
pub use protocol::Protocol;
pub use server::{ResumeError, Server, ServerHandle, ServerOptions};
pub use session::{Handled, NextMessage, Opened, Received, Refusal, Service, Session};
pub use stats::{ConnectionRegistry, ConnectionStats, Counter, TooManyConnections, WorkerStats};
