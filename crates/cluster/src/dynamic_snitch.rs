//! The dynamic snitch: which replicas answer reads slowly, as state.
//!
//! Latencies come from the messages of membership (READ_REQ and RANGE_REQ, also when nobody waits
//! for the answer any more, and with their whole time when none comes) and from this node's own
//! reads, those that take too long and those that are given up among them. The planner of a read
//! takes the scores. They are computed at that moment, at most once an update interval, so an idle
//! node does nothing. Latencies are forgotten every reset interval: a replica that nobody asks any
//! more could not show that it has become fast. Agrees with
//! `org.apache.cassandra.locator.DynamicEndpointSnitch`.

mod sample;
mod scores;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use env::Env;
use internode::Verb;

use sample::Sample;
pub(crate) use scores::{Scores, Severities};

/// Endpoints whose latencies are kept. There are never so many replicas; answers of more are not
/// measured.
const ENDPOINTS_MAX: usize = 10_000;

/// `dynamic_snitch_*`
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DynamicSnitchOptions {
    /// dynamic_snitch_update_interval: the age at which scores are computed again
    pub update_interval: Duration,
    /// dynamic_snitch_reset_interval: the time after which latencies are forgotten
    pub reset_interval: Duration,
    /// dynamic_snitch_badness_threshold
    pub badness_threshold: f64,
}

/// The latencies of replicas, and their scores.
pub(crate) struct DynamicSnitch {
    env: Env,
    options: DynamicSnitchOptions,
    /// The severities that endpoints tell of themselves (SEVERITY).
    severities: ArcSwap<Severities>,
    scores: ArcSwap<Scores>,
    /// When the scores were computed, in nanoseconds of monotonic time.
    scored: AtomicU64,
    samples: Mutex<Samples>,
}

struct Samples {
    by_address: HashMap<SocketAddr, Sample>,
    /// When latencies were forgotten last, in monotonic time.
    reset: Duration,
}

impl DynamicSnitch {
    pub fn new(env: &Env, options: DynamicSnitchOptions) -> Self {
        let now = env.clock.monotonic_nanos();
        Self {
            env: env.clone(),
            options,
            severities: ArcSwap::default(),
            scores: ArcSwap::default(),
            scored: AtomicU64::new(now),
            samples: Mutex::new(Samples { by_address: HashMap::new(), reset: Duration::from_nanos(now) }),
        }
    }

    /// Takes the latency of an answer to a message, or the time for which no answer came. Only
    /// reads count.
    pub fn measured(&self, peer: SocketAddr, verb: Verb, latency: Duration) {
        if matches!(verb, Verb::ReadReq | Verb::RangeReq) {
            self.add(peer, latency);
        }
    }

    /// Takes the latency of a read of this node itself (its own address) or of another.
    pub fn add(&self, replica: SocketAddr, latency: Duration) {
        let (now, random) = (Duration::from_nanos(self.env.clock.monotonic_nanos()), self.env.random.next_u64());
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.by_address.len() < ENDPOINTS_MAX || samples.by_address.contains_key(&replica) {
            samples.by_address.entry(replica).or_default().add(latency, now, random);
        }
    }

    /// The severities that endpoints tell of themselves; the next scores have them.
    pub fn set_severities(&self, severities: Arc<Severities>) {
        self.severities.store(severities);
    }

    /// The scores, which are an update interval old at most.
    pub fn scores(&self) -> Arc<Scores> {
        let (now, scored) = (self.env.clock.monotonic_nanos(), self.scored.load(Ordering::Relaxed));
        let age = Duration::from_nanos(now.saturating_sub(scored));
        // one of those who find the scores old computes them, the others take the old ones
        let is_chosen = || self.scored.compare_exchange(scored, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if age >= self.options.update_interval && is_chosen() {
            self.update(Duration::from_nanos(now));
        }
        self.scores.load_full()
    }

    fn update(&self, now: Duration) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(samples.reset) >= self.options.reset_interval {
            (samples.by_address, samples.reset) = (HashMap::new(), now);
        }
        let median = |(address, sample): (&SocketAddr, &Sample)| Some((*address, sample.median()?));
        let medians: Vec<_> = samples.by_address.iter().filter_map(median).collect();
        drop(samples);
        let severities = Severities::clone(&self.severities.load());
        self.scores.store(Arc::new(Scores::new(&medians, severities, self.options.badness_threshold)));
    }
}
