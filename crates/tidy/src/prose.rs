//! Comments in plain English, as far as a machine can check: lines end at column 100, and a comment
//! names its subject instead of beginning with a pronoun.

use crate::{SourceFile, Tree};

/// The last column of a comment.
const COLUMN_MAX: usize = 100;

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

/// Words behind "The same" where it names no thing: "The same for a view" is the same of nothing
/// that is named, "The same cell with a path" is a cell.
const BEHIND_THE_SAME: [&str; 15] = [
    "after", "as", "at", "before", "for", "from", "in", "of", "on", "once", "outside", "to", "where", "with", "without",
];

/// Comments that are too long or name no subject.
pub fn check(tree: &Tree) -> Vec<String> {
    tree.rust().flat_map(findings).collect()
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
    let pronoun = PRONOUNS.into_iter().find(|(word, _)| text.strip_prefix(word).is_some_and(ends_word));
    pronoun.or_else(|| is_same_of_nothing(text).then_some(("The same", "name the thing: \"As `read`, for …\"")))
}

fn is_same_of_nothing(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("The same") else { return false };
    let word = rest.split(|next: char| !next.is_alphanumeric()).nth(1).unwrap_or_default();
    rest.starts_with([',', '.']) || BEHIND_THE_SAME.contains(&word)
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
    fn the_same_of_nothing_is_found() {
        let text =
            "// The same, lent.\nfn f() {}\n/// The same for views.\nfn g() {}\n/// The same cell with a path.\n";
        let lines: Vec<String> = findings(&file("a.rs", text)).iter().map(|found| found[..6].to_owned()).collect();
        assert_eq!(lines, ["a.rs:1", "a.rs:3"]);
    }
}
