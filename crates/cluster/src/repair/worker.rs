//! The thread of repair: runs what is given to it, one future beside the other, forgets parent
//! sessions whose coordinator is gone, and looks after the sessions of incremental repairs.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use env::{LocalFuture, LocalFutureFactory};
use internode::payload::repair::SessionId;
use streaming::Operation;
use tokio::sync::mpsc;

use super::consistent::{self, sweep};
use super::messages::{Liveness, has_restarted};
use super::{participant, schedule_task};
use crate::node::Node;
use crate::repair_state::records::End;
use crate::repair_state::settings::{RepairPermits, RepairSettings};
use crate::repair_state::{Participation, Progress};
use crate::streaming_state::LiveSession;

/// Most tasks that may wait for the thread, which only begins them.
const WAITING_MAX: usize = 1024;
/// Time between two looks at the coordinators of parent sessions, and at data of ended sessions.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Time between two looks at the age of sessions (`cassandra.repair_cleanup_interval_seconds`).
const AGE_EVERY: Duration = Duration::from_secs(10 * 60);
/// Time after which a parent session for which nothing was done is forgotten, although its
/// coordinator lives: the message that the repair has ended may not have come. A repair in which
/// this node has nothing to do for longer than that, neither a task nor a stream, fails when the
/// node's turn comes.
const IDLE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Node {
    /// Starts the thread, once.
    pub(crate) fn start_repairs(self: &Arc<Self>, settings: RepairSettings) {
        self.repairs.permits.store(Arc::new(RepairPermits::new(settings)));
        let (give, given) = mpsc::channel(WAITING_MAX);
        if self.repairs.worker.set(give).is_err() {
            return;
        }
        let node = Arc::downgrade(self);
        let run = move || -> LocalFuture { Box::pin(run(node, given)) };
        // before the thread runs, which releases the data of sessions that nobody knows; what the
        // sessions give it to do waits in the channel
        consistent::restore(self);
        drop(self.env.tasks.spawn_local_worker("repair", Box::new(run)));
    }

    /// Runs a future on the thread of repair. False: there is no such thread, or too much waits.
    pub(super) fn repair_task<F: Future<Output = ()> + 'static>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> bool {
        let make: LocalFutureFactory = Box::new(move || Box::pin(make()));
        self.repairs.worker.get().is_some_and(|worker| worker.try_send(make).is_ok())
    }
}

async fn run(node: Weak<Node>, mut given: mpsc::Receiver<LocalFutureFactory>) {
    tokio::task::spawn_local(look_after(Weak::clone(&node)));
    tokio::task::spawn_local(schedule_task::run(node));
    while let Some(make) = given.recv().await {
        tokio::task::spawn_local(make());
    }
}

/// Forgets sessions whose end may never be told, and ages the sessions of incremental repairs,
/// until the node is gone.
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

/// Forgets parent sessions whose coordinator has died or left, and those that have ended without
/// this node having been told. A repair may take days: its age alone says nothing.
fn forget_orphans(there: &Node, liveness: &mut Liveness) {
    let participations: Vec<_> = there.repairs.participations().iter().map(|(id, of)| (*id, Arc::clone(of))).collect();
    // streams that another node has opened are no task of this node
    let streams: Vec<_> =
        there.streaming_state.all().into_iter().filter(|live| live.init.operation == Operation::Repair).collect();
    for (id, participation) in participations {
        if streams.iter().any(|live| may_be_of(&participation, live)) {
            participation.last_streamed.store(there.env.clock.now_micros() / 1000, Ordering::Relaxed);
        }
        let is_dead = liveness.is_dead(there, participation.coordinator)
            || has_restarted(there, participation.coordinator, participation.generation);
        let coordinator = participation.coordinator;
        let why = match is_dead {
            true => format!("the coordinator /{coordinator} is gone"),
            false if is_idle(there, &id, &participation) => "nothing was done for it for a day".to_owned(),
            false => continue,
        };
        tracing::warn!(%coordinator, why, "a repair of another node is forgotten");
        participant::clean_up(there, &id, End::Failure(why));
    }
}

/// Whether a stream may be one of a repair, which a stream does not name: it is about a table of
/// the repair, and began within [`IDLE_MAX`] of the last task. Otherwise the streams of later
/// repairs of the table would keep a repair for ever whose end this node has not been told.
fn may_be_of(participation: &Participation, live: &LiveSession) -> bool {
    let behind = live.begun_millis - participation.last_used.load(Ordering::Relaxed);
    behind <= IDLE_MAX.as_millis() as i64 && participation.prepare.tables.iter().any(|table| live.is_about(*table))
}

/// Whether nothing goes on in a parent session, and nothing was done for it for [`IDLE_MAX`].
fn is_idle(there: &Node, id: &SessionId, participation: &Participation) -> bool {
    let is_own = there.repairs.commands().values().any(|command| command.id == *id && !command.has_ended());
    let is_under_way = there.repairs.sessions().get(id).is_some_and(|session| !session.has_ended());
    let is_running = || participation.tasks().values().any(|progress| *progress == Progress::Running);
    let used = participation.last_used.load(Ordering::Relaxed);
    let idle = there.env.clock.now_micros() / 1000 - used.max(participation.last_streamed.load(Ordering::Relaxed));
    idle > IDLE_MAX.as_millis() as i64 && !is_own && !is_under_way && !is_running()
}
