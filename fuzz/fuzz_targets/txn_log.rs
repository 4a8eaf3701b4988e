//! Target `txn_log` of tests/fuzz, as a program of libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::run("txn_log", data));
