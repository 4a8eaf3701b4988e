//! Judges: each looks at what was seen for one property, and says what is wrong in a sentence.

pub mod acknowledged;
pub mod atomic;
pub mod bounds;
pub mod counted;
pub mod equal;
pub mod invented;
pub mod linearizable;
pub mod monotonic;

use std::collections::BTreeMap;

use crate::history::Operation;

/// A judge's finding: the property that does not hold, and how that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The judge.
    pub judge: &'static str,
    /// The violation that the judge saw.
    pub what: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.judge, self.what)
    }
}

/// Operations by key, each in the order in which they began.
fn by_key(operations: &[Operation]) -> BTreeMap<u64, Vec<Operation>> {
    let mut keys: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    for operation in operations {
        keys.entry(operation.key).or_default().push(*operation);
    }
    keys
}

/// The judges of versioned keys. [`monotonic::check`] says what `ends` are.
pub fn of_versioned(operations: &[Operation], ends: &[u64]) -> Vec<Finding> {
    let mut findings = acknowledged::check(operations);
    findings.extend(invented::check(operations));
    findings.extend(monotonic::check(operations, ends));
    findings
}
