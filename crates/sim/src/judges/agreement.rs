//! The nodes have one schema: after quiet all of them tell the same version, whichever changes came
//! to which of them first.
//!
//! Not checked: that the schema is the one that clients asked for; a change without an answer may
//! be in force or not.

use super::Finding;

/// The schema version of each node.
pub fn check(versions: &[[u8; 16]]) -> Vec<Finding> {
    let Some(first) = versions.first() else { return Vec::new() };
    let finding = |(number, version): (usize, &[u8; 16])| {
        let what = format!("node {number} has version {:x}, the first one {:x}", number_of(version), number_of(first));
        (version != first).then_some(Finding { judge: "agreement", what })
    };
    versions.iter().enumerate().filter_map(finding).collect()
}

fn number_of(version: &[u8; 16]) -> u128 {
    u128::from_be_bytes(*version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_or_a_finding_for_each_other_one() {
        assert_eq!(check(&[[1; 16], [1; 16], [1; 16]]), []);
        assert_eq!(check(&[[1; 16], [2; 16], [2; 16]]).len(), 2);
    }
}
