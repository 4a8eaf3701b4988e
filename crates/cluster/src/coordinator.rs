//! What a coordinator does with a request: one verb a file.

pub mod cas;
pub mod counter;
