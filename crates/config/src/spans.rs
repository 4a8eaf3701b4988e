//! `otlp_endpoint`, `otlp_certificate` and `otlp_sample_ratio`: keys of ours, for the export of
//! spans to a collector of OpenTelemetry.

use crate::reader::Reader;

/// Where spans of requests go, and of how many requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Spans {
    /// otlp_endpoint: the address of the collector, as `http://HOST:4318` or `https://HOST:4318`.
    pub endpoint: String,
    /// otlp_certificate: a PEM file of the authorities that sign the collector's certificate; None:
    /// those that the system trusts. Only for `https`.
    pub certificate: Option<String>,
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
    let certificate = reader.text("otlp_certificate");
    let host = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://"));
    if !host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')) {
        reader.problem("otlp_endpoint", "must be http://HOST:PORT or https://HOST:PORT");
    }
    if certificate.is_some() && !endpoint.starts_with("https://") {
        reader.problem("otlp_certificate", "needs an otlp_endpoint that begins with https://");
    }
    Some(Spans { endpoint, certificate, ratio })
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn spans_are_exported_where_they_are_asked_for() {
        let load = |lines: &str| Config::load(Some(lines), &[], false);
        assert_eq!(load("otlp_sample_ratio: 0.5").expect("honoured").spans, None);
        let spans = load("otlp_endpoint: http://10.0.0.1:4318").expect("honoured").spans.expect("exported");
        assert_eq!((spans.endpoint.as_str(), spans.certificate, spans.ratio), ("http://10.0.0.1:4318", None, 0.01));
        let lines = "otlp_endpoint: https://collector:4318\notlp_certificate: /etc/ca.pem";
        let spans = load(lines).expect("honoured").spans.expect("exported");
        assert_eq!(
            (spans.endpoint.as_str(), spans.certificate.as_deref()),
            ("https://collector:4318", Some("/etc/ca.pem"))
        );
        for (bad, why) in [
            ("otlp_endpoint: grpc://x:4317", "otlp_endpoint: must be http://"),
            ("otlp_endpoint: x:4318", "otlp_endpoint: must be http://"),
            ("otlp_endpoint: 'http:///v1'", "otlp_endpoint: must be http://"),
            ("otlp_endpoint: 'https://'", "otlp_endpoint: must be http://"),
            ("otlp_endpoint: http://x:4318\notlp_certificate: a.pem", "otlp_certificate: needs an otlp_endpoint"),
            ("otlp_sample_ratio: 1.5", "otlp_sample_ratio: must be between 0 and 1"),
        ] {
            let error = load(bad).expect_err("refused").to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
