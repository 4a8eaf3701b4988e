//! Places by the answers of metadata services.

use super::*;

/// A metadata service that knows some addresses, and notes what it is asked.
#[derive(Default)]
struct Canned {
    answers: Vec<(&'static str, &'static str)>,
    lease: Option<&'static str>,
    asked: Vec<MetadataRequest>,
}

impl Service for Canned {
    fn ask(&mut self, request: &MetadataRequest) -> Result<String, String> {
        self.asked.push(request.clone());
        let known = self.answers.iter().find(|(url, _)| request.url == *url);
        known.map(|(_, answer)| (*answer).to_owned()).ok_or_else(|| "404".to_owned())
    }

    fn file(&mut self, path: &str) -> Option<String> {
        self.lease.filter(|_| path == LEASES[1]).map(str::to_owned)
    }
}

const TOKEN: (&str, &str) = ("http://169.254.169.254/latest/api/token", "secret");
const ZONE: &str = "http://169.254.169.254/latest/meta-data/placement/availability-zone";

#[test]
fn each_cloud_has_its_names() {
    for (snitch, properties, answer, data_center, rack) in [
        (Snitch::Ec2, "", (ZONE, "us-east-1a"), "us-east-1", "us-east-1a"),
        (Snitch::Ec2, "dc_suffix=_x", (ZONE, "us-gov-west-1ab"), "us-gov-west-1_x", "us-gov-west-1ab"),
        (Snitch::Ec2, "ec2_naming_scheme=legacy", (ZONE, "us-east-1d"), "us-east", "1d"),
        (Snitch::Ec2, "ec2_naming_scheme=Legacy\ndc_suffix=_y", (ZONE, "us-west-2a"), "us-west-2_y", "2a"),
        (
            Snitch::GoogleCloud,
            "",
            ("http://metadata.google.internal/computeMetadata/v1/instance/zone", "projects/7/zones/us-central1-a\n"),
            "us-central1",
            "a",
        ),
        (
            Snitch::AlibabaCloud,
            "dc_suffix=z",
            ("http://100.100.100.200/latest/meta-data/zone-id", "cn-hangzhou-f"),
            "cn-hangzhouz",
            "f",
        ),
        (
            Snitch::Azure,
            "",
            (
                "http://169.254.169.254/metadata/instance/compute?api-version=2021-12-13&format=json",
                r#"{"location":"PolandCentral","zone":"1","platformFaultDomain":"5"}"#,
            ),
            "PolandCentral",
            "rack-1",
        ),
        (
            Snitch::Azure,
            "azure_api_version=2020-01-01\nmetadata_url=http://m:1",
            (
                "http://m:1/metadata/instance/compute?api-version=2020-01-01&format=json",
                r#"{"zone":"","platformFaultDomain":5}"#,
            ),
            "UNKNOWN-DC",
            "rack-5",
        ),
        (
            Snitch::Cloudstack,
            "metadata_url=http://m",
            ("http://m/latest/meta-data/availability-zone", "ch-gva-1"),
            "ch-gva",
            "1",
        ),
    ] {
        let mut service = Canned { answers: vec![TOKEN, answer], ..Canned::default() };
        let located = locate(snitch, properties, &mut service).expect(data_center);
        assert_eq!((located.place.data_center.as_str(), located.place.rack.as_str()), (data_center, rack));
        assert_eq!(located.public, None);
    }
}

/// Version 2 of EC2's service wants a token, which is asked for once.
#[test]
fn the_public_address_and_the_token_of_ec2() {
    let public = ("http://169.254.169.254/latest/meta-data/public-ipv4", "54.1.2.3");
    let mut service = Canned { answers: vec![TOKEN, (ZONE, "eu-west-1b"), public], ..Canned::default() };
    let properties = "ec2_metadata_token_ttl_seconds=60\nmetadata_request_timeout=2s";
    let located = locate(Snitch::Ec2MultiRegion, properties, &mut service).expect("answered");
    assert_eq!(located.public, Some([54, 1, 2, 3].into()));
    let told: Vec<_> = service.asked.iter().map(|asked| (asked.method, asked.headers.clone())).collect();
    let token = ("GET", vec![("X-aws-ec2-metadata-token", "secret".to_owned())]);
    let wish = ("PUT", vec![("X-aws-ec2-metadata-token-ttl-seconds", "60".to_owned())]);
    assert_eq!(told, [wish, token.clone(), token]);
    assert!(service.asked.iter().all(|asked| asked.timeout == Duration::from_secs(2)));
    let mut first = Canned { answers: vec![(ZONE, "eu-west-1b")], ..Canned::default() };
    locate(Snitch::Ec2, "ec2_metadata_type=v1", &mut first).expect("answered");
    assert_eq!(first.asked.len(), 1);
}

#[test]
fn the_lease_names_the_service_of_cloudstack() {
    let lease = "lease {\n  option routers 10.0.0.1;\n\toption dhcp-server-identifier 10.0.0.9;\n}\n";
    let answers = vec![("http://10.0.0.9/latest/meta-data/availability-zone", "a-b-c")];
    let mut service = Canned { answers, lease: Some(lease), ..Canned::default() };
    assert_eq!(locate(Snitch::Cloudstack, "", &mut service).expect("answered").place.rack, "c");
}

#[test]
fn errors_name_what_is_wrong() {
    for (snitch, properties, answers, error) in [
        (Snitch::Ec2, "", vec![], "http://169.254.169.254/latest/api/token: 404"),
        (Snitch::Ec2, "ec2_metadata_type=v3", vec![], "ec2_metadata_type must be one of v1, v2"),
        (
            Snitch::Ec2,
            "ec2_metadata_token_ttl_seconds=5",
            vec![],
            "ec2_metadata_token_ttl_seconds: '5' is not between 30 and 21600",
        ),
        (
            Snitch::Azure,
            "metadata_url=ftp://a",
            vec![],
            "Snitch metadata service URL 'ftp://a' is invalid (metadata_url)",
        ),
        (Snitch::Cloudstack, "", vec![], "No valid DHCP lease file could be found."),
        (
            Snitch::Cloudstack,
            "metadata_url=http://m",
            vec![("http://m/latest/meta-data/availability-zone", "here")],
            "CloudstackSnitch cannot handle invalid zone format: here",
        ),
        (
            Snitch::AlibabaCloud,
            "",
            vec![("http://100.100.100.200/latest/meta-data/zone-id", "here")],
            "here does not contain at least one '-' to differentiate between datacenter and rack",
        ),
        (Snitch::GoogleCloud, "metadata_url=http://m", vec![], "http://m/computeMetadata/v1/instance/zone: 404"),
    ] {
        let mut service = Canned { answers, ..Canned::default() };
        assert_eq!(locate(snitch, properties, &mut service), Err(error.to_owned()), "{properties}");
    }
    let long = locate(Snitch::Azure, "metadata_request_timeout=5", &mut Canned::default()).expect_err("no unit");
    assert!(long.starts_with("metadata_request_timeout: '5' is not a number with a unit"), "{long}");
}
