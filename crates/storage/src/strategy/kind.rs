//! Kinds of work on SSTables, by Cassandra's names. Agrees with
//! `org.apache.cassandra.db.compaction.OperationType`.

/// The operations on SSTables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A compaction that a strategy chose.
    Compaction,
    /// One SSTable that a strategy chose for its tombstones.
    TombstoneCompaction,
    /// All SSTables compacted into one.
    MajorCompaction,
    /// Each SSTable written again.
    Upgrade,
    /// Each SSTable written again, as far as it can be read.
    Scrub,
    /// Each SSTable read; nothing is written.
    Verify,
    /// Each SSTable written again without the data that others delete.
    GarbageCollect,
    /// Each SSTable written again without the partitions of other nodes.
    Cleanup,
    /// Each SSTable moved to the directory that its tokens belong to.
    Relocate,
    /// An index made from the rows of its table.
    IndexBuild,
    /// A materialized view made from the rows of its base table.
    ViewBuild,
    /// The partitions of a table hashed for a repair; nothing is written.
    Validation,
    /// Data of an incremental repair put apart from the rest.
    Anticompaction,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::Compaction,
        Self::TombstoneCompaction,
        Self::MajorCompaction,
        Self::Upgrade,
        Self::Scrub,
        Self::Verify,
        Self::GarbageCollect,
        Self::Cleanup,
        Self::Relocate,
        Self::IndexBuild,
        Self::ViewBuild,
        Self::Validation,
        Self::Anticompaction,
    ];

    /// Whether the operation writes about as many bytes of SSTables as it reads.
    pub fn writes_sstables(self) -> bool {
        let only_reads = [Self::Verify, Self::Relocate, Self::IndexBuild, Self::ViewBuild, Self::Validation];
        !only_reads.contains(&self)
    }

    /// The name in `compactionstats`, `sstable_tasks` and the history.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compaction => "Compaction",
            Self::TombstoneCompaction => "Tombstone Compaction",
            Self::MajorCompaction => "Major compaction",
            Self::Upgrade => "Upgrade sstables",
            Self::Scrub => "Scrub",
            Self::Verify => "Verify",
            Self::GarbageCollect => "Remove deleted data",
            Self::Cleanup => "Cleanup",
            Self::Relocate => "Relocate sstables to correct disk",
            Self::IndexBuild => "Secondary index build",
            Self::ViewBuild => "View build",
            Self::Validation => "Validation",
            Self::Anticompaction => "Anticompaction after repair",
        }
    }

    /// The word of `nodetool stop` for the operation.
    pub fn word(self) -> &'static str {
        match self {
            Self::Compaction => "COMPACTION",
            Self::TombstoneCompaction => "TOMBSTONE_COMPACTION",
            Self::MajorCompaction => "MAJOR_COMPACTION",
            Self::Upgrade => "UPGRADE_SSTABLES",
            Self::Scrub => "SCRUB",
            Self::Verify => "VERIFY",
            Self::GarbageCollect => "GARBAGE_COLLECT",
            Self::Cleanup => "CLEANUP",
            Self::Relocate => "RELOCATE",
            Self::IndexBuild => "INDEX_BUILD",
            Self::ViewBuild => "VIEW_BUILD",
            Self::Validation => "VALIDATION",
            Self::Anticompaction => "ANTICOMPACTION",
        }
    }

    /// The kind that a word of `nodetool stop` names; None: it names none.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}
