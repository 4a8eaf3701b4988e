//! The whole node on a simulated machine: what it acknowledges, random histories against a naive
//! twin (`model`), and schemas beside Cassandra's (`ring_schema`). Several whole nodes and a
//! client: `ring`.

// A client of these tests stands outside the house.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

#[path = "tests/acknowledged.rs"]
mod acknowledged;
#[path = "tests/machine.rs"]
mod machine;
#[path = "tests/model.rs"]
mod model;
#[path = "tests/ring.rs"]
mod ring;
#[path = "tests/ring_schema.rs"]
mod ring_schema;

use server::Services;
