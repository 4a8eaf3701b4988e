//! `caches`: the caches of chunks, keys and rows. There is no cache of counters; its row shows an
//! empty one. Agrees with `CachesTable`.
//!
//! Rates are means since the start, not of the last fifteen minutes.

use cluster::operations::caches::{self, Usage};

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("caches", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let usages = caches::usages(&services.node);
    let shown =
        [("chunks", usages.chunks), ("counters", Usage::default()), ("keys", usages.keys), ("rows", usages.rows)];
    let uptime = services.uptime_seconds().max(1);
    shown
        .into_iter()
        .map(|(name, usage)| {
            let (hits, requests) = (usage.hits, usage.requests());
            let ratio = if requests == 0 { f64::NAN } else { hits as f64 / requests as f64 };
            VirtualRow::default()
                .text("name", name)
                .count("capacity_bytes", usage.capacity)
                .count("size_bytes", usage.size)
                .int("entry_count", int(usize::try_from(usage.entries).unwrap_or(usize::MAX)))
                .count("hit_count", hits)
                .double("hit_ratio", ratio)
                .count("request_count", requests)
                .count("recent_hit_rate_per_second", hits / uptime)
                .count("recent_request_rate_per_second", requests / uptime)
        })
        .collect()
}
