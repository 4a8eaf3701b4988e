//! The compactor: background tasks, each of which carries out one compaction after the other, a slice of work at a time, so that
//! throttling is a pause between slices.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use env::{Next, Wake};
use tokio::sync::oneshot;

use super::choice::{choose_and_mark, take_all, unmark};
use super::run::Run;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;

/// Pause after a compaction that failed, before the next is chosen.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Told when a compaction that was asked for has ended.
pub type Done = oneshot::Sender<Result<(), StorageError>>;

struct Request {
    store: Arc<TableStore>,
    done: Done,
}

/// Compactions that were asked for, and the tasks that carry them out.
#[derive(Default)]
pub struct Compactor {
    requests: Mutex<VecDeque<Request>>,
    wakes: Mutex<Vec<Wake>>,
}

impl Compactor {
    /// Registers the tasks.
    pub fn start(engine: &Arc<Engine>) {
        for index in 0..engine.options.concurrent_compactors.max(1) {
            let weak: Weak<Engine> = Arc::downgrade(engine);
            let mut run: Option<Run> = None;
            let step = move || match weak.upgrade() {
                None => Next::Done,
                Some(engine) => step(&engine, &mut run),
            };
            let wake = engine.env.tasks.background(&format!("compact-{index}"), Box::new(step));
            wake.wake();
            engine.compactor.wakes.lock().expect("no panic inside").push(wake);
        }
    }

    /// Something changed: look for work.
    pub fn wake(&self) {
        self.wakes.lock().expect("no panic inside").iter().for_each(Wake::wake);
    }

    /// Asks for a compaction of all SSTables of a table into one.
    pub fn request(&self, store: &Arc<TableStore>, done: Done) {
        self.requests.lock().expect("no panic inside").push_back(Request { store: Arc::clone(store), done });
        self.wake();
    }
}

fn step(engine: &Arc<Engine>, run: &mut Option<Run>) -> Next {
    let Some(current) = run else {
        *run = next_run(engine);
        return if run.is_some() { Next::Again } else { Next::Idle };
    };
    match current.advance(engine) {
        Ok(Some(bytes)) => match bytes.checked_div(engine.compaction_rate() / 1000) {
            Some(millis) if millis > 0 => Next::After(Duration::from_millis(millis)),
            _ => Next::Again,
        },
        Ok(None) => match run.take().map_or(Ok(()), |run| run.finish(engine)) {
            Ok(()) => Next::Again,
            Err(error) => {
                tracing::error!(%error, "a compaction failed at its end");
                Next::After(AFTER_FAILURE)
            }
        },
        Err(error) => {
            if let Some(run) = run.take() {
                tracing::error!(table = run.table_name(), %error, "a compaction ended early");
                run.abandon(engine, error);
            }
            Next::After(AFTER_FAILURE)
        }
    }
}

/// What was asked for first, else what a table's strategy chooses.
fn next_run(engine: &Arc<Engine>) -> Option<Run> {
    let request = engine.compactor.requests.lock().expect("no panic inside").pop_front();
    if let Some(Request { store, done }) = request {
        let inputs = take_all(&store);
        if inputs.is_empty() {
            // who asked may have gone
            let _ = done.send(Ok(()));
            return next_run(engine);
        }
        return Run::start(engine, &store, inputs, Some(done));
    }
    if engine.is_draining() {
        return None;
    }
    let now = engine.env.clock.now_seconds();
    engine.tables().into_iter().find_map(|store| {
        let wanted = store.auto_compaction.load(Ordering::Relaxed) && !store.dropped.load(Ordering::Acquire);
        let inputs = wanted.then(|| choose_and_mark(&store, now)).flatten()?;
        Run::start(engine, &store, inputs, None)
    })
}

/// Gives inputs back when a compaction could not start.
pub(super) fn could_not_start(
    store: &TableStore,
    inputs: &[Arc<crate::files::SSTable>],
    error: StorageError,
    done: Option<Done>,
) {
    unmark(store, inputs);
    tracing::error!(table = store.name(), %error, "a compaction could not start");
    if let Some(done) = done {
        let _ = done.send(Err(error));
    }
}
