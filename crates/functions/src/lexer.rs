//! The words of a body in Java: identifiers, keywords, literals and operators with their places.
//!
//! Agrees with chapter 3 of the Java Language Specification, edition 11. Unicode escapes
//! (`\u0041`) are understood inside of strings and characters only.

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive};

use crate::compile_error::{CompileError, Place};

/// A word.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token {
    /// An identifier or a keyword.
    Word(String),
    /// A literal of type int; `2147483648` is allowed behind a minus only.
    Int(i64),
    /// A literal of type long, as an unsigned number of 64 bits.
    Long(u64, bool),
    /// A literal of type float.
    Float(f32),
    /// A literal of type double.
    Double(f64),
    /// A character.
    Char(u16),
    /// A string.
    Text(Vec<u16>),
    /// An operator or a separator.
    Symbol(&'static str),
    /// The end of the body.
    End,
}

/// Operators and separators, the longest first.
const SYMBOLS: [&str; 48] = [
    ">>>=", "<<=", ">>=", ">>>", "...", "->", "::", "++", "--", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=",
    "/=", "&=", "|=", "^=", "%=", "<<", "(", ")", "{", "}", "[", "]", ";", ",", ".", "@", "=", ">", "<", "!", "~", "?",
    ":", "+", "-", "*", "/", "&", "|", "^",
];

/// Splits a body into words. The last one is [`Token::End`].
pub(crate) fn tokens(body: &str) -> Result<Vec<(Token, Place)>, CompileError> {
    let chars: Vec<char> = body.chars().collect();
    let mut lexer = Lexer { chars: &chars, at: 0, place: Place { line: 1, column: 1 } };
    let mut out = Vec::new();
    loop {
        lexer.blanks()?;
        let place = lexer.place;
        let token = lexer.token()?;
        let done = token == Token::End;
        // `>>` and `>>>` are read as single signs where types end; the parser joins them
        out.push((token, place));
        if done {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    chars: &'a [char],
    at: usize,
    place: Place,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let found = self.peek(0)?;
        self.at += 1;
        if found == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(found)
    }

    fn refuse<T>(&self, text: &str) -> Result<T, CompileError> {
        Err(CompileError::new(self.place, text))
    }

    /// Skips blanks and comments.
    fn blanks(&mut self) -> Result<(), CompileError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(c), _) if c.is_whitespace() => {
                    self.next();
                }
                (Some('/'), Some('/')) => while self.peek(0).is_some_and(|c| c != '\n') && self.next().is_some() {},
                (Some('/'), Some('*')) => {
                    self.next();
                    self.next();
                    while !(self.peek(0) == Some('*') && self.peek(1) == Some('/')) {
                        if self.next().is_none() {
                            return self.refuse("Unexpected end of comment");
                        }
                    }
                    self.next();
                    self.next();
                }
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Result<Token, CompileError> {
        let Some(first) = self.peek(0) else { return Ok(Token::End) };
        if first.is_alphabetic() || first == '_' || first == '$' {
            let mut word = String::new();
            while let Some(c) = self.peek(0).filter(|c| c.is_alphanumeric() || *c == '_' || *c == '$') {
                word.push(c);
                self.next();
            }
            return Ok(Token::Word(word));
        }
        if first.is_ascii_digit() || (first == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit())) {
            return self.number();
        }
        if first == '"' {
            self.next();
            let mut text = Vec::new();
            loop {
                match self.peek(0) {
                    None | Some('\n') => return self.refuse("String literal is not properly closed by a double-quote"),
                    Some('"') => {
                        self.next();
                        return Ok(Token::Text(text));
                    }
                    Some(_) => self.unit(&mut text)?,
                }
            }
        }
        if first == '\'' {
            self.next();
            let mut text = Vec::new();
            if matches!(self.peek(0), None | Some('\n' | '\'')) {
                return self.refuse("Invalid character constant");
            }
            self.unit(&mut text)?;
            return match (text.as_slice(), self.next()) {
                ([unit], Some('\'')) => Ok(Token::Char(*unit)),
                _ => self.refuse("Invalid character constant"),
            };
        }
        for symbol in SYMBOLS.iter().chain(&["%"]) {
            if symbol.chars().enumerate().all(|(at, c)| self.peek(at) == Some(c)) {
                // in types `>>` closes two brackets, so shifts to the right are joined by the
                // parser
                let symbol = if symbol.starts_with('>') && *symbol != ">=" { ">" } else { symbol };
                for _ in 0..symbol.len() {
                    self.next();
                }
                return Ok(Token::Symbol(symbol));
            }
        }
        self.refuse(&format!("Syntax error on token \"{first}\", invalid character"))
    }

    /// One character of a string or character constant, escapes included.
    fn unit(&mut self, out: &mut Vec<u16>) -> Result<(), CompileError> {
        let Some(c) = self.next() else { return self.refuse("Unexpected end of a constant") };
        if c != '\\' {
            out.extend_from_slice(c.encode_utf16(&mut [0; 2]));
            return Ok(());
        }
        let unit = match self.next() {
            Some('n') => 10,
            Some('t') => 9,
            Some('b') => 8,
            Some('r') => 13,
            Some('f') => 12,
            Some('"') => 34,
            Some('\'') => 39,
            Some('\\') => 92,
            Some('u') => {
                while self.peek(0) == Some('u') {
                    self.next();
                }
                let mut value = 0;
                for _ in 0..4 {
                    let Some(digit) = self.next().and_then(|c| c.to_digit(16)) else {
                        return self.refuse("Invalid unicode");
                    };
                    value = value * 16 + digit as u16;
                }
                value
            }
            Some(digit @ '0'..='7') => {
                let mut value = digit as u16 - 48;
                let more = if digit <= '3' { 2 } else { 1 };
                for _ in 0..more {
                    let Some(digit) = self.peek(0).filter(|c| matches!(c, '0'..='7')) else { break };
                    value = value * 8 + (digit as u16 - 48);
                    self.next();
                }
                value
            }
            _ => {
                return self
                    .refuse("Invalid escape sequence (valid ones are  \\b  \\t  \\n  \\f  \\r  \\\"  \\'  \\\\ )");
            }
        };
        out.push(unit);
        Ok(())
    }

    fn number(&mut self) -> Result<Token, CompileError> {
        let mut text = String::new();
        let radix = match (self.peek(0), self.peek(1)) {
            (Some('0'), Some('x' | 'X')) => 16,
            (Some('0'), Some('b' | 'B')) => 2,
            _ => 10,
        };
        if radix != 10 {
            self.next();
            self.next();
        }
        let mut floating = false;
        while let Some(c) = self.peek(0) {
            match c {
                '_' => {}
                _ if c.is_digit(radix) => text.push(c),
                '.' if radix == 10
                    && !floating
                    && self.peek(1).is_none_or(|c| !c.is_alphabetic() || "eEfFdD".contains(c)) =>
                {
                    floating = true;
                    text.push(c);
                }
                'e' | 'E' if radix == 10 => {
                    floating = true;
                    text.push(c);
                    if let Some(sign) = self.peek(1).filter(|c| matches!(c, '+' | '-')) {
                        self.next();
                        text.push(sign);
                    }
                }
                _ => break,
            }
            self.next();
        }
        let suffix = self.peek(0).filter(|c| "lLfFdD".contains(*c) && (radix == 10 || "lL".contains(*c)));
        if suffix.is_some() {
            self.next();
        }
        if self.peek(0).is_some_and(char::is_alphanumeric) {
            return self.refuse("Invalid number");
        }
        match suffix {
            Some('f' | 'F') => match types::java_number::parse_float(&text) {
                Some(value) if value.is_finite() => return Ok(Token::Float(value)),
                _ => return self.refuse("The literal of type float is out of range"),
            },
            Some('d' | 'D') => floating = true,
            _ => {}
        }
        if floating {
            return match types::java_number::parse_double(&text) {
                Some(value) if value.is_finite() => Ok(Token::Double(value)),
                _ => self.refuse("The literal of type double is out of range"),
            };
        }
        let (digits, radix) = match text.strip_prefix('0') {
            Some(octal) if radix == 10 && !octal.is_empty() => (octal, 8),
            _ => (text.as_str(), radix),
        };
        /// No literal of a Java program has more digits: 64 bits in the binary form, with zeros.
        const DIGITS_MAX: usize = 200;
        let value = match BigInt::parse_bytes(digits.as_bytes(), radix) {
            Some(value) if digits.len() <= DIGITS_MAX => value,
            _ => return self.refuse("Invalid number"),
        };
        let decimal = radix == 10;
        let is_long = matches!(suffix, Some('l' | 'L'));
        // the largest decimal literal stands behind a minus only
        let limit = match (is_long, decimal) {
            (true, true) => (BigInt::one() << 63u8) + 1u8,
            (true, false) => BigInt::one() << 64u8,
            (false, true) => (BigInt::one() << 31u8) + 1u8,
            (false, false) => BigInt::one() << 32u8,
        };
        if value >= limit {
            let name = if is_long { "long" } else { "int" };
            return self.refuse(&format!("The literal {text} of type {name} is out of range"));
        }
        let value = value.to_u64().unwrap_or_default();
        Ok(match (is_long, decimal) {
            (true, _) => Token::Long(value, decimal),
            (false, true) => Token::Int(value as i64),
            (false, false) => Token::Int(i64::from(value as u32 as i32)),
        })
    }
}
