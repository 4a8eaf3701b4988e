//! The native protocol over real sockets, spoken to in raw bytes.

// A client of these tests stands outside the house.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

#[path = "tests/client.rs"]
mod client;
#[path = "tests/handler.rs"]
mod handler;

#[path = "tests/events.rs"]
mod events;
#[path = "tests/handshake.rs"]
mod handshake;
#[path = "tests/lifecycle.rs"]
mod lifecycle;
#[path = "tests/limits.rs"]
mod limits;
#[path = "tests/requests.rs"]
mod requests;
