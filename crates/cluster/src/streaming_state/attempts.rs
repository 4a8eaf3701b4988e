//! The files of a session that come, and how often each was begun. A file whose link breaks comes
//! again from its beginning, over another link; of several attempts only the last one counts.
//!
//! The sender may see the end of a link before the receiver does, so a new attempt can begin while
//! this node still takes bytes of the one before: that one is superseded and gives up its part.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use streaming::Received;
use tokio::sync::watch;

/// The state of a file's last attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Bytes come.
    Coming,
    /// The link has ended in the middle of the file.
    Interrupted,
    /// The file has come. It is never taken again.
    Settled,
}

/// The attempts of a session's files.
pub(crate) struct Attempts {
    /// The number of the last attempt, from 1, and its state. As many as the session has files at
    /// most: only files that were announced are begun.
    last: Mutex<BTreeMap<Received, (u32, State)>>,
    /// Signals each attempt that begins.
    begun: watch::Sender<()>,
}

impl Attempts {
    pub fn new() -> Self {
        Self { last: Mutex::default(), begun: watch::Sender::new(()) }
    }

    fn last(&self) -> MutexGuard<'_, BTreeMap<Received, (u32, State)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an attempt, and gives its number. None: the file is there already.
    pub fn begin(&self, id: Received) -> Option<u32> {
        let mut last = self.last();
        let (number, state) = last.entry(id).or_insert((0, State::Interrupted));
        if *state == State::Settled {
            return None;
        }
        (*number, *state) = (*number + 1, State::Coming);
        let number = *number;
        drop(last);
        self.begun.send_replace(());
        Some(number)
    }

    /// Whether no later attempt has begun.
    pub fn is_last(&self, id: Received, number: u32) -> bool {
        self.last().get(&id).is_some_and(|(last, _)| *last == number)
    }

    /// Notes that the file has come as a whole. False: a later attempt has begun, and counts.
    pub fn settle(&self, id: Received, number: u32) -> bool {
        self.change(id, number, State::Settled)
    }

    /// Notes that the link of the attempt has ended. False: a later attempt has begun.
    pub fn interrupt(&self, id: Received, number: u32) -> bool {
        self.change(id, number, State::Interrupted)
    }

    fn change(&self, id: Received, number: u32, to: State) -> bool {
        match self.last().get_mut(&id) {
            Some((last, state)) if *last == number => {
                assert_eq!(*state, State::Coming, "an attempt ends once");
                *state = to;
                true
            }
            _ => false,
        }
    }

    /// Whether the attempt was interrupted and none has begun since.
    pub fn is_interrupted(&self, id: Received, number: u32) -> bool {
        self.last().get(&id) == Some(&(number, State::Interrupted))
    }

    /// Completes when a later attempt has begun.
    pub async fn superseded(&self, id: Received, number: u32) {
        let mut begun = self.begun.subscribe();
        while self.is_last(id, number) {
            // the sender lives as long as the session
            let _ = begun.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use schema::TableId;

    use super::*;

    #[test]
    fn the_last_attempt_counts_and_a_file_comes_once() {
        let attempts = Attempts::new();
        let id = Received { table: TableId([1; 16]), sequence: 0 };
        assert_eq!(attempts.begin(id), Some(1));
        assert!(attempts.interrupt(id, 1) && attempts.is_interrupted(id, 1));
        assert_eq!(attempts.begin(id), Some(2));
        assert!(!attempts.is_interrupted(id, 1) && !attempts.is_last(id, 1));
        assert_eq!(attempts.begin(id), Some(3));
        assert!(!attempts.settle(id, 2) && !attempts.interrupt(id, 2), "superseded");
        assert!(attempts.settle(id, 3));
        assert_eq!(attempts.begin(id), None);
    }
}
