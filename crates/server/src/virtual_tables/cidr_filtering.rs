//! `cidr_filtering_metrics_*`: logins are not filtered by address, so all figures are 0. Agrees
//! with `CIDRFilteringMetricsTable`.

use super::VirtualTable;
use super::row::VirtualRow;

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable::of_views("cidr_filtering_metrics_counts", |_| {
        vec![VirtualRow::default().text("name", "CIDR groups cache reload count").bigint("value", 0)]
    }),
    VirtualTable::of_views("cidr_filtering_metrics_latencies", |_| {
        [
            "CIDR checks latency (ns)",
            "CIDR groups cache reload latency (ns)",
            "Lookup IP in CIDR groups cache latency (ns)",
        ]
        .map(|name| {
            let figures = ["max", "p50th", "p95th", "p999th", "p99th"].into_iter();
            figures.fold(VirtualRow::default().text("name", name), |row, figure| row.double(figure, 0.0))
        })
        .into()
    }),
];
