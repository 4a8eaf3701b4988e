//! cassandra.yaml: any text is read or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = config::Config::load(Some(text), &[], data.len() % 2 == 0);
    }
});
