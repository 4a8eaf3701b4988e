//! `speculative_retry`: how long a read of a partition waits for the replicas that it has asked
//! before it asks one more.
//!
//! Pure. Agrees with `org.apache.cassandra.service.reads.{SpeculativeRetryPolicy,
//! HybridSpeculativeRetryPolicy}`. Latencies are those of this coordinator since it started; there
//! the last ones weigh more.

use std::time::Duration;

/// How long a read waits by a policy in the form in which the schema has it; None: it asks no
/// other replica. `percentile` gives the latency below which a share (0 to 1) of the reads lies.
pub(super) fn delay(policy: &str, percentile: &dyn Fn(f64) -> Duration) -> Option<Duration> {
    match policy {
        "ALWAYS" => return Some(Duration::ZERO),
        "NEVER" => return None,
        _ => {}
    }
    let parts = |function: &str| {
        let inner = policy.strip_prefix(function)?.strip_suffix(')')?;
        let (first, second) = inner.split_once(',')?;
        Some((simple(first, percentile)?, simple(second, percentile)?))
    };
    let least = parts("MIN(").map(|(first, second)| first.min(second));
    let most = || parts("MAX(").map(|(first, second)| first.max(second));
    least.or_else(most).or_else(|| simple(policy, percentile))
}

/// The delay of `99p` or `50ms`.
fn simple(text: &str, percentile: &dyn Fn(f64) -> Duration) -> Option<Duration> {
    if let Some(millis) = text.strip_suffix("ms") {
        return millis.parse().ok().map(Duration::from_millis);
    }
    let share: f64 = text.strip_suffix('p')?.parse().ok()?;
    Some(percentile(share / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_its_delay() {
        let percentile = |share: f64| Duration::from_millis((share * 100.0).round() as u64);
        let delay = |policy: &str| delay(policy, &percentile).map(|delay| delay.as_millis());
        assert_eq!(delay("ALWAYS"), Some(0));
        assert_eq!(delay("NEVER"), None);
        assert_eq!(delay("99p"), Some(99));
        assert_eq!(delay(".5p"), Some(1));
        assert_eq!(delay("50ms"), Some(50));
        assert_eq!(delay("MIN(99p,50ms)"), Some(50));
        assert_eq!(delay("MAX(99p,50ms)"), Some(99));
        assert_eq!(delay("no policy"), None);
    }
}
