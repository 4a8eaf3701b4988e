//! Samples of what a node does: `nodetool profileload` and `toppartitions`.

use serde::{Deserialize, Serialize};

/// Samples what the node does for a while; the answer comes when the while is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SampleRequest {
    /// The keyspace; None: all.
    pub keyspace: Option<String>,
    /// The table of the keyspace; None: all.
    pub table: Option<String>,
    /// How long the sampling takes.
    pub duration_millis: u64,
    /// How many items are kept for each table and sampler; more make the counts exacter.
    pub capacity: usize,
    /// How many items are answered for each sampler.
    pub count: usize,
    /// Names of samplers, see [`SAMPLERS`].
    pub samplers: Vec<String>,
}

/// Samples again and again, each time after an interval, and writes the samples into the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduleSampling {
    /// The sample that is taken each time.
    pub sample: SampleRequest,
    /// From the beginning of one time to the beginning of the next; at least the duration of a
    /// sample.
    pub interval_millis: u64,
}

/// Ends the job of a table, or of a keyspace; without both all jobs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StopSampling {
    /// The keyspace that the job was begun with.
    pub keyspace: Option<String>,
    /// The table that the job was begun with.
    pub table: Option<String>,
}

/// Asks which tables are sampled again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetSamplingJobs {}

/// A sampled item.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// `keyspace.table`
    pub table: String,
    /// The partition's key, or a statement.
    pub value: String,
    /// How often the item was seen, or how much it took.
    pub count: u64,
    /// The count is at most this much too high.
    pub error: u64,
}

/// The top of each sampler, by the sampler's name.
pub type Samples = Vec<(String, Vec<Sample>)>;

/// A sampler as nodetool shows it.
pub struct SamplerInfo {
    /// Its name.
    pub name: &'static str,
    /// The title of its table.
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

/// All samplers, in the order in which they are shown.
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
