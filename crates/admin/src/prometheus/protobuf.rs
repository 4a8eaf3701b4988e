//! The protobuf form of a scrape: messages of `io.prometheus.client`, each behind its length, with
//! histograms in Prometheus' native form beside their classic buckets.
//!
//! A native histogram of schema n has the bounds 2^(i/2^n), for every whole i. [`SCHEMA`] is 3,
//! whose buckets are 9 % wide: the coarsest schema that gives each of Cassandra's buckets, which
//! are at least 14 % wide, a native bucket of its own. Values of a bucket are counted where the
//! bucket's upper bound lies, as nodetool's percentiles do. Agrees with `metrics.proto` of
//! github.com/prometheus/client_model.

use std::collections::BTreeMap;

use crate::histogram::HistogramData;

/// The content type of the messages, and the text by which a scrape asks for them.
pub const CONTENT_TYPE: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Bounds of native buckets are powers of 2^(1/2^SCHEMA).
pub(super) const SCHEMA: i32 = 3;
/// Values up to here count as zero: what Prometheus' own libraries say. No value of ours is smaller
/// and not zero.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// `MetricFamily`: its fields so far, which come in any order.
pub(super) struct MetricFamily {
    kind: MetricType,
    message: Message,
}

/// `MetricType`, as far as it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

impl MetricFamily {
    /// A family without metrics. `kind` is the word of the text form.
    pub fn new(name: &str, kind: &str, help: &str) -> Self {
        let kind = match kind {
            "counter" => MetricType::Counter,
            "histogram" => MetricType::Histogram,
            _ => MetricType::Gauge,
        };
        let message = Message::default().text(1, name).text(2, help).varint(3, kind as u64);
        Self { kind, message }
    }

    /// Adds a counter or a gauge.
    pub fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        let field = if self.kind == MetricType::Counter { 3 } else { 2 };
        self.add_metric(labels, field, Message::default().double(1, value));
    }

    /// Adds a histogram whose offsets are `units` times the unit that is shown. One of every `step`
    /// offsets is a bound of a classic bucket.
    pub fn add_histogram(&mut self, labels: &[(&str, &str)], histogram: &HistogramData, units: f64, step: usize) {
        self.add_metric(labels, 7, native(histogram, units, step).message());
    }

    /// `Metric`: labels, and its value in the field of its type.
    fn add_metric(&mut self, labels: &[(&str, &str)], field: u32, value: Message) {
        let pair = |(name, value): &(&str, &str)| Message::default().text(1, name).text(2, value);
        let metric = labels.iter().fold(Message::default(), |metric, label| metric.message(1, pair(label)));
        self.message.add_message(4, metric.message(field, value));
    }

    /// Appends the message behind its length.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        put_varint(out, self.message.0.len() as u64);
        out.extend_from_slice(&self.message.0);
    }
}

/// `Histogram`, before it is a message.
#[derive(Debug)]
struct Histogram {
    count: u64,
    sum: f64,
    /// Cumulative counts with the classic buckets' upper bounds.
    buckets: Vec<(u64, f64)>,
    /// `BucketSpan`: native buckets side by side. Of the first span the index of its first bucket,
    /// of others the buckets without values since the span before; and its length.
    spans: Vec<(i32, u32)>,
    /// The count of each bucket of the spans, as the difference to the one before.
    deltas: Vec<i64>,
}

impl Histogram {
    fn message(&self) -> Message {
        let mut message = Message::default().varint(1, self.count).double(2, self.sum);
        for (count, bound) in &self.buckets {
            message.add_message(3, Message::default().varint(1, *count).double(2, *bound));
        }
        message = message.varint(5, zigzag(i64::from(SCHEMA))).double(6, ZERO_THRESHOLD).varint(7, 0);
        for (offset, length) in &self.spans {
            message
                .add_message(12, Message::default().varint(1, zigzag(i64::from(*offset))).varint(2, (*length).into()));
        }
        self.deltas.iter().fold(message, |message, delta| message.varint(13, zigzag(*delta)))
    }
}

/// The fields of a message of protobuf: a number with a wire type, and the value.
#[derive(Default)]
struct Message(Vec<u8>);

/// Wire types: a varint, eight bytes, bytes behind their length.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    fn key(&mut self, field: u32, wire_type: u64) {
        put_varint(&mut self.0, (u64::from(field) << 3) | wire_type);
    }

    fn varint(mut self, field: u32, value: u64) -> Self {
        self.key(field, VARINT);
        put_varint(&mut self.0, value);
        self
    }

    fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, EIGHT_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn text(mut self, field: u32, text: &str) -> Self {
        self.add_bytes(field, text.as_bytes());
        self
    }

    fn message(mut self, field: u32, message: Self) -> Self {
        self.add_message(field, message);
        self
    }

    fn add_message(&mut self, field: u32, message: Self) {
        self.add_bytes(field, &message.0);
    }

    fn add_bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, BYTES);
        put_varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Seven bits a byte, the low ones first.
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Signed numbers with small ones of either sign in few bits.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn native(data: &HistogramData, units: f64, step: usize) -> Histogram {
    let offsets = data.offsets();
    let classic = data.cumulative(step).into_iter().map(|(offset, count)| (count, offset as f64 / units));
    let buckets = classic.chain([(data.count(), f64::INFINITY)]).collect();
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for (place, count) in data.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        // values above all offsets have the bucket behind the last offset's
        let (bound, above) = match offsets.get(place) {
            Some(offset) => (*offset as f64 / units, 0),
            None => (offsets.last().copied().unwrap_or(1) as f64 / units, 1),
        };
        *counts.entry(index_of(bound) + above).or_default() += count;
    }
    let (spans, deltas) = spans(&counts);
    Histogram { count: data.count(), sum: data.sum as f64 / units, buckets, spans, deltas }
}

/// The native bucket of a value above zero: the least i with value <= 2^(i / 2^SCHEMA).
fn index_of(value: f64) -> i32 {
    (value.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

/// Buckets as spans and differences of counts.
fn spans(counts: &BTreeMap<i32, u64>) -> (Vec<(i32, u32)>, Vec<i64>) {
    let (mut spans, mut deltas): (Vec<(i32, u32)>, Vec<i64>) = Default::default();
    let (mut next, mut before) = (0, 0);
    for (index, count) in counts {
        match spans.last_mut() {
            Some((_, length)) if *index == next => *length += 1,
            _ => spans.push((index - next, 1)),
        }
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        deltas.push(count - before);
        (next, before) = (index + 1, count);
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests;
