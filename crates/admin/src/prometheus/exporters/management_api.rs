//! The figures of `/metrics` under the names of the management API's agent, which Reaper asks for:
//! `/metrics?name=PREFIX` gives the families whose names begin so.
//!
//! The agent makes a name of each metric of Cassandra by one rule: the metric `PercentRepaired` of
//! a table is `org_apache_cassandra_metrics_table_percent_repaired`. Reaper finds a value only by
//! its decimal point.

use super::{COUNTS, Figures, LATENCIES, TABLES, labels};
use crate::prometheus::{EVERY_OFFSET, EVERY_SECOND_OFFSET, Exposition, Form};
use crate::verbs::PoolStats;

const HELP: &str = "As the management API names it.";

/// Writes the figures whose names begin with one of these prefixes; without prefixes all.
pub(in crate::prometheus) fn management_api(figures: &Figures, prefixes: &[String]) -> Vec<u8> {
    let mut out = Exposition::new(Form::Text);
    write(figures, &mut out);
    let text = String::from_utf8(out.into_bytes()).expect("all samples are texts");
    chosen(&text, prefixes).into_bytes()
}

fn write(figures: &Figures, out: &mut Exposition) {
    let node = &figures.node;
    let place = [
        ("host", node.host_id.as_str()),
        ("instance", node.address.as_str()),
        ("cluster", node.cluster_name.as_str()),
        ("datacenter", node.data_center.as_str()),
        ("rack", node.rack.as_str()),
    ];
    let named = |name: &str| format!("org_apache_cassandra_metrics_{name}");
    for (name, value) in [
        ("storage_load", node.load),
        ("storage_exceptions", node.exceptions),
        ("client_connected_native_clients", figures.metrics.connections),
        ("compaction_pending_tasks", figures.pending_compactions()),
        ("compaction_completed_tasks", figures.compactions.completed),
        ("compaction_bytes_compacted", figures.compactions.bytes_compacted),
        ("commit_log_total_commit_log_size", figures.metrics.commitlog.size),
        ("commit_log_pending_tasks", figures.metrics.commitlog.pending),
    ] {
        out.family(&named(name), "gauge", HELP).sample("", &place, value as f64);
    }
    type OfPool = fn(&PoolStats) -> u64;
    let of_pools: [(&str, OfPool); 5] = [
        ("active_tasks", |pool| pool.active),
        ("pending_tasks", |pool| pool.pending),
        ("completed_tasks", |pool| pool.completed),
        ("currently_blocked_tasks", |pool| pool.blocked),
        ("total_blocked_tasks", |pool| pool.all_time_blocked),
    ];
    for (name, figure) in of_pools {
        let mut family = out.family(&named(&format!("thread_pools_{name}")), "gauge", HELP);
        for pool in &figures.pools {
            let labels: Vec<_> = place.into_iter().chain([("pool_name", pool.name.as_str())]).collect();
            family.sample("", &labels, figure(pool) as f64);
        }
    }
    let mut dropped = out.family(&named("dropped_message_dropped_total"), "counter", HELP);
    for one in &figures.messages {
        let labels: Vec<_> = place.into_iter().chain([("message_type", one.verb.as_str())]).collect();
        dropped.sample("", &labels, one.dropped as f64);
    }
    drop(dropped);
    let mut latencies = out.family(&named("client_request_latency"), "histogram", HELP);
    for ([scope, ..], data) in figures.requests() {
        let labels: Vec<_> = place.into_iter().chain([("request_type", scope)]).collect();
        latencies.histogram(&labels, data, 1.0, EVERY_OFFSET);
    }
    drop(latencies);
    let of_table = |table| place.into_iter().chain(labels(table)).collect::<Vec<(&str, &str)>>();
    for one in TABLES {
        let mut family = out.family(&named(&format!("table_{}", one.mcac.trim_end_matches("_total"))), "gauge", HELP);
        figures.tables.iter().for_each(|table| family.sample("", &of_table(table), (one.figure)(table)));
    }
    let latencies = LATENCIES.iter().map(|one| (one, EVERY_SECOND_OFFSET));
    for ((_, _, name, histogram), step) in latencies.chain(COUNTS.iter().map(|one| (one, EVERY_OFFSET))) {
        let mut family = out.family(&named(&format!("table_{name}")), "histogram", HELP);
        for table in &figures.tables {
            family.histogram(&of_table(table), histogram(table), 1.0, step);
        }
    }
}

/// The families that are asked for, whole numbers with a decimal point.
fn chosen(text: &str, prefixes: &[String]) -> String {
    let mut is_chosen = true;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# HELP ") {
            is_chosen = prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()));
        }
        if !is_chosen {
            continue;
        }
        out.push_str(line);
        let digits = line.rsplit(' ').next().map_or("", |value| value.trim_start_matches('-'));
        if !line.starts_with('#') && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str(".0");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::fake;

    fn text(prefixes: &[&str]) -> String {
        let figures = Figures::ask(&*fake()).expect("figures");
        let prefixes: Vec<String> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        String::from_utf8(management_api(&figures, &prefixes)).expect("UTF-8")
    }

    /// The four prefixes that Reaper 4.2 asks for.
    #[test]
    fn reaper_finds_what_it_asks_for() {
        for (prefix, label, end) in [
            ("org_apache_cassandra_metrics_thread_pools_pending_tasks", "pool_name=\"ReadStage\"", ".0"),
            ("org_apache_cassandra_metrics_dropped_message", "message_type=\"READ_REQ\"", " 2.0"),
            ("org_apache_cassandra_metrics_client_request_latency", "request_type=\"Read\"", ".0"),
            ("org_apache_cassandra_metrics_table_percent_repaired", "keyspace=\"shop\",table=\"orders\"", ".0"),
        ] {
            let text = text(&[prefix]);
            let sample = text.lines().find(|line| line.contains(label)).unwrap_or_else(|| panic!("{prefix}: {text}"));
            assert!(sample.starts_with(prefix) && sample.ends_with(end), "{sample}");
            let others = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with(prefix));
            assert_eq!(others.count(), 0, "{text}");
        }
    }

    #[test]
    fn without_a_prefix_there_is_everything_once() {
        let text = text(&[]);
        let mut types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        assert!(all > 40 && types.len() == all, "{text}");
        let samples = chosen("# HELP a b\na 3\na{l=\"x\"} 0.5\na{l=\"y\"} -1\n", &[]);
        assert_eq!(samples, "# HELP a b\na 3.0\na{l=\"x\"} 0.5\na{l=\"y\"} -1.0\n");
    }
}
