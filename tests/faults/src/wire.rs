//! Version 4 of the native protocol by hand: a client that asks without waiting, and need not read.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Outcome;

const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const QUERY: u8 = 0x07;
const CONSISTENCY_ONE: [u8; 2] = [0, 1];
/// The longest answer that is read.
const ANSWER_MAX: usize = 256 << 20;
/// An answer that takes longer is none: longer than any timeout of the server.
pub const ANSWER_MAX_TIME: Duration = Duration::from_secs(20);

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A result of so many bytes.
    Result(usize),
    /// An error of this code.
    Error(i32),
}

/// A connection that has said STARTUP.
pub struct Wire {
    stream: TcpStream,
}

impl Wire {
    /// Connects and waits for READY.
    pub async fn connect(address: &str) -> Outcome<Self> {
        let mut wire = Self { stream: TcpStream::connect(address).await? };
        wire.stream.set_nodelay(true)?;
        wire.send(STARTUP, b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0").await?;
        match wire.answer().await? {
            (READY, _) => Ok(wire),
            (opcode, body) => Err(format!("{opcode} instead of READY: {}", String::from_utf8_lossy(&body)).into()),
        }
    }

    async fn send(&mut self, opcode: u8, body: &[u8]) -> Outcome {
        let mut frame = vec![4, 0, 0, 1, opcode];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend(body);
        self.stream.write_all(&frame).await?;
        Ok(())
    }

    /// Sends a statement.
    pub async fn ask(&mut self, statement: &str) -> Outcome {
        let mut body = (statement.len() as u32).to_be_bytes().to_vec();
        body.extend(statement.as_bytes());
        body.extend(CONSISTENCY_ONE);
        body.push(0);
        self.send(QUERY, &body).await
    }

    async fn answer(&mut self) -> Outcome<(u8, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await?;
        let size = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize;
        if size > ANSWER_MAX {
            return Err(format!("an answer of {size} bytes").into());
        }
        let mut body = vec![0; size];
        self.stream.read_exact(&mut body).await?;
        Ok((head[4], body))
    }

    /// Waits for the answer to a statement.
    pub async fn said(&mut self) -> Outcome<Said> {
        let (opcode, body) = timeout(ANSWER_MAX_TIME, self.answer()).await.map_err(|_| "no answer")??;
        match (opcode, body.first_chunk()) {
            (ERROR, Some(code)) => Ok(Said::Error(i32::from_be_bytes(*code))),
            _ => Ok(Said::Result(body.len())),
        }
    }

    /// Asks and waits.
    pub async fn query(&mut self, statement: &str) -> Outcome<Said> {
        self.ask(statement).await?;
        self.said().await
    }
}
