//! Comments in plain English, as far as a machine can check: lines end at column 100, and a comment
//! names its subject instead of beginning with a pronoun.
//!
//! Crates whose comments were written before this rule have an allowance, a number of findings, in
//! `prose/allowance.txt`. It only shrinks: more findings than allowed fail, and so does an
//! allowance that could be lowered by [`SLACK`] or more. Every other crate has none.

use std::collections::BTreeMap;

use crate::{SourceFile, Tree};

/// The last column of a comment.
const COLUMN_MAX: usize = 100;

/// An allowance that exceeds the findings by this number is too high. Not 1, because several
/// changes that are made side by side would then all change the same line.
const SLACK: usize = 200;

/// Lines `area findings`; an area is a crate, or the first directory outside of `crates/`.
const ALLOWANCE: &str = include_str!("prose/allowance.txt");

/// First words that name no subject, each with the sentence that is wanted.
const PRONOUNS: [(&str, &str); 7] = [
    ("What", "name the thing: \"The columns that …\""),
    ("Who", "name the actor: \"The caller that …\""),
    ("Whoever", "name the actor: \"A reader that …\""),
    ("Whose", "name the owner"),
    ("Those", "name the things: \"Rows that …\""),
    ("Of them", "name the things again: \"Requests that …\""),
    ("For ever", "say when the value changes: \"Never changes\""),
];

/// Findings beyond the allowance, and allowances that are too high.
pub fn check(tree: &Tree) -> Vec<String> {
    judge(tree.rust(), &allowances(ALLOWANCE))
}

fn allowances(text: &str) -> BTreeMap<&str, usize> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(area, count)| (area, count.parse().unwrap_or(0))).collect()
}

fn judge<'a>(files: impl Iterator<Item = &'a SourceFile>, allowed: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut by_area: BTreeMap<&str, Vec<String>> = allowed.keys().map(|area| (*area, Vec::new())).collect();
    for file in files {
        by_area.entry(area(&file.path)).or_default().extend(findings(file));
    }
    by_area.into_iter().flat_map(|(area, found)| judge_area(area, found, allowed.get(area).copied())).collect()
}

fn judge_area(area: &str, found: Vec<String>, allowed: Option<usize>) -> Vec<String> {
    let count = found.len();
    match allowed {
        None => found,
        Some(allowed) if count > allowed => vec![format!(
            "{area}: {count} comments are too long or begin with a pronoun, {allowed} are allowed; for instance {}",
            found.last().map_or("", String::as_str)
        )],
        Some(allowed) if allowed - count >= SLACK || count == 0 => vec![format!(
            "{area}: {count} findings are left of {allowed}: {} in crates/tidy/src/prose/allowance.txt",
            if count == 0 { "delete its line".to_owned() } else { format!("write `{area} {count}`") }
        )],
        Some(_) => Vec::new(),
    }
}

/// `rows` for `crates/rows/src/cell.rs`, `tests` for `tests/wide/src/main.rs`.
fn area(path: &str) -> &str {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    path.split('/').next().unwrap_or(path)
}

fn findings(file: &SourceFile) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_comment = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        let Some(text) = comment(line) else {
            in_comment = false;
            continue;
        };
        if line.len() > COLUMN_MAX && line.chars().count() > COLUMN_MAX && !text.contains("://") {
            found.push(format!("{}:{number}: end the comment at column {COLUMN_MAX}", file.path));
        }
        if !in_comment && let Some((word, instead)) = pronoun(text) {
            found.push(format!("{}:{number}: the comment begins with `{word}`: {instead}", file.path));
        }
        in_comment = true;
    }
    found
}

/// The text of a line that is a comment and nothing else.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim_start())
}

fn pronoun(text: &str) -> Option<(&'static str, &'static str)> {
    let ends_word = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
    PRONOUNS.into_iter().find(|(word, _)| text.strip_prefix(word).is_some_and(ends_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn long_lines_and_pronouns_are_found() {
        let long = format!("    /// {}", "a".repeat(93));
        let fits = format!("    /// {}", "a".repeat(92));
        let url = format!("// https://{}", "a".repeat(100));
        let text = format!("{long}\nfn f() {{}}\n{fits}\nfn g() {{}}\n{url}\n");
        assert_eq!(findings(&file("a.rs", &text)), ["a.rs:1: end the comment at column 100"]);
        let text =
            "/// What it is.\nfn f() {}\n// Those here\n// Who there\n/// Whatever\nfn g() {}\n/// Of them: 1.\n";
        let lines: Vec<String> = findings(&file("a.rs", text)).iter().map(|found| found[..6].to_owned()).collect();
        assert_eq!(lines, ["a.rs:1", "a.rs:3", "a.rs:7"]);
    }

    #[test]
    fn the_allowance_only_shrinks() {
        let comments = |count: usize| file("crates/old/src/a.rs", &"/// What.\nfn f() {}\n".repeat(count));
        let judged = |count, allowed| judge([comments(count)].iter(), &allowances(allowed));
        assert_eq!(judged(3, "old 3\n"), Vec::<String>::new());
        assert_eq!(judged(3, "old 202\n"), Vec::<String>::new());
        assert!(judged(4, "old 3\n")[0].starts_with("old: 4 comments"));
        assert!(judged(3, "old 203\n")[0].contains("write `old 3`"));
        assert!(judged(0, "old 3\n")[0].contains("delete its line"));
        assert_eq!(judged(2, "").len(), 2);
    }

    #[test]
    fn areas_are_crates_and_directories() {
        assert_eq!(area("crates/rows/src/cell.rs"), "rows");
        assert_eq!(area("tests/wide/src/main.rs"), "tests");
    }
}
