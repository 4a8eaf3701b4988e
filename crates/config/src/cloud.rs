//! Snitches of clouds: what the metadata service of a machine is asked, and the place that follows
//! from its answers.
//!
//! Pure: the caller asks ([`Service`]). The properties are those of cassandra-rackdc.properties,
//! which may be missing: `metadata_url`, `metadata_request_timeout`, `dc_suffix` and those of each
//! cloud. Other nodes tell their places by gossip. Agrees with
//! `org.apache.cassandra.locator.{Ec2Snitch,Ec2MultiRegionSnitch,GoogleCloudSnitch,AzureSnitch,
//! AlibabaCloudSnitch,CloudstackSnitch,AbstractCloudMetadataServiceConnector}`, except that nobody
//! compares the naming scheme of EC2 with that of the nodes which are there (`Ec2Snitch.validate`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value as Json;

use crate::properties::properties;
use crate::snitch::{Place, Snitch};
use crate::units;

/// A request to the metadata service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetadataRequest {
    /// `GET` or `PUT`
    pub method: &'static str,
    /// The whole address.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(&'static str, String)>,
    /// An answer that takes longer is none.
    pub timeout: Duration,
}

/// The outside of the machine, as far as snitches need it.
pub trait Service {
    /// Asks the metadata service, and gives the body of an answer with status 200. Err: why there
    /// is none.
    fn ask(&mut self, request: &MetadataRequest) -> Result<String, String>;

    /// The content of a file of the machine, if it is there.
    fn file(&mut self, path: &str) -> Option<String>;
}

/// The answers of a metadata service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CloudLocation {
    /// The place of this node.
    pub place: Place,
    /// The address by which nodes of other regions reach this one (Ec2MultiRegionSnitch): it is
    /// the broadcast address.
    pub public: Option<IpAddr>,
}

const EC2_URL: &str = "http://169.254.169.254";
const GOOGLE_URL: &str = "http://metadata.google.internal";
const AZURE_URL: &str = "http://169.254.169.254";
const ALIBABA_URL: &str = "http://100.100.100.200";
const TIMEOUT: &str = "30s";

/// The lease of DHCP names the machine that has the metadata (CloudStack).
const LEASES: [&str; 2] = ["/var/lib/dhcp/dhclient.eth0.leases", "/var/lib/dhclient/dhclient.eth0.leases"];

/// Seconds for which a token of EC2's metadata service (v2) may be asked for.
const TOKEN_SECONDS: std::ops::RangeInclusive<u32> = 30..=21_600;

/// Asks the metadata service where this machine is. `text`: that of cassandra-rackdc.properties;
/// empty where there is none. Err: a sentence that says what is wrong.
pub fn locate(snitch: Snitch, text: &str, service: &mut dyn Service) -> Result<CloudLocation, String> {
    let properties = properties(text);
    let mut metadata = Metadata::new(snitch, &properties, service)?;
    let suffix = properties.get("dc_suffix").map_or("", String::as_str);
    let place = match snitch {
        Snitch::Ec2 | Snitch::Ec2MultiRegion => {
            let zone = metadata.get("/latest/meta-data/placement/availability-zone", &[])?;
            let is_legacy = properties.get("ec2_naming_scheme").is_some_and(|it| it.eq_ignore_ascii_case("legacy"));
            if is_legacy { of_legacy_zone(&zone, suffix) } else { of_zone(&zone, suffix) }
        }
        Snitch::GoogleCloud => {
            let path = "/computeMetadata/v1/instance/zone";
            region_and_zone(&metadata.get(path, &[("Metadata-Flavor", "Google")])?, suffix)?
        }
        Snitch::AlibabaCloud => region_and_zone(&metadata.get("/latest/meta-data/zone-id", &[])?, suffix)?,
        Snitch::Azure => {
            let version = properties.get("azure_api_version").map_or("2021-12-13", String::as_str);
            let path = format!("/metadata/instance/compute?api-version={version}&format=json");
            of_azure(&metadata.get(&path, &[("Metadata", "true")])?, suffix)?
        }
        Snitch::Cloudstack => of_cloudstack(&metadata.get("/latest/meta-data/availability-zone", &[])?)?,
        other => return Err(format!("{} asks no metadata service", other.class())),
    };
    let public = match snitch {
        Snitch::Ec2MultiRegion => Some(metadata.address("/latest/meta-data/public-ipv4")?),
        _ => None,
    };
    Ok(CloudLocation { place, public })
}

/// The metadata service of one cloud.
struct Metadata<'a> {
    service: &'a mut dyn Service,
    url: String,
    timeout: Duration,
    /// Seconds for which a token is asked for; None: requests need none.
    token_seconds: Option<u32>,
    token: Option<String>,
}

impl<'a> Metadata<'a> {
    fn new(
        snitch: Snitch,
        properties: &BTreeMap<String, String>,
        service: &'a mut dyn Service,
    ) -> Result<Self, String> {
        let given = |name: &str| properties.get(name).map(|value| value.trim().to_owned());
        let usual = |url: &str| Ok(url.to_owned());
        let url = match (given("metadata_url"), snitch) {
            (Some(url), _) => Ok(url),
            (None, Snitch::Ec2 | Snitch::Ec2MultiRegion) => {
                Ok(given("ec2_metadata_url").unwrap_or_else(|| EC2_URL.to_owned()))
            }
            (None, Snitch::GoogleCloud) => usual(GOOGLE_URL),
            (None, Snitch::Azure) => usual(AZURE_URL),
            (None, Snitch::AlibabaCloud) => usual(ALIBABA_URL),
            (None, _) => of_lease(service),
        }?;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("Snitch metadata service URL '{url}' is invalid (metadata_url)"));
        }
        let timeout = given("metadata_request_timeout").unwrap_or_else(|| TIMEOUT.to_owned());
        let timeout = units::parse(&timeout, units::TIME, "ms").map(Duration::from_nanos);
        let timeout = timeout.map_err(|why| format!("metadata_request_timeout: {why}"))?;
        let token_seconds = match snitch {
            Snitch::Ec2 | Snitch::Ec2MultiRegion => token_seconds(&given)?,
            _ => None,
        };
        Ok(Self { service, url, timeout, token_seconds, token: None })
    }

    fn request(&self, method: &'static str, path: &str, headers: Vec<(&'static str, String)>) -> MetadataRequest {
        MetadataRequest { method, url: format!("{}{path}", self.url), headers, timeout: self.timeout }
    }

    fn get(&mut self, path: &str, headers: &[(&'static str, &str)]) -> Result<String, String> {
        let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        if let Some(seconds) = self.token_seconds {
            headers.push(("X-aws-ec2-metadata-token", self.token(seconds)?));
        }
        let request = self.request("GET", path, headers);
        let answer = self.service.ask(&request).map_err(|why| format!("{}: {why}", request.url))?;
        let answer = answer.trim();
        if answer.is_empty() {
            return Err(format!("{}: the answer is empty", request.url));
        }
        Ok(answer.to_owned())
    }

    fn token(&mut self, seconds: u32) -> Result<String, String> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let headers = vec![("X-aws-ec2-metadata-token-ttl-seconds", seconds.to_string())];
        let request = self.request("PUT", "/latest/api/token", headers);
        let token = self.service.ask(&request).map_err(|why| format!("{}: {why}", request.url))?;
        self.token = Some(token.trim().to_owned());
        Ok(token.trim().to_owned())
    }

    fn address(&mut self, path: &str) -> Result<IpAddr, String> {
        let text = self.get(path, &[])?;
        text.parse().map_err(|_| format!("{}{path}: '{text}' is not an IP address", self.url))
    }
}

/// Seconds for which tokens of EC2 are asked for; None: version 1, which has none.
fn token_seconds(given: &dyn Fn(&str) -> Option<String>) -> Result<Option<u32>, String> {
    match given("ec2_metadata_type").as_deref() {
        Some("v1") => return Ok(None),
        None | Some("v2") => {}
        Some(_) => return Err("ec2_metadata_type must be one of v1, v2".to_owned()),
    }
    let Some(text) = given("ec2_metadata_token_ttl_seconds") else { return Ok(Some(*TOKEN_SECONDS.end())) };
    let seconds = text.parse().ok().filter(|seconds| TOKEN_SECONDS.contains(seconds)).map(Some);
    seconds.ok_or_else(|| {
        let (least, most) = (TOKEN_SECONDS.start(), TOKEN_SECONDS.end());
        format!("ec2_metadata_token_ttl_seconds: '{text}' is not between {least} and {most}")
    })
}

/// `us-east-1a` is in the region `us-east-1`.
fn of_zone(zone: &str, suffix: &str) -> Place {
    let region = zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    Place { data_center: format!("{region}{suffix}"), rack: zone.to_owned() }
}

/// The names that Ec2Snitch gave at first: `us-east-1a` is the rack `1a` of `us-east`, `us-west-2a`
/// the rack `2a` of `us-west-2`.
fn of_legacy_zone(zone: &str, suffix: &str) -> Place {
    let mut letters = zone.chars();
    letters.next_back();
    let region = letters.as_str();
    let region = region.strip_suffix('1').map_or(region, |shorter| shorter.strip_suffix('-').unwrap_or(shorter));
    let rack = zone.rsplit('-').next().unwrap_or(zone);
    Place { data_center: format!("{region}{suffix}"), rack: rack.to_owned() }
}

/// `projects/1/zones/us-central1-a` is the rack `a` of `us-central1`.
fn region_and_zone(answer: &str, suffix: &str) -> Result<Place, String> {
    let zone = answer.rsplit('/').next().unwrap_or(answer);
    let (region, rack) = zone.rsplit_once('-').ok_or_else(|| {
        format!("{answer} does not contain at least one '-' to differentiate between datacenter and rack")
    })?;
    Ok(Place { data_center: format!("{region}{suffix}"), rack: rack.to_owned() })
}

fn of_azure(answer: &str, suffix: &str) -> Result<Place, String> {
    let compute: Json =
        serde_json::from_str(answer).map_err(|why| format!("the answer of Azure is not JSON: {why}"))?;
    let text = |name: &str| match compute.get(name) {
        Some(Json::String(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
        Some(Json::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let data_center = text("location").unwrap_or_else(|| "UNKNOWN-DC".to_owned());
    let rack = text("zone").or_else(|| text("platformFaultDomain")).unwrap_or_else(|| "UNKNOWN-RACK".to_owned());
    Ok(Place { data_center: format!("{data_center}{suffix}"), rack: format!("rack-{rack}") })
}

fn of_cloudstack(zone: &str) -> Result<Place, String> {
    match zone.split('-').collect::<Vec<_>>()[..] {
        [country, city, rack] => Ok(Place { data_center: format!("{country}-{city}"), rack: rack.to_owned() }),
        _ => Err(format!("CloudstackSnitch cannot handle invalid zone format: {zone}")),
    }
}

/// The address of CloudStack's metadata service: that of the DHCP server.
fn of_lease(service: &mut dyn Service) -> Result<String, String> {
    let Some(lease) = LEASES.into_iter().find_map(|path| service.file(path)) else {
        return Err("No valid DHCP lease file could be found.".to_owned());
    };
    let mut lines = lease.lines().map(|line| line.trim_start_matches([' ', '\t']));
    let server = lines.find_map(|line| line.strip_prefix("option dhcp-server-identifier ")?.strip_suffix(';'));
    server
        .map(|server| format!("http://{server}"))
        .ok_or_else(|| "No metadata server could be found in lease file.".to_owned())
}

#[cfg(test)]
mod tests;
