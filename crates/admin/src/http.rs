//! The admin API over HTTP: JSON under `/api`, Prometheus text at `/metrics`.
//!
//! Questions are GET, verbs are POST with a JSON body (which a web page of another origin cannot send). Errors: 400 for a wrong
//! request, 500 for a failure, both `{"Invalid": "…"}` or `{"Failed": "…"}`. The paths are listed once, in [`server`]; [`client`] must
//! agree with them.

mod client;
mod server;
mod starting;

pub use client::Client;
pub use server::{router, serve};
pub use starting::{AskReplay, serve_starting};

/// The port when none is configured.
pub const PORT: u16 = 9180;

#[cfg(test)]
mod tests;
