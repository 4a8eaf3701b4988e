//! The keys of hinted handoff: `hinted_handoff_*`, `hints_*`, `max_hint*`.

use std::time::Duration;

use crate::reader::Reader;
use crate::value::short_class;

/// The settings of hints: what is kept of writes for nodes that are down, and how it is sent to
/// them later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hints {
    /// hinted_handoff_enabled
    pub enabled: bool,
    /// hinted_handoff_disabled_datacenters: no hints are kept for their nodes
    pub disabled_data_centers: Vec<String>,
    /// max_hint_window: no hints are kept for a node that has been down for longer
    pub window: Duration,
    /// hint_window_persistent_enabled: the window counts from the oldest hint, across restarts
    pub window_is_persistent: bool,
    /// hinted_handoff_throttle in bytes a second, shared by all nodes that send hints to one; None:
    /// not throttled
    pub throttle: Option<u64>,
    /// max_hints_delivery_threads
    pub delivery_threads: usize,
    /// hints_flush_period
    pub flush_period: Duration,
    /// max_hints_file_size in bytes
    pub file_size_max: u64,
    /// max_hints_size_per_host in bytes; None: no limit
    pub size_per_host_max: Option<u64>,
    /// hints_compression: the class without its package, such as `LZ4Compressor`; None: not
    /// compressed
    pub compression: Option<String>,
    /// auto_hints_cleanup_enabled: expired hint files are removed while the node runs
    pub cleans_up: bool,
    /// transfer_hints_on_decommission: the hints of a node that leaves go to another node;
    /// otherwise they are removed
    pub transfers_on_decommission: bool,
}

pub(crate) fn hints(reader: &mut Reader<'_>) -> Hints {
    let positive = |number: u64| Some(number).filter(|number| *number > 0);
    let threads = reader.maybe_int("max_hints_delivery_threads").and_then(|threads| usize::try_from(threads).ok());
    if threads.is_none_or(|threads| threads == 0) {
        reader.problem("max_hints_delivery_threads", "must be positive");
    }
    Hints {
        enabled: reader.boolean("hinted_handoff_enabled"),
        disabled_data_centers: reader.names("hinted_handoff_disabled_datacenters"),
        window: reader.duration("max_hint_window"),
        window_is_persistent: reader.boolean("hint_window_persistent_enabled"),
        throttle: positive(reader.quantity("hinted_handoff_throttle")),
        delivery_threads: threads.unwrap_or(1),
        flush_period: reader.duration("hints_flush_period"),
        file_size_max: reader.quantity("max_hints_file_size"),
        size_per_host_max: positive(reader.quantity("max_hints_size_per_host")),
        compression: reader.text("hints_compression").map(|class| short_class(&class).to_owned()),
        cleans_up: reader.boolean("auto_hints_cleanup_enabled"),
        transfers_on_decommission: reader.boolean("transfer_hints_on_decommission"),
    }
}
