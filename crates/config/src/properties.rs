//! Properties files of Java (`java.util.Properties`): lines of names and values.

use std::collections::BTreeMap;

/// The names and values of a properties file of Java: comments, continued lines, escapes.
pub(crate) fn properties(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut lines = text.lines().map(|line| line.trim_start_matches(BLANK));
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_owned();
        while whole.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
            whole.pop();
            whole.push_str(lines.next().unwrap_or_default());
        }
        let (name, value) = name_and_value(&whole);
        found.insert(unescaped(name), unescaped(value));
    }
    found
}

const BLANK: [char; 3] = [' ', '\t', '\u{c}'];

/// Splits a line. The name ends at the first blank, `=` or `:` that is not escaped; blanks around
/// `=` and `:` do not count.
fn name_and_value(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = line.find(|letter: char| {
        let ends = !is_escaped && (BLANK.contains(&letter) || letter == '=' || letter == ':');
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(BLANK);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (name, value.trim_start_matches(BLANK))
}

fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        plain.push(match (letter, escaped) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            ('\\', Some('t')) => '\t',
            ('\\', Some('f')) => '\u{c}',
            ('\\', Some('u')) => {
                let code: String = letters.by_ref().take(4).collect();
                u32::from_str_radix(&code, 16).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            ('\\', Some(other)) => other,
            (letter, _) => letter,
        });
    }
    plain
}
