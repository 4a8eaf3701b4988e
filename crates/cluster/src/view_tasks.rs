//! The state of the task that builds materialized views (`crate::view_builds`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::Notify;

/// Whether the task runs, and how it is woken.
#[derive(Default)]
pub struct ViewTasks {
    /// Set once the task runs.
    pub(crate) is_running: AtomicBool,
    /// Wakes the task: the schema has changed.
    pub(crate) changed: Arc<Notify>,
}
