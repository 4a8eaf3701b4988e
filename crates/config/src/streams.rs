//! The keys of streams between nodes: `stream*`, `inter_dc_stream_*`, `entire_sstable_*`.

use std::time::Duration;

use crate::reader::Reader;

/// How SSTables are streamed to and from other nodes. Operators change throttles while the node
/// runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Streams {
    /// internode_streaming_tcp_user_timeout: a peer that takes no byte for so long is given up; 0:
    /// never
    pub user_timeout: Duration,
    /// streaming_connections_per_host: sessions of a plan with one peer, at least 1
    pub connections_per_host: usize,
    /// streaming_keep_alive_period
    pub keep_alive: Duration,
    /// stream_transfer_task_timeout: a session in which nothing happens for so long fails
    pub silence_max: Duration,
    /// stream_entire_sstables: an SSTable of which all is wanted goes as its files are
    pub entire: bool,
    /// skip_stream_disk_space_check: what is announced is taken whether there is room or not
    pub skips_space_check: bool,
    /// cdc_on_repair_enabled: received rows of tables with `cdc = true` take the path of writes, so
    /// that they are captured; read where there is change data capture
    pub captures: bool,
    /// stream_throughput_outbound in bytes a second to all peers; 0: not throttled
    pub throughput: u64,
    /// inter_dc_stream_throughput_outbound in bytes a second, beside that, to peers of other data
    /// centers; 0: not throttled
    pub inter_dc_throughput: u64,
    /// entire_sstable_stream_throughput_outbound in bytes a second: in place of the first limit for
    /// SSTables that go whole; 0: not throttled
    pub entire_throughput: u64,
    /// entire_sstable_inter_dc_stream_throughput_outbound in bytes a second: in place of the second
    /// limit for these; 0: not throttled
    pub entire_inter_dc_throughput: u64,
}

impl Default for Streams {
    /// The values of cassandra.yaml of 5.0.
    fn default() -> Self {
        Self {
            user_timeout: Duration::from_secs(300),
            connections_per_host: 1,
            keep_alive: Duration::from_secs(300),
            silence_max: Duration::from_secs(12 * 3600),
            entire: true,
            skips_space_check: false,
            captures: true,
            throughput: 24 << 20,
            inter_dc_throughput: 24 << 20,
            entire_throughput: 24 << 20,
            entire_inter_dc_throughput: 24 << 20,
        }
    }
}

pub(crate) fn streams(reader: &mut Reader<'_>) -> Streams {
    let connections = reader.maybe_int("streaming_connections_per_host");
    let connections = connections.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    if connections.is_none() {
        reader.problem("streaming_connections_per_host", "must be positive");
    }
    Streams {
        connections_per_host: connections.unwrap_or(1),
        user_timeout: reader.duration("internode_streaming_tcp_user_timeout"),
        keep_alive: reader.duration("streaming_keep_alive_period"),
        silence_max: reader.duration("stream_transfer_task_timeout"),
        entire: reader.boolean("stream_entire_sstables"),
        skips_space_check: reader.boolean("skip_stream_disk_space_check"),
        captures: reader.boolean("cdc_on_repair_enabled"),
        throughput: reader.quantity("stream_throughput_outbound"),
        inter_dc_throughput: reader.quantity("inter_dc_stream_throughput_outbound"),
        entire_throughput: reader.quantity("entire_sstable_stream_throughput_outbound"),
        entire_inter_dc_throughput: reader.quantity("entire_sstable_inter_dc_stream_throughput_outbound"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn defaults_are_those_of_the_keys() {
        assert_eq!(crate::Config::default().streams, super::Streams::default());
    }
}
