//! Sizes in Cassandra's words. Agrees with `FBUtilities.prettyPrintMemory`.

/// A size as `28.617KiB`, `207B`.
pub fn memory_text(bytes: u64) -> String {
    let mut prefix = 0;
    while bytes >> (10 * (prefix + 1)) > 0 && prefix < 6 {
        prefix += 1;
    }
    match prefix {
        0 => format!("{bytes}B"),
        _ => format!(
            "{:.3}{}iB",
            bytes as f64 / (1u64 << (10 * prefix)) as f64,
            ["", "K", "M", "G", "T", "P", "E"][prefix]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_decimals() {
        let cases = [(0, "0B"), (207, "207B"), (1024, "1.000KiB"), (29_304, "28.617KiB"), (5 << 30, "5.000GiB")];
        for (bytes, expected) in cases {
            assert_eq!(memory_text(bytes), expected);
        }
    }
}
