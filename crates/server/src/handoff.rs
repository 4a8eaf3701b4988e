//! Hinted handoff as the configuration wants it.

use std::path::PathBuf;
use std::sync::Arc;

use cluster::Node;
use cluster::handoff::HandoffSettings;
use cluster::hints::HintOptions;
use config::{Compatibility, Config};
use hints::{Compression, Settings, StoreOptions, Version};

/// From now on the node keeps hints in a directory. A node alone keeps none. Err: a sentence on
/// what is in the way.
pub(crate) fn start_hints(node: &Arc<Node>, config: &Config, directory: PathBuf) -> Result<(), String> {
    node.change_handoff_settings(|of_node| *of_node = settings(config));
    if !node.identity.joins {
        return Ok(());
    }
    let compression = config.hints.compression.as_ref().map(|class| Compression::new(class, None)).transpose();
    let store = StoreOptions {
        directory: directory.clone(),
        version: match config.ring.compatibility {
            Compatibility::Cassandra4 => Version::V2,
            Compatibility::Upgrading | Compatibility::None => Version::V3,
        },
        compression: compression.map_err(|error| format!("hints_compression: {error}"))?,
        settings: Settings { file_size_max: config.hints.file_size_max, flush_period: config.hints.flush_period },
    };
    let options = HintOptions { store, settings: settings(config), deliveries_max: config.hints.delivery_threads };
    node.start_hints(options).map_err(|error| format!("hints_directory {}: {error}", directory.display()))
}

/// The settings that operators may change while the node runs.
pub(crate) fn settings(config: &Config) -> HandoffSettings {
    let hints = &config.hints;
    HandoffSettings {
        is_enabled: hints.enabled,
        disabled_data_centers: hints.disabled_data_centers.iter().cloned().collect(),
        window: hints.window,
        is_window_persistent: hints.window_is_persistent,
        throttle: hints.throttle.unwrap_or(0),
        size_per_host_max: hints.size_per_host_max.unwrap_or(0),
        cleans_up: hints.cleans_up,
        transfers_on_decommission: hints.transfers_on_decommission,
    }
}
