//! The times of operations: histograms by kind, for the last interval and for the whole run.
//!
//! Two times are kept: *service*, from the moment at which the request was sent, and *response*,
//! from the moment at which it should have been sent. They differ with `-rate fixed=` only.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::workload::Done;

/// Longest time that is told apart, microseconds: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// Number of histograms for one kind of operation; several, so that threads seldom wait for each
/// other.
const SHARDS: usize = 16;
/// Most points of a series. When there are more, every second one is dropped.
const MOST_POINTS: usize = 10_000;

/// An empty histogram of microseconds with three significant digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).expect("bounds and digits that the histogram takes")
}

/// Counts and times of one kind of operation.
#[derive(Clone)]
pub struct Tally {
    pub operations: u64,
    pub partitions: u64,
    pub rows: u64,
    /// Operations that failed in all their attempts.
    pub errors: u64,
    /// Attempts beyond the first one of an operation.
    pub retries: u64,
    /// Microseconds since each operation should have begun.
    pub response: Histogram<u64>,
    /// Microseconds since each request was sent.
    pub service: Histogram<u64>,
}

impl Tally {
    /// An empty tally.
    pub fn new() -> Self {
        let (response, service) = (histogram(), histogram());
        Self { operations: 0, partitions: 0, rows: 0, errors: 0, retries: 0, response, service }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.partitions += other.partitions;
        self.rows += other.rows;
        self.errors += other.errors;
        self.retries += other.retries;
        // both have the same bounds
        let _ = self.response.add(&other.response);
        let _ = self.service.add(&other.service);
    }

    fn clear(&mut self) {
        (self.operations, self.partitions, self.rows, self.errors, self.retries) = (0, 0, 0, 0, 0);
        self.response.reset();
        self.service.reset();
    }
}

/// Records the times of one kind of operation for all threads of a run.
pub struct Meter {
    pub name: String,
    shards: Vec<Mutex<Tally>>,
    next: AtomicU64,
}

impl Meter {
    /// A meter for operations of this name.
    pub fn new(name: &str) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(Tally::new())).collect();
        Self { name: name.to_owned(), shards, next: AtomicU64::new(0) }
    }

    /// The index of a thread's histogram.
    pub fn place(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) as usize % SHARDS
    }

    /// Records the end of an operation and its number of attempts beyond the first. `done` is None
    /// if it failed.
    pub fn record(&self, place: usize, response: Duration, service: Duration, done: Option<&Done>, retries: u64) {
        let mut tally = self.shards[place].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tally.operations += 1;
        tally.retries += retries;
        tally.response.saturating_record(response.as_micros() as u64);
        tally.service.saturating_record(service.as_micros() as u64);
        match done {
            Some(done) => {
                tally.partitions += done.partitions;
                tally.rows += done.rows;
            }
            None => tally.errors += 1,
        }
    }

    /// Takes the tally since the last call.
    pub fn take(&self) -> Tally {
        let mut all = Tally::new();
        for shard in &self.shards {
            let mut tally = shard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            all.add(&tally);
            tally.clear();
        }
        all
    }
}

/// The figures of an interval.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub struct Figures {
    /// Seconds from the beginning of the run to the end of the interval.
    pub at: f64,
    pub operations: u64,
    pub partitions: u64,
    pub rows: u64,
    pub errors: u64,
    pub retries: u64,
    pub per_second: f64,
    pub partitions_per_second: f64,
    pub rows_per_second: f64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

impl Figures {
    /// The figures of a tally over this many seconds.
    pub fn of(tally: &Tally, at: f64, seconds: f64) -> Self {
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let millis = |quantile| tally.response.value_at_quantile(quantile) as f64 / 1000.0;
        Self {
            at,
            operations: tally.operations,
            partitions: tally.partitions,
            rows: tally.rows,
            errors: tally.errors,
            retries: tally.retries,
            per_second: rate(tally.operations),
            partitions_per_second: rate(tally.partitions),
            rows_per_second: rate(tally.rows),
            mean_ms: tally.response.mean() / 1000.0,
            p50_ms: millis(0.5),
            p95_ms: millis(0.95),
            p99_ms: millis(0.99),
            p999_ms: millis(0.999),
            max_ms: tally.response.max() as f64 / 1000.0,
        }
    }
}

/// Figures of all kinds over time. Bounded, however long the run is.
#[derive(Default)]
pub struct Series {
    pub points: Vec<Figures>,
    /// One interval of this many is kept.
    stride: usize,
    seen: usize,
}

impl Series {
    /// Adds the figures of an interval.
    pub fn push(&mut self, figures: Figures) {
        if self.points.len() == MOST_POINTS {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride = self.stride.max(1) * 2;
        }
        if self.seen.is_multiple_of(self.stride.max(1)) {
            self.points.push(figures);
        }
        self.seen += 1;
    }
}

/// The uncertainty of the mean of several rates: its standard error divided by the mean.
#[derive(Default)]
pub struct Uncertainty {
    count: usize,
    mean: f64,
    squares: f64,
}

impl Uncertainty {
    /// Adds a rate.
    pub fn push(&mut self, rate: f64) {
        self.count += 1;
        let distance = rate - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (rate - self.mean);
    }

    /// Standard error divided by mean; NaN for fewer than two rates.
    pub fn value(&self) -> f64 {
        let variance = self.squares / (self.count as f64 - 1.0);
        (variance / self.count as f64).sqrt() / self.mean
    }

    /// Whether the mean is certain enough, or was measured often enough.
    pub fn is_enough(&self, wanted: f64, (at_least, at_most): (usize, usize)) -> bool {
        self.count >= at_most || (self.count >= at_least && self.value() < wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Pace;

    /// One thread asks a server 1,000 times a second. It answers in 1 ms, but once only after a
    /// second. The requests that should have been sent meanwhile are sent as fast as possible
    /// afterwards.
    #[test]
    fn a_stall_counts_for_all_that_should_have_been_asked_meanwhile() {
        let (pace, meter) = (Pace::new(1000.0), Meter::new("READ"));
        let begun = pace.next();
        let mut now = begun;
        for number in 0..4000 {
            let intended = if number == 0 { begun } else { pace.next() };
            let sent = now.max(intended);
            let service =
                Duration::from_millis(if number == 1000 { 1000 } else { 1 }) / if number > 1000 { 2 } else { 1 };
            now = sent + service;
            meter.record(0, now - intended, service, Some(&Done { partitions: 1, rows: 1 }), 0);
        }
        let tally = meter.take();
        let millis = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) / 1000;
        // sent one after the other: 999 of 1,000 took a millisecond, and the stall is one of 4,000
        assert_eq!(millis(&tally.service, 0.999), 1);
        assert_eq!(millis(&tally.service, 1.0), 1000);
        // 2,000 are late, each half a millisecond less than the one before: half of all, by half a
        // second on average
        assert!((495..=505).contains(&millis(&tally.response, 0.75)), "{}", millis(&tally.response, 0.75));
        assert!((975..=985).contains(&millis(&tally.response, 0.99)), "{}", millis(&tally.response, 0.99));
        assert!((245.0..=255.0).contains(&(tally.response.mean() / 1000.0)), "{}", tally.response.mean());
        assert!(millis(&tally.response, 0.49) <= 1);
    }

    #[test]
    fn the_series_stays_bounded_and_keeps_its_span() {
        let mut series = Series::default();
        let figures = Figures::of(&Tally::new(), 0.0, 1.0);
        for second in 0..50_000 {
            series.push(Figures { at: f64::from(second), ..figures.clone() });
        }
        assert!(series.points.len() <= MOST_POINTS);
        assert!(series.points.first().is_some_and(|point| point.at == 0.0));
        assert!(series.points.last().is_some_and(|point| point.at > 49_900.0));
        assert!(series.points.is_sorted_by(|a, b| a.at < b.at));
    }

    #[test]
    fn a_steady_rate_becomes_certain_and_a_wild_one_does_not() {
        let (mut steady, mut wild) = (Uncertainty::default(), Uncertainty::default());
        for number in 0..30 {
            steady.push(1000.0 + f64::from(number % 2));
            wild.push(if number % 2 == 0 { 10.0 } else { 2000.0 });
        }
        assert!(steady.is_enough(0.02, (30, 200)));
        assert!(!wild.is_enough(0.02, (30, 200)));
        assert!(!steady.is_enough(0.02, (31, 200)), "too few");
        assert!(wild.is_enough(0.02, (5, 30)), "often enough");
    }
}
