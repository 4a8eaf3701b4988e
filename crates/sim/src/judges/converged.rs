//! Gossip converges: after quiet each node knows the facts that every other node tells of itself,
//! and takes it for alive.
//!
//! Not checked: values that change all the time (heartbeats, load).

use std::collections::BTreeMap;

use super::Finding;

/// The facts that one node knows of another or of itself, by name; among them whether it is alive.
pub type Facts = BTreeMap<String, String>;

/// The facts that one node knows, by the name of the node that they are about.
pub type View = BTreeMap<String, Facts>;

/// Judges the view of each node, which is given with the node's own name.
pub fn check(views: &[(String, View)]) -> Vec<Finding> {
    views
        .iter()
        .flat_map(|(teller, own)| views.iter().filter_map(|(hearer, view)| differ(teller, own, hearer, view)))
        .collect()
}

/// The first fact about a node that another node knows differently; None: there is none.
fn differ(teller: &str, own: &View, hearer: &str, view: &View) -> Option<Finding> {
    let none = Facts::new();
    let told = own.get(teller).unwrap_or(&none);
    let heard = view.get(teller).unwrap_or(&none);
    let name = told.keys().chain(heard.keys()).find(|name| told.get(*name) != heard.get(*name))?;
    let what =
        format!("{hearer} takes {name} of {teller} for {:?}, and {teller} tells {:?}", heard.get(name), told.get(name));
    Some(Finding { judge: "converged", what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(facts: &[(&str, &str)]) -> View {
        let of = |value: &str| Facts::from([("status".to_owned(), value.to_owned())]);
        facts.iter().map(|(node, value)| ((*node).to_owned(), of(value))).collect()
    }

    #[test]
    fn each_knows_what_each_tells() {
        let both = view(&[("a", "NORMAL"), ("b", "NORMAL")]);
        assert_eq!(check(&[("a".to_owned(), both.clone()), ("b".to_owned(), both.clone())]), []);
        let old = view(&[("a", "NORMAL"), ("b", "BOOT")]);
        assert_eq!(check(&[("a".to_owned(), old), ("b".to_owned(), both.clone())]).len(), 1);
        let unknown = view(&[("a", "NORMAL")]);
        assert_eq!(check(&[("a".to_owned(), unknown), ("b".to_owned(), both)]).len(), 1);
    }
}
