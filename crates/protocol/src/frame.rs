//! The envelope: nine bytes of header and a body.
//!
//! ```text
//! u8 version (bit 7: response) | u8 flags | i16 stream | u8 opcode | i32 body length | body
//! ```
//!
//! Pure functions over byte slices; the connection decides when to read more. A header that cannot
//! be accepted becomes a [`HeaderError`], which says on which stream and with which version the
//! client expects the answer. Native protocol specification §2;
//! `org.apache.cassandra.transport.Envelope`.

use bytes::{BufMut, BytesMut};

use crate::decode_error::DecodeError;
use crate::opcode::Opcode;
use crate::version::{ProtocolVersion, beta_flag_message, invalid_version_message};

/// Bytes of a header in versions 3 and later.
pub const HEADER_SIZE: usize = 9;

/// Bytes of a header in versions 1 and 2, which are understood only to refuse them.
const OLD_HEADER_SIZE: usize = 8;

const RESPONSE_BIT: u8 = 0x80;

/// Bits of the header's second byte.
pub mod flags {
    /// The body is compressed (versions 3 and 4).
    pub const COMPRESSED: u8 = 0x01;
    /// Of a request: it shall be traced. Of a response: a tracing id comes first.
    pub const TRACING: u8 = 0x02;
    /// A custom payload precedes the message (version 4 and later).
    pub const CUSTOM_PAYLOAD: u8 = 0x04;
    /// Warnings precede the message (responses, version 4 and later).
    pub const WARNING: u8 = 0x08;
    /// The client agrees to a beta version.
    pub const USE_BETA: u8 = 0x10;
}

// each flag is a bit of its own
const _: () = assert!(
    flags::COMPRESSED | flags::TRACING | flags::CUSTOM_PAYLOAD | flags::WARNING | flags::USE_BETA
        == flags::COMPRESSED + flags::TRACING + flags::CUSTOM_PAYLOAD + flags::WARNING + flags::USE_BETA
);

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of this envelope.
    pub version: ProtocolVersion,
    /// See [`flags`].
    pub flags: u8,
    /// The stream id. The client chooses it, and the response repeats it.
    pub stream: i16,
    /// The opcode, not checked yet: an unknown one is an error of its own stream only.
    pub opcode: u8,
    /// Bytes of the body.
    pub body_size: u32,
}

/// A header that cannot be accepted, with everything needed to answer it. The connection is closed
/// after the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderError {
    /// The stream on which the client waits; 0 if it could not be read.
    pub stream: i16,
    /// The version number in the header of the answer.
    pub answer_version: u8,
    /// The error to report.
    pub error: DecodeError,
}

/// Reads the header at the start of `input`. `None`: more bytes are needed.
///
/// The version is judged by the first byte alone, because the headers of versions 1 and 2 are
/// shorter and a client of another protocol may never send nine bytes.
pub fn decode_header(input: &[u8]) -> Result<Option<Header>, HeaderError> {
    let Some(&first) = input.first() else {
        return Ok(None);
    };
    let Some(version) = ProtocolVersion::from_number(first & !RESPONSE_BIT) else {
        return Err(unknown_version(first & !RESPONSE_BIT, input));
    };
    let Some(header) = input.first_chunk::<HEADER_SIZE>() else {
        return Ok(None);
    };
    let [_, flags, s0, s1, opcode, l0, l1, l2, l3] = *header;
    let stream = i16::from_be_bytes([s0, s1]);
    let refuse = |error| HeaderError { stream, answer_version: version.number(), error };
    if version.is_beta() && flags & flags::USE_BETA == 0 {
        return Err(refuse(DecodeError::Version(beta_flag_message(version))));
    }
    if first & RESPONSE_BIT != 0 {
        return Err(refuse(DecodeError::Direction(opcode)));
    }
    let length = i32::from_be_bytes([l0, l1, l2, l3]);
    match u32::try_from(length) {
        Ok(body_size) => Ok(Some(Header { version, flags, stream, opcode, body_size })),
        Err(_) => Err(refuse(DecodeError::Length(length))),
    }
}

fn unknown_version(number: u8, input: &[u8]) -> HeaderError {
    let old = matches!(number, 1 | 2);
    let stream = match (old, input) {
        (true, [_, _, stream, ..]) => i16::from(stream.cast_signed()),
        (false, [_, _, high, low, ..]) => i16::from_be_bytes([*high, *low]),
        _ => 0,
    };
    let answer_version = if old { number } else { ProtocolVersion::CURRENT.number() };
    HeaderError { stream, answer_version, error: DecodeError::Version(invalid_version_message(number)) }
}

/// Appends the header of a response with a placeholder for the length. Returns the offset of the
/// body.
pub fn begin_response(out: &mut BytesMut, version: ProtocolVersion, flags: u8, stream: i16, opcode: Opcode) -> usize {
    let beta = if version.is_beta() { flags::USE_BETA } else { 0 };
    out.put_u8(RESPONSE_BIT | version.number());
    out.put_u8(flags | beta);
    out.put_i16(stream);
    out.put_u8(opcode as u8);
    out.put_u32(0);
    out.len()
}

/// Writes the length of the body, which begins at `body_start` and ends at the end of `out`.
pub fn finish_response(out: &mut BytesMut, body_start: usize) {
    assert!((HEADER_SIZE..=out.len()).contains(&body_start), "a response's body stands behind its header");
    debug_assert_eq!(out[body_start - 4..body_start], [0u8; 4], "the length of a response is written once");
    let size = u32::try_from(out.len() - body_start).expect("responses are bounded below 2 GiB");
    out[body_start - 4..body_start].copy_from_slice(&size.to_be_bytes());
}

/// Appends the whole answer to a refused header: an ERROR envelope, in the old layout for versions
/// 1 and 2.
pub fn encode_header_error(out: &mut BytesMut, refused: &HeaderError) {
    let mut body = BytesMut::new();
    crate::error::ErrorMessage::protocol(refused.error.to_string()).encode(&mut body, ProtocolVersion::CURRENT);
    out.reserve(HEADER_SIZE.max(OLD_HEADER_SIZE) + body.len());
    out.put_u8(RESPONSE_BIT | refused.answer_version);
    out.put_u8(if refused.answer_version == ProtocolVersion::V6.number() { flags::USE_BETA } else { 0 });
    match refused.answer_version {
        1 | 2 => out.put_i8(refused.stream as i8),
        _ => out.put_i16(refused.stream),
    }
    out.put_u8(Opcode::Error as u8);
    out.put_u32(body.len() as u32);
    out.put_slice(&body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let bytes = [0x04, 0x02, 0x01, 0x02, 0x07, 0, 0, 1, 0, 99];
        let header = Header { version: ProtocolVersion::V4, flags: 2, stream: 0x102, opcode: 7, body_size: 256 };
        assert_eq!(decode_header(&bytes), Ok(Some(header)));
        for cut in 0..HEADER_SIZE {
            assert_eq!(decode_header(&bytes[..cut]), Ok(None));
        }
    }

    #[test]
    fn unknown_versions_are_answered_where_the_client_waits() {
        // 0x42 is the version of DSE; the Python driver sends it with OPTIONS on stream 0 (here 5)
        let refused = decode_header(&[0x42, 0, 0, 5, 5, 0, 0, 0, 0]).unwrap_err();
        assert_eq!((refused.stream, refused.answer_version), (5, 5));
        let mut out = BytesMut::new();
        encode_header_error(&mut out, &refused);
        assert_eq!(&out[..13], [0x85, 0, 0, 5, 0, 0, 0, 0, 104, 0, 0, 0, 0x0A]);
        let text = "Invalid or unsupported protocol version (66); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)";
        assert_eq!(&out[15..], text.as_bytes());
        assert_eq!(out.len(), 9 + 104);
        // one byte suffices
        assert_eq!(decode_header(b"G").unwrap_err().stream, 0);
        // versions 1 and 2 get their own header
        let refused = decode_header(&[0x02, 0, 7, 5, 0, 0, 0, 0]).unwrap_err();
        let mut out = BytesMut::new();
        encode_header_error(&mut out, &refused);
        assert_eq!(&out[..4], [0x82, 0, 7, 0]);
    }

    #[test]
    fn refused_headers() {
        let beta = decode_header(&[6, 0, 0, 1, 5, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(beta.error.to_string(), "Beta version of the protocol used (6/v6-beta), but USE_BETA flag is unset");
        assert_eq!(beta.answer_version, 6);
        assert!(decode_header(&[6, 0x10, 0, 1, 5, 0, 0, 0, 0]).unwrap().is_some());
        let response = decode_header(&[0x84, 0, 0, 1, 5, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(response.error, DecodeError::Direction(5));
        let negative = decode_header(&[4, 0, 0, 1, 5, 0xff, 0xff, 0xff, 0xff]).unwrap_err();
        assert_eq!(negative.error, DecodeError::Length(-1));
    }
}
