//! A repair that this node coordinates, as state: its options, and what has happened to it. The
//! verbs are in `crate::repair::command`.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use internode::payload::repair::SessionId;
use rows::command::TraceSink;

use super::options::RepairOptions;

/// Most events of a command that are kept; later events are told in the log alone.
const EVENTS_MAX: usize = 10_000;
/// Further events that are kept if they say whether the command has failed, by which nodetool
/// chooses its exit code. The end of a command is kept in any case.
const OUTCOMES_MAX: usize = 1_000;

/// The kind of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The command has begun.
    Start,
    /// A part is done: the percentage of the whole that is done.
    Progress(u32),
    /// Something that the operator should know.
    Notification,
    /// Something has failed.
    Error,
    /// All is done.
    Success,
    /// The command has ended, well or not.
    Complete,
}

/// Something that happened to a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Time of the event, milliseconds since 1970.
    pub at_millis: i64,
    /// The kind.
    pub kind: EventKind,
    /// The text, as Cassandra's.
    pub text: String,
}

/// A repair that this node coordinates.
#[derive(Debug)]
pub struct Command {
    /// The number by which operators know it.
    pub number: i32,
    /// The parent session.
    pub id: SessionId,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The options that the operator gave.
    pub options: RepairOptions,
    /// When the command began, milliseconds since 1970.
    pub begun_at: i64,
    /// When the command ended, milliseconds since 1970; 0: it runs.
    pub ended_at: AtomicI64,
    events: Mutex<Vec<Event>>,
    /// Why the command is to end early; None: it goes on.
    cancelled: Mutex<Option<String>>,
    /// The tracing session; empty: the command is not traced.
    trace: Trace,
}

/// The sink of the lines of a traced repair; empty: the command is not traced.
#[derive(Default)]
struct Trace(OnceLock<Arc<dyn TraceSink>>);

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace(..)")
    }
}

impl Command {
    /// A command that begins.
    pub(crate) fn new(number: i32, id: SessionId, keyspace: &str, options: RepairOptions, begun_at: i64) -> Self {
        let (events, cancelled) = (Mutex::default(), Mutex::default());
        let (keyspace, ended_at) = (keyspace.to_owned(), AtomicI64::new(0));
        Self { number, id, keyspace, options, begun_at, ended_at, events, cancelled, trace: Trace::default() }
    }

    /// Sets the sink of the lines of the trace.
    pub(crate) fn trace_to(&self, sink: Arc<dyn TraceSink>) {
        let _ = self.trace.0.set(sink);
    }

    /// The sink of the lines of the trace; None: the command is not traced.
    pub(crate) fn traced(&self) -> Option<&dyn TraceSink> {
        self.trace.0.get().map(|sink| &**sink)
    }

    /// The events from a number on, and whether the command has ended.
    pub fn events(&self, from: usize) -> (Vec<Event>, bool) {
        // read before the events: the last event is there when the end is
        let has_ended = self.has_ended();
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        (events.get(from..).unwrap_or_default().to_vec(), has_ended)
    }

    /// Whether the command has ended.
    pub fn has_ended(&self) -> bool {
        self.ended_at.load(Ordering::Acquire) != 0
    }

    /// Has the command end early. The first reason counts.
    pub fn cancel(&self, why: &str) {
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.to_owned());
    }

    /// Why the command is to end early; None: it goes on.
    pub(crate) fn cancelled(&self) -> Option<String> {
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes an event. Beyond the bounds only the end of the command is kept.
    pub(crate) fn note(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = match event.kind {
            EventKind::Complete => true,
            EventKind::Error | EventKind::Success => events.len() < EVENTS_MAX + OUTCOMES_MAX,
            EventKind::Start | EventKind::Progress(_) | EventKind::Notification => events.len() < EVENTS_MAX,
        };
        if is_kept {
            events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_trace_leaves_room_for_the_outcome() {
        let command = Command::new(1, [1; 16], "ks", RepairOptions::default(), 0);
        let note = |kind: &EventKind| command.note(Event { at_millis: 0, kind: kind.clone(), text: String::new() });
        let count = |kind: &EventKind| command.events(0).0.iter().filter(|event| event.kind == *kind).count();
        let cases = [
            (EventKind::Notification, EVENTS_MAX),
            (EventKind::Progress(5), 0),
            (EventKind::Error, OUTCOMES_MAX),
            (EventKind::Success, 0),
        ];
        for (kind, expected) in cases {
            (0..EVENTS_MAX + 1).for_each(|_| note(&kind));
            assert_eq!(count(&kind), expected, "{kind:?}");
        }
        note(&EventKind::Complete);
        assert_eq!(count(&EventKind::Complete), 1);
    }
}
