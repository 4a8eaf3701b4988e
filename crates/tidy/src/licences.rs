//! Each crate that we use comes from the registry of crates, and has a licence that `deny.toml`
//! allows. The long form, with advisories, is `cargo deny check`.

use std::collections::BTreeSet;

/// The one place from which crates come.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Sources in the text of Cargo.lock that are not the registry.
pub fn sources(lock: &str) -> Vec<String> {
    let named = lock.lines().filter_map(|line| line.strip_prefix("source = \"")?.strip_suffix('"'));
    let others: BTreeSet<&str> = named.filter(|source| *source != REGISTRY).collect();
    others.into_iter().map(|source| format!("Cargo.lock: `{source}`: use a crate of the registry")).collect()
}

/// The licences that `deny.toml` allows.
pub fn allowed(deny: &str) -> BTreeSet<&str> {
    let list = deny.split_once("[licenses]").and_then(|(_, rest)| rest.split_once("allow = [")).map(|(_, rest)| rest);
    let list = list.and_then(|rest| rest.split(']').next()).unwrap_or_default();
    list.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")).collect()
}

/// Crates whose licence is not allowed. `crates`: names with the licences of their manifests.
pub fn licences(crates: &[(String, Option<String>)], allowed: &BTreeSet<&str>) -> Vec<String> {
    let fits = |licence: &Option<String>| licence.as_deref().is_some_and(|licence| is_allowed(licence, allowed));
    let wrong = crates.iter().filter(|(_, licence)| !fits(licence));
    wrong
        .map(|(name, licence)| {
            format!(
                "{name}: licence {}: use another crate, or allow it in deny.toml",
                licence.as_deref().unwrap_or("none")
            )
        })
        .collect()
}

/// Whether one choice of the expression needs only allowed licences. `/` is the old form of OR;
/// parentheses hold a choice.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let fits = choice(&mut rest, allowed);
    fits && rest.is_empty()
}

/// `a OR b`, of which each is `c AND d`.
fn choice(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut fits = all(words, allowed);
    while let Some(("OR", rest)) = words.split_first().map(|(word, rest)| (*word, rest)) {
        *words = rest;
        fits |= all(words, allowed);
    }
    fits
}

fn all(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut fits = one(words, allowed);
    while let Some(("AND", rest)) = words.split_first().map(|(word, rest)| (*word, rest)) {
        *words = rest;
        fits &= one(words, allowed);
    }
    fits
}

/// A licence, which an exception behind it makes no stricter, or a choice in parentheses.
fn one(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let Some((word, rest)) = words.split_first() else { return false };
    *words = rest;
    if *word == "(" {
        let fits = choice(words, allowed);
        let Some((")", rest)) = words.split_first().map(|(word, rest)| (*word, rest)) else { return false };
        *words = rest;
        return fits;
    }
    if let ["WITH", _, rest @ ..] = *words {
        *words = rest;
    }
    allowed.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let allowed = BTreeSet::from(["MIT", "ISC"]);
        for fits in [
            "MIT",
            "GPL-3.0 OR MIT",
            "GPL-3.0/MIT",
            "MIT AND ISC",
            "(GPL-3.0 OR MIT) AND ISC",
            "MIT WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(is_allowed(fits, &allowed), "{fits}");
        }
        for refused in ["GPL-3.0", "", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "(MIT", "MIT ISC"] {
            assert!(!is_allowed(refused, &allowed), "{refused}");
        }
        let crates = [
            ("a".to_owned(), Some("GPL-3.0".to_owned())),
            ("b".to_owned(), None),
            ("c".to_owned(), Some("MIT".to_owned())),
        ];
        assert_eq!(licences(&crates, &allowed).len(), 2);
    }

    #[test]
    fn sources_and_the_list() {
        let lock = format!("source = \"{REGISTRY}\"\nsource = \"git+https://example.org/x#1\"\n");
        assert_eq!(sources(&lock).len(), 1);
        assert_eq!(allowed("[licenses]\nallow = [\n    \"MIT\",\n    \"ISC\",\n]\n"), BTreeSet::from(["ISC", "MIT"]));
    }
}
