//! Statements: any text is parsed or refused; what is parsed does not panic when dropped.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = cql::parse::parse(text);
    }
});
