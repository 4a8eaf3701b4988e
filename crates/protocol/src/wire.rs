//! The primitive notations of the protocol: a checked reader over a shared body, and functions that
//! write.
//!
//! [`Reader`] returns slices that share the buffer of the frame, so reading a request copies no
//! value. No length allocates before it was checked against the bytes that are there. Text is
//! checked to be UTF-8 when it is read. Agrees with `org.apache.cassandra.transport.CBUtil`.

use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;

use bytes::{BufMut, Bytes, BytesMut};

use stdx::cursor::{Cursor, CursorError};
use types::Consistency;

use crate::decode_error::DecodeError;

type Result<T> = std::result::Result<T, DecodeError>;

/// UTF-8 text that shares the buffer of the frame.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Text(Bytes);

impl Text {
    /// Checks that the bytes are UTF-8.
    pub fn new(bytes: Bytes) -> Result<Self> {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(DecodeError::NotUtf8),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when it was made")
    }

    /// The bytes of the text, shared.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

/// Turns "too few bytes" into an error that names the element; reading numbers and lengths fails in
/// no other way.
trait OrTruncated<T> {
    fn or_truncated(self, what: &'static str) -> Result<T>;
}

impl<T> OrTruncated<T> for std::result::Result<T, CursorError> {
    fn or_truncated(self, what: &'static str) -> Result<T> {
        self.map_err(|_| DecodeError::Truncated(what))
    }
}

/// Reads the notations of a message body from its start to its end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    body: &'a Bytes,
    cursor: Cursor<'a>,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a body.
    pub fn new(body: &'a Bytes) -> Self {
        Self { body, cursor: Cursor::new(body) }
    }

    /// The body, from which slices can be taken later.
    pub fn body(&self) -> &'a Bytes {
        self.body
    }

    /// Number of bytes read.
    pub fn position(&self) -> usize {
        self.cursor.position()
    }

    /// Number of bytes left.
    pub fn remaining(&self) -> usize {
        self.cursor.remaining()
    }

    /// Passes over `length` bytes and returns the offset at which they began.
    pub fn skip(&mut self, length: usize, what: &'static str) -> Result<usize> {
        let start = self.position();
        self.cursor.skip(length).or_truncated(what)?;
        Ok(start)
    }

    /// Reads a `[byte]`.
    pub fn u8(&mut self, what: &'static str) -> Result<u8> {
        self.cursor.u8().or_truncated(what)
    }

    /// Reads a `[short]`.
    pub fn u16(&mut self, what: &'static str) -> Result<u16> {
        self.cursor.u16().or_truncated(what)
    }

    /// Reads an `[int]`.
    pub fn i32(&mut self, what: &'static str) -> Result<i32> {
        self.cursor.i32().or_truncated(what)
    }

    /// Reads an `[int]` as unsigned.
    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.cursor.u32().or_truncated(what)
    }

    /// Reads a `[long]`.
    pub fn i64(&mut self, what: &'static str) -> Result<i64> {
        self.cursor.i64().or_truncated(what)
    }

    fn slice(&mut self, length: usize, what: &'static str) -> Result<Bytes> {
        let start = self.skip(length, what)?;
        Ok(self.body.slice(start..self.position()))
    }

    /// Reads a `[string]`.
    pub fn string(&mut self, what: &'static str) -> Result<Text> {
        let length = self.u16(what)?;
        Text::new(self.slice(usize::from(length), what)?)
    }

    /// Reads a `[long string]`.
    pub fn long_string(&mut self, what: &'static str) -> Result<Text> {
        let length = self.i32(what)?;
        let length = usize::try_from(length).map_err(|_| DecodeError::Length(length))?;
        Text::new(self.slice(length, what)?)
    }

    /// Reads `[short bytes]`.
    pub fn short_bytes(&mut self, what: &'static str) -> Result<Bytes> {
        let length = self.u16(what)?;
        self.slice(usize::from(length), what)
    }

    /// Reads `[bytes]`; any negative length is null.
    pub fn bytes(&mut self, what: &'static str) -> Result<Option<Bytes>> {
        match usize::try_from(self.i32(what)?) {
            Ok(length) => self.slice(length, what).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads a `[string list]`.
    pub fn string_list(&mut self, what: &'static str) -> Result<Vec<Text>> {
        let count = self.u16(what)?;
        (0..count).map(|_| self.string(what)).collect()
    }

    /// Reads a `[string map]` as pairs in the order of the wire.
    pub fn string_map(&mut self, what: &'static str) -> Result<Vec<(Text, Text)>> {
        let count = self.u16(what)?;
        (0..count).map(|_| Ok((self.string(what)?, self.string(what)?))).collect()
    }

    /// Reads a `[bytes map]` as pairs in the order of the wire.
    pub fn bytes_map(&mut self, what: &'static str) -> Result<Vec<(Text, Option<Bytes>)>> {
        let count = self.u16(what)?;
        (0..count).map(|_| Ok((self.string(what)?, self.bytes(what)?))).collect()
    }

    /// Reads a `[consistency]`.
    pub fn consistency(&mut self) -> Result<Consistency> {
        let code = self.u16("a consistency level")?;
        Consistency::from_code(code).ok_or(DecodeError::Consistency(code))
    }
}

/// Most bytes of a `[string]`; longer text is cut there, between characters.
pub const STRING_SIZE_MAX: usize = u16::MAX as usize;

/// Appends a `[string]`. Text over [`STRING_SIZE_MAX`] is cut; only error messages and warnings can
/// be that long.
pub fn put_string(out: &mut BytesMut, text: &str) {
    let text = &text[..text.floor_char_boundary(STRING_SIZE_MAX)];
    out.put_u16(text.len() as u16);
    out.put_slice(text.as_bytes());
}

/// Appends `[short bytes]`. Callers pass ids of 16 bytes.
pub fn put_short_bytes(out: &mut BytesMut, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("ids are short");
    out.put_u16(length);
    out.put_slice(bytes);
}

/// Appends `[bytes]`.
pub fn put_bytes(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            let length = i32::try_from(bytes.len()).expect("values are bounded by the frame size, below 2 GiB");
            out.put_i32(length);
            out.put_slice(bytes);
        }
        None => out.put_i32(-1),
    }
}

/// Appends a `[string list]`; elements behind the first 65,535 are left out.
pub fn put_string_list<S: AsRef<str>>(out: &mut BytesMut, list: &[S]) {
    let count = u16::try_from(list.len()).unwrap_or(u16::MAX);
    out.put_u16(count);
    for text in list.iter().take(usize::from(count)) {
        put_string(out, text.as_ref());
    }
}

/// Appends a `[bytes map]`; entries behind the first 65,535 are left out.
pub fn put_bytes_map(out: &mut BytesMut, map: &[(Text, Option<Bytes>)]) {
    let count = u16::try_from(map.len()).unwrap_or(u16::MAX);
    out.put_u16(count);
    for (key, value) in map.iter().take(usize::from(count)) {
        put_string(out, key);
        put_bytes(out, value.as_deref());
    }
}

/// Appends an `[inetaddr]`.
pub fn put_inet_address(out: &mut BytesMut, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.put_u8(4);
            out.put_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            out.put_u8(16);
            out.put_slice(&address.octets());
        }
    }
}

/// Appends an `[inet]`.
pub fn put_inet(out: &mut BytesMut, address: IpAddr, port: u16) {
    put_inet_address(out, address);
    out.put_i32(i32::from(port));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_written() {
        let mut out = BytesMut::new();
        put_string(&mut out, "héllo");
        put_bytes(&mut out, Some(b"abc"));
        put_bytes(&mut out, None);
        put_short_bytes(&mut out, b"id");
        put_string_list(&mut out, &["a", "b"]);
        put_bytes_map(&mut out, &[(Text::from("k"), Some(Bytes::from_static(b"v")))]);
        let body = out.freeze();
        let mut reader = Reader::new(&body);
        assert_eq!(reader.string("").unwrap(), "héllo");
        assert_eq!(reader.bytes("").unwrap().unwrap(), "abc");
        assert_eq!(reader.bytes("").unwrap(), None);
        assert_eq!(reader.short_bytes("").unwrap(), "id");
        assert_eq!(reader.string_list("").unwrap(), [Text::from("a"), Text::from("b")]);
        let map = reader.bytes_map("").unwrap();
        assert_eq!(map, [(Text::from("k"), Some(Bytes::from_static(b"v")))]);
        assert_eq!(reader.remaining(), 0);
        assert_eq!(reader.u8("a flag"), Err(DecodeError::Truncated("a flag")));
    }

    #[test]
    fn lengths_beyond_the_body_are_refused() {
        let body = Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff, 1, 2]);
        assert_eq!(Reader::new(&body).bytes("a value"), Err(DecodeError::Truncated("a value")));
        assert_eq!(Reader::new(&body).long_string("a query"), Err(DecodeError::Truncated("a query")));
        assert_eq!(Reader::new(&body).string_list("names"), Err(DecodeError::Truncated("names")));
        let negative = Bytes::from_static(&[0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(Reader::new(&negative).long_string("a query"), Err(DecodeError::Length(-2)));
        let broken = Bytes::from_static(&[0, 1, 0xff]);
        assert_eq!(Reader::new(&broken).string("a name"), Err(DecodeError::NotUtf8));
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let mut out = BytesMut::new();
        put_string(&mut out, &"é".repeat(40_000));
        assert_eq!(out.len(), 2 + 65_534);
    }
}
