//! Times of a kind of query over its runs, and the count of what was right and wrong.

use std::time::Duration;

/// Counts, and prints what is wrong as it happens.
#[derive(Default)]
pub struct Report {
    passed: u64,
    failed: u64,
}

/// How many wrong answers are printed in full.
const SHOWN_MAX: u64 = 20;

impl Report {
    /// Counts an answer.
    pub fn check(&mut self, right: bool, what: impl FnOnce() -> String) {
        if right {
            self.passed += 1;
            return;
        }
        self.failed += 1;
        if self.failed <= SHOWN_MAX {
            println!("WRONG {}", what());
        }
    }

    /// Prints a line of times: minimum, 80th and 95th percentile, maximum, in microseconds.
    pub fn times(&self, table: &str, width: u64, kind: &str, times: &mut [Duration]) {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_micros();
        println!("{table:<16} {width:>9} {kind:<22} {:>7} {:>7} {:>7} {:>7}", at(0), at(80), at(95), at(100));
    }

    /// Prints the sum; an error when something was wrong.
    pub fn end(self) -> crate::Outcome {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { Ok(()) } else { Err("wrong answers".into()) }
    }
}
