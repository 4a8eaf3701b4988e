//! Keys that the configuration understands and the node does not act on yet. A value that asks for
//! something else than the node does is refused by name, or reported under `--lenient`. Keys
//! without a field are refused by the catalogue of `config`.

use config::{Config, DiskFailurePolicy};

/// Keys that mean something only among several nodes, where their defaults are what is done; each
/// with the row of the settings that shows its value in one unit, whatever unit was written.
const AMONG_NODES: [(&str, &str); 4] = [
    ("ideal_consistency_level", "ideal_consistency_level"),
    ("internode_application_receive_queue_capacity", "internode_application_receive_queue_capacity_in_bytes"),
    (
        "internode_application_receive_queue_reserve_endpoint_capacity",
        "internode_application_receive_queue_reserve_endpoint_capacity_in_bytes",
    ),
    ("internode_authenticator", "internode_authenticator.class_name"),
];

/// The class of `internode_authenticator` that lets every node in, as is done without the key.
const LETS_ALL_IN: &str = "AllowAllInternodeAuthenticator";

/// The keys whose values are not honoured, in alphabetical order: first those that count on every
/// node, then those that count in a ring.
pub fn keys(config: &Config) -> Vec<&'static str> {
    let mut found = of_one_node(config);
    if config.ring.seeds.is_some() {
        let (asked, usual) = (config.settings(), Config::default().settings());
        let value = |of: &[(String, Option<String>)], row: &str| {
            let found = of.iter().find(|(name, _)| name == row).and_then(|(_, value)| value.clone());
            found.filter(|value| value.rsplit('.').next() != Some(LETS_ALL_IN))
        };
        let others = AMONG_NODES.into_iter().filter(|(_, row)| value(&asked, row) != value(&usual, row));
        found.extend(others.map(|(key, _)| key));
    }
    found
}

fn of_one_node(config: &Config) -> Vec<&'static str> {
    let default = Config::default();
    let (transport, usual) = (&config.native_transport, &default.native_transport);
    let auth = &config.auth;
    let keys = [
        ("auth_cache_warming_enabled", auth.warms_caches),
        ("credentials_cache_active_update", auth.credentials.updates_actively),
        ("disk_failure_policy", config.disk_failure_policy == DiskFailurePolicy::BestEffort),
        ("max_value_size", config.max_value_size != default.max_value_size),
        ("memtable_cleanup_threshold", config.memtable.cleanup_threshold.is_some()),
        ("native_transport_allow_older_protocols", transport.allow_older_protocols != usual.allow_older_protocols),
        ("native_transport_max_request_data_in_flight_per_ip", transport.max_request_data_in_flight_per_ip.is_some()),
        ("native_transport_throw_on_overload", transport.throw_on_overload != usual.throw_on_overload),
        ("permissions_cache_active_update", auth.permissions.updates_actively),
        ("roles_cache_active_update", auth.roles.updates_actively),
    ]
    .into_iter();
    keys.filter_map(|(key, differs)| differs.then_some(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_values_are_named() {
        assert_eq!(keys(&Config::default()), [""; 0]);
        let sets = ["memtable_cleanup_threshold=0.5".to_owned(), "max_value_size=1MiB".to_owned()];
        let config = Config::load(None, &sets, false).expect("known keys");
        assert_eq!(keys(&config), ["max_value_size", "memtable_cleanup_threshold"]);
        // no directory is taken out of use; all others are followed
        for (policy, named) in [("best_effort", true), ("stop", false), ("stop_paranoid", false), ("die", false)] {
            let config = Config::load(None, &[format!("disk_failure_policy={policy}")], false).expect("a policy");
            assert_eq!(keys(&config).contains(&"disk_failure_policy"), named, "{policy}");
        }
        // nothing fills or refreshes the caches of roles, alone or in a ring
        for key in [
            "auth_cache_warming_enabled",
            "credentials_cache_active_update",
            "permissions_cache_active_update",
            "roles_cache_active_update",
        ] {
            let config = Config::load(None, &[format!("{key}=true")], false).expect("a known key");
            assert_eq!(keys(&config), [key]);
        }
    }

    /// A key of links counts in a ring alone, and only at another value than the one that is done.
    #[test]
    fn keys_of_links_count_in_a_ring() {
        let load = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
            Config::load(None, &sets, false).expect("known keys")
        };
        let seeds = "seed_provider=[{class_name: SimpleSeedProvider, parameters: [{seeds: 127.0.0.1}]}]";
        assert_eq!(keys(&load(&["ideal_consistency_level=QUORUM"])), [""; 0]);
        let usual = "internode_application_receive_queue_capacity=4096KiB";
        assert_eq!(keys(&load(&[seeds, "internode_timeout=false", usual])), [""; 0]);
        for class in ["AllowAllInternodeAuthenticator", "org.apache.cassandra.auth.AllowAllInternodeAuthenticator"] {
            assert_eq!(keys(&load(&[seeds, &format!("internode_authenticator={class}")])), [""; 0]);
        }
        for (key, _) in AMONG_NODES {
            let other = match key {
                "ideal_consistency_level" => "QUORUM",
                "internode_authenticator" => "MutualTlsInternodeAuthenticator",
                _ => "12345678B",
            };
            assert_eq!(keys(&load(&[seeds, &format!("{key}={other}")])), [key], "{key}");
        }
    }
}
