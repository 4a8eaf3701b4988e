//! A reader of JSON. Whole numbers keep all their digits; other numbers become doubles, as with
//! Jackson.

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;

use num_bigint::BigInt;

use crate::{TypeError, java_number};

/// Deepest nesting that is read; a deeper text is refused.
const DEPTH_MAX: usize = 200;
/// Longest number that is read, in characters; a longer one is refused.
const NUMBER_LENGTH_MAX: usize = 1000;

/// Cassandra's words for an empty text, which are Jackson's.
const NO_CONTENT: &str = "com.fasterxml.jackson.databind.exc.MismatchedInputException: No content to map due to \
                          end-of-input\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` \
                          disabled); line: 1]";

/// A piece of JSON.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number without point and exponent.
    Integer(BigInt),
    /// Any other number.
    Float(f64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, with its members in their order; a name may occur more than once.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Simple name of the Java class for this piece of JSON. Messages contain it.
    pub fn java_class(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "Boolean",
            Self::Integer(value) => super::java_integer(value),
            Self::Float(_) => "Double",
            Self::String(_) => "String",
            Self::Array(_) => "ArrayList",
            Self::Object(_) => "LinkedHashMap",
        }
    }
}

/// Prints as Java prints the corresponding objects: `[1, a]`, `{k=v}`.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&java_number::print_double(*value)),
            Self::String(text) => f.write_str(text),
            Self::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, item)) in members.iter().enumerate() {
                    write!(f, "{}{name}={item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Reads one piece of JSON. Text behind it is ignored, as in Cassandra.
pub fn parse(text: &str) -> Result<Json, TypeError> {
    if text.is_empty() {
        return Err(TypeError::Json(NO_CONTENT.to_owned()));
    }
    let mut reader = Reader { text, chars: text.char_indices().peekable(), depth: 0 };
    reader.value().map_err(|what| {
        let at = reader.chars.peek().map_or(text.len(), |(at, _)| *at);
        TypeError::Json(format!("Error decoding JSON string: {what} at {at}"))
    })
}

struct Reader<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    depth: usize,
}

type Read<T> = Result<T, &'static str>;

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    /// Passes blanks and returns the next character.
    fn next_token(&mut self) -> Option<char> {
        while self.chars.next_if(|(_, c)| matches!(c, ' ' | '\t' | '\n' | '\r')).is_some() {}
        self.peek()
    }

    fn accept(&mut self, wanted: char) -> bool {
        self.next_token() == Some(wanted) && self.chars.next().is_some()
    }

    fn value(&mut self) -> Read<Json> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("nested too deep");
        }
        let value = match self.next_token() {
            None => Err("no content"),
            Some('{') => self.object(),
            Some('[') => self.array(),
            Some('"') => self.string().map(Json::String),
            Some('-' | '0'..='9') => self.number(),
            Some(_) => self.word(),
        }?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Read<Json> {
        self.chars.next();
        let mut members = Vec::new();
        if self.accept('}') {
            return Ok(Json::Object(members));
        }
        loop {
            if self.next_token() != Some('"') {
                return Err("a name in double quotes expected");
            }
            let name = self.string()?;
            if !self.accept(':') {
                return Err("a colon expected");
            }
            members.push((name, self.value()?));
            if self.accept('}') {
                return Ok(Json::Object(members));
            }
            if !self.accept(',') {
                return Err("a comma or } expected");
            }
        }
    }

    fn array(&mut self) -> Read<Json> {
        self.chars.next();
        let mut items = Vec::new();
        if self.accept(']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.accept(']') {
                return Ok(Json::Array(items));
            }
            if !self.accept(',') {
                return Err("a comma or ] expected");
            }
        }
    }

    fn string(&mut self) -> Read<String> {
        self.chars.next();
        let mut out = String::new();
        loop {
            match self.chars.next().map(|(_, c)| c) {
                None => return Err("a string without end"),
                Some('"') => return Ok(out),
                Some('\\') => out.push(self.escape()?),
                Some(c) if c < ' ' => return Err("a control character in a string"),
                Some(c) => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        Ok(match self.chars.next().map(|(_, c)| c) {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => self.code_unit_escape()?,
            _ => return Err("an unknown escape"),
        })
    }

    /// Reads `\uXXXX`, and the second half of a surrogate pair. A lone surrogate becomes `?`, as in
    /// Java's UTF-8.
    fn code_unit_escape(&mut self) -> Read<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or('?'));
        }
        let mut ahead = self.chars.clone();
        let escaped = (ahead.next().map(|(_, c)| c), ahead.next().map(|(_, c)| c)) == (Some('\\'), Some('u'));
        if !escaped {
            return Ok('?');
        }
        let before = std::mem::replace(&mut self.chars, ahead);
        let second = self.four_digits()?;
        if !(0xdc00..0xe000).contains(&second) {
            self.chars = before;
            return Ok('?');
        }
        Ok(char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).unwrap_or('?'))
    }

    fn four_digits(&mut self) -> Read<u32> {
        (0..4).try_fold(0, |value, _| {
            let digit = self.chars.next().and_then(|(_, c)| c.to_digit(16)).ok_or("four hex digits expected")?;
            Ok(value << 4 | digit)
        })
    }

    fn number(&mut self) -> Read<Json> {
        let start = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        while self.chars.next_if(|(_, c)| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).is_some() {}
        let end = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        let number = &self.text[start..end];
        if !matches!(self.peek(), None | Some(' ' | '\t' | '\n' | '\r' | ',' | ']' | '}')) {
            return Err("a blank expected behind a number");
        }
        if number.len() > NUMBER_LENGTH_MAX {
            return Err("a number too long");
        }
        let digits = number.strip_prefix('-').unwrap_or(number).as_bytes();
        if digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit() {
            return Err("a number with a leading zero");
        }
        let cut_off = number.ends_with('.') || number.contains(".e") || number.contains(".E") || number.contains("-.");
        if let Some(value) = java_number::parse_integer(number) {
            return Ok(Json::Integer(value));
        }
        java_number::parse_double(number).filter(|_| !cut_off).map(Json::Float).ok_or("not a number")
    }

    fn word(&mut self) -> Read<Json> {
        let mut word = String::new();
        while let Some((_, c)) = self.chars.next_if(|(_, c)| c.is_ascii_alphabetic()) {
            word.push(c);
        }
        match word.as_str() {
            "null" => Ok(Json::Null),
            "true" => Ok(Json::Bool(true)),
            "false" => Ok(Json::Bool(false)),
            _ => Err("a value expected"),
        }
    }
}
