//! Target `attached_graph` of tests/fuzz, as a program of libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::run("attached_graph", data));
