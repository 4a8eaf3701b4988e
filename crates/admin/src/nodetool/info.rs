//! `nodetool info` and `nodetool version`: the node itself.
//!
//! There is no counter cache; its line shows an empty one.

use crate::nodetool::text::{decimals, file_size};
use crate::nodetool::{Context, Outcome};
use crate::verbs::{CacheInfo, GetMetrics, GetNode, NodeInfo};

/// Seconds between two saves of Cassandra's counter cache by default, which its line shows.
const COUNTER_CACHE_SAVE_PERIOD: u64 = 7200;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Display all tokens
    #[arg(short = 'T', long)]
    tokens: bool,
    /// Display per-keyspace counts of operations for invalid tokens
    #[arg(short = 'O', long)]
    out_of_range_ops: bool,
}

#[derive(clap::Args)]
pub(crate) struct VersionArgs {
    /// Include additional information
    #[arg(short = 'v', long)]
    verbose: bool,
}

impl VersionArgs {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let node = context.api.ask(&GetNode {})?;
        writeln!(context.out, "ReleaseVersion: {}", node.release_version)?;
        if self.verbose {
            writeln!(context.out, "HelenusVersion: {}", node.helenus_version)?;
        }
        Ok(())
    }
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let node = context.api.ask(&GetNode {})?;
        for (name, value) in self.lines(&node) {
            writeln!(context.out, "{name:<23}: {value}")?;
        }
        if self.out_of_range_ops {
            let foreign = context.api.ask(&GetMetrics {})?.foreign;
            let [head, keyspace] = ["Invalid Token Ops", "Keyspace"];
            writeln!(context.out, "{head:<23}: {keyspace:<48} {:>10} {:>10} {:>10}", "Read", "Write", "Paxos")?;
            for (keyspace, [reads, writes, paxos]) in &foreign.by_keyspace {
                writeln!(context.out, "{:<24} {keyspace:<48} {reads:>10} {writes:>10} {paxos:>10}", "")?;
            }
        }
        Ok(())
    }

    fn lines(&self, node: &NodeInfo) -> Vec<(&'static str, String)> {
        let megabytes = |bytes: u64| bytes as f64 / (1 << 20) as f64;
        let generation = if node.gossip_active { node.generation } else { 0 };
        let mut lines = vec![
            ("ID", node.host_id.clone()),
            ("Gossip active", node.gossip_active.to_string()),
            ("Native Transport active", node.native_transport_active.to_string()),
            ("Load", file_size(node.load)),
            ("Uncompressed load", file_size(node.uncompressed_load)),
            ("Generation No", generation.to_string()),
            ("Uptime (seconds)", node.uptime_seconds.to_string()),
            ("Heap Memory (MB)", format!("{:.2} / {:.2}", megabytes(node.memory_used), megabytes(node.memory_max))),
            ("Off Heap Memory (MB)", "0.00".to_owned()),
            ("Data Center", node.data_center.clone()),
            ("Rack", node.rack.clone()),
            ("Exceptions", node.exceptions.to_string()),
        ];
        lines.extend([
            ("Key Cache", saved_cache(&node.key_cache, node.key_cache_save_period)),
            ("Row Cache", saved_cache(&node.row_cache, node.row_cache_save_period)),
            ("Counter Cache", saved_cache(&CacheInfo::default(), COUNTER_CACHE_SAVE_PERIOD)),
        ]);
        lines.extend(chunk_cache(node));
        lines.push(("Percent Repaired", format!("{}%", schema::ident::java_double(node.percent_repaired))));
        lines.extend(self.token_lines(node));
        lines.push(("Bootstrap state", node.bootstrap_state.clone()));
        for (name, mode) in [
            ("Bootstrap failed", "JOINING_FAILED"),
            ("Decommissioning", "LEAVING"),
            ("Decommission failed", "DECOMMISSION_FAILED"),
        ] {
            lines.push((name, (node.mode == mode).to_string()));
        }
        lines
    }

    fn token_lines(&self, node: &NodeInfo) -> Vec<(&'static str, String)> {
        let tokens = &node.tokens;
        if ["STARTING", "JOINING", "JOINING_FAILED", "DECOMMISSIONED"].contains(&node.mode.as_str()) {
            return vec![("Token", "(node is not joined to the cluster)".to_owned())];
        }
        if self.tokens || tokens.len() == 1 {
            return tokens.iter().map(|token| ("Token", token.to_string())).collect();
        }
        vec![("Token", format!("(invoke with -T/--tokens to see all {} tokens)", tokens.len()))]
    }
}

fn hit_rate(cache: &CacheInfo) -> String {
    decimals((cache.requests > 0).then(|| cache.hits as f64 / cache.requests as f64), 3)
}

fn saved_cache(cache: &CacheInfo, save_period: u64) -> String {
    format!(
        "entries {}, size {}, capacity {}, {} hits, {} requests, {} recent hit rate, {save_period} save period in seconds",
        cache.entries,
        file_size(cache.size),
        file_size(cache.capacity),
        cache.hits,
        cache.requests,
        hit_rate(cache)
    )
}

fn chunk_cache(node: &NodeInfo) -> Option<(&'static str, String)> {
    let cache = &node.chunk_cache;
    if cache.capacity == 0 {
        return None;
    }
    let text = format!(
        "entries {}, size {}, capacity {}, {} misses, {} requests, {} recent hit rate, NaN microseconds miss latency",
        cache.entries,
        file_size(cache.size),
        file_size(cache.capacity),
        cache.requests - cache.hits.min(cache.requests),
        cache.requests,
        hit_rate(cache)
    );
    Some(("Chunk Cache", text))
}
