//! Messages of a scrape, decoded and compared with the text form.

use super::*;
use crate::fake::fake;
use crate::prometheus::{self, Form};

/// A field as it came: its number, its wire type, and a number or bytes.
struct Field<'b> {
    number: u64,
    wire_type: u64,
    value: u64,
    bytes: &'b [u8],
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a whole varint");
        *bytes = rest;
        value |= u64::from(first & 0x7F) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return value;
        }
    }
}

/// The fields of any message, without knowing what they mean.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = take_varint(&mut bytes);
        let (number, wire_type) = (key >> 3, key & 7);
        let mut field = Field { number, wire_type, value: 0, bytes: &[] };
        match wire_type {
            0 => field.value = take_varint(&mut bytes),
            1 => {
                let (eight, rest) = bytes.split_first_chunk::<8>().expect("eight bytes");
                (field.value, bytes) = (u64::from_le_bytes(*eight), rest);
            }
            2 => {
                let length = usize::try_from(take_varint(&mut bytes)).expect("short");
                (field.bytes, bytes) = bytes.split_at(length);
            }
            other => panic!("wire type {other}"),
        }
        fields.push(field);
    }
    fields
}

/// The decoder of a message that is defined by metrics.proto.
#[derive(Debug, Default)]
struct Decoded {
    name: String,
    help: String,
    kind: u64,
    metrics: Vec<Metric>,
}

#[derive(Debug, Default)]
struct Metric {
    labels: Vec<(String, String)>,
    value: Option<f64>,
    histogram: Option<Histogram>,
}

fn text(field: &Field<'_>) -> String {
    assert_eq!(field.wire_type, 2);
    String::from_utf8(field.bytes.to_vec()).expect("UTF-8")
}

fn double(field: &Field<'_>) -> f64 {
    assert_eq!(field.wire_type, 1);
    f64::from_bits(field.value)
}

fn number(field: &Field<'_>) -> u64 {
    assert_eq!(field.wire_type, 0);
    field.value
}

fn signed(field: &Field<'_>) -> i64 {
    let value = number(field);
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The messages of a body.
fn decode(mut body: &[u8]) -> Vec<Decoded> {
    let mut families = Vec::new();
    while !body.is_empty() {
        let length = usize::try_from(take_varint(&mut body)).expect("short");
        let (message, rest) = body.split_at(length);
        body = rest;
        let mut family = Decoded::default();
        for field in fields(message) {
            match field.number {
                1 => family.name = text(&field),
                2 => family.help = text(&field),
                3 => family.kind = number(&field),
                4 => family.metrics.push(metric(field.bytes)),
                other => panic!("field {other} of MetricFamily"),
            }
        }
        families.push(family);
    }
    families
}

fn metric(message: &[u8]) -> Metric {
    let mut metric = Metric::default();
    for field in fields(message) {
        let inner = fields(field.bytes);
        match field.number {
            1 => metric.labels.push((text(&inner[0]), text(&inner[1]))),
            2 | 3 => metric.value = Some(double(&inner[0])),
            7 => metric.histogram = Some(histogram(&inner)),
            other => panic!("field {other} of Metric"),
        }
    }
    metric
}

fn histogram(fields_of: &[Field<'_>]) -> Histogram {
    let mut histogram = Histogram { count: 0, sum: 0.0, buckets: Vec::new(), spans: Vec::new(), deltas: Vec::new() };
    for field in fields_of {
        let inner = fields(field.bytes);
        match field.number {
            1 => histogram.count = number(field),
            2 => histogram.sum = double(field),
            3 => histogram.buckets.push((number(&inner[0]), double(&inner[1]))),
            5 => assert_eq!(signed(field), i64::from(SCHEMA)),
            6 => assert!(double(field) > 0.0, "otherwise Prometheus takes an empty one for a classic one"),
            7 => assert_eq!(number(field), 0),
            12 => histogram.spans.push((signed(&inner[0]) as i32, number(&inner[1]) as u32)),
            13 => histogram.deltas.push(signed(field)),
            other => panic!("field {other} of Histogram"),
        }
    }
    histogram
}

/// Native buckets of a histogram: index and count.
fn native_buckets(histogram: &Histogram) -> Vec<(i32, u64)> {
    let (mut found, mut index, mut count, mut deltas) = (Vec::new(), 0, 0, histogram.deltas.iter());
    for (offset, length) in &histogram.spans {
        index += offset;
        for _ in 0..*length {
            count += deltas.next().expect("a delta for each bucket");
            found.push((index, u64::try_from(count).expect("no count is below zero")));
            index += 1;
        }
    }
    assert_eq!(deltas.next(), None);
    found
}

fn labels(metric: &Metric, more: Option<(&str, &str)>) -> String {
    let given = metric.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all: Vec<String> = given.chain(more).map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

/// Writes messages as the text form has them, without knowing how that is made.
fn as_text(families: &[Decoded]) -> String {
    let mut lines = Vec::new();
    for family in families {
        let name = &family.name;
        let kind = match family.kind {
            0 => "counter",
            1 => "gauge",
            4 => "histogram",
            other => panic!("type {other}"),
        };
        lines.push(format!("# HELP {name} {}\n# TYPE {name} {kind}", family.help));
        for metric in &family.metrics {
            if let Some(value) = metric.value {
                lines.push(format!("{name}{} {value}", labels(metric, None)));
            }
            let Some(histogram) = &metric.histogram else { continue };
            for (count, bound) in &histogram.buckets {
                let bound = bound.to_string().replace("inf", "+Inf");
                lines.push(format!("{name}_bucket{} {count}", labels(metric, Some(("le", &bound)))));
            }
            lines.push(format!("{name}_sum{} {}", labels(metric, None), histogram.sum));
            lines.push(format!("{name}_count{} {}", labels(metric, None), histogram.count));
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn messages_say_what_the_text_says() {
    let node = fake();
    let text = String::from_utf8(prometheus::collect(&*node, Form::Text).expect("figures")).expect("UTF-8");
    let families = decode(&prometheus::collect(&*node, Form::Protobuf).expect("figures"));
    assert_eq!(as_text(&families), text);
    let histograms: Vec<&Histogram> =
        families.iter().flat_map(|family| &family.metrics).filter_map(|metric| metric.histogram.as_ref()).collect();
    assert!(histograms.iter().any(|histogram| histogram.count > 0));
    for histogram in histograms {
        let native = native_buckets(histogram);
        assert_eq!(native.iter().map(|(_, count)| count).sum::<u64>(), histogram.count);
        // the values between two classic bounds are in native buckets there
        let bound = |index: i32| 2f64.powf(f64::from(index) / f64::from(1 << SCHEMA));
        let (mut seen, mut lower) = (0, 0.0);
        let mut native = native.into_iter();
        for (cumulative, upper) in &histogram.buckets {
            while seen < *cumulative {
                let (index, count) = native.next().expect("a native bucket");
                seen += count;
                assert!(bound(index - 1) < *upper && lower < bound(index), "{lower} to {upper}: bucket {index}");
            }
            assert_eq!(seen, *cumulative);
            lower = *upper;
        }
        assert_eq!(native.next(), None);
    }
}

/// All of Cassandra's offsets at once: no two of them share a native bucket, in any unit.
#[test]
fn each_offset_has_a_native_bucket_of_its_own() {
    for units in [1.0, 1e6] {
        let data = HistogramData { buckets: (1..=166).collect(), sum: 1, greatest: 0 };
        let mut family = MetricFamily::new("a", "histogram", "b");
        family.add_histogram(&[], &data, units, 1);
        let mut body = Vec::new();
        family.write_to(&mut body);
        let mut families = decode(&body);
        let histogram = families.remove(0).metrics.remove(0).histogram.expect("a histogram");
        let counts: Vec<u64> = native_buckets(&histogram).into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, data.buckets, "{units}");
        // the values above all offsets are in the last of the classic buckets alone
        assert_eq!(histogram.buckets.len(), 166);
    }
}
