//! Errors in the text of a statement.
//!
//! As Cassandra's, a message begins with `line L:C` (the line from 1, the column from 0) and ends
//! with a piece of the statement in which the offending token stands in brackets. In between ours
//! says what would have fitted. A few mistakes have Cassandra's own words and no place.

use std::fmt;

use crate::ast::Pos;
use crate::lexer::{Keyword, Kind, LexError, Token};

/// How much of the statement is quoted before and after the offending token, in bytes.
const SNIPPET_SIZE: usize = 24;

/// How much of the offending token is quoted, in bytes.
const TOKEN_SIZE_MAX: usize = 64;

/// A statement that is no CQL. Goes to clients as protocol error SYNTAX_ERROR (0x2000).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    message: Box<str>,
}

impl SyntaxError {
    /// The message for the client.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A message without a place.
    #[cold]
    pub(crate) fn plain(message: impl Into<Box<str>>) -> Self {
        SyntaxError { message: message.into() }
    }

    #[cold]
    pub(super) fn lexical(text: &str, error: LexError) -> Self {
        let start = error.pos.0 as usize;
        let end = start + text[start..].chars().next().map_or(0, char::len_utf8);
        let token = Token { kind: Kind::Ident, start: start as u32, end: end as u32 };
        if error.what.starts_with("unterminated") {
            return Self::at(text, token, error.what);
        }
        Self::at(text, token, &format!("{} '{}'", error.what, printable(&text[start..end])))
    }

    #[cold]
    pub(super) fn expected(text: &str, token: Token, what: &str) -> Self {
        let found = match token.kind {
            Kind::End => "the end of the statement".to_string(),
            _ => {
                let found = &text[token.start as usize..token.end as usize];
                format!("'{}'{}", printable(clip_end(found, TOKEN_SIZE_MAX)), reserved_note(token.kind, what))
            }
        };
        Self::at(text, token, &format!("expected {what}, found {found}"))
    }

    #[cold]
    pub(super) fn at(text: &str, token: Token, what: &str) -> Self {
        let (line, column) = Pos(token.start).line_column(text);
        let message = format!("line {line}:{column} {what}{}", snippet(text, token));
        SyntaxError { message: message.into() }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

/// A hint for those who use a reserved word as a name.
fn reserved_note(kind: Kind, what: &str) -> &'static str {
    match kind {
        // Where no name was asked for, and of `FROM`, the place is wrong and not the choice of
        // name.
        Kind::Keyword(keyword) if !what.contains("name") || !is_reserved(keyword) => "",
        Kind::Keyword(Keyword::From) => "",
        Kind::Keyword(_) => ", a reserved word (as a name it needs double quotes)",
        _ => "",
    }
}

fn is_reserved(keyword: Keyword) -> bool {
    keyword.usage() == crate::lexer::Use::Reserved
}

/// ` (...before [token] after...)`.
fn snippet(text: &str, token: Token) -> String {
    let (start, end) = (token.start as usize, token.end as usize);
    let before = clip_start(&text[..start], SNIPPET_SIZE);
    let after = clip_end(&text[end..], SNIPPET_SIZE);
    let dots = |clipped: bool| if clipped { "..." } else { "" };
    let piece = format!(
        "{}{before}[{}]{after}{}",
        dots(before.len() < start),
        clip_end(&text[start..end], TOKEN_SIZE_MAX),
        dots(end + after.len() < text.len()),
    );
    format!(" ({})", printable(&piece))
}

/// The last `size` bytes of `text`, or a little less not to split a character.
fn clip_start(text: &str, size: usize) -> &str {
    let mut from = text.len().saturating_sub(size);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// The first `size` bytes of `text`, or a little less not to split a character.
fn clip_end(text: &str, size: usize) -> &str {
    &text[..text.floor_char_boundary(size)]
}

/// With spaces for line ends and other control characters.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
