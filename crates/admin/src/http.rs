//! The admin API over HTTP/1.1: `POST /api/VERB` with the request as JSON, and Prometheus text at
//! `/metrics`.
//!
//! A verb that only reads is also `GET /api/VERB?field=value`. The answer is JSON; a refusal is
//! `{"Invalid": "…"}` (400), `{"Unauthorized": "…"}` (401, 403), or `{"Failed": "…"}` (500).
//! [`caller`] and [`access`] say who may call what. `/` is the console ([`console`]). Below
//! `/api/v0`, `/api/v1` and `/api/v2` is the management API of K8ssandra ([`management`]).

mod access;
mod call_limits;
mod caller;
mod client;
mod connections;
mod console;
mod management;
mod secured;
mod server;
mod sessions;
mod starting;
mod token_file;

pub use access::Access;
pub use caller::CallerScope;
pub use client::{Client, ClientTls, Login, NodeAddress, Password, probe};
pub use console::{Console, Table};
pub use server::{PortSecurity, serve};
pub use starting::{AskReplay, serve_starting};
pub use token_file::TokenFile;

/// The port when none is configured.
pub const PORT: u16 = 9180;

#[cfg(test)]
mod tests;
