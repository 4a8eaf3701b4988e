//! Records of CSV in the dialect that cqlsh reads and writes.
//!
//! Written as Python's csv module writes with cqlsh's settings: lines end with CR LF, a field with
//! a separator or a line end stands in quotes, a quote and an escape have the escape before them
//! (where quote and escape are one character, a quote is doubled). Read so as well; besides, a
//! doubled quote within quotes always stands for one, and LF alone ends a line.
//!
//! Bytes come from files of strangers: a record has at most [`RECORD_MAX`] bytes.

use std::io::{self, BufRead, Read};

/// Most bytes of a record: a file without line ends, or with an open quote, is refused there.
pub const RECORD_MAX: usize = 64 << 20;

/// The characters with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Between fields.
    pub delimiter: u8,
    /// Around fields.
    pub quote: u8,
    /// Before a character that has no meaning of its own there.
    pub escape: u8,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { delimiter: b',', quote: b'"', escape: b'\\' }
    }
}

/// The fields of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    text: String,
    /// Offsets at which the fields end.
    ends: Vec<usize>,
}

impl Record {
    /// The fields.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        self.ends.iter().zip(starts).map(|(end, start)| self.text.get(start..*end).unwrap_or_default())
    }
}

/// Reads records.
pub struct Reader<R> {
    input: R,
    dialect: Dialect,
    line: Vec<u8>,
}

enum State {
    Plain,
    Quoted,
    /// Behind a quote within quotes: the end of the quotes, or a doubled quote.
    QuoteInQuotes,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the start of a record.
    pub fn new(input: R, dialect: Dialect) -> Self {
        Self { input, dialect, line: Vec::new() }
    }

    /// The next record that is not an empty line; None: the input has ended, or has told so by a
    /// line `\.`.
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            let mut bytes = Vec::new();
            let mut ends = Vec::new();
            let mut state = State::Plain;
            let mut is_first = true;
            loop {
                self.line.clear();
                // no more of a file without line ends comes into memory
                let length = self.input.by_ref().take(RECORD_MAX as u64 + 1).read_until(b'\n', &mut self.line)?;
                if length > RECORD_MAX {
                    return Err(io::Error::other(format!("a line is longer than {RECORD_MAX} bytes")));
                }
                if is_first && length == 0 {
                    return Ok(None);
                }
                if is_first && matches!(self.line.trim_ascii_end(), b"\\.") {
                    return Ok(None);
                }
                is_first = false;
                state = self.take_line(state, &mut bytes, &mut ends);
                if length == 0 || !matches!(state, State::Quoted) {
                    break;
                }
                if bytes.len() > RECORD_MAX {
                    let why = format!("a record is longer than {RECORD_MAX} bytes: is a quote left open?");
                    return Err(io::Error::other(why));
                }
            }
            ends.push(bytes.len());
            if ends.len() > 1 || !bytes.is_empty() {
                let text = String::from_utf8(bytes);
                let text = text.map_err(|error| {
                    io::Error::other(format!("a record is not UTF-8: {}", String::from_utf8_lossy(error.as_bytes())))
                })?;
                return Ok(Some(Record { text, ends }));
            }
        }
    }

    fn take_line(&self, mut state: State, bytes: &mut Vec<u8>, ends: &mut Vec<usize>) -> State {
        let Dialect { delimiter, quote, escape } = self.dialect;
        let mut line = self.line.iter().copied().peekable();
        // at the start of a field a quote opens
        let mut field_start = bytes.len() == ends.last().copied().unwrap_or(0) && matches!(state, State::Plain);
        while let Some(byte) = line.next() {
            match state {
                State::QuoteInQuotes if byte == quote => {
                    bytes.push(byte);
                    state = State::Quoted;
                    continue;
                }
                State::QuoteInQuotes => state = State::Plain,
                State::Quoted if byte == quote => {
                    state = State::QuoteInQuotes;
                    continue;
                }
                State::Quoted if byte == escape && line.peek().is_some() => {
                    bytes.extend(line.next());
                    continue;
                }
                State::Quoted => {
                    bytes.push(byte);
                    continue;
                }
                State::Plain => {}
            }
            let starts = std::mem::replace(&mut field_start, false);
            match byte {
                _ if byte == delimiter => {
                    ends.push(bytes.len());
                    field_start = true;
                }
                b'\n' => {}
                b'\r' if line.peek().is_none_or(|next| *next == b'\n') => {}
                _ if byte == quote && starts => state = State::Quoted,
                _ if byte == escape && quote != escape && line.peek().is_some_and(|next| *next != b'\n') => {
                    bytes.extend(line.next());
                }
                _ => bytes.push(byte),
            }
        }
        state
    }
}

/// Appends a record.
pub fn put_record<'f>(out: &mut String, fields: impl ExactSizeIterator<Item = &'f str>, dialect: Dialect) {
    let alone = fields.len() == 1;
    for (at, field) in fields.enumerate() {
        if at > 0 {
            out.push(char::from(dialect.delimiter));
        }
        put_field(out, field, dialect, alone);
    }
    out.push_str("\r\n");
}

/// Appends a field. An empty field that is alone in its record stands in quotes, because an empty
/// line is no record.
pub fn put_field(out: &mut String, field: &str, dialect: Dialect, alone: bool) {
    let [delimiter, quote, escape] = [dialect.delimiter, dialect.quote, dialect.escape].map(char::from);
    let doubled = quote == escape;
    let special = |byte: u8| {
        byte == dialect.delimiter || byte == dialect.quote || byte == dialect.escape || byte == b'\n' || byte == b'\r'
    };
    if !field.bytes().any(special) {
        out.push_str(if alone && field.is_empty() { "\"\"" } else { field });
        return;
    }
    let quoted = field.contains([delimiter, '\n', '\r']) || doubled;
    if quoted {
        out.push(quote);
    }
    for c in field.chars() {
        if c == quote || c == escape {
            out.push(escape);
        }
        out.push(c);
    }
    if quoted {
        out.push(quote);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, dialect: Dialect) -> Vec<Vec<String>> {
        let mut reader = Reader::new(text.as_bytes(), dialect);
        let mut records = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            records.push(record.fields().map(str::to_owned).collect());
        }
        records
    }

    #[test]
    fn records_of_cqlsh_are_read() {
        let text = "1,a\r\n\r\n2,\"x,\\\"y\\\"\nz\"\r\n3,b\\,c\\\"\n4,\"q\"\"r\"\n,\n5";
        let expected: [&[&str]; 6] =
            [&["1", "a"], &["2", "x,\"y\"\nz"], &["3", "b,c\""], &["4", "q\"r"], &["", ""], &["5"]];
        assert_eq!(read(text, Dialect::default()), expected);
        assert_eq!(read("1\n\\.\n2\n", Dialect::default()), [["1"]]);
    }

    #[test]
    fn a_file_without_line_ends_is_refused() {
        let endless = io::BufReader::with_capacity(1 << 20, io::repeat(b'a'));
        let refused = Reader::new(endless, Dialect::default()).next().unwrap_err();
        assert!(refused.to_string().starts_with("a line is longer than"), "{refused}");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let texts = ["", "a", "a,b", "\"", "\\", "line\nend", "\r\n", "\\,\"\n", "ü;'", "|", "'"];
        let dialects = [
            Dialect::default(),
            Dialect { escape: b'"', ..Dialect::default() },
            Dialect { delimiter: b'|', quote: b'\'', escape: b'\\' },
        ];
        for dialect in dialects {
            for first in texts {
                for second in texts {
                    let mut out = String::new();
                    put_record(&mut out, [first, second].into_iter(), dialect);
                    assert_eq!(read(&out, dialect), [[first, second]], "{out:?} {dialect:?}");
                }
            }
        }
    }

    #[test]
    fn fields_as_python_writes_them() {
        let mut out = String::new();
        put_record(&mut out, ["say \"hi\"", "a,b", "c\\d"].into_iter(), Dialect::default());
        assert_eq!(out, "say \\\"hi\\\",\"a,b\",c\\\\d\r\n");
        let mut out = String::new();
        put_record(&mut out, [""].into_iter(), Dialect::default());
        assert_eq!(out, "\"\"\r\n");
    }
}
