//! Which seeds a model test runs: few in the everyday run, others on demand.

use std::ops::Range;

/// The seeds of `HELENUS_SEEDS` (`a..b`, or a number of seeds from 0), else the first `everyday`.
pub fn seeds(everyday: u64) -> Range<u64> {
    let Ok(text) = std::env::var("HELENUS_SEEDS") else { return 0..everyday };
    let number = |text: &str| text.trim().parse().expect("HELENUS_SEEDS is a number or a..b");
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&text),
    }
}

/// Runs each seed; fails at the end if any failed, and names them.
pub fn each(everyday: u64, run: impl Fn(u64)) {
    let failed: Vec<u64> = seeds(everyday)
        .filter(|seed| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(*seed))).is_err())
        .collect();
    assert!(failed.is_empty(), "seeds that failed (run one with HELENUS_SEEDS=a..b): {failed:?}");
}
