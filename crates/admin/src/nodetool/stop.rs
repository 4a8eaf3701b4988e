//! `nodetool stop`: compactions of a kind, or one of them, end early.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::StopRequest;

/// The kinds of compactions, in the words of Cassandra's `OperationType`.
const KINDS: &[&str] = &[
    "P0",
    "CLEANUP",
    "SCRUB",
    "UPGRADE_SSTABLES",
    "VERIFY",
    "MAJOR_COMPACTION",
    "RELOCATE",
    "GARBAGE_COLLECT",
    "FLUSH",
    "WRITE",
    "ANTICOMPACTION",
    "VALIDATION",
    "INDEX_BUILD",
    "VIEW_BUILD",
    "COMPACTION",
    "TOMBSTONE_COMPACTION",
    "UNKNOWN",
    "STREAM",
    "KEY_CACHE_SAVE",
    "ROW_CACHE_SAVE",
    "COUNTER_CACHE_SAVE",
    "INDEX_SUMMARY",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Use -id to stop a compaction by the specified id (compactionstats shows it)
    #[arg(long)]
    compaction_id: Option<String>,
    /// Supported types are COMPACTION, MAJOR_COMPACTION, TOMBSTONE_COMPACTION, SCRUB,
    /// UPGRADE_SSTABLES, VERIFY, RELOCATE, GARBAGE_COLLECT, VALIDATION
    #[arg(default_value = "UNKNOWN")]
    compaction_type: String,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let request = match self.compaction_id {
            Some(id) if !id.is_empty() => StopRequest::Id(id),
            _ if KINDS.contains(&self.compaction_type.as_str()) => StopRequest::Kind(self.compaction_type),
            _ => {
                let given = self.compaction_type;
                return usage(format!("compaction_type: can not convert \"{given}\" to a OperationType"));
            }
        };
        Ok(context.api.ask(&request)?)
    }
}
