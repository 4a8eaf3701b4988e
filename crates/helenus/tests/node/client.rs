//! A client of protocol version 4 that waits for each answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};

const STARTUP: u8 = 1;
const QUERY: u8 = 7;
const PREPARE: u8 = 9;
const EXECUTE: u8 = 10;
const TRACING: u8 = 2;

pub type Row = Vec<Option<Bytes>>;
/// Code and text of an ERROR.
pub type Refusal = (i32, String);
/// Bound values.
pub type Values<'a> = &'a [&'a [u8]];

pub struct Client {
    socket: TcpStream,
    /// Code of the level for what follows.
    pub consistency: u16,
}

impl Client {
    pub fn connect(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket.set_nodelay(true).unwrap();
        let mut client = Self { socket, consistency: 1 };
        client.ask(STARTUP, 0, b"\0\x01\0\x0bCQL_VERSION\0\x053.4.7").unwrap();
        client
    }

    /// Flags and body of the answer, or the error.
    fn ask(&mut self, opcode: u8, flags: u8, body: &[u8]) -> Result<(u8, Bytes), Refusal> {
        self.exchange(opcode, flags, body).unwrap()
    }

    fn exchange(&mut self, opcode: u8, flags: u8, body: &[u8]) -> std::io::Result<Result<(u8, Bytes), Refusal>> {
        let mut frame = BytesMut::new();
        frame.put_slice(&[4, flags, 0, 1, opcode]);
        frame.put_u32(body.len() as u32);
        frame.put_slice(body);
        self.socket.write_all(&frame)?;
        let mut header = [0; 9];
        self.socket.read_exact(&mut header)?;
        let mut body = vec![0; u32::from_be_bytes(header[5..].try_into().unwrap()) as usize];
        self.socket.read_exact(&mut body)?;
        let mut body = Bytes::from(body);
        if header[4] == 0 {
            return Ok(Err((body.get_i32(), string(&mut body))));
        }
        Ok(Ok((header[1], body)))
    }

    fn parameters(&self, values: Values<'_>) -> BytesMut {
        let mut out = BytesMut::new();
        out.put_u16(self.consistency);
        out.put_u8(1);
        out.put_u16(values.len() as u16);
        for value in values {
            out.put_i32(value.len() as i32);
            out.put_slice(value);
        }
        out
    }

    fn query_body(&self, query: &str) -> BytesMut {
        let mut body = BytesMut::new();
        body.put_u32(query.len() as u32);
        body.put_slice(query.as_bytes());
        body.put_slice(&self.parameters(&[]));
        body
    }

    pub fn query(&mut self, query: &str) -> Result<Vec<Row>, Refusal> {
        let body = self.query_body(query);
        let (flags, body) = self.ask(QUERY, 0, &body)?;
        Ok(rows(flags, body))
    }

    pub fn run(&mut self, query: &str) {
        self.query(query).unwrap_or_else(|refusal| panic!("{query}: {refusal:?}"));
    }

    pub fn rows(&mut self, query: &str) -> Vec<Row> {
        self.query(query).unwrap_or_else(|refusal| panic!("{query}: {refusal:?}"))
    }

    /// The session's id.
    pub fn traced(&mut self, query: &str) -> [u8; 16] {
        let body = self.query_body(query);
        let (flags, body) = self.ask(QUERY, TRACING, &body).unwrap();
        assert_eq!(flags & TRACING, TRACING);
        body[..16].try_into().unwrap()
    }

    /// The statement's id.
    pub fn prepare(&mut self, query: &str) -> Vec<u8> {
        let mut body = BytesMut::new();
        body.put_u32(query.len() as u32);
        body.put_slice(query.as_bytes());
        let (_, mut body) = self.ask(PREPARE, 0, &body).unwrap();
        assert_eq!(body.get_i32(), 4);
        let length = usize::from(body.get_u16());
        body[..length].to_vec()
    }

    pub fn execute(&mut self, id: &[u8], values: Values<'_>) -> Result<Vec<Row>, Refusal> {
        self.execute_unless_gone(id, values).unwrap()
    }

    /// An error of the socket: the node was killed.
    pub fn execute_unless_gone(&mut self, id: &[u8], values: Values<'_>) -> std::io::Result<Result<Vec<Row>, Refusal>> {
        let mut body = BytesMut::new();
        body.put_u16(id.len() as u16);
        body.put_slice(id);
        body.put_slice(&self.parameters(values));
        Ok(self.exchange(EXECUTE, 0, &body)?.map(|(flags, body)| rows(flags, body)))
    }
}

fn string(body: &mut Bytes) -> String {
    let length = usize::from(body.get_u16());
    String::from_utf8(body.split_to(length).to_vec()).unwrap()
}

/// The rows of a RESULT whose columns are of one table; none if it is another kind of result.
fn rows(flags: u8, mut body: Bytes) -> Vec<Row> {
    if flags & 8 != 0 {
        let warnings = body.get_u16();
        (0..warnings).for_each(|_| drop(string(&mut body)));
    }
    if body.get_i32() != 2 {
        return Vec::new();
    }
    assert_eq!(body.get_i32(), 1, "one table, no further page");
    let columns = body.get_i32();
    string(&mut body);
    string(&mut body);
    for _ in 0..columns {
        string(&mut body);
        skip_type(&mut body);
    }
    let count = body.get_i32();
    let value = |body: &mut Bytes| match usize::try_from(body.get_i32()) {
        Ok(length) => Some(body.split_to(length)),
        Err(_) => None,
    };
    (0..count).map(|_| (0..columns).map(|_| value(&mut body)).collect()).collect()
}

fn skip_type(body: &mut Bytes) {
    match body.get_u16() {
        0x20 | 0x22 => skip_type(body),
        0x21 => {
            skip_type(body);
            skip_type(body);
        }
        code => assert!(code < 0x20, "a type that these tests do not use"),
    }
}
