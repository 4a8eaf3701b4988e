//! The curve of a histogram: the share of operations up to each time.

use crate::measure::Tally;

/// A point of the curve.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
pub struct Point {
    /// The percentile, 99.9 for instance.
    pub percentile: f64,
    /// One of this many operations took longer: 1000 for 99.9.
    pub one_of: f64,
    /// Time since the operation should have begun, milliseconds.
    pub response_ms: f64,
    /// Time since the request was sent, milliseconds.
    pub service_ms: f64,
}

/// Points for each decade of the curve's far end.
const A_DECADE: f64 = 8.0;
/// The curve ends at one operation of this many.
const RAREST: f64 = 1_000_000.0;

/// The curve of a tally, as far as its number of operations allows.
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
