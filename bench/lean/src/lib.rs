//! A client that costs little, so that the server is what is measured: version 4 of the native
//! protocol over blocking sockets, a thread a connection, as many requests in flight on each as
//! wanted, one `write` for all that is due and one `read` for all that has come.
//!
//! - [`job`]: what is asked of it, a line of JSON each, and what comes out
//! - [`measure`]: a job that is measured: threads, histogram, CPU time of the server
//! - [`template`]: a request as bytes, from a description of its values
//! - [`connection`]: frames, start, PREPARE
//! - [`answer`]: what a response says, as far as a measurement wants to know
//! - [`process`]: CPU time and memory of another process
//!
//! Not here: retries, pools, types. An error ends the job.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a client program beside the server

pub mod answer;
pub mod connection;
pub mod job;
pub mod measure;
pub mod process;
pub mod template;

/// Whatever ends a job.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
