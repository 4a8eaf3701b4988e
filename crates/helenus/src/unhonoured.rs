//! Keys that the configuration understands and the node does not act on yet. A value that asks for
//! something else than the node does is refused by name, or reported under `--lenient`. Keys
//! without a field are refused by the catalogue of `config`.

use config::{Config, DiskFailurePolicy};

/// The keys whose values are not honoured, in alphabetical order.
pub fn keys(config: &Config) -> Vec<&'static str> {
    let default = Config::default();
    let (transport, usual) = (&config.native_transport, &default.native_transport);
    [
        (
            "disk_failure_policy",
            !matches!(config.disk_failure_policy, DiskFailurePolicy::Stop | DiskFailurePolicy::Ignore),
        ),
        ("max_value_size", config.max_value_size != default.max_value_size),
        ("memtable_cleanup_threshold", config.memtable.cleanup_threshold.is_some()),
        ("native_transport_allow_older_protocols", transport.allow_older_protocols != usual.allow_older_protocols),
        ("native_transport_max_request_data_in_flight_per_ip", transport.max_request_data_in_flight_per_ip.is_some()),
        ("native_transport_throw_on_overload", transport.throw_on_overload != usual.throw_on_overload),
        ("start_native_transport", !transport.start),
    ]
    .into_iter()
    .filter_map(|(key, differs)| differs.then_some(key))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_values_are_named() {
        assert_eq!(keys(&Config::default()), [""; 0]);
        let sets = ["start_native_transport=false".to_owned(), "max_value_size=1MiB".to_owned()];
        let config = Config::load(None, &sets, false).expect("known keys");
        assert_eq!(keys(&config), ["max_value_size", "start_native_transport"]);
    }
}
