//! `otlp_endpoint` and `otlp_sample_ratio`: keys of ours, for the export of spans to a collector of
//! OpenTelemetry.

use crate::reader::Reader;

/// Where spans of requests go, and of how many requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Spans {
    /// otlp_endpoint: the address of the collector, as `http://HOST:4318`.
    pub endpoint: String,
    /// otlp_sample_ratio: the share of the requests that are exported without being asked to, 0 to
    /// 1.
    pub ratio: f64,
}

/// Reads the keys. None: spans are not exported.
pub(crate) fn spans(reader: &mut Reader<'_>) -> Option<Spans> {
    let ratio = reader.maybe_double("otlp_sample_ratio").unwrap_or(0.01);
    if !(0.0..=1.0).contains(&ratio) {
        reader.problem("otlp_sample_ratio", "must be between 0 and 1");
    }
    let endpoint = reader.text("otlp_endpoint")?;
    if !endpoint.strip_prefix("http://").is_some_and(|host| !host.is_empty() && !host.starts_with('/')) {
        let why = "must be http://HOST:PORT (https is not spoken here: let a collector beside the node encrypt)";
        reader.problem("otlp_endpoint", why);
    }
    Some(Spans { endpoint, ratio })
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn spans_are_exported_where_they_are_asked_for() {
        let load = |lines: &str| Config::load(Some(lines), &[], false);
        assert_eq!(load("otlp_sample_ratio: 0.5").expect("honoured").spans, None);
        let spans = load("otlp_endpoint: http://10.0.0.1:4318").expect("honoured").spans.expect("exported");
        assert_eq!((spans.endpoint.as_str(), spans.ratio), ("http://10.0.0.1:4318", 0.01));
        for (bad, why) in [
            ("otlp_endpoint: https://x:4318", "otlp_endpoint: must be http://"),
            ("otlp_endpoint: x:4318", "otlp_endpoint: must be http://"),
            ("otlp_endpoint: 'http:///v1'", "otlp_endpoint: must be http://"),
            ("otlp_sample_ratio: 1.5", "otlp_sample_ratio: must be between 0 and 1"),
        ] {
            let error = load(bad).expect_err("refused").to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
