//! `caches`: the chunk cache; the others of Cassandra do not exist and are shown with nothing in them. Agrees with `CachesTable`.
//!
//! Rates are those since the start, not of the last fifteen minutes.

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("caches", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let chunks = &services.node.engine.chunk_cache;
    let (capacity, size, entries) = chunks.usage();
    let (hits, misses) = chunks.hits_and_misses();
    let shown = [
        ("chunks", capacity as u64, size, entries, hits, hits + misses),
        ("counters", 0, 0, 0, 0, 0),
        ("keys", 0, 0, 0, 0, 0),
        ("rows", 0, 0, 0, 0, 0),
    ];
    let uptime = services.uptime_seconds().max(1);
    shown
        .into_iter()
        .map(|(name, capacity, size, entries, hits, requests)| {
            let ratio = if requests == 0 { f64::NAN } else { hits as f64 / requests as f64 };
            VirtualRow::default()
                .text("name", name)
                .count("capacity_bytes", capacity)
                .count("size_bytes", size)
                .int("entry_count", int(entries))
                .count("hit_count", hits)
                .double("hit_ratio", ratio)
                .count("request_count", requests)
                .count("recent_hit_rate_per_second", hits / uptime)
                .count("recent_request_rate_per_second", requests / uptime)
        })
        .collect()
}
