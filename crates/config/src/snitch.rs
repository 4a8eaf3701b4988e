//! Where nodes stand: the snitch, and the files that name data centers and racks.
//!
//! The files stand beside cassandra.yaml; the caller reads them. Snitches of clouds are in
//! [`crate::cloud`]. Agrees with `GossipingPropertyFileSnitch` (cassandra-rackdc.properties),
//! `PropertyFileSnitch` (cassandra-topology.properties) and `RackInferringSnitch`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::properties::properties;

/// How a node knows its data center and rack, and those of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Snitch {
    /// All nodes are in `datacenter1` and `rack1`.
    Simple,
    /// Each node tells its own place, which a file names.
    GossipingPropertyFile,
    /// A file names the place of every node.
    PropertyFile,
    /// The second part of the broadcast address is the data center, the third one the rack.
    RackInferring,
    /// EC2's metadata service names region and zone.
    Ec2,
    /// EC2's metadata service names region and zone, and nodes of other regions are reached by
    /// their public addresses.
    Ec2MultiRegion,
    /// Google Cloud's metadata service names the zone.
    GoogleCloud,
    /// Azure's metadata service names location and zone.
    Azure,
    /// Alibaba Cloud's metadata service names the zone.
    AlibabaCloud,
    /// CloudStack's metadata service names the zone.
    Cloudstack,
}

impl Snitch {
    /// Snitches that are honoured.
    pub const ALL: [Self; 10] = [
        Self::Simple,
        Self::GossipingPropertyFile,
        Self::PropertyFile,
        Self::RackInferring,
        Self::Ec2,
        Self::Ec2MultiRegion,
        Self::GoogleCloud,
        Self::Azure,
        Self::AlibabaCloud,
        Self::Cloudstack,
    ];

    /// The name of the class, without its package.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Simple => "SimpleSnitch",
            Self::GossipingPropertyFile => "GossipingPropertyFileSnitch",
            Self::PropertyFile => "PropertyFileSnitch",
            Self::RackInferring => "RackInferringSnitch",
            Self::Ec2 => "Ec2Snitch",
            Self::Ec2MultiRegion => "Ec2MultiRegionSnitch",
            Self::GoogleCloud => "GoogleCloudSnitch",
            Self::Azure => "AzureSnitch",
            Self::AlibabaCloud => "AlibabaCloudSnitch",
            Self::Cloudstack => "CloudstackSnitch",
        }
    }

    /// The snitch whose class has this name, without its package.
    pub fn of_class(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|snitch| snitch.class() == name)
    }

    /// The name of the file that it reads, beside cassandra.yaml; None: it reads none.
    pub const fn file(self) -> Option<&'static str> {
        match self {
            Self::Simple | Self::RackInferring => None,
            Self::PropertyFile => Some("cassandra-topology.properties"),
            _ => Some("cassandra-rackdc.properties"),
        }
    }

    /// Whether a metadata service is asked ([`crate::locate`]), and the file may be missing.
    pub const fn is_of_cloud(self) -> bool {
        match self {
            Self::Simple | Self::GossipingPropertyFile | Self::PropertyFile | Self::RackInferring => false,
            Self::Ec2
            | Self::Ec2MultiRegion
            | Self::GoogleCloud
            | Self::Azure
            | Self::AlibabaCloud
            | Self::Cloudstack => true,
        }
    }

    /// Whether the node tells the address by which nodes of its own data center reach it.
    pub const fn tells_internal_address(self) -> bool {
        matches!(self, Self::GossipingPropertyFile | Self::Ec2MultiRegion)
    }

    /// Reads the text of its file; of a snitch of a cloud that is not enough, and says nothing.
    /// Err: a sentence that says what is wrong.
    pub fn read(self, text: &str) -> Result<Location, String> {
        match self {
            Self::GossipingPropertyFile => own_place(text),
            Self::PropertyFile => places_of_all(text),
            _ => Ok(Location::default()),
        }
    }
}

/// A data center and a rack in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The name of the data center.
    pub data_center: String,
    /// The name of the rack.
    pub rack: String,
}

/// The places that are known before gossip tells of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Location {
    /// The place of this node; None: `places` or the directory of the node says it.
    pub own: Option<Place>,
    /// The places of nodes by their address (PropertyFileSnitch). They count more than what nodes
    /// say of themselves.
    pub places: BTreeMap<IpAddr, Place>,
    /// The place of nodes that are not among `places`.
    pub default: Option<Place>,
    /// Links to nodes of the own data center go to the internal addresses that they tell
    /// (`prefer_local`; always with Ec2MultiRegionSnitch).
    pub prefers_local: bool,
}

impl Location {
    /// The place that files or options give the node itself; None: they do not say.
    pub fn of_local(&self, address: IpAddr) -> Option<&Place> {
        self.own.as_ref().or_else(|| self.of(address))
    }

    /// The place that a file gives a node; None: the node says it itself.
    pub fn of(&self, address: IpAddr) -> Option<&Place> {
        self.places.get(&address).or(self.default.as_ref())
    }
}

/// The content of cassandra-rackdc.properties, as GossipingPropertyFileSnitch reads it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RackDc {
    /// `dc`; None: missing or empty.
    pub data_center: Option<String>,
    /// `rack`; None: missing or empty.
    pub rack: Option<String>,
    /// `prefer_local`
    pub prefers_local: bool,
}

impl RackDc {
    /// Reads the text of the file.
    pub fn read(text: &str) -> Self {
        let properties = properties(text);
        let given =
            |name: &str| properties.get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let prefers_local = properties.get("prefer_local").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Self { data_center: given("dc"), rack: given("rack"), prefers_local }
    }
}

fn own_place(text: &str) -> Result<Location, String> {
    let RackDc { data_center: Some(data_center), rack: Some(rack), prefers_local } = RackDc::read(text) else {
        return Err("DC or rack not found in snitch properties (dc, rack)".to_owned());
    };
    Ok(Location { own: Some(Place { data_center, rack }), prefers_local, ..Location::default() })
}

/// The place that RackInferringSnitch reads from a broadcast address: the second byte is the data
/// center, the third one the rack, also of an address of version 6.
pub fn inferred(address: IpAddr) -> Place {
    let [_, data_center, rack, ..] = match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => [address.octets()[0], address.octets()[1], address.octets()[2], 0],
    };
    Place { data_center: data_center.to_string(), rack: rack.to_string() }
}

fn places_of_all(text: &str) -> Result<Location, String> {
    let mut location = Location::default();
    for (name, value) in properties(text) {
        let (data_center, rack) = value.split_once(':').unwrap_or(("default", "default"));
        let place = Place { data_center: data_center.trim().to_owned(), rack: rack.trim().to_owned() };
        if name == "default" {
            location.default = Some(place);
            continue;
        }
        // names may be written host/address
        let host = name.rsplit('/').next().unwrap_or(&name);
        let address = host.parse().or_else(|_| host.parse::<std::net::SocketAddr>().map(|with_port| with_port.ip()));
        match address {
            Ok(address) => drop(location.places.insert(address, place)),
            Err(_) => return Err(format!("'{name}' is not an IP address")),
        }
    }
    Ok(location)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(data_center: &str, rack: &str) -> Place {
        Place { data_center: data_center.to_owned(), rack: rack.to_owned() }
    }

    #[test]
    fn a_node_says_where_it_stands() {
        let read = |text: &str| Snitch::GossipingPropertyFile.read(text);
        let location = read("# where we are\ndc=dc1 \nrack = r2\nprefer_local=true\n").expect("complete");
        assert_eq!(location.of_local("10.0.0.1".parse().unwrap()), Some(&place("dc1", "r2")));
        assert_eq!(location.of("10.0.0.1".parse().unwrap()), None);
        assert!(location.prefers_local && !read("dc=a\nrack=b\nprefer_local=false").expect("complete").prefers_local);
        assert_eq!(inferred("10.7.200.1".parse().unwrap()), place("7", "200"));
        assert_eq!(inferred("fe80:207::1".parse().unwrap()), place("128", "2"));
        assert!(read("dc=dc1").is_err() && read("dc=\nrack=r").is_err());
    }

    #[test]
    fn a_file_says_where_all_stand() {
        let text = "127.0.0.1=DC1:RAC1\n127.0.0.2:7000=DC2:RAC2\nfe80\\:0\\:0\\:0\\:202\\:b3ff\\:fe1e\\:8329=DC1:RAC3\ndefault=DC3:r1\n";
        let location = Snitch::PropertyFile.read(text).expect("complete");
        for (address, expected) in [
            ("127.0.0.1", place("DC1", "RAC1")),
            ("fe80::202:b3ff:fe1e:8329", place("DC1", "RAC3")),
            ("10.1.1.1", place("DC3", "r1")),
        ] {
            assert_eq!(location.of(address.parse().unwrap()), Some(&expected), "{address}");
        }
        assert_eq!(Snitch::PropertyFile.read("somebody=DC1:RAC1"), Err("'somebody' is not an IP address".to_owned()));
    }
}
