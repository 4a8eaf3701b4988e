//! The state of the tasks that build materialized views and tell the ring of them
//! (`crate::view_builds`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use rows::views::View;
use schema::TableId;
use storage::base_views::BaseViews;
use tokio::sync::Notify;

/// Most dropped views that wait until the ring is told. At the limit the oldest is forgotten, and
/// the rows about its build stay.
const DROPPED_MAX: usize = 1000;

/// Whether the task runs, and how it is woken.
#[derive(Default)]
pub struct ViewTasks {
    /// Set once the task runs.
    pub(crate) is_running: AtomicBool,
    /// Wakes the task: the schema has changed.
    pub(crate) changed: Arc<Notify>,
    /// Wakes the teller: a view was dropped.
    pub(crate) dropped: Arc<Notify>,
    seen: Mutex<KnownViews>,
}

/// The views at the last change of the schema, and those that went.
#[derive(Default)]
struct KnownViews {
    /// The number of the last snapshot of views.
    number: u64,
    /// Keyspace and name of each view, by its id.
    views: BTreeMap<TableId, (String, String)>,
    dropped: VecDeque<DroppedView>,
}

/// A view that was dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DroppedView {
    pub keyspace: String,
    pub name: String,
    /// When the view was dropped, microseconds since 1970. A build of another view of this name
    /// begins later.
    pub micros: i64,
    /// Whether there was another view of this name as soon as this node heard of the drop: others
    /// may have heard of both long before, and have told of the build of the other one.
    pub has_successor: bool,
}

impl ViewTasks {
    /// Notes which views there are after a change of the schema. `next_micros` gives its time.
    pub(crate) fn follow(&self, views: &BaseViews, next_micros: impl FnOnce() -> i64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if views.number < seen.number {
            // somebody else has noted a later change
            return;
        }
        seen.number = views.number;
        let named = |view: &Arc<View>| (view.table.keyspace.clone(), view.table.name.clone());
        let views: BTreeMap<_, _> = views.all().map(|view| (view.table.id, named(view))).collect();
        let mut gone = std::mem::replace(&mut seen.views, views);
        gone.retain(|id, _| !seen.views.contains_key(id));
        if gone.is_empty() {
            return;
        }
        let micros = next_micros();
        for (keyspace, name) in gone.into_values() {
            if seen.dropped.len() == DROPPED_MAX {
                seen.dropped.pop_front();
            }
            let has_successor = seen.views.values().any(|(of, view)| *of == keyspace && *view == name);
            seen.dropped.push_back(DroppedView { keyspace, name, micros, has_successor });
        }
        self.dropped.notify_one();
    }

    /// The dropped view of which the ring is to be told next.
    pub(crate) fn next_dropped(&self) -> Option<DroppedView> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).dropped.pop_front()
    }
}
