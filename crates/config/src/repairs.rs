//! The keys of repair: `concurrent_validations`, `concurrent_merkle_tree_requests`,
//! `repair_session_space`, `repair_session_max_tree_depth`, `repair_command_pool_*`,
//! `repair_request_timeout`, `auto_optimise_*_repair_streams`, `paxos_repair_*`,
//! `trace_type_repair_ttl`, `validation_preview_purge_head_start`.

use std::time::Duration;

use crate::reader::Reader;

/// The least repair_session_max_tree_depth.
const TREE_DEPTH_MIN: i64 = 10;
/// repair_session_max_tree_depth where the key is not set, and the greatest that we take: trees of
/// more than a million leaves do not fit into messages.
const TREE_DEPTH: i64 = 20;

/// repair_command_pool_full_strategy: the fate of a repair while the pool is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolFull {
    /// queue: the repair waits for its turn.
    Queue,
    /// reject: the repair is refused.
    Reject,
}

/// How repairs are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repairs {
    /// concurrent_validations; None (not set, or below 1): as many as there are compactors
    pub concurrent_validations: Option<usize>,
    /// concurrent_merkle_tree_requests: trees that a coordinator waits for at a time; None (below
    /// 1): no bound
    pub concurrent_tree_requests: Option<usize>,
    /// repair_session_space in bytes: the trees of one table at all replicas; None: the default
    pub session_space: Option<u64>,
    /// auto_optimise_full_repair_streams
    pub optimises_full: bool,
    /// auto_optimise_inc_repair_streams
    pub optimises_incremental: bool,
    /// auto_optimise_preview_repair_streams
    pub optimises_previews: bool,
    /// paxos_repair_enabled
    pub repairs_paxos: bool,
    /// paxos_repair_parallelism: partitions that are completed at a time; None (below 1): the
    /// default
    pub paxos_parallelism: Option<usize>,
    /// repair_command_pool_size: repairs that a node coordinates at a time; None (below 1): as many
    /// as there are concurrent_validations
    pub pool_size: Option<usize>,
    /// repair_command_pool_full_strategy
    pub pool_full: PoolFull,
    /// repair_request_timeout
    pub request_timeout: Duration,
    /// repair_session_max_tree_depth: a tree has 2 to this power leaves at most, 10 to 20
    pub tree_depth_max: u32,
    /// trace_type_repair_ttl in seconds
    pub trace_ttl: u32,
    /// validation_preview_purge_head_start in seconds
    pub preview_head_start: u32,
}

pub(crate) fn repairs(reader: &mut Reader<'_>) -> Repairs {
    let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
    let count = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok()).filter(|count| *count > 0);
    Repairs {
        concurrent_validations: count(reader.maybe_int("concurrent_validations")),
        concurrent_tree_requests: count(reader.maybe_int("concurrent_merkle_tree_requests")),
        session_space: reader.maybe_quantity("repair_session_space"),
        optimises_full: reader.boolean("auto_optimise_full_repair_streams"),
        optimises_incremental: reader.boolean("auto_optimise_inc_repair_streams"),
        optimises_previews: reader.boolean("auto_optimise_preview_repair_streams"),
        repairs_paxos: reader.boolean("paxos_repair_enabled"),
        paxos_parallelism: count(reader.maybe_int("paxos_repair_parallelism")),
        pool_size: count(reader.maybe_int("repair_command_pool_size")),
        pool_full: reader
            .one_of("repair_command_pool_full_strategy", &[("queue", PoolFull::Queue), ("reject", PoolFull::Reject)]),
        request_timeout: reader.duration("repair_request_timeout"),
        tree_depth_max: tree_depth_max(reader),
        trace_ttl: seconds(reader.duration("trace_type_repair_ttl")),
        preview_head_start: seconds(reader.duration("validation_preview_purge_head_start")),
    }
}

fn tree_depth_max(reader: &mut Reader<'_>) -> u32 {
    const KEY: &str = "repair_session_max_tree_depth";
    let depth = reader.maybe_int(KEY).unwrap_or(TREE_DEPTH);
    if depth < TREE_DEPTH_MIN {
        reader.problem(KEY, &format!("should not be < {TREE_DEPTH_MIN}, but was {depth}"));
    }
    if depth > TREE_DEPTH {
        reader.problem(KEY, &format!("must be at most {TREE_DEPTH} (use repair_session_space instead)"));
    }
    u32::try_from(depth.clamp(TREE_DEPTH_MIN, TREE_DEPTH)).unwrap_or(u32::MAX)
}
