//! The keys that make a node one of a ring: seeds, snitch, failure detector, links between nodes.
//!
//! Names of hosts stay text here: whoever starts the node looks them up, and looks them up again
//! when none of the addresses answers. Agrees with `DatabaseDescriptor.applySeedProvider`,
//! `SimpleSeedProvider` and `applySnitch`.

use std::path::PathBuf;
use std::time::Duration;

use crate::encryption::ServerEncryption;
use crate::links::{Links, links};
use crate::reader::Reader;
use crate::snitch::{Location, Snitch};
use crate::value::{ParsedValue, short_class};

/// How the node takes part in a ring.
#[derive(Clone, PartialEq, Debug)]
pub struct Ring {
    /// The `seeds` of seed_provider, each `host` or `host:port`, in their order. None: no
    /// seed_provider is given, so the node stays alone and opens no storage port.
    pub seeds: Option<Vec<String>>,
    /// The parameter resolve_multiple_ip_addresses_per_dns_record of seed_provider: every address
    /// of a name is a seed, not only the first one
    pub every_address_of_a_seed: bool,
    /// auto_bootstrap
    pub auto_bootstrap: bool,
    /// join_ring: the node becomes a member at its start; otherwise when it is told to (`nodetool
    /// join`)
    pub joins_ring: bool,
    /// consistent_rangemovement: one change of the ring at a time, and a range comes from the node
    /// that loses it
    pub is_range_movement_consistent: bool,
    /// log_out_of_token_range_requests: requests for tokens of others are told in the log
    pub logs_foreign: bool,
    /// reject_out_of_token_range_requests: they are refused
    pub refuses_foreign: bool,
    /// ring_delay: the longest wait until all nodes know of a change of the ring
    pub ring_delay: Duration,
    /// severity_during_decommission: the severity that the node tells of itself once it begins to
    /// leave; 0 or less: none
    pub severity_of_leaving: f64,
    /// replace_address_first_boot: the host, or `host:port`, of the node in whose place a new one
    /// stands. Means nothing once this node is a member.
    pub replaces: Option<String>,
    /// endpoint_snitch
    pub snitch: Snitch,
    /// The data centers and racks that the files of the snitch, or `--dc` and `--rack`, name.
    /// Filled by whoever reads those files; SimpleSnitch has none.
    pub location: Location,
    /// How the tokens of a new node are chosen.
    pub allocation: Allocation,
    /// The file whose changes are followed while the node runs (PropertyFileSnitch). Filled by
    /// whoever reads it.
    pub topology_file: Option<PathBuf>,
    /// How replicas are ordered by their latencies; None: they are not (`dynamic_snitch: false`).
    pub dynamic_snitch: Option<DynamicSnitch>,
    /// batchlog_endpoint_strategy
    pub batch_hosts: BatchHosts,
    /// phi_convict_threshold, 5 to 16
    pub phi_convict_threshold: f64,
    /// storage_compatibility_mode
    pub compatibility: Compatibility,
    /// internode_compression
    pub compression: InternodeCompression,
    /// server_encryption_options; None: links between nodes are not encrypted
    pub encryption: Option<ServerEncryption>,
    /// How conditional statements are coordinated.
    pub paxos: Paxos,
    /// How much links to other nodes may hold and how long they wait.
    pub links: Links,
}

/// `paxos_*`: how conditional statements and reads at SERIAL are coordinated. Text, which whoever
/// starts the node reads; None: the times and the randomizer of a stock configuration.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Paxos {
    /// paxos_variant
    pub variant: &'static str,
    /// paxos_contention_wait_randomizer
    pub wait_randomizer: Option<String>,
    /// paxos_contention_min_wait
    pub min_wait: Option<String>,
    /// paxos_contention_max_wait
    pub max_wait: Option<String>,
    /// paxos_contention_min_delta
    pub min_delta: Option<String>,
    /// skip_paxos_repair_on_topology_change: ranges move without a repair of Paxos
    pub skips_repair: bool,
    /// skip_paxos_repair_on_topology_change_keyspaces
    pub skips_repair_of: Vec<String>,
    /// paxos_state_purging: legacy, gc_grace or repaired
    pub state_purging: &'static str,
    /// paxos_purge_grace_period
    pub purge_grace: Duration,
    /// paxos_on_linearizability_violations: ignore, log or fail
    pub on_violations: &'static str,
}

/// How the tokens of a node that is new in its ring are chosen, if none are named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Allocation {
    /// At random.
    Random,
    /// allocate_tokens_for_local_replication_factor: for so many copies in the data center
    LocalCopies(u32),
    /// allocate_tokens_for_keyspace: for the copies that this keyspace has
    Keyspace(String),
}

/// `dynamic_snitch_*`
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DynamicSnitch {
    /// dynamic_snitch_update_interval: scores are computed anew so often
    pub update_interval: Duration,
    /// dynamic_snitch_reset_interval: latencies are forgotten so often
    pub reset_interval: Duration,
    /// dynamic_snitch_badness_threshold, at least 0: replicas are asked in the order of the snitch
    /// unless one of them is worse than another by more than this share
    pub badness_threshold: f64,
}

/// batchlog_endpoint_strategy: which nodes keep the records of logged batches.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BatchHosts {
    /// The fastest nodes by the dynamic snitch (dynamic_remote, dynamic); otherwise they are drawn.
    pub by_latency: bool,
    /// This node's rack is not kept out (prefer_local, dynamic).
    pub prefers_own_rack: bool,
}

/// storage_compatibility_mode: the version of Cassandra to which what the node writes and says must
/// be understandable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compatibility {
    /// Nodes of 4.0 and 4.1: messages of version 12.
    Cassandra4,
    /// Messages of version 13, deletion times as in 4.x.
    Upgrading,
    /// Nodes of 5.0 alone: messages of version 13.
    None,
}

/// internode_compression
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InternodeCompression {
    /// Nothing is compressed.
    None,
    /// Links to nodes of other data centers.
    BetweenDataCenters,
    /// All links.
    All,
}

pub(crate) fn ring(reader: &mut Reader<'_>) -> Ring {
    let phi_convict_threshold = reader.maybe_double("phi_convict_threshold").unwrap_or(8.0);
    if !(5.0..=16.0).contains(&phi_convict_threshold) {
        reader
            .problem("phi_convict_threshold", &format!("must be between 5 and 16, but was {phi_convict_threshold:?}"));
    }
    let (seeds, every_address_of_a_seed) = seeds(reader);
    Ring {
        seeds,
        every_address_of_a_seed,
        auto_bootstrap: reader.boolean("auto_bootstrap"),
        joins_ring: reader.boolean("join_ring"),
        is_range_movement_consistent: reader.boolean("consistent_rangemovement"),
        logs_foreign: reader.boolean("log_out_of_token_range_requests"),
        refuses_foreign: reader.boolean("reject_out_of_token_range_requests"),
        ring_delay: reader.duration("ring_delay"),
        severity_of_leaving: reader.maybe_double("severity_during_decommission").unwrap_or(0.0),
        replaces: reader.text("replace_address_first_boot"),
        snitch: snitch(reader),
        allocation: allocation(reader),
        dynamic_snitch: dynamic_snitch(reader),
        batch_hosts: batch_hosts(reader),
        location: Location::default(),
        topology_file: None,
        phi_convict_threshold,
        compatibility: reader.one_of(
            "storage_compatibility_mode",
            &[
                ("CASSANDRA_4", Compatibility::Cassandra4),
                ("UPGRADING", Compatibility::Upgrading),
                ("NONE", Compatibility::None),
            ],
        ),
        compression: reader.one_of(
            "internode_compression",
            &[
                ("none", InternodeCompression::None),
                ("dc", InternodeCompression::BetweenDataCenters),
                ("all", InternodeCompression::All),
            ],
        ),
        encryption: reader.server_encryption(),
        paxos: paxos(reader),
        links: links(reader),
    }
}

fn batch_hosts(reader: &mut Reader<'_>) -> BatchHosts {
    let strategy = |by_latency, prefers_own_rack| BatchHosts { by_latency, prefers_own_rack };
    reader.one_of(
        "batchlog_endpoint_strategy",
        &[
            ("random_remote", strategy(false, false)),
            ("prefer_local", strategy(false, true)),
            ("dynamic_remote", strategy(true, false)),
            ("dynamic", strategy(true, true)),
        ],
    )
}

fn paxos(reader: &mut Reader<'_>) -> Paxos {
    const VARIANTS: [&str; 5] = [
        "v1",
        "v1_without_linearizable_reads_or_rejected_writes",
        "v2",
        "v2_without_linearizable_reads",
        "v2_without_linearizable_reads_or_rejected_writes",
    ];
    const PURGINGS: [&str; 3] = ["legacy", "gc_grace", "repaired"];
    const REACTIONS: [&str; 3] = ["ignore", "log", "fail"];
    Paxos {
        variant: reader.one_of("paxos_variant", &VARIANTS.map(|variant| (variant, variant))),
        wait_randomizer: reader.text("paxos_contention_wait_randomizer"),
        min_wait: reader.text("paxos_contention_min_wait"),
        max_wait: reader.text("paxos_contention_max_wait"),
        min_delta: reader.text("paxos_contention_min_delta"),
        skips_repair: reader.boolean("skip_paxos_repair_on_topology_change"),
        skips_repair_of: reader.names("skip_paxos_repair_on_topology_change_keyspaces"),
        state_purging: reader.one_of("paxos_state_purging", &PURGINGS.map(|purging| (purging, purging))),
        purge_grace: reader.duration("paxos_purge_grace_period"),
        on_violations: reader.one_of("paxos_on_linearizability_violations", &REACTIONS.map(|word| (word, word))),
    }
}

/// The seeds, and whether each address of a name is one.
fn seeds(reader: &mut Reader<'_>) -> (Option<Vec<String>>, bool) {
    let provider = reader.value("seed_provider");
    if provider.what == ParsedValue::Null {
        return (None, false);
    }
    if short_class(&provider.text) != "SimpleSeedProvider" {
        reader.problem("seed_provider", &format!("'{}' is not SimpleSeedProvider", provider.text));
        return (None, false);
    }
    let parameters = provider.parameters();
    let given = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let hosts = given("seeds").unwrap_or_default().split(',').map(str::trim).filter(|host| !host.is_empty());
    let hosts: Vec<String> = hosts.map(str::to_owned).collect();
    if hosts.is_empty() {
        reader.problem("seed_provider", "The seed provider lists no seeds.");
    }
    (Some(hosts), given("resolve_multiple_ip_addresses_per_dns_record") == Some("true"))
}

/// The class of the snitch.
pub(crate) fn snitch(reader: &mut Reader<'_>) -> Snitch {
    let text = reader.text("endpoint_snitch").unwrap_or_default();
    Snitch::of_class(short_class(&text)).unwrap_or_else(|| {
        let known: Vec<&str> = Snitch::ALL.iter().map(|snitch| snitch.class()).collect();
        reader.problem("endpoint_snitch", &format!("'{text}' is none of {}", known.join(", ")));
        Snitch::Simple
    })
}

fn allocation(reader: &mut Reader<'_>) -> Allocation {
    let copies = reader.maybe_int("allocate_tokens_for_local_replication_factor");
    match (reader.text("allocate_tokens_for_keyspace"), copies.map(u32::try_from)) {
        (Some(keyspace), _) => Allocation::Keyspace(keyspace),
        (None, Some(Ok(copies))) => Allocation::LocalCopies(copies),
        (None, Some(Err(_))) => {
            reader.problem("allocate_tokens_for_local_replication_factor", "must be 0 or more");
            Allocation::Random
        }
        (None, None) => Allocation::Random,
    }
}

fn dynamic_snitch(reader: &mut Reader<'_>) -> Option<DynamicSnitch> {
    let badness_threshold = reader.maybe_double("dynamic_snitch_badness_threshold").unwrap_or(1.0);
    if badness_threshold < 0.0 {
        reader
            .problem("dynamic_snitch_badness_threshold", &format!("must be 0 or more, but was {badness_threshold:?}"));
    }
    let update_interval = reader.duration("dynamic_snitch_update_interval");
    let reset_interval = reader.duration("dynamic_snitch_reset_interval");
    let options = DynamicSnitch { update_interval, reset_interval, badness_threshold };
    reader.boolean("dynamic_snitch").then_some(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn of(yaml: &str) -> Ring {
        Config::load((!yaml.is_empty()).then_some(yaml), &[], false).expect(yaml).ring
    }

    #[test]
    fn a_node_without_seeds_is_alone() {
        let ring = of("");
        assert_eq!((ring.seeds, ring.snitch), (None, Snitch::Simple));
        assert_eq!((ring.compatibility, ring.compression), (Compatibility::None, InternodeCompression::None));
    }

    #[test]
    fn seeds_in_the_forms_of_cassandra() {
        let listed = "seed_provider:\n  - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n    parameters:\n      \
                      - seeds: \"127.0.0.1:7000, seed.example.org,\"";
        let plain = "seed_provider: {class_name: SimpleSeedProvider, parameters: {seeds: '127.0.0.1:7000,seed.example.org', \
                     resolve_multiple_ip_addresses_per_dns_record: true}}";
        let seeds = Some(vec!["127.0.0.1:7000".to_owned(), "seed.example.org".to_owned()]);
        assert_eq!((of(listed).seeds, of(listed).every_address_of_a_seed), (seeds.clone(), false));
        assert_eq!((of(plain).seeds, of(plain).every_address_of_a_seed), (seeds, true));
    }

    #[test]
    fn strategies_of_batches() {
        let strategy = |by_latency, prefers_own_rack| BatchHosts { by_latency, prefers_own_rack };
        assert_eq!(of("").batch_hosts, strategy(false, false));
        assert_eq!(of("batchlog_endpoint_strategy: prefer_local").batch_hosts, strategy(false, true));
        assert_eq!(of("batchlog_endpoint_strategy: dynamic_remote").batch_hosts, strategy(true, false));
        assert_eq!(of("batchlog_endpoint_strategy: dynamic").batch_hosts, strategy(true, true));
    }

    #[test]
    fn what_is_not_honoured_is_refused_by_name() {
        let problems = |yaml: &str| Config::load(Some(yaml), &[], false).expect_err(yaml).problems;
        for (yaml, problem) in [
            (
                "endpoint_snitch: a.b.MySnitch",
                "endpoint_snitch: 'a.b.MySnitch' is none of SimpleSnitch, GossipingPropertyFileSnitch, \
                 PropertyFileSnitch, RackInferringSnitch, Ec2Snitch, Ec2MultiRegionSnitch, GoogleCloudSnitch, \
                 AzureSnitch, AlibabaCloudSnitch, CloudstackSnitch",
            ),
            (
                "seed_provider: {class_name: K8sSeedProvider, parameters: {seeds: a}}",
                "seed_provider: 'K8sSeedProvider' is not SimpleSeedProvider",
            ),
            (
                "seed_provider: {class_name: SimpleSeedProvider, parameters: {seeds: ' '}}",
                "seed_provider: The seed provider lists no seeds.",
            ),
            ("phi_convict_threshold: 4", "phi_convict_threshold: must be between 5 and 16, but was 4.0"),
            (
                "batchlog_endpoint_strategy: nearest",
                "batchlog_endpoint_strategy: 'nearest' is none of random_remote, prefer_local, dynamic_remote, dynamic",
            ),
            ("internode_compression: some", "internode_compression: 'some' is none of none, dc, all"),
        ] {
            assert_eq!(problems(yaml), [problem], "{yaml}");
        }
    }
}
