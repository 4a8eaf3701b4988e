//! Requests to the engine's background tasks, and their progress: the state that the engine holds
//! for them.
//!
//! The steps of a task are in the module of its work (`crate::flusher`, `compactor`,
//! `index::build`, `drops`, `cache_saver`) and take the engine; a caller only needs the request.

pub mod cache_saver;
pub mod drops;
pub mod flushes;
pub mod index_builds;
pub mod operations;
pub mod progress;
