//! How far a replay of the commit log is: written to the log, and given to the function that the
//! options name, while it takes long.
//!
//! Bytes are those of the segments' files, up to the place of the record replayed last. The clock
//! is asked once in [`RECORDS_A_LOOK`] records.

use std::collections::BTreeMap;
use std::time::Duration;

use env::{Env, Instant};

use crate::commitlog::{LogPosition, OnReplay, Replay};

/// Time after which a long replay is told of, first and again.
pub const REPORT_PERIOD: Duration = Duration::from_secs(2);

const RECORDS_A_LOOK: u64 = 1024;

/// The progress of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReplayProgress {
    /// True: the schema's records are replayed, which come before all others.
    pub is_schema: bool,
    /// Bytes of segments that are read.
    pub done: u64,
    /// Bytes of all segments.
    pub total: u64,
    /// Records that were read.
    pub records: u64,
    /// Time since the replay began.
    pub elapsed: Duration,
}

impl ReplayProgress {
    /// Bytes a second.
    pub fn rate(&self) -> u64 {
        let per_second = u128::from(self.done) * 1000 / self.elapsed.as_millis().max(1);
        u64::try_from(per_second).unwrap_or(u64::MAX)
    }

    /// The time that the rest takes at this rate; None: not known.
    pub fn rest(&self) -> Option<Duration> {
        self.total.saturating_sub(self.done).checked_div(self.rate()).map(Duration::from_secs)
    }
}

/// Follows one replay.
pub(crate) struct ReplayReporter<'a> {
    env: &'a Env,
    on_replay: &'a OnReplay,
    /// By segment: the bytes of the segments before it, and its own bytes.
    segments: BTreeMap<u64, (u64, u64)>,
    begun: Instant,
    reported_at: Instant,
    /// Records since the clock was asked.
    records_since_clock: u64,
    progress: ReplayProgress,
}

impl<'a> ReplayReporter<'a> {
    pub(crate) fn new(env: &'a Env, on_replay: &'a OnReplay, replay: &Replay, is_schema: bool) -> Self {
        let mut total = 0;
        let mut segments = BTreeMap::new();
        for (id, size) in replay.sizes() {
            segments.insert(id, (total, size));
            total += size;
        }
        let now = env.now();
        let progress = ReplayProgress { is_schema, total, ..ReplayProgress::default() };
        ReplayReporter { env, on_replay, segments, begun: now, reported_at: now, records_since_clock: 0, progress }
    }

    /// Notes that `records` more records were read, the last of which ends at `position`.
    pub(crate) fn note(&mut self, position: LogPosition, records: u64) {
        self.progress.records += records;
        self.records_since_clock += records;
        if self.records_since_clock < RECORDS_A_LOOK {
            return;
        }
        self.records_since_clock = 0;
        let now = self.env.now();
        if now.since(self.reported_at) < REPORT_PERIOD {
            return;
        }
        self.reported_at = now;
        let (before, size) = self.segments.get(&position.segment).copied().unwrap_or_default();
        // places in a compressed segment are further on than its bytes
        self.progress.done = before + size.min(position.offset.into());
        self.progress.elapsed = now.since(self.begun);
        self.report();
    }

    fn report(&self) {
        let progress = &self.progress;
        tracing::info!(
            what = if progress.is_schema { "schema" } else { "tables" },
            bytes = progress.done,
            of = progress.total,
            records = progress.records,
            bytes_a_second = progress.rate(),
            seconds_left = progress.rest().map(|rest| rest.as_secs()),
            "replaying the commit log"
        );
        (self.on_replay)(progress);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use env::sim::{DATA, Sim};

    use super::*;
    use crate::commitlog::{CommitLog, Options};

    #[test]
    fn a_replay_that_takes_long_is_told_of() {
        let sim = Sim::new(1);
        let directory = Path::new(DATA).join("commitlog");
        let options = Options { segment_size: 8 << 10, mutation_size_max: 2000, ..Options::default() };
        let (log, _) = CommitLog::open(&sim.env(), &directory, options.clone()).expect("opened");
        log.begin(0).expect("there is room");
        for _ in 0..20 {
            let position = log.append(&[1; 1000], &[(schema::TableId([1; 16]), 0)]).expect("room");
            sim.block_on(log.wait_durable(position)).expect("durable");
        }
        sim.kill();
        let (_log, replay) = CommitLog::open(&sim.env(), &directory, options).expect("opened");
        let told: Arc<Mutex<Vec<ReplayProgress>>> = Arc::default();
        let on_replay: OnReplay = {
            let told = Arc::clone(&told);
            Arc::new(move |progress| told.lock().expect("no panic").push(*progress))
        };
        let env = sim.env();
        let mut follower = ReplayReporter::new(&env, &on_replay, &replay, false);
        let positions: Vec<LogPosition> = replay.map(|record| record.expect("sound").0).collect();
        for position in &positions {
            sim.advance(Duration::from_millis(500));
            follower.note(*position, RECORDS_A_LOOK - 10);
            (0..10).for_each(|_| follower.note(*position, 1));
        }
        let told = told.lock().expect("no panic");
        assert_eq!(told.len(), 5, "every other second of ten");
        let last = told.last().expect("told");
        assert_eq!((last.records, last.elapsed), (20 * RECORDS_A_LOOK, Duration::from_secs(10)));
        let segment = 8 << 10;
        assert_eq!(last.done, 2 * segment + u64::from(positions.last().expect("a record").offset));
        assert!(last.total >= 3 * segment && told.is_sorted_by_key(|progress| progress.done));
        assert_eq!(
            (last.rate(), last.rest()),
            (last.done / 10, (last.total - last.done).checked_div(last.done / 10).map(Duration::from_secs))
        );
    }
}
