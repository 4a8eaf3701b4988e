//! The thread of repair: runs what is given to it, one future beside the other, forgets parent
//! sessions whose coordinator is gone, and looks after the sessions of incremental repairs.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use env::{LocalFuture, MakeLocal};
use tokio::sync::mpsc;

use super::consistent::{self, sweep};
use super::messages::{Liveness, has_restarted};
use super::{participant, scheduled};
use crate::node::Node;
use crate::repairs::records::End;
use crate::repairs::settings::{RepairSettings, Turns};

/// Tasks that may wait for the thread, which only takes them over.
const WAITING_MAX: usize = 1024;
/// Time between two looks at the coordinators of parent sessions, and at data of ended sessions.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Time between two looks at the age of sessions (`cassandra.repair_cleanup_interval_seconds`).
const AGE_EVERY: Duration = Duration::from_secs(10 * 60);
/// A parent session is forgotten after so long, whatever its coordinator does.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Node {
    /// Starts the thread, once.
    pub(crate) fn start_repairs(self: &Arc<Self>, settings: RepairSettings) {
        self.repairs.turns.store(Arc::new(Turns::new(settings)));
        let (give, given) = mpsc::channel(WAITING_MAX);
        if self.repairs.worker.set(give).is_err() {
            return;
        }
        let node = Arc::downgrade(self);
        let run = move || -> LocalFuture { Box::pin(run(node, given)) };
        drop(self.env.tasks.spawn_local_worker("repair", Box::new(run)));
        consistent::restore(self);
    }

    /// Runs a future on the thread of repair. False: there is no such thread, or too much waits.
    pub(super) fn repair_task<F: Future<Output = ()> + 'static>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> bool {
        let make: MakeLocal = Box::new(move || Box::pin(make()));
        self.repairs.worker.get().is_some_and(|worker| worker.try_send(make).is_ok())
    }
}

async fn run(node: Weak<Node>, mut given: mpsc::Receiver<MakeLocal>) {
    tokio::task::spawn_local(look_after(Weak::clone(&node)));
    tokio::task::spawn_local(scheduled::run(node));
    while let Some(make) = given.recv().await {
        tokio::task::spawn_local(make());
    }
}

/// Looks after everything that nobody may come back to.
async fn look_after(node: Weak<Node>) {
    let mut liveness = Liveness::default();
    let mut aged = None;
    loop {
        let Some(there) = node.upgrade() else { return };
        let env = there.env.clone();
        forget_orphans(&there, &mut liveness);
        sweep::release(&there).await;
        if aged.is_none_or(|last| env.elapsed(last) >= AGE_EVERY) {
            sweep::age(&there);
            aged = Some(env.now());
        }
        drop(there);
        env.sleep(LOOK_EVERY).await;
    }
}

/// Forgets parent sessions whose coordinator has died or left, and old ones.
fn forget_orphans(there: &Node, liveness: &mut Liveness) {
    let now = there.env.clock.now_micros() / 1000;
    let participations: Vec<_> = there.repairs.participations().iter().map(|(id, of)| (*id, Arc::clone(of))).collect();
    for (id, participation) in participations {
        let is_dead = liveness.is_dead(there, participation.coordinator)
            || has_restarted(there, participation.coordinator, participation.generation);
        let is_old = now - participation.begun_at > AGE_MAX.as_millis() as i64;
        if is_dead || is_old {
            let coordinator = participation.coordinator;
            tracing::warn!(%coordinator, is_dead, "a repair of another node is forgotten");
            participant::clean_up(there, &id, End::Failure(format!("the coordinator /{coordinator} is gone")));
        }
    }
}
