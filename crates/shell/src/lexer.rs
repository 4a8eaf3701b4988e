//! Words of CQL and of the shell's commands, and the ends of statements.
//!
//! The lexer accepts unfinished text, because a prompt shows and completes statements while they
//! are typed: an open string, quoted name, comment or `$$` body is a token that says so. The
//! server's own lexer refuses such text and stands elsewhere.

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Spaces and line ends.
    Space,
    /// `-- …`, `// …` or `/* … */`.
    Comment,
    /// A keyword or a name without quotes.
    Word,
    /// A name in quotes.
    Name,
    /// A string, or a body between `$$`.
    Text,
    /// A number, a uuid or a blob.
    Number,
    /// `;`.
    End,
    /// Any other character.
    Symbol,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: Kind,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
    /// Whether the text ends within the token: an open string or comment.
    pub open: bool,
}

impl Token {
    /// The characters of the token.
    pub fn text<'t>(&self, source: &'t str) -> &'t str {
        &source[self.start..self.end]
    }

    /// Whether the token has a meaning of its own.
    pub fn is_meaningful(&self) -> bool {
        !matches!(self.kind, Kind::Space | Kind::Comment)
    }
}

/// All tokens of a text, without a gap.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = source[start..].chars().next() {
        let (kind, length, open) = token(&source[start..], first);
        tokens.push(Token { kind, start, end: start + length, open });
        start += length;
    }
    tokens
}

fn token(rest: &str, first: char) -> (Kind, usize, bool) {
    let run = |wanted: fn(char) -> bool| rest.find(|c: char| !wanted(c)).unwrap_or(rest.len());
    let until = |skip: usize, end: &str| match rest[skip..].find(end) {
        Some(at) => (skip + at + end.len(), false),
        None => (rest.len(), true),
    };
    match first {
        _ if first.is_whitespace() => (Kind::Space, run(char::is_whitespace), false),
        '-' if rest.starts_with("--") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len()), false),
        '/' if rest.starts_with("//") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len()), false),
        '/' if rest.starts_with("/*") => {
            let (length, open) = until(2, "*/");
            (Kind::Comment, length, open)
        }
        '$' if rest.starts_with("$$") => {
            let (length, open) = until(2, "$$");
            (Kind::Text, length, open)
        }
        '\'' | '"' => {
            let (length, open) = quoted(rest, first);
            (if first == '"' { Kind::Name } else { Kind::Text }, length, open)
        }
        _ if first.is_ascii_digit() => {
            (Kind::Number, run(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-'), false)
        }
        _ if first.is_alphabetic() || first == '_' => (Kind::Word, run(|c| c.is_alphanumeric() || c == '_'), false),
        ';' => (Kind::End, 1, false),
        _ => (Kind::Symbol, first.len_utf8(), false),
    }
}

/// The length of a quoted token, in which a doubled quote stands for one; whether it is open.
fn quoted(rest: &str, quote: char) -> (usize, bool) {
    let mut at = 1;
    while let Some(found) = rest[at..].find(quote) {
        at += found + 1;
        match rest[at..].starts_with(quote) {
            true => at += 1,
            false => return (at, false),
        }
    }
    (rest.len(), true)
}

/// Commands of the shell, which end with their line where no `;` does.
const COMMANDS: [&str; 21] = [
    "?",
    "help",
    "consistency",
    "serial",
    "describe",
    "desc",
    "show",
    "source",
    "capture",
    "login",
    "tracing",
    "expand",
    "paging",
    "exit",
    "quit",
    "clear",
    "cls",
    "history",
    "format",
    "debug",
    "\\",
];

/// A statement in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'t> {
    /// The statement, without the `;` behind it and without comments around it.
    pub text: &'t str,
}

/// The statements at the beginning of `source`, and the rest behind them, in which no statement is
/// complete. Without `open_end` an unfinished rest is a statement too.
pub fn statements(source: &str, open_end: bool) -> (Vec<Statement<'_>>, &str) {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let (mut rest, mut at) = (0, 0);
    while at < tokens.len() {
        let Some(end) = statement_end(source, &tokens[at..], open_end) else { break };
        let of_it = &tokens[at..at + end];
        let mut meaningful = of_it.iter().filter(|token| token.is_meaningful() && token.kind != Kind::End);
        if let Some(first) = meaningful.next() {
            let last = meaningful.next_back().unwrap_or(first);
            // a semicolon within a batch belongs to it
            let text = &source[first.start..last.end];
            found.push(Statement { text });
        }
        at += end;
        rest = of_it.last().map_or(rest, |token| token.end);
    }
    (found, &source[rest..])
}

/// Number of tokens up to the end of the first statement; None: the statement is not complete.
fn statement_end(source: &str, tokens: &[Token], open_end: bool) -> Option<usize> {
    let mut words = tokens.iter().enumerate().filter(|(_, token)| token.is_meaningful());
    let (at, first) = match words.next() {
        Some(first) => first,
        // comments and spaces alone are complete, but for an open comment
        None if tokens.iter().any(|token| token.open) => return (!open_end).then_some(tokens.len()),
        None => return Some(tokens.len()),
    };
    let word = first.text(source).to_ascii_lowercase();
    if COMMANDS.contains(&word.as_str()) {
        return line_end(source, &tokens[at..]).map(|end| at + end).or((!open_end).then_some(tokens.len()));
    }
    let is_batch = word == "begin";
    for (at, token) in std::iter::once((at, first)).chain(words) {
        // semicolons within a batch stand between its statements
        if token.kind == Kind::End && (!is_batch || closes_batch(source, &tokens[..at])) {
            return Some(at + 1);
        }
    }
    (!open_end).then_some(tokens.len())
}

fn closes_batch(source: &str, tokens: &[Token]) -> bool {
    let mut words = tokens.iter().rev().filter(|token| token.is_meaningful()).map(|token| token.text(source));
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("batch"))
        && words.next().is_some_and(|word| word.eq_ignore_ascii_case("apply"))
}

/// Number of tokens up to the `;` or the line's end; None: neither is there.
fn line_end(source: &str, tokens: &[Token]) -> Option<usize> {
    let ends = |token: &Token| {
        token.kind == Kind::End
            || token.kind == Kind::Space && token.text(source).contains('\n')
            || token.kind == Kind::Comment && token.end < source.len()
    };
    tokens.iter().position(ends).map(|at| at + 1)
}

/// Whether `source` holds whole statements and nothing else: what a prompt may execute.
pub fn is_complete(source: &str) -> bool {
    let (found, rest) = statements(source, true);
    rest.trim().is_empty()
        && (!found.is_empty()
            || tokens(source).iter().all(|token| !token.open && !token.is_meaningful() || token.kind == Kind::End))
}

/// The string or quoted name without its quotes; any other token as it is.
pub fn unquote(text: &str) -> String {
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner.replace(&format!("{quote}{quote}"), &quote.to_string());
        }
    }
    if let Some(inner) = text.strip_prefix("$$").and_then(|rest| rest.strip_suffix("$$")) {
        return inner.to_owned();
    }
    text.to_owned()
}

/// A name as the schema has it: in small letters, if it is not in quotes.
pub fn name(text: &str) -> String {
    match text.starts_with('"') {
        true => unquote(text),
        false => text.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(source: &str) -> (Vec<&str>, &str) {
        let (found, rest) = statements(source, true);
        (found.iter().map(|statement| statement.text).collect(), rest)
    }

    #[test]
    fn statements_end_where_cqlsh_ends_them() {
        assert_eq!(split("SELECT 1; SELECT 2"), (vec!["SELECT 1"], " SELECT 2"));
        assert_eq!(split("SELECT ';' -- ;\n FROM t;"), (vec!["SELECT ';' -- ;\n FROM t"], ""));
        assert_eq!(split("INSERT 'it''s; not' \"a;b\" $$;$$;x"), (vec!["INSERT 'it''s; not' \"a;b\" $$;$$"], "x"));
        assert_eq!(split("/* ; */ SELECT 1;"), (vec!["SELECT 1"], ""));
        assert_eq!(split("USE a; USE b;\n"), (vec!["USE a", "USE b"], ""));
        assert_eq!(split(";;"), (vec![], ""));
        assert_eq!(split("SELECT 'open; "), (vec![], "SELECT 'open; "));
    }

    #[test]
    fn commands_end_with_their_line() {
        assert_eq!(split("CONSISTENCY\nSELECT 1"), (vec!["CONSISTENCY"], "SELECT 1"));
        assert_eq!(split("EXPAND ON; SELECT 1;"), (vec!["EXPAND ON", "SELECT 1"], ""));
        assert_eq!(split("HELP"), (vec![], "HELP"));
        assert_eq!(statements("HELP", false).0, [Statement { text: "HELP" }]);
        assert_eq!(split("COPY t\nTO 'x';"), (vec!["COPY t\nTO 'x'"], ""));
    }

    #[test]
    fn a_batch_is_one_statement() {
        let batch = "BEGIN BATCH\nINSERT a;\nINSERT b;\nAPPLY BATCH";
        assert_eq!(split(&format!("{batch}; SELECT 1;")), (vec![batch, "SELECT 1"], ""));
        assert_eq!(split("BEGIN UNLOGGED BATCH INSERT a; "), (vec![], "BEGIN UNLOGGED BATCH INSERT a; "));
    }

    #[test]
    fn what_a_prompt_may_execute() {
        for (text, complete) in [
            ("SELECT 1;", true),
            ("SELECT 1", false),
            ("", true),
            ("-- only a comment", true),
            ("/* open", false),
            ("HELP\n", true),
            ("SELECT 1; SELECT", false),
        ] {
            assert_eq!(is_complete(text), complete, "{text:?}");
        }
    }

    #[test]
    fn any_text_is_cut_without_a_gap() {
        for text in ["ü'\"$$ $ 0xÿ 1.5e-3 a_b-- x", "'", "\"", "/*", "$$", "é;é\n", "-", "/"] {
            let joined: String = tokens(text).iter().map(|token| token.text(text)).collect();
            assert_eq!(joined, text);
        }
    }
}
