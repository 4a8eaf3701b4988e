//! A connection: frames of version 4 over a blocking socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use protocol::Opcode;
use protocol::wire::put_string;
use stdx::Cursor;
use types::Consistency;

use crate::Result;
use crate::answer::{VERSION, judge};

/// Bytes of a frame's header.
const HEADER_SIZE: usize = 9;
/// Asked of the kernel at once.
const READ_SIZE: usize = 256 << 10;
/// The longest a server may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(300);
const PREPARED: i32 = 4;

/// See the module.
pub struct Connection {
    socket: TcpStream,
    input: Vec<u8>,
    /// Bytes of `input` that have come, and bytes of these that have been handed out.
    filled: usize,
    taken: usize,
}

impl Connection {
    /// Connects and says STARTUP.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        let mut connection = Self { socket, input: vec![0; READ_SIZE], filled: 0, taken: 0 };
        let mut out = BytesMut::new();
        put_frame(&mut out, 0, Opcode::Startup, |out| {
            out.put_u16(1);
            put_string(out, "CQL_VERSION");
            put_string(out, "3.0.0");
        });
        connection.call(&out)?;
        Ok(connection)
    }

    /// A statement as it stands.
    pub fn query(&mut self, statement: &str) -> Result<Vec<u8>> {
        let mut out = BytesMut::new();
        put_frame(&mut out, 0, Opcode::Query, |out| {
            put_long_string(out, statement);
            out.put_u16(Consistency::LocalOne as u16);
            out.put_u8(0);
        });
        self.call(&out)
    }

    /// The id of a prepared statement.
    pub fn prepare(&mut self, statement: &str) -> Result<Bytes> {
        let mut out = BytesMut::new();
        put_frame(&mut out, 0, Opcode::Prepare, |out| put_long_string(out, statement));
        let body = self.call(&out)?;
        let mut cursor = Cursor::new(&body);
        if cursor.i32()? != PREPARED {
            return Err("PREPARE was answered with something else".into());
        }
        Ok(Bytes::copy_from_slice(cursor.short_bytes()?))
    }

    /// Sends a frame and waits for its answer, whose body is handed back.
    pub fn call(&mut self, frame: &[u8]) -> Result<Vec<u8>> {
        self.send(frame)?;
        loop {
            if let Some((_, body)) = self.next_answer()? {
                return Ok(body.to_vec());
            }
            self.receive()?;
        }
    }

    /// Sends frames.
    pub fn send(&mut self, frames: &[u8]) -> Result<()> {
        Ok(self.socket.write_all(frames)?)
    }

    /// Waits until something has come.
    pub fn receive(&mut self) -> Result<()> {
        self.input.copy_within(self.taken..self.filled, 0);
        (self.filled, self.taken) = (self.filled - self.taken, 0);
        if self.input.len() - self.filled < READ_SIZE / 4 {
            self.input.resize(self.input.len() * 2, 0);
        }
        let read = self.socket.read(&mut self.input[self.filled..])?;
        if read == 0 {
            return Err("the server has closed the connection".into());
        }
        self.filled += read;
        Ok(())
    }

    /// The next answer that has come whole: its stream and its body. An error that the server tells
    /// is an error here.
    pub fn next_answer(&mut self) -> Result<Option<(u16, &[u8])>> {
        let here = &self.input[self.taken..self.filled];
        let Some(header) = here.first_chunk::<HEADER_SIZE>() else { return Ok(None) };
        let [_, _, s0, s1, opcode, l0, l1, l2, l3] = *header;
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let Some(body) = here.get(HEADER_SIZE..HEADER_SIZE + length) else { return Ok(None) };
        self.taken += HEADER_SIZE + length;
        judge(opcode, body)?;
        Ok(Some((u16::from_be_bytes([s0, s1]), body)))
    }
}

/// Appends a frame whose body `write` appends.
pub fn put_frame(out: &mut BytesMut, stream: u16, opcode: Opcode, write: impl FnOnce(&mut BytesMut)) {
    out.put_u8(VERSION);
    out.put_u8(0);
    out.put_u16(stream);
    out.put_u8(opcode as u8);
    let at = out.len();
    out.put_u32(0);
    write(out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn put_long_string(out: &mut BytesMut, text: &str) {
    out.put_u32(text.len() as u32);
    out.put_slice(text.as_bytes());
}
