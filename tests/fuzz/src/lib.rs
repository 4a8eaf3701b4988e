//! Every decoder fed with any bytes. A [`Target`] is a decoder: a body that takes bytes and asserts
//! what must hold, and seeds for it, made from the files of Cassandra in `testdata/fixtures`.
//!
//! `fuzz/` has a libFuzzer program for each target (`fuzz/run`), which calls [`run`]; `cargo test
//! -p fuzzing` feeds each body its seeds, some thousands of [`mutate`]d ones and the inputs of
//! `fuzz/regressions/<target>/`, within a limit of memory.

#![allow(clippy::disallowed_methods)] // reads the fixtures, as any test may

pub mod bodies;
pub mod fixtures;
pub mod mutate;
pub mod seeds;

use std::path::{Path, PathBuf};

/// A decoder under test.
pub struct Target {
    /// Its name, also of its program in `fuzz/fuzz_targets` and of its folder of regressions.
    pub name: &'static str,
    /// Returns when the bytes were read or refused; a panic is a defect.
    pub body: fn(&[u8]),
    /// Small inputs that are read to the end.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many mutations the everyday test tries.
    pub rounds: usize,
}

const fn target(name: &'static str, body: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>, rounds: usize) -> Target {
    Target { name, body, seeds, rounds }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target("statistics", sstable::fuzzing::statistics, seeds::sstable::statistics, 800),
    target("cardinality", sstable::fuzzing::cardinality, seeds::sstable::cardinality, 500),
    target("compression_info", sstable::fuzzing::compression_info, seeds::sstable::compression_info, 3000),
    target("chunk", sstable::fuzzing::chunk, seeds::sstable::chunk, 3000),
    target("crc", sstable::fuzzing::crc, seeds::sstable::crc, 1500),
    target("filter", sstable::fuzzing::filter, seeds::sstable::filter, 3000),
    target("partition_index", sstable::fuzzing::partition_index, seeds::sstable::partition_index, 1000),
    target("row_index", sstable::fuzzing::row_index, seeds::sstable::row_index, 2000),
    target("attached_keys", sstable::fuzzing::attached_keys, seeds::sstable::attached_keys, 2000),
    target("attached_graph", sstable::fuzzing::attached_graph, seeds::sstable::attached_graph, 2000),
    target("attached_terms", sstable::fuzzing::attached_terms, seeds::sstable::attached_terms, 2000),
    target("big_index", sstable::fuzzing::big_index, seeds::sstable::big_index, 800),
    target("rows", sstable::fuzzing::rows, seeds::sstable::rows, 2000),
    target("names", sstable::fuzzing::names, seeds::sstable::names, 3000),
    target("txn_log", bodies::txn_log, seeds::sstable::txn_log, 1000),
    target("sstable", bodies::whole::sstable, seeds::sstable::whole, 1500),
    target("commitlog", storage::commitlog::fuzzing::segment, seeds::other::segments, 400),
    target("mutation", bodies::mutation, seeds::other::mutations, 2000),
    target("manifest", bodies::manifest, seeds::other::manifests, 1000),
    target("schema_rows", bodies::schema_rows::schema_rows, seeds::other::schema_rows, 1000),
    target("java_body", bodies::functions::java, seeds::functions::java, 2000),
    target("wasm_body", bodies::functions::wasm, seeds::functions::wasm, 1000),
    target("cql", bodies::cql, seeds::other::statements, 2000),
    target("config", bodies::config, seeds::other::configs, 1000),
    target("type_names", bodies::type_names, seeds::other::type_names, 3000),
    target("values", bodies::values, seeds::other::values, 2000),
    target("paging_state", cql::fuzzing::paging_state, cql::fuzzing::paging_states, 3000),
    target("request", bodies::request, seeds::other::requests, 3000),
    target("segment", bodies::segment, seeds::other::envelopes, 2000),
    target("compressed", bodies::compressed, seeds::other::compressed, 2000),
    target("handshake", bodies::internode::handshake, seeds::internode::handshakes, 3000),
    target("link", bodies::internode::link, seeds::internode::links, 1000),
    target("hints", bodies::hints::file, seeds::hints::files, 1500),
    target("message", bodies::internode::message, seeds::internode::messages, 3000),
    target("paxos", bodies::paxos::payload, seeds::paxos::payloads, 3000),
    target("repair", bodies::repair::payload, seeds::repair::payloads, 3000),
    target("stream", bodies::stream::link, seeds::stream::links, 1000),
    target("answer", bulk::fuzzing::answers, bulk::fuzzing::seeds, 3000),
    target("backup", bodies::backup, seeds::other::backups, 1000),
    target("read_request", bodies::reads::request, seeds::reads::requests, 3000),
    target("read_answer", bodies::reads::answer, seeds::reads::answers, 2000),
];

/// Feeds the body of a target.
///
/// # Panics
/// When there is no target of that name, and when the body found a defect.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of that name").body)(data);
}

/// The root of the project.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("tests/fuzz stands two levels below the root")
}

/// Inputs that once found a defect in a target.
pub fn regressions(target: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join("fuzz/regressions").join(target)) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}
