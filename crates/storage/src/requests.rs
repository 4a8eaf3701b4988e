//! Requests to the engine's background tasks, and their progress: the state that the engine holds
//! for them.
//!
//! A task's steps stand where its work does (`crate::flusher`, `compactor`, `index::build`,
//! `drops`, `keeper`) and take the engine; who wants something done needs the request only.

pub mod drops;
pub mod flushes;
pub mod index_builds;
pub mod operations;
pub mod progress;
pub mod saving;
