//! Names of types, as CQL and as class names: what is read prints to something that reads as the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = types::cql_name::parse(text, &|_| None);
    if let Ok((ty, reversed)) = types::marshal::parse(text) {
        let printed = types::marshal::print(&ty, reversed);
        assert_eq!(types::marshal::parse(&printed).ok(), Some((ty, reversed)), "{printed}");
    }
});
