//! Compactions that run, and the counts of those that ended: for nodetool and the virtual tables.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use env::sync::Mutex;
use env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use schema::TableId;

use crate::strategy::kind::Kind;

/// Seconds in which compactions have ended that are remembered, each with the number of these
/// compactions; the oldest is forgotten. In fifteen minutes, over which a rate is shown, there are
/// no more, however many compactions end.
const SECONDS_MAX: usize = 15 * 60 + 1;

/// A compaction that runs.
pub struct Running {
    /// The id of the compaction.
    pub id: [u8; 16],
    /// The table's id.
    pub table_id: TableId,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// The kind of operation.
    pub kind: Kind,
    /// True: a strategy chose it, and it gives way to operations of operators.
    pub automatic: bool,
    /// Number of SSTables that are read.
    pub sstables: usize,
    /// Bytes of these SSTables.
    pub total: u64,
    /// Bytes of these SSTables that the compaction has passed so far.
    pub done: AtomicU64,
    /// True: the compaction has to end.
    pub stop: AtomicBool,
}

/// A compaction that ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The id of the compaction.
    pub id: [u8; 16],
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// When the compaction ended, milliseconds since 1970.
    pub at_millis: i64,
    /// Bytes of the SSTables that were read.
    pub bytes_in: u64,
    /// Bytes of the SSTables that were written.
    pub bytes_out: u64,
    /// The kind of operation.
    pub kind: Kind,
    /// Pairs: a number of SSTables, and the partitions that were merged from so many.
    pub merged: Vec<(u32, u64)>,
}

/// Told of each compaction that ended well.
pub type OnFinished = Box<dyn Fn(&Finished) + Send + Sync>;

/// The compactions that run, those that ended, and their counts since the start.
#[derive(Default)]
pub struct Compactions {
    running: Mutex<Vec<Arc<Running>>>,
    /// Pairs: a second since 1970, and how many compactions have ended well in it. Seconds ascend.
    ended: Mutex<VecDeque<(i64, u64)>>,
    on_finished: OnceLock<OnFinished>,
    /// Compactions that ended well.
    pub completed: AtomicU64,
    /// Bytes that these compactions read.
    pub bytes_compacted: AtomicU64,
    /// Compactions that were stopped or failed.
    pub aborted: AtomicU64,
    /// Compactions that a strategy chose and that failed, or that could not begin. No operator
    /// asked for them and could be told.
    pub failed_unasked: AtomicU64,
    /// Compactions that were begun with fewer SSTables than were chosen, because the disk had no
    /// room.
    pub reduced: AtomicU64,
    /// SSTables that were left out of these compactions.
    pub left_out: AtomicU64,
}

impl Compactions {
    /// Sets the function that is called, on the compacting thread, for each compaction that ended
    /// well. Only the first call counts.
    pub fn set_on_finished(&self, tell: OnFinished) {
        let _ = self.on_finished.set(tell);
    }

    /// Registers a compaction that begins.
    pub fn begin(&self, running: Running) -> Arc<Running> {
        let running = Arc::new(running);
        self.running.lock().expect("no panic inside").push(Arc::clone(&running));
        running
    }

    /// Notes that a compaction was ended before all was done.
    pub fn aborted(&self, running: &Arc<Running>) {
        self.forget(running);
        self.aborted.fetch_add(1, Ordering::Relaxed);
    }

    fn forget(&self, running: &Arc<Running>) {
        self.running.lock().expect("no panic inside").retain(|other| !Arc::ptr_eq(other, running));
    }

    /// Notes that a compaction has ended well. `finished`: its entry in the history; None: it has
    /// none.
    pub fn ended(&self, running: &Arc<Running>, finished: Option<Finished>) {
        self.forget(running);
        let Some(finished) = finished else { return };
        if let Some(tell) = self.on_finished.get() {
            tell(&finished);
        }
        self.completed.fetch_add(1, Ordering::Relaxed);
        self.bytes_compacted.fetch_add(finished.bytes_in, Ordering::Relaxed);
        self.count_ended(finished.at_millis.div_euclid(1000));
    }

    /// Counts a compaction that ended in a second. Later seconds, of a clock that was set back,
    /// count as this one: otherwise their compactions would count as recent until the clock is
    /// there again.
    fn count_ended(&self, second: i64) {
        let mut ended = self.ended.lock().expect("no panic inside");
        let mut count = 1;
        while let Some((last, before)) = ended.back().copied()
            && last >= second
        {
            count += before;
            ended.pop_back();
        }
        if ended.len() == SECONDS_MAX {
            ended.pop_front();
        }
        ended.push_back((second, count));
    }

    /// Asks the compactions of a kind to end.
    pub fn stop_kind(&self, kind: Kind) {
        self.stop(|running| running.kind == kind);
    }

    /// Asks the compaction of this id to end.
    pub fn stop_id(&self, id: [u8; 16]) {
        self.stop(|running| running.id == id);
    }

    /// Asks the compactions to end for which `which` is true.
    pub fn stop(&self, which: impl Fn(&Running) -> bool) {
        let running = self.running.lock().expect("no panic inside");
        running.iter().filter(|running| which(running)).for_each(|running| running.stop.store(true, Ordering::Relaxed));
    }

    /// Compactions that run.
    pub fn running(&self) -> Vec<Arc<Running>> {
        self.running.lock().expect("no panic inside").clone()
    }

    /// How many compactions have ended well since a time, milliseconds since 1970, which lies at
    /// most fifteen minutes back.
    pub fn ended_since(&self, millis: i64) -> u64 {
        let first = millis.div_euclid(1000);
        let ended = self.ended.lock().expect("no panic inside");
        ended.iter().filter(|(second, _)| *second >= first).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than one compaction a second ends for more than fifteen minutes.
    #[test]
    fn no_compaction_of_the_last_fifteen_minutes_is_forgotten() {
        let compactions = Compactions::default();
        let seconds = 1_000..2_000;
        seconds.clone().for_each(|second| (0..3).for_each(|_| compactions.count_ended(second)));
        assert_eq!(compactions.ended_since(1_100_000), 3 * 900);
        assert_eq!(compactions.ended_since(1_999_999), 3);
        assert_eq!(compactions.ended.lock().expect("no panic inside").len(), SECONDS_MAX.min(seconds.count()));
    }

    /// The clock was an hour ahead: compactions of that time count for fifteen minutes, not more.
    #[test]
    fn compactions_are_forgotten_after_the_clock_was_set_back() {
        let compactions = Compactions::default();
        [1_000, 4_600, 4_601, 1_001].into_iter().for_each(|second| compactions.count_ended(second));
        assert_eq!(compactions.ended_since(1_001_000), 3);
        compactions.count_ended(1_950);
        assert_eq!(compactions.ended_since(1_050_000), 1);
    }
}
