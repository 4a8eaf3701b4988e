//! The verbs of the admin API: the table of all of them, and beneath, a file a family, their
//! requests and answers.
//!
//! Requests and answers are plain values that travel as JSON. Sizes are bytes, latencies
//! microseconds, times milliseconds since 1970, unless a name says otherwise. How a verb is added
//! stands in CONTRIBUTING.md.

use crate::verb::{Effect, Verb};

mod auth_caches;
mod caches;
mod compaction;
mod console;
mod gossip;
pub mod guardrails;
mod hints;
mod monitoring;
mod movements;
mod node;
mod profile;
mod repair;
mod repair_admin;
mod repair_schedule;
mod ring;
mod sampling;
mod settings;
mod snapshots;
mod sstables;
mod streams;
mod tables;
mod views;

pub use auth_caches::{AuthCacheChange, AuthCacheInfo, AuthCacheKind, GetAuthCache};
pub use caches::{CacheChange, CacheInfo, CacheKind};
pub use compaction::{
    Compact, CompactRequest, CompactionHistoryEntry, CompactionStats, GetCompactionHistory, GetCompactions,
    RunningCompaction, SetCompactionThroughput, SetConcurrentCompactors, StopRequest,
};
pub use console::{GetLog, GetSchema, GetSlowStatements, LogEntry, SchemaObject, SlowStatement, SlowStatements};
pub use gossip::{
    GetGossip, GetMessageCounts, GetMessages, GetSeeds, GossipChange, GossipState, MessageCounts, MessagePool,
    MessagePools, ReadRepairCounts, ReloadSeeds,
};
pub use guardrails::{GetGuardrails, SetGuardrails};
pub use hints::{GetHandoff, GetPendingHints, HandoffChange, HandoffInfo, PendingHintsInfo};
pub use monitoring::{
    CasCounts, CasKindCounts, ClientLatencies, CommitLogMetrics, ForeignRequests, GetClientLatencies, GetMetrics,
    GetPools, GetTables, HintCounts, NodeMetrics, PoolStats, RepairFigures, ReplayMetrics, StreamCounts, TableStats,
};
pub use movements::{CleanupRequest, GetRemovalStatus, RangeMovement, RebuildRequest, ResumeBootstrap};
pub use node::{Drain, GetKeyspaces, GetNode, GetTokenFile, KeyspaceInfo, NodeInfo, TransportChange};
pub use profile::{GetProfile, Profile, ThreadUse};
pub use repair::{
    GetRepair, RepairEvent, RepairEventKind, RepairEvents, RepairParallelism, RepairPreview, RepairRequest, StopRepairs,
};
pub use repair_admin::{
    CancelRepair, CleanUpRepairs, CleanedUpRepairs, GetPendingRepairs, GetRepairSessions, GetRepaired,
    PendingRepairData, PendingRepairInfo, RepairSessionInfo, RepairedInfo, RepairedTables,
};
pub use repair_schedule::{
    GetRepairSchedule, GetRepairSettings, RepairScheduleInfo, RepairSettingsInfo, ScheduledTable, SetRepairSetting,
};
pub(crate) use ring::join;
pub use ring::{EndpointInfo, EndpointState, GetRing, GetSchemaVersions, RangeInfo, RingInfo, SchemaVersion};
pub use sampling::{
    GetSamplingJobs, SAMPLERS, Sample, SampleRequest, SamplerInfo, Samples, ScheduleSampling, StopSampling,
};
pub use settings::{
    GetLoggingLevels, GetTimeout, GetTraceProbability, ReloadCertificates, SetLoggingLevel, SetTimeout,
    SetTraceProbability, TimeoutKind,
};
pub use snapshots::{
    ClearOldSnapshots, ClearSnapshots, GetSnapshots, RingSnapshotInfo, RingSnapshotRequest, SnapshotAge, SnapshotInfo,
    SnapshotRequest,
};
pub use sstables::{
    GetEndpoints, GetSSTables, GetTombstones, ImportRequest, RebuildIndexes, Refresh, SSTableOutcome, SSTableRequest,
    SSTableWork, SSTablesOfKey,
};
pub use streams::{
    GetStreamThroughput, GetStreams, SetStreamThroughput, StreamSessionInfo, StreamThroughputInfo, StreamWayInfo,
};
pub use tables::{
    Flush, GetAutoCompaction, GetCompactionThresholds, GetTableCompaction, SetAutoCompaction, SetCompactionThresholds,
    TableOptions, TableSelection,
};
pub use views::{GetViewBuild, ViewBuildInfo};

macro_rules! verbs {
    ($($request:ty => $answer:ty, $name:literal, $effect:ident;)*) => {
        $(impl Verb for $request {
            type Answer = $answer;
            const NAME: &'static str = $name;
            const EFFECT: Effect = Effect::$effect;
        })*

        /// The names of all verbs.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

verbs! {
    // request => answer, name, effect
    GetNode => NodeInfo, "node", Reads;
    GetKeyspaces => Vec<KeyspaceInfo>, "keyspaces", Reads;
    GetRing => RingInfo, "ring", Reads;
    GetSchemaVersions => Vec<SchemaVersion>, "schema_versions", Reads;
    GetTokenFile => Option<String>, "token_file", Reads;
    Drain => (), "drain", Changes;
    TransportChange => (), "change_transport", Changes;
    GetGossip => Vec<GossipState>, "gossip", Reads;
    GossipChange => (), "change_gossip", Changes;
    GetSeeds => Vec<String>, "seeds", Reads;
    ReloadSeeds => Option<Vec<String>>, "reload_seeds", Changes;
    GetMessages => MessagePools, "messages", Reads;
    GetMessageCounts => Vec<MessageCounts>, "message_counts", Reads;

    RangeMovement => (), "move_ranges", Changes;
    // the reason for which all data was fetched again; None: the rest was
    ResumeBootstrap => Option<String>, "resume_bootstrap", Changes;
    GetRemovalStatus => String, "removal_status", Reads;
    CleanupRequest => (), "cleanup", Changes;

    GetTables => Vec<TableStats>, "tables", Reads;
    GetClientLatencies => ClientLatencies, "client_latencies", Reads;
    GetPools => Vec<PoolStats>, "pools", Reads;
    GetMetrics => NodeMetrics, "metrics", Reads;

    Flush => (), "flush", Changes;
    // keyspace, table, whether the table is compacted by itself
    GetAutoCompaction => Vec<(String, String, bool)>, "auto_compaction", Reads;
    SetAutoCompaction => (), "set_auto_compaction", Changes;
    // least and greatest number of SSTables
    GetCompactionThresholds => (u32, u32), "compaction_thresholds", Reads;
    // tables with the options of their compaction
    GetTableCompaction => Vec<TableOptions>, "table_compaction", Reads;
    SetCompactionThresholds => (), "set_compaction_thresholds", Changes;

    GetCompactions => CompactionStats, "compactions", Reads;
    GetCompactionHistory => Vec<CompactionHistoryEntry>, "compaction_history", Reads;
    CompactRequest => (), "compact", Changes;
    StopRequest => (), "stop", Changes;
    SetConcurrentCompactors => (), "set_concurrent_compactors", Changes;
    SetCompactionThroughput => (), "set_compaction_throughput", Changes;

    // addresses of the replicas
    GetEndpoints => Vec<String>, "endpoints", Reads;
    GetSSTables => SSTablesOfKey, "sstables", Reads;
    // a text for each SSTable, with keys of partitions
    GetTombstones => Vec<String>, "tombstones", Shows;
    // the directories that could not be imported
    ImportRequest => Vec<String>, "import", Changes;
    Refresh => (), "refresh", Changes;
    RebuildIndexes => (), "rebuild_indexes", Changes;
    SSTableRequest => SSTableOutcome, "work_on_sstables", Changes;

    // the number of the command; None: there is one replica of everything
    RepairRequest => Option<i32>, "repair", Changes;
    StopRepairs => (), "stop_repairs", Changes;
    GetRepair => RepairEvents, "repair_events", Reads;
    GetRepairSessions => Vec<RepairSessionInfo>, "repair_sessions", Reads;
    GetPendingRepairs => Vec<PendingRepairInfo>, "pending_repairs", Reads;
    GetRepaired => Vec<RepairedInfo>, "repaired_ranges", Reads;
    CleanUpRepairs => Vec<CleanedUpRepairs>, "clean_up_repairs", Changes;
    CancelRepair => (), "cancel_repair", Changes;
    GetRepairSchedule => RepairScheduleInfo, "repair_schedule", Reads;
    GetRepairSettings => RepairSettingsInfo, "repair_settings", Reads;
    SetRepairSetting => (), "set_repair_setting", Changes;
    GetViewBuild => Vec<ViewBuildInfo>, "view_build", Reads;

    GetSnapshots => Vec<SnapshotInfo>, "snapshots", Reads;
    SnapshotRequest => (), "take_snapshot", Changes;
    // a line for each node
    RingSnapshotRequest => Vec<RingSnapshotInfo>, "take_ring_snapshot", Changes;
    ClearSnapshots => (), "clear_snapshots", Changes;
    ClearOldSnapshots => (), "clear_old_snapshots", Changes;

    CacheChange => (), "change_caches", Changes;
    GetAuthCache => AuthCacheInfo, "auth_cache", Reads;
    AuthCacheChange => (), "change_auth_caches", Changes;

    GetHandoff => HandoffInfo, "handoff", Reads;
    HandoffChange => (), "change_handoff", Changes;
    GetPendingHints => Vec<PendingHintsInfo>, "pending_hints", Reads;

    GetStreams => Vec<StreamSessionInfo>, "streams", Reads;
    GetStreamThroughput => StreamThroughputInfo, "stream_throughput", Reads;
    SetStreamThroughput => (), "set_stream_throughput", Changes;

    GetTraceProbability => f64, "trace_probability", Reads;
    SetTraceProbability => (), "set_trace_probability", Changes;
    // milliseconds
    GetTimeout => u64, "timeout", Reads;
    SetTimeout => (), "set_timeout", Changes;
    // names of keys with their values
    GetGuardrails => Vec<(String, Option<String>)>, "guardrails", Reads;
    SetGuardrails => (), "set_guardrails", Changes;
    // loggers with their levels, the root first
    GetLoggingLevels => Vec<(String, String)>, "logging_levels", Reads;
    SetLoggingLevel => (), "set_logging_level", Changes;
    ReloadCertificates => (), "reload_certificates", Changes;

    SampleRequest => Samples, "sample", Changes;
    // false: the tables are being sampled already
    ScheduleSampling => bool, "schedule_sampling", Changes;
    // false: there is no such job
    StopSampling => bool, "stop_sampling", Changes;
    // keyspaces and tables that are sampled again and again
    GetSamplingJobs => Vec<(String, String)>, "sampling_jobs", Reads;

    GetProfile => Profile, "profile", Changes;

    GetSlowStatements => SlowStatements, "slow_statements", Shows;
    GetLog => Vec<LogEntry>, "log", Shows;
    GetSchema => Vec<SchemaObject>, "schema", Shows;
}
