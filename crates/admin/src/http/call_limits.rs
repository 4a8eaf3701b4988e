//! Threads for calls of the admin port, so that calls which end soon find one while many last.
//!
//! A call holds a thread until it has ended, also when its caller has gone away. Of the threads for
//! admin jobs ([`ADMIN_THREADS_MAX`]) logins have some, and calls that may last have some; what is
//! left is for figures, probes, settings, and for what ends an operation (`nodetool stop`). A call
//! over its share waits without a thread, and no longer than its caller does.

use std::sync::Arc;

use env::{ADMIN_THREADS_MAX, Env};
use tokio::sync::Semaphore;

use crate::verb::{AdminError, Result, Verb};
use crate::verbs::{
    CleanupRequest, CompactRequest, Flush, GetProfile, GetRepair, GetTombstones, ImportRequest, RangeMovement,
    RebuildIndexes, Refresh, ResumeBootstrap, RingSnapshotRequest, SSTableRequest, SampleRequest, SnapshotRequest,
};

/// Logins, and looks at what a login may do, that have a thread.
pub(super) const LOGINS_MAX: usize = 16;
/// Calls that may last and have a thread.
pub(super) const LASTING_MAX: usize = 32;
const _: () = assert!(LOGINS_MAX + LASTING_MAX < ADMIN_THREADS_MAX, "short calls find a thread");

/// The verbs that may last as long as the work that they ask for, or wait for something to happen.
const LONG_VERBS: [&str; 15] = [
    CleanupRequest::NAME,
    CompactRequest::NAME,
    Flush::NAME,
    GetProfile::NAME,
    GetRepair::NAME,
    GetTombstones::NAME,
    ImportRequest::NAME,
    RangeMovement::NAME,
    RebuildIndexes::NAME,
    Refresh::NAME,
    ResumeBootstrap::NAME,
    RingSnapshotRequest::NAME,
    SSTableRequest::NAME,
    SampleRequest::NAME,
    SnapshotRequest::NAME,
];

/// For how long a call holds its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallLength {
    /// A login waits for its password to be hashed, and for roles to be read.
    Login,
    /// The call ends soon.
    Short,
    /// The call may last for hours.
    Lasting,
}

impl CallLength {
    /// Of a verb's call.
    pub fn of_verb(name: &str) -> Self {
        if LONG_VERBS.contains(&name) { Self::Lasting } else { Self::Short }
    }
}

/// The shares of the threads.
pub(super) struct CallLimits {
    logins: Arc<Semaphore>,
    lasting: Arc<Semaphore>,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { logins: Arc::new(Semaphore::new(LOGINS_MAX)), lasting: Arc::new(Semaphore::new(LASTING_MAX)) }
    }
}

impl CallLimits {
    /// Makes a call on a thread of its own, when it has its turn.
    pub async fn call<T: Send + 'static>(
        &self,
        env: &Env,
        length: CallLength,
        call: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let failed = |error: &dyn std::fmt::Display| AdminError::Failed(error.to_string());
        let share = match length {
            CallLength::Login => Some(&self.logins),
            CallLength::Short => None,
            CallLength::Lasting => Some(&self.lasting),
        };
        let turn = match share {
            Some(share) => Some(Arc::clone(share).acquire_owned().await.map_err(|closed| failed(&closed))?),
            None => None,
        };
        // the turn goes with the job, also when nobody waits for it any more
        let job = move || {
            let done = call();
            drop(turn);
            done
        };
        env.blocking_admin("admin", job).await.unwrap_or_else(|full| Err(failed(&full)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::{GetCompactions, GetMetrics, NAMES, StopRepairs, StopRequest};

    #[test]
    fn what_ends_an_operation_is_short() {
        assert!(LONG_VERBS.iter().all(|name| NAMES.contains(name)));
        for name in [StopRequest::NAME, StopRepairs::NAME, GetCompactions::NAME, GetMetrics::NAME] {
            assert_eq!(CallLength::of_verb(name), CallLength::Short, "{name}");
        }
        // the verb reads all SSTables of a table
        assert_eq!(CallLength::of_verb(GetTombstones::NAME), CallLength::Lasting);
    }
}
