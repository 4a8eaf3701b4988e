//! Entries of the caches of `system_auth` that are due, read again beside the requests that use
//! them meanwhile.
//!
//! One thread reads them; it exists on nodes of a ring whose clients log in. While an entry waits
//! or is read, it is not asked for again ([`super::cache`]). Agrees in role with the executor of
//! `org.apache.cassandra.auth.AuthCache`.

use std::sync::{Arc, Weak};

use env::{Env, LocalFutureFactory};
use tokio::sync::{Semaphore, mpsc};

use super::shared::RingRoles;

/// Most entries that wait to be read. A further entry is left out, and asked for again when it is
/// used the next time.
pub(super) const WAITING_MAX: usize = 1024;

/// Most entries that are read at one time. If replicas do not answer, a read lasts until it times
/// out.
const AT_ONCE_MAX: usize = 16;

/// The cache of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RenewedCache {
    Roles,
    Credentials,
    Permissions,
    Datacenters,
}

/// An entry that is due.
pub(super) struct Renewal {
    pub of: RenewedCache,
    pub key: String,
}

/// Starts the thread. The thread ends when the sender of `due`, which is a field of [`RingRoles`],
/// is dropped.
pub(super) fn start(env: &Env, ring_roles: Weak<RingRoles>, due: mpsc::Receiver<Renewal>) {
    let make: LocalFutureFactory = Box::new(move || Box::pin(renew_all(ring_roles, due)));
    drop(env.tasks.spawn_local_worker("auth", make));
}

async fn renew_all(ring_roles: Weak<RingRoles>, mut due: mpsc::Receiver<Renewal>) {
    let room = Arc::new(Semaphore::new(AT_ONCE_MAX));
    while let Some(renewal) = due.recv().await {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Some(ring_roles) = ring_roles.upgrade() else { return };
        tokio::task::spawn_local(async move {
            ring_roles.renew(&renewal).await;
            drop(permit);
        });
    }
}
