//! The connection layer over real sockets, spoken to in raw bytes; and the whole node on a simulated machine, against a naive twin (`model`).

// A client of these tests stands outside the house.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

#[path = "tests/client.rs"]
mod client;
#[path = "tests/handler.rs"]
mod handler;

#[path = "tests/acknowledged.rs"]
mod acknowledged;
#[path = "tests/events.rs"]
mod events;
#[path = "tests/handshake.rs"]
mod handshake;
#[path = "tests/lifecycle.rs"]
mod lifecycle;
#[path = "tests/limits.rs"]
mod limits;
#[path = "tests/model.rs"]
mod model;
#[path = "tests/requests.rs"]
mod requests;
