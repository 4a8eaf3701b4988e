//! Samples of what a node does: `nodetool profileload` and `toppartitions`.

use serde::{Deserialize, Serialize};

/// What to sample.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SampleRequest {
    /// Of this keyspace; None: of all.
    pub keyspace: Option<String>,
    /// Of this table; None: of all.
    pub table: Option<String>,
    /// For how long.
    pub duration_millis: u64,
    /// Items kept for each table and sampler.
    pub capacity: usize,
    /// Items told of for each sampler.
    pub count: usize,
    /// Names of samplers.
    pub samplers: Vec<String>,
}

/// A sampled item.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// `keyspace.table`
    pub table: String,
    /// The partition's key, or a statement.
    pub value: String,
    /// How often, or how much.
    pub count: u64,
    /// The count is at most this much too high.
    pub error: u64,
}

/// The top of each sampler, by the sampler's name.
pub type Samples = Vec<(String, Vec<Sample>)>;

/// A sampler, for users.
pub struct SamplerInfo {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    title: &'static str,
    columns: &'static [Column],
}

enum Column {
    Table,
    Value(&'static str),
    Count(&'static str),
    Error,
}

const FREQUENCY: &[Column] = &[Column::Table, Column::Value("Partition"), Column::Count("Count"), Column::Error];

/// All of them, in the order in which they are shown.
pub const SAMPLERS: &[SamplerInfo] = &[
    SamplerInfo { name: "READS", title: "Frequency of reads by partition", columns: FREQUENCY },
    SamplerInfo { name: "WRITES", title: "Frequency of writes by partition", columns: FREQUENCY },
    SamplerInfo {
        name: "LOCAL_READ_TIME",
        title: "Longest read query times",
        columns: &[Column::Value("Query"), Column::Count("Microseconds")],
    },
    SamplerInfo {
        name: "READ_ROW_COUNT",
        title: "Partitions read with the most rows",
        columns: &[Column::Table, Column::Value("Partition"), Column::Count("Rows")],
    },
    SamplerInfo {
        name: "READ_TOMBSTONE_COUNT",
        title: "Partitions read with the most tombstones",
        columns: &[Column::Table, Column::Value("Partition"), Column::Count("Tombstones")],
    },
    SamplerInfo {
        name: "READ_SSTABLE_COUNT",
        title: "Partitions read with the most sstables",
        columns: &[Column::Table, Column::Value("Partition"), Column::Count("SSTables")],
    },
    SamplerInfo {
        name: "WRITE_SIZE",
        title: "Max mutation size by partition",
        columns: &[Column::Table, Column::Value("Partition"), Column::Count("Bytes")],
    },
    SamplerInfo { name: "CAS_CONTENTIONS", title: "Frequency of CAS contention by partition", columns: FREQUENCY },
];

impl Column {
    fn title(&self) -> &'static str {
        match self {
            Self::Table => "Table",
            Self::Value(title) | Self::Count(title) => title,
            Self::Error => "+/-",
        }
    }

    fn of(&self, sample: &Sample) -> String {
        match self {
            Self::Table => sample.table.clone(),
            Self::Value(_) => sample.value.clone(),
            Self::Count(_) => sample.count.to_string(),
            Self::Error => sample.error.to_string(),
        }
    }
}

impl SamplerInfo {
    /// Heads and cells of its table; the first column is empty, for the sake of its width.
    pub fn rows(&self, samples: &[Sample]) -> Vec<Vec<String>> {
        let indented = |cells: Vec<String>| std::iter::once("  ".to_owned()).chain(cells).collect();
        let heads = indented(self.columns.iter().map(|column| column.title().to_owned()).collect());
        let of = |sample: &Sample| indented(self.columns.iter().map(|column| column.of(sample)).collect());
        std::iter::once(heads).chain(samples.iter().map(of)).collect()
    }

    /// The line above its table.
    pub fn title(&self) -> String {
        format!("{}:", self.title)
    }
}
