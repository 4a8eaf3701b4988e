//! How repairs are run: keys of cassandra.yaml.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::options::RepairOptions;

/// Validations that run at a time by default.
const VALIDATIONS: usize = 2;
/// Bytes of the trees of one table at all replicas by default. Cassandra takes a sixteenth of its
/// heap.
const SPACE: u64 = 256 << 20;
/// Partitions with statements of Paxos that are completed at a time by default: an eighth of
/// Cassandra's `concurrent_writes`.
const PAXOS_PARALLELISM: usize = 4;

/// Seconds for which rows of traced repairs live by default.
const TRACE_TTL: u32 = 7 * 24 * 60 * 60;
/// Seconds by which previews of repaired data judge later, by default.
const PREVIEW_HEAD_START: u32 = 60 * 60;

/// How repairs are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepairSettings {
    /// Validations that run here at a time; others wait for their turn
    /// (`concurrent_validations`).
    pub validations: usize,
    /// Trees that a coordinator waits for at a time; None: no bound
    /// (`concurrent_merkle_tree_requests`).
    pub tree_requests: Option<usize>,
    /// Bytes of the trees of one table at all replicas (`repair_session_space`).
    pub space: u64,
    /// Full repairs fetch data that several replicas have alike once, also if nobody asks for it
    /// (`auto_optimise_full_repair_streams`).
    pub optimises_full: bool,
    /// Incremental repairs do so, too (`auto_optimise_inc_repair_streams`).
    pub optimises_incremental: bool,
    /// Previews count the streams as if repairs did so (`auto_optimise_preview_repair_streams`).
    pub optimises_previews: bool,
    /// Statements of Paxos under way are completed by repairs (`paxos_repair_enabled`).
    pub repairs_paxos: bool,
    /// Partitions of such statements that are completed at a time, at least 1
    /// (`paxos_repair_parallelism`).
    pub paxos_parallelism: usize,
    /// Repairs that this node coordinates at a time, at least 1 (`repair_command_pool_size`).
    pub pool_size: usize,
    /// A further repair waits for its turn; false: it is refused
    /// (`repair_command_pool_full_strategy`).
    pub waits_for_pool: bool,
    /// The life of a message (`repair_request_timeout`).
    pub request_timeout: Duration,
    /// A tree has 2 to this power leaves at most (`repair_session_max_tree_depth`).
    pub tree_depth_max: u32,
    /// Rows of traced repairs live for so many seconds (`trace_type_repair_ttl`).
    pub trace_ttl: u32,
    /// A preview of repaired data judges so many seconds later, so that what one replica has purged
    /// already is purged at all of them (`validation_preview_purge_head_start`).
    pub preview_head_start: u32,
}

impl Default for RepairSettings {
    fn default() -> Self {
        Self {
            validations: VALIDATIONS,
            tree_requests: None,
            space: SPACE,
            optimises_full: false,
            optimises_incremental: false,
            optimises_previews: false,
            repairs_paxos: true,
            paxos_parallelism: PAXOS_PARALLELISM,
            pool_size: VALIDATIONS,
            waits_for_pool: true,
            request_timeout: Duration::from_secs(120),
            tree_depth_max: repair::tree::LEAVES_MAX.ilog2(),
            trace_ttl: TRACE_TTL,
            preview_head_start: PREVIEW_HEAD_START,
        }
    }
}

impl RepairSettings {
    /// Whether the streams of a repair are optimised.
    pub fn optimises(&self, options: &RepairOptions) -> bool {
        options.optimises_streams
            || match (options.preview.is_preview(), options.is_incremental) {
                (true, _) => self.optimises_previews,
                (false, true) => self.optimises_incremental,
                (false, false) => self.optimises_full,
            }
    }
}

/// Settings and the turns that follow from them.
pub(crate) struct RepairPermits {
    pub settings: RepairSettings,
    /// Permits of validations that run at a time.
    pub validations: Arc<Semaphore>,
    /// Permits of requests for trees; None: no bound.
    pub tree_requests: Option<Arc<Semaphore>>,
    /// Permits of the repairs that this node coordinates at a time.
    pub commands: Arc<Semaphore>,
}

impl RepairPermits {
    pub fn new(settings: RepairSettings) -> Self {
        let turns = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        let (validations, tree_requests) = (turns(settings.validations), settings.tree_requests.map(turns));
        Self { settings, validations, tree_requests, commands: turns(settings.pool_size) }
    }
}

#[cfg(test)]
mod tests {
    use internode::payload::repair::Preview;

    use super::*;

    #[test]
    fn streams_are_optimised_by_the_kind_of_repair() {
        let settings = RepairSettings { optimises_incremental: true, ..RepairSettings::default() };
        let options = RepairOptions::default();
        assert!(!settings.optimises(&options));
        assert!(settings.optimises(&RepairOptions { optimises_streams: true, ..options.clone() }));
        let incremental = RepairOptions { is_incremental: true, ..options };
        assert!(settings.optimises(&incremental));
        let preview = RepairOptions { preview: Preview::All, ..incremental };
        assert!(!settings.optimises(&preview));
        assert!(RepairSettings { optimises_previews: true, ..settings }.optimises(&preview));
    }
}
