//! As much of a client as the measurement needs: version 4, blocking, a thread a connection.

use std::io::{Read, Write};
use std::net::TcpStream;

pub const EXECUTE: u8 = 10;
const QUERY: u8 = 7;
const PREPARE: u8 = 9;
const BATCH: u8 = 13;
const ONE: u16 = 1;
const WARNING: u8 = 8;

/// An answer.
pub struct Answer {
    pub stream: i16,
    pub opcode: u8,
    pub body: Vec<u8>,
}

pub struct Client {
    pub socket: TcpStream,
    buffer: Vec<u8>,
    start: usize,
}

/// What an answer of rows says of itself.
pub struct Rows {
    pub count: u32,
    pub paging_state: Option<Vec<u8>>,
}

impl Client {
    pub fn connect(address: &str) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        let mut client = Client { socket, buffer: Vec::new(), start: 0 };
        let ready = client.ask(1, b"\0\x01\0\x0BCQL_VERSION\0\x053.4.7");
        assert_eq!(ready.opcode, 2, "READY");
        client
    }

    pub fn frame(out: &mut Vec<u8>, stream: i16, opcode: u8, body: &[u8]) {
        out.extend_from_slice(&[4, 0]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.push(opcode);
        out.extend_from_slice(&(body.len() as u32).to_be_bytes());
        out.extend_from_slice(body);
    }

    pub fn ask(&mut self, opcode: u8, body: &[u8]) -> Answer {
        let mut out = Vec::new();
        Self::frame(&mut out, 0, opcode, body);
        self.socket.write_all(&out).unwrap();
        loop {
            if let Some(answer) = self.buffered() {
                return answer;
            }
            assert!(self.fill(), "the server hung up");
        }
    }

    /// The next whole answer in the buffer.
    pub fn buffered(&mut self) -> Option<Answer> {
        let at = &self.buffer[self.start..];
        let size = u32::from_be_bytes(at.get(5..9)?.try_into().unwrap()) as usize;
        let body = at.get(9..9 + size)?.to_vec();
        let warnings = if at[1] & WARNING != 0 { warnings_size(&body) } else { 0 };
        let answer =
            Answer { stream: i16::from_be_bytes([at[2], at[3]]), opcode: at[4], body: body[warnings..].to_vec() };
        self.start += 9 + size;
        Some(answer)
    }

    /// Reads more; `false` when nothing came in time, or will.
    pub fn fill(&mut self) -> bool {
        self.buffer.drain(..self.start);
        self.start = 0;
        let old = self.buffer.len();
        self.buffer.resize(old + (256 << 10), 0);
        let read = self.socket.read(&mut self.buffer[old..]).unwrap_or(0);
        self.buffer.truncate(old + read);
        read > 0
    }

    pub fn query(&mut self, text: &str) -> Answer {
        let mut body = (text.len() as u32).to_be_bytes().to_vec();
        body.extend_from_slice(text.as_bytes());
        body.extend_from_slice(&ONE.to_be_bytes());
        body.push(0);
        let answer = self.ask(QUERY, &body);
        assert_ne!(answer.opcode, 0, "{text}: {}", String::from_utf8_lossy(&answer.body));
        answer
    }

    pub fn prepare(&mut self, text: &str) -> Vec<u8> {
        let mut body = (text.len() as u32).to_be_bytes().to_vec();
        body.extend_from_slice(text.as_bytes());
        let answer = self.ask(PREPARE, &body);
        assert_ne!(answer.opcode, 0, "{text}: {}", String::from_utf8_lossy(&answer.body));
        let size = usize::from(u16::from_be_bytes([answer.body[4], answer.body[5]]));
        answer.body[6..6 + size].to_vec()
    }

    /// Executes a prepared statement for a page; an error is told and gives nothing.
    pub fn page(&mut self, id: &[u8], values: &[&[u8]], page: i32, state: Option<&[u8]>) -> Result<Rows, String> {
        let answer = self.ask(EXECUTE, &execute(id, values, Some(page), state));
        match answer.opcode {
            0 => Err(String::from_utf8_lossy(&answer.body[6..]).into_owned()),
            _ => Ok(rows(&answer.body)),
        }
    }

    /// A batch of one prepared statement with many values.
    pub fn batch(&mut self, id: &[u8], values: &[Vec<Vec<u8>>]) {
        let mut body = vec![1];
        body.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for values in values {
            body.push(1);
            body.extend_from_slice(&(id.len() as u16).to_be_bytes());
            body.extend_from_slice(id);
            put_values(&mut body, &values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        body.extend_from_slice(&ONE.to_be_bytes());
        body.push(0);
        let answer = self.ask(BATCH, &body);
        assert_ne!(answer.opcode, 0, "{}", String::from_utf8_lossy(&answer.body));
    }
}

/// Bytes of the list of strings that a body begins with.
fn warnings_size(body: &[u8]) -> usize {
    let short = |at: usize| usize::from(u16::from_be_bytes([body[at], body[at + 1]]));
    (0..short(0)).fold(2, |at, _| at + 2 + short(at))
}

fn put_values(body: &mut Vec<u8>, values: &[&[u8]]) {
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
}

/// The body of EXECUTE, without metadata in the answer.
pub fn execute(id: &[u8], values: &[&[u8]], page: Option<i32>, state: Option<&[u8]>) -> Vec<u8> {
    let mut body = (id.len() as u16).to_be_bytes().to_vec();
    body.extend_from_slice(id);
    body.extend_from_slice(&ONE.to_be_bytes());
    body.push(0x01 | 0x02 | if page.is_some() { 0x04 } else { 0 } | if state.is_some() { 0x08 } else { 0 });
    put_values(&mut body, values);
    if let Some(page) = page {
        body.extend_from_slice(&page.to_be_bytes());
    }
    if let Some(state) = state {
        body.extend_from_slice(&(state.len() as u32).to_be_bytes());
        body.extend_from_slice(state);
    }
    body
}

fn rows(body: &[u8]) -> Rows {
    let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
    assert_eq!(number(0), 2, "rows");
    let (flags, mut at) = (number(4), 12);
    let mut paging_state = None;
    if flags & 2 != 0 {
        let size = number(at) as usize;
        paging_state = Some(body[at + 4..at + 4 + size].to_vec());
        at += 4 + size;
    }
    assert_ne!(flags & 4, 0, "no metadata was asked for");
    Rows { count: number(at), paging_state }
}
