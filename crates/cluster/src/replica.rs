//! What a node does for a coordinator, be that itself.

pub mod apply;
pub(crate) mod forecast;
pub mod read;
