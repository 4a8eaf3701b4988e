//! `settings`: every key of cassandra.yaml with the value that is in force. Agrees with
//! `SettingsTable`.
//!
//! Names, old names, forms of values and the hiding of secrets are `config`'s. This file overlays
//! values that the start has chosen or nodetool has changed.

use admin::verbs::AuthCacheKind;
use cluster::operations::{caches, compaction, state};
use rows::{PartitionRange, ReadCommand};

use super::VirtualTable;
use super::row::VirtualRow;
use crate::handoff;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("settings", rows)];

/// The keys of a cache of `system_auth`: of its validity and of its update interval, each with the
/// key's old name, and of the number of its entries.
type CacheKeys = ([&'static str; 2], [&'static str; 2], &'static str);

const ROLES: CacheKeys = (
    ["roles_validity", "roles_validity_in_ms"],
    ["roles_update_interval", "roles_update_interval_in_ms"],
    "roles_cache_max_entries",
);
const PERMISSIONS: CacheKeys = (
    ["permissions_validity", "permissions_validity_in_ms"],
    ["permissions_update_interval", "permissions_update_interval_in_ms"],
    "permissions_cache_max_entries",
);
const CREDENTIALS: CacheKeys = (
    ["credentials_validity", "credentials_validity_in_ms"],
    ["credentials_update_interval", "credentials_update_interval_in_ms"],
    "credentials_cache_max_entries",
);

fn rows(services: &Services) -> Vec<VirtualRow> {
    let mut settings = services.guardrails.settings();
    let there = in_force(services).into_iter().chain(changed(services));
    for (name, value) in there.map(|(name, value)| (name, Some(value))).chain(changed_auth_caches(services)) {
        if let Ok(at) = settings.binary_search_by(|(known, _)| known.as_str().cmp(name)) {
            settings[at].1 = value;
        }
    }
    let rows = settings.iter();
    rows.map(|(name, value)| VirtualRow::default().text("name", name).maybe_text("value", value.as_deref())).collect()
}

/// The warning of a read that asks for one setting by the name that it had in Cassandra 4.0.
pub(super) fn warning(command: &ReadCommand) -> Option<String> {
    let table = &command.table;
    let PartitionRange::Key(key) = &command.range else { return None };
    if table.name != "settings" || table.keyspace != "system_views" {
        return None;
    }
    let old = std::str::from_utf8(&key.key).ok()?;
    let name = config::present_name(old)?;
    Some(format!("key '{old}' is deprecated; should switch to '{name}'"))
}

/// Keys whose value the configuration leaves open, or that nodetool can change, with the values in
/// force.
fn in_force(services: &Services) -> Vec<(&'static str, String)> {
    let node = &services.node;
    let options = state::options(node);
    let mebibytes = |bytes: usize| bytes >> 20;
    let data: Vec<String> = options.data_directories.iter().map(|path| path.display().to_string()).collect();
    let timeouts = node.timeouts();
    let usages = caches::usages(node);
    let [chunks, keys, cached_rows] = [usages.chunks, usages.keys, usages.rows].map(|usage| usage.capacity >> 20);
    let memtables = mebibytes(options.memtable_bytes);
    let log_space = mebibytes(usize::try_from(options.commitlog.total_space).unwrap_or(usize::MAX));
    let mut rows = vec![
        ("data_file_directories", format!("[{}]", data.join(", "))),
        ("commitlog_directory", options.commitlog_directory.display().to_string()),
        ("commitlog_total_space", format!("{log_space}MiB")),
        ("commitlog_total_space_in_mb", log_space.to_string()),
        ("memtable_heap_space", format!("{memtables}MiB")),
        ("memtable_heap_space_in_mb", memtables.to_string()),
        ("file_cache_size", format!("{chunks}MiB")),
        ("file_cache_size_in_mb", chunks.to_string()),
        ("key_cache_size", format!("{keys}MiB")),
        ("key_cache_size_in_mb", keys.to_string()),
        ("row_cache_size", format!("{cached_rows}MiB")),
        ("row_cache_size_in_mb", cached_rows.to_string()),
        ("concurrent_compactors", compaction::concurrency(node).to_string()),
        ("native_transport_port", node.identity.native.port().to_string()),
    ];
    let mutation = services.config.commitlog.max_mutation_size >> 10;
    rows.push(("max_mutation_size", format!("{mutation}KiB")));
    rows.push(("max_mutation_size_in_kb", mutation.to_string()));
    let prepared = services.prepared.capacity() >> 20;
    rows.push(("prepared_statements_cache_size", format!("{prepared}MiB")));
    rows.push(("prepared_statements_cache_size_mb", prepared.to_string()));
    for (name, old, timeout) in [
        ("cas_contention_timeout", "cas_contention_timeout_in_ms", timeouts.cas_contention),
        ("counter_write_request_timeout", "counter_write_request_timeout_in_ms", timeouts.counter_write),
        ("range_request_timeout", "range_request_timeout_in_ms", timeouts.range),
        ("read_request_timeout", "read_request_timeout_in_ms", timeouts.read),
        ("request_timeout", "request_timeout_in_ms", timeouts.misc),
        ("truncate_request_timeout", "truncate_request_timeout_in_ms", timeouts.truncate),
        ("write_request_timeout", "write_request_timeout_in_ms", timeouts.write),
    ] {
        rows.push((name, format!("{}ms", timeout.as_millis())));
        rows.push((old, timeout.as_millis().to_string()));
    }
    rows
}

/// Keys that nodetool has changed since the start. Others keep the text of the configuration.
fn changed(services: &Services) -> Vec<(&'static str, String)> {
    let (node, config) = (&services.node, &services.config);
    let mebibyte = 1 << 20;
    let at_start = config.compaction.throughput.unwrap_or(0);
    let old = Some(("compaction_throughput_mb_per_sec", mebibyte));
    let mut rates = vec![("compaction_throughput", old, compaction::rate(node), at_start)];
    let (now, at_start, megabit) = (node.stream_settings(), &config.streams, 125_000);
    let old = Some(("stream_throughput_outbound_megabits_per_sec", megabit));
    rates.push(("stream_throughput_outbound", old, now.throughput, at_start.throughput));
    let old = Some(("inter_dc_stream_throughput_outbound_megabits_per_sec", megabit));
    rates.push(("inter_dc_stream_throughput_outbound", old, now.inter_dc_throughput, at_start.inter_dc_throughput));
    let name = "entire_sstable_stream_throughput_outbound";
    rates.push((name, None, now.entire_throughput, at_start.entire_throughput));
    let name = "entire_sstable_inter_dc_stream_throughput_outbound";
    rates.push((name, None, now.entire_inter_dc_throughput, at_start.entire_inter_dc_throughput));
    let mut rows = Vec::new();
    for (name, old, rate, _) in rates.into_iter().filter(|(.., now, at_start)| now != at_start) {
        let is_whole = rate.is_multiple_of(mebibyte);
        rows.push((name, if is_whole { format!("{}MiB/s", rate / mebibyte) } else { format!("{rate}B/s") }));
        rows.extend(old.map(|(old, unit)| (old, (rate / unit).to_string())));
    }
    rows.extend(changed_handoff(services));
    rows
}

/// As [`changed`], for the settings of hinted handoff.
fn changed_handoff(services: &Services) -> Vec<(&'static str, String)> {
    let (now, at_start) = (services.node.handoff_settings(), handoff::settings(&services.config));
    let mut rows = Vec::new();
    if now.is_enabled != at_start.is_enabled {
        rows.push(("hinted_handoff_enabled", now.is_enabled.to_string()));
    }
    if now.disabled_data_centers != at_start.disabled_data_centers {
        let names: Vec<&str> = now.disabled_data_centers.iter().map(String::as_str).collect();
        rows.push(("hinted_handoff_disabled_datacenters", format!("[{}]", names.join(", "))));
    }
    if now.window != at_start.window {
        let millis = now.window.as_millis();
        rows.push(("max_hint_window", format!("{millis}ms")));
        rows.push(("max_hint_window_in_ms", millis.to_string()));
    }
    if now.throttle != at_start.throttle {
        let kibibytes = now.throttle >> 10;
        rows.push(("hinted_handoff_throttle", format!("{kibibytes}KiB")));
        rows.push(("hinted_handoff_throttle_in_kb", kibibytes.to_string()));
    }
    rows
}

/// Does the work of [`changed`] for the caches of `system_auth`. A node alone has no such caches.
/// A value None: the key is not set any more.
fn changed_auth_caches(services: &Services) -> Vec<(&'static str, Option<String>)> {
    let (Some(auth), at_start) = (&services.auth, &services.config.auth) else { return Vec::new() };
    let mut rows = Vec::new();
    // the keys of the roles are those of the datacenters, too: of two values the roles' is shown
    for (kind, at_start, (validity, interval, entries)) in [
        (AuthCacheKind::NetworkPermissions, &at_start.roles, ROLES),
        (AuthCacheKind::Roles, &at_start.roles, ROLES),
        (AuthCacheKind::Permissions, &at_start.permissions, PERMISSIONS),
        (AuthCacheKind::Credentials, &at_start.credentials, CREDENTIALS),
    ] {
        let Some(now) = auth.cache_settings(kind) else { continue };
        let validities = (now.validity != at_start.validity).then_some((validity, Some(now.validity)));
        let is_other = now.update_interval != at_start.update_interval;
        let intervals = is_other.then_some((interval, now.update_interval));
        for ([name, old], now) in validities.into_iter().chain(intervals) {
            let millis = now.map(|now| now.as_millis());
            rows.push((name, millis.map(|millis| format!("{millis}ms"))));
            rows.push((old, millis.map(|millis| millis.to_string())));
        }
        if now.entries_max != at_start.entries_max {
            rows.push((entries, Some(now.entries_max.to_string())));
        }
    }
    rows
}
