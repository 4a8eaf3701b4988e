//! The statements on data: planning and execution.

pub(crate) mod batch;
pub(crate) mod modification;
pub(crate) mod other;
pub(crate) mod select;
