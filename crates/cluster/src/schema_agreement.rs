//! How the nodes of a ring come to have one schema.
//!
//! - [`messages`]: rows of the schema tables as the payload of a message

pub mod messages;
