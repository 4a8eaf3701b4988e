//! A client that does what a test tells it, byte by byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use protocol::Compression;
use protocol::segment::{SegmentDecoder, SegmentEncoder, SegmentFormat};

pub const ERROR: u8 = 0;
pub const READY: u8 = 2;
pub const AUTHENTICATE: u8 = 3;
pub const SUPPORTED: u8 = 6;
pub const RESULT: u8 = 8;
pub const EVENT: u8 = 12;
pub const AUTH_SUCCESS: u8 = 16;

pub const STARTUP: u8 = 1;
pub const OPTIONS: u8 = 5;
pub const QUERY: u8 = 7;
pub const REGISTER: u8 = 11;
pub const AUTH_RESPONSE: u8 = 15;

/// An envelope from the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub version: u8,
    pub flags: u8,
    pub stream: i16,
    pub opcode: u8,
    pub body: Bytes,
}

impl Answer {
    pub fn error_code(&self) -> i32 {
        assert_eq!(self.opcode, ERROR, "{self:?}");
        i32::from_be_bytes(self.body[..4].try_into().unwrap())
    }

    pub fn error_text(&self) -> String {
        let length = usize::from(u16::from_be_bytes([self.body[4], self.body[5]]));
        String::from_utf8(self.body[6..6 + length].to_vec()).unwrap()
    }
}

pub struct Client {
    pub socket: TcpStream,
    pub version: u8,
    /// Bytes read and not yet understood.
    raw: BytesMut,
    /// Of segments, joined.
    joined: BytesMut,
    segments: Option<SegmentFormat>,
    compression: Option<Compression>,
}

pub fn string_map(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut body = BytesMut::new();
    body.put_u16(pairs.len() as u16);
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        body.put_u16(text.len() as u16);
        body.put_slice(text.as_bytes());
    }
    body.to_vec()
}

/// The body of a QUERY at ONE without parameters.
pub fn query(version: u8, text: &str) -> Vec<u8> {
    let mut body = BytesMut::new();
    body.put_u32(text.len() as u32);
    body.put_slice(text.as_bytes());
    body.put_u16(1);
    if version >= 5 {
        body.put_u32(0)
    } else {
        body.put_u8(0)
    }
    body.to_vec()
}

pub fn envelope(version: u8, flags: u8, stream: i16, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_u8(version);
    out.put_u8(flags);
    out.put_i16(stream);
    out.put_u8(opcode);
    out.put_u32(body.len() as u32);
    out.put_slice(body);
    out.to_vec()
}

impl Client {
    pub fn connect(address: SocketAddr, version: u8) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket, version, raw: BytesMut::new(), joined: BytesMut::new(), segments: None, compression: None }
    }

    /// Connects and starts without compression.
    pub fn ready(address: SocketAddr, version: u8) -> Self {
        Self::ready_with(address, version, &[])
    }

    pub fn ready_with(address: SocketAddr, version: u8, options: &[(&str, &str)]) -> Self {
        let mut client = Self::connect(address, version);
        assert_eq!(client.startup(options).opcode, READY);
        client
    }

    /// Sends STARTUP and follows what it changes.
    pub fn startup(&mut self, options: &[(&str, &str)]) -> Answer {
        let mut all = vec![("CQL_VERSION", "3.4.7")];
        all.extend_from_slice(options);
        self.send(0, STARTUP, &string_map(&all));
        let answer = self.receive();
        if matches!(answer.opcode, READY | AUTHENTICATE) {
            let name = options.iter().find(|(key, _)| *key == "COMPRESSION").map(|(_, value)| *value);
            let compression = name.and_then(Compression::from_name);
            if self.version >= 5 {
                let lz4 = compression.is_some();
                self.segments = Some(if lz4 { SegmentFormat::Lz4 } else { SegmentFormat::Plain });
            } else {
                self.compression = compression;
            }
        }
        answer
    }

    pub fn send(&mut self, stream: i16, opcode: u8, body: &[u8]) {
        self.send_all(&[(stream, opcode, body.to_vec())]);
    }

    /// Sends requests with one write.
    pub fn send_all(&mut self, requests: &[(i16, u8, Vec<u8>)]) {
        let mut out = BytesMut::new();
        let mut encoder = self.segments.map(SegmentEncoder::new);
        for (stream, opcode, body) in requests {
            let mut flags = if self.version == 6 { 0x10 } else { 0 };
            let mut body = BytesMut::from(&body[..]);
            if self.compression.is_some_and(|compression| compression.compress_tail(&mut body, 0)) {
                flags |= 1;
            }
            let bytes = envelope(self.version, flags, *stream, *opcode, &body);
            match &mut encoder {
                Some(encoder) => encoder.append(&mut out, |out| out.put_slice(&bytes)),
                None => out.put_slice(&bytes),
            }
        }
        if let Some(encoder) = &mut encoder {
            encoder.finish(&mut out);
        }
        self.socket.write_all(&out).unwrap();
    }

    /// The first bytes of a query, and no more.
    pub fn query_begun(&mut self, stream: i16, text: &str, size: usize) {
        let bytes = envelope(self.version, 0, stream, QUERY, &query(self.version, text));
        let mut out = BytesMut::new();
        match self.segments.map(SegmentEncoder::new) {
            Some(mut encoder) => {
                encoder.append(&mut out, |out| out.put_slice(&bytes));
                encoder.finish(&mut out);
            }
            None => out.put_slice(&bytes),
        }
        self.socket.write_all(&out[..size]).unwrap();
    }

    /// Whether anything comes in this time.
    pub fn receives_within(&mut self, time: Duration) -> bool {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let came = self.socket.peek(&mut [0]).is_ok();
        self.socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        came
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub fn query(&mut self, stream: i16, text: &str) {
        let body = query(self.version, text);
        self.send(stream, QUERY, &body);
    }

    pub fn ask(&mut self, text: &str) -> Answer {
        self.query(1, text);
        self.receive()
    }

    /// The next envelope; `None` when the server has closed.
    pub fn try_receive(&mut self) -> Option<Answer> {
        loop {
            if let Some(answer) = self.next_buffered() {
                return Some(answer);
            }
            let mut piece = [0; 65536];
            match self.socket.read(&mut piece) {
                Ok(0) => return None,
                Ok(size) => self.raw.extend_from_slice(&piece[..size]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub fn receive(&mut self) -> Answer {
        self.try_receive().expect("an answer before the end")
    }

    pub fn assert_closed(&mut self) {
        assert_eq!(self.try_receive(), None);
    }

    fn next_buffered(&mut self) -> Option<Answer> {
        match self.segments {
            None => {
                let bytes = self.raw.split();
                self.joined.unsplit(bytes);
            }
            Some(format) => {
                while let Some(segment) = SegmentDecoder::new(format).next(&mut self.raw).unwrap() {
                    self.joined.extend_from_slice(&segment.payload);
                }
            }
        }
        let length = u32::from_be_bytes(self.joined.get(5..9)?.try_into().unwrap()) as usize;
        if self.joined.len() < 9 + length {
            return None;
        }
        let (version, flags) = (self.joined.get_u8(), self.joined.get_u8());
        let (stream, opcode) = (self.joined.get_i16(), self.joined.get_u8());
        self.joined.advance(4);
        let mut body = self.joined.split_to(length).freeze();
        if flags & 1 != 0 {
            body = self.compression.expect("agreed on").decompress(&body, 1 << 28).unwrap();
        }
        Some(Answer { version, flags, stream, opcode, body })
    }
}
