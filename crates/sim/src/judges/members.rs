//! Members agree after quiet: each of them knows the same members with the same tokens, and none
//! is on its way in or out.

use std::collections::BTreeMap;

use super::Finding;

/// The members that a node knows: by their names, the tokens and the part in the ring as text.
pub type Known = BTreeMap<String, String>;

/// Judges the members that each member knows, by its name, against the real members.
pub fn check(members: &Known, known: &BTreeMap<String, Known>) -> Vec<Finding> {
    let differs = known.iter().filter(|(_, known)| *known != members);
    let finding = |(who, known): (&String, &Known)| {
        let what = format!("{who} knows the members {known:?}, and they are {members:?}");
        Finding { judge: "members", what }
    };
    differs.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_others_is_found() {
        let members = Known::from([("a".to_owned(), "N 1".to_owned())]);
        let other = Known::from([("a".to_owned(), "L 1".to_owned())]);
        let known = BTreeMap::from([("a".to_owned(), members.clone()), ("b".to_owned(), other)]);
        let findings = check(&members, &known);
        assert!(findings.len() == 1 && findings[0].what.starts_with("b knows"), "{findings:?}");
    }
}
