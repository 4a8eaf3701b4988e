//! Judges: each checks one property of what was observed in a run, and says what is wrong in a
//! sentence.

pub mod acknowledged;
pub mod agreement;
pub mod atomic;
pub mod bounds;
pub mod converged;
pub mod counted;
pub mod equal;
pub mod invented;
pub mod linearizable;
pub mod members;
pub mod monotonic;
pub mod repaired;

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

/// The judges that have ruled on a run, and what they have found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rulings {
    /// The judges, in the order in which they ruled.
    pub judges: Vec<&'static str>,
    /// Their findings; empty: all is well.
    pub findings: Vec<Finding>,
}

impl Rulings {
    /// Adds the ruling of a judge.
    pub fn add(&mut self, judge: &'static str, findings: Vec<Finding>) {
        assert!(findings.iter().all(|finding| finding.judge == judge), "a judge signs his findings");
        self.judges.push(judge);
        self.findings.extend(findings);
    }

    /// Adds the rulings of the judges of versioned keys. [`monotonic::check`] explains `ends`.
    pub fn add_versioned(&mut self, operations: &[Operation], ends: &[u64]) {
        self.add("acknowledged", acknowledged::check(operations));
        self.add("invented", invented::check(operations));
        self.add("monotonic", monotonic::check(operations, ends));
    }

    /// Whether a judge has a finding.
    pub fn has_found(&self, judge: &str) -> bool {
        self.findings.iter().any(|finding| finding.judge == judge)
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
