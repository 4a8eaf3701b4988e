//! The checks that passed and those that failed; the last line is `N passed, N failed`.

use crate::Outcome;

/// The sum of a run.
#[derive(Default)]
pub struct Report {
    passed: u64,
    failed: u64,
}

impl Report {
    /// Counts one check; what is wrong is printed.
    pub fn check(&mut self, outcome: Outcome, what: impl FnOnce() -> String) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(error) => {
                self.failed += 1;
                println!("FAIL {}: {error}", what());
            }
        }
    }

    /// Prints the sum.
    pub fn end(&self) -> Outcome {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed > 0 { Err("not all was right".into()) } else { Ok(()) }
    }
}
