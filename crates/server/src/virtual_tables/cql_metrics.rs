//! `cql_metrics`: numbers of statements that were prepared and executed. Agrees with
//! `CQLMetricsTable`.

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("cql_metrics", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let (count, evicted) = services.prepared.count_and_evicted();
    let requests = &services.requests;
    let (prepared, regular) = (requests.prepared_statements.get(), requests.regular_statements.get());
    let ratio = if prepared + regular == 0 { 0.0 } else { prepared as f64 / (prepared + regular) as f64 };
    [
        ("prepared_statements_count", count as f64),
        ("prepared_statements_evicted", evicted as f64),
        ("prepared_statements_executed", prepared as f64),
        ("prepared_statements_ratio", ratio),
        ("regular_statements_executed", regular as f64),
    ]
    .into_iter()
    .map(|(name, value)| VirtualRow::default().text("name", name).double("value", value))
    .collect()
}
