//! The curve of a histogram: what share of operations took no longer than what.

use crate::measure::Tally;

/// A point of the curve.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
pub struct Point {
    /// 99.9, for instance.
    pub percentile: f64,
    /// Operations that took longer, one of so many: 1000 for 99.9.
    pub one_of: f64,
    /// From when it should have begun.
    pub response_ms: f64,
    /// From when it was sent.
    pub service_ms: f64,
}

/// Points a decade of the curve's far end.
const A_DECADE: f64 = 8.0;
/// One operation of so many at its end.
const RAREST: f64 = 1_000_000.0;

/// The curve of a tally, as far as its operations reach.
pub fn of(tally: &Tally) -> Vec<Point> {
    let millis =
        |histogram: &hdrhistogram::Histogram<u64>, quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    let rarest = (tally.operations as f64).clamp(1.0, RAREST);
    let steps = (rarest.log10() * A_DECADE).floor() as usize;
    let point = |step: usize| {
        let one_of = 10f64.powf(step as f64 / A_DECADE);
        let quantile = 1.0 - 1.0 / one_of;
        Point {
            percentile: quantile * 100.0,
            one_of,
            response_ms: millis(&tally.response, quantile),
            service_ms: millis(&tally.service, quantile),
        }
    };
    (0..=steps).map(point).collect()
}
