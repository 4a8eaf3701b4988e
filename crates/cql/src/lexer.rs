//! Text to tokens: one at a time, borrowed from the text, nothing allocated.
//!
//! A token is its kind and its byte range; the parser asks for the text of the few tokens whose
//! text matters. The lexer is a position, so going back is copying a number.
//!
//! Three things look alike and are told apart here, the longest form first:
//! - an identifier, a keyword, a UUID beginning with a letter, an ISO duration (`P1Y`);
//! - `-` alone, a negative number, a negative duration, `-NaN`, `-Infinity`, a `--` comment. So
//!   `a-1` is two tokens, `a` and `-1`, and as in Cassandra not a subtraction;
//! - integer, float, duration (`1h30m`), blob (`0x…`), UUID, the integer before a range (`1..2`).
//!
//! Must agree with: Cassandra 5.0.8's `Lexer.g`. One leniency: a comment may end with the text.

mod keyword;
mod number;

pub(crate) use keyword::{Keyword, Use};

use crate::ast::Pos;

/// A token: what it is and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    /// First byte.
    pub start: u32,
    /// After the last byte.
    pub end: u32,
}

/// The kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// End of the text.
    End,
    /// A name without quotes that is no keyword.
    Ident,
    /// A keyword of the grammar, reserved or not.
    Keyword(Keyword),
    /// `"name"`; empty if only the quotes.
    QuotedName,
    /// `'text'`.
    String,
    /// `$$text$$`.
    DollarString,
    Integer,
    Float,
    Boolean,
    Duration,
    Uuid,
    Hex,
    /// `-NaN`.
    NegativeNan,
    /// `-Infinity`.
    NegativeInfinity,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Comma,
    Semicolon,
    Colon,
    Question,
    Dot,
    /// `..`
    Range,
    Eq,
    Neq,
    Lt,
    Lte,
    Gt,
    Gte,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    /// `+=`
    PlusEq,
    /// `-=`
    MinusEq,
}

/// A byte or a literal that the lexer cannot read, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LexError {
    pub pos: Pos,
    pub what: &'static str,
}

/// The lexer: a text and a position in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// At the beginning of `text`, which must be shorter than 4 GiB.
    pub fn new(text: &'a str) -> Self {
        debug_assert!(u32::try_from(text.len()).is_ok());
        Lexer { text, at: 0 }
    }

    /// The whole text.
    pub fn source(&self) -> &'a str {
        self.text
    }

    /// The text of a token.
    pub fn text(&self, token: Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// The next token; [`Kind::End`] for ever once the text is over.
    pub fn next_token(&mut self) -> Result<Token, LexError> {
        self.skip_blank()?;
        let start = self.at;
        let (kind, length) = self.scan(&self.text.as_bytes()[start..], start)?;
        self.at = start + length;
        Ok(Token { kind, start: start as u32, end: self.at as u32 })
    }

    /// The first byte after the blanks that follow, 0 at the end. Enough to see what the next token
    /// is not; a comment begins with `-` or `/` here.
    #[inline]
    pub fn next_byte(&self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter().copied().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).unwrap_or(0)
    }

    /// Skips white space and comments.
    #[inline]
    fn skip_blank(&mut self) -> Result<(), LexError> {
        let bytes = self.text.as_bytes();
        loop {
            match &bytes[self.at..] {
                [b' ' | b'\t' | b'\n' | b'\r', ..] => self.at += 1,
                [b'-', b'-', ..] | [b'/', b'/', ..] => {
                    let rest = &bytes[self.at..];
                    let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
                    self.at += end.unwrap_or(rest.len());
                }
                [b'/', b'*', rest @ ..] => match rest.windows(2).position(|pair| pair == b"*/") {
                    Some(end) => self.at += end + 4,
                    None => return Err(self.error(self.at, "unterminated comment, */ is missing")),
                },
                _ => return Ok(()),
            }
        }
    }

    /// The kind and length of the token at the start of `rest`.
    #[inline]
    fn scan(&self, rest: &[u8], start: usize) -> Result<(Kind, usize), LexError> {
        let Some(&first) = rest.first() else {
            return Ok((Kind::End, 0));
        };
        let second = rest.get(1).copied().unwrap_or(0);
        let one = |kind| Ok((kind, 1));
        match first {
            b'a'..=b'z' | b'A'..=b'Z' => Ok(scan_word(rest)),
            b'0'..=b'9' => Ok(number::scan(rest)),
            b'\'' => self.scan_quoted(rest, start, b'\'', Kind::String, "unterminated string, ' is missing"),
            b'"' => self.scan_quoted(rest, start, b'"', Kind::QuotedName, "unterminated name, \" is missing"),
            b'$' if second == b'$' => match rest[2..].windows(2).position(|pair| pair == b"$$") {
                Some(end) => Ok((Kind::DollarString, end + 4)),
                None => Err(self.error(start, "unterminated string, $$ is missing")),
            },
            b'-' => Ok(scan_minus(rest, second)),
            b'(' => one(Kind::OpenParen),
            b')' => one(Kind::CloseParen),
            b'[' => one(Kind::OpenBracket),
            b']' => one(Kind::CloseBracket),
            b'{' => one(Kind::OpenBrace),
            b'}' => one(Kind::CloseBrace),
            b',' => one(Kind::Comma),
            b';' => one(Kind::Semicolon),
            b':' => one(Kind::Colon),
            b'?' => one(Kind::Question),
            b'.' if second == b'.' => Ok((Kind::Range, 2)),
            b'.' => one(Kind::Dot),
            b'=' => one(Kind::Eq),
            b'!' if second == b'=' => Ok((Kind::Neq, 2)),
            b'<' if second == b'=' => Ok((Kind::Lte, 2)),
            b'<' => one(Kind::Lt),
            b'>' if second == b'=' => Ok((Kind::Gte, 2)),
            b'>' => one(Kind::Gt),
            b'+' if second == b'=' => Ok((Kind::PlusEq, 2)),
            b'+' => one(Kind::Plus),
            b'*' => one(Kind::Star),
            b'/' => one(Kind::Slash),
            b'%' => one(Kind::Percent),
            _ => Err(self.error(start, "unexpected character")),
        }
    }

    /// Something between two `quote`s, which stand doubled inside.
    fn scan_quoted(
        &self,
        rest: &[u8],
        start: usize,
        quote: u8,
        kind: Kind,
        missing: &'static str,
    ) -> Result<(Kind, usize), LexError> {
        let mut at = 1;
        while let Some(found) = rest[at..].iter().position(|&b| b == quote) {
            at += found + 1;
            if rest.get(at) != Some(&quote) {
                return Ok((kind, at));
            }
            at += 1;
        }
        Err(self.error(start, missing))
    }

    fn error(&self, at: usize, what: &'static str) -> LexError {
        LexError { pos: Pos(at as u32), what }
    }
}

/// A word: keyword, boolean, identifier; unless it is a UUID or a duration.
fn scan_word(rest: &[u8]) -> (Kind, usize) {
    let length = word_length(rest);
    if length == 8
        && rest.get(8) == Some(&b'-')
        && let Some(uuid) = number::uuid_length(rest)
    {
        return (Kind::Uuid, uuid);
    }
    if rest[0] == b'P'
        && let Some(duration) = number::iso_duration_length(rest)
        && duration >= length
    {
        return (Kind::Duration, duration);
    }
    (keyword::classify(rest, length), length)
}

/// The token that begins with `-`; comments are already skipped.
fn scan_minus(rest: &[u8], second: u8) -> (Kind, usize) {
    match second {
        b'0'..=b'9' => {
            let (kind, length) = number::scan_negative(&rest[1..]);
            (kind, length + 1)
        }
        b'=' => (Kind::MinusEq, 2),
        b'P' | b'n' | b'N' | b'i' | b'I' => scan_minus_word(rest),
        _ => (Kind::Minus, 1),
    }
}

/// `-P1Y`, `-NaN`, `-Infinity`, or `-` before some other word.
#[cold]
fn scan_minus_word(rest: &[u8]) -> (Kind, usize) {
    let word = &rest[1..];
    let length = word_length(word);
    match keyword::classify(word, length) {
        Kind::Keyword(Keyword::Nan) => (Kind::NegativeNan, length + 1),
        Kind::Keyword(Keyword::Infinity) => (Kind::NegativeInfinity, length + 1),
        _ => match number::iso_duration_length(word) {
            Some(duration) if duration >= length => (Kind::Duration, duration + 1),
            _ => (Kind::Minus, 1),
        },
    }
}

/// How many bytes of `rest` belong to a word, given that the first does.
#[inline]
fn word_length(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| !IN_WORDS[usize::from(byte)]).unwrap_or(rest.len())
}

/// Which bytes words are made of: letters, digits, underscore.
static IN_WORDS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests;
