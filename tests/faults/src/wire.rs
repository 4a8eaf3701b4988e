//! Versions 4 and 5 of the native protocol by hand: a client that asks without waiting, and need
//! not read.

use std::time::Duration;

use bytes::BytesMut;
use protocol::segment::{PAYLOAD_SIZE_MAX, SegmentDecoder, SegmentEncoder, SegmentFormat};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Outcome;

const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const QUERY: u8 = 0x07;
/// The flag of QUERY that says that values follow.
const VALUES: u32 = 1;
const CONSISTENCY_ONE: [u8; 2] = [0, 1];
/// The longest answer that is read.
const ANSWER_MAX: usize = 257 << 20;
/// An answer that takes longer is none: longer than any timeout of the server.
pub const ANSWER_MAX_TIME: Duration = Duration::from_secs(20);

/// An answer of the server, or the end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerSummary {
    /// A result of so many bytes.
    Result(usize),
    /// An error of this code.
    Error(i32),
}

/// An answer of the server with its content, or the end of the connection.
#[derive(Debug)]
pub enum Answer {
    /// The body of a result.
    Result(Vec<u8>),
    /// An error's code and text.
    Error(i32, String),
}

impl Answer {
    /// The body of a result; an error is one here.
    pub fn into_result(self) -> Outcome<Vec<u8>> {
        match self {
            Self::Result(body) => Ok(body),
            Self::Error(code, text) => Err(format!("error {code:#06x}: {text}").into()),
        }
    }
}

/// A connection that has said STARTUP.
pub struct Wire {
    stream: TcpStream,
    version: u8,
    /// Of version 5, after STARTUP.
    segments: Option<Segments>,
}

/// Both directions of version 5.
struct Segments {
    encoder: SegmentEncoder,
    decoder: SegmentDecoder,
    /// Read and not yet taken apart.
    read: BytesMut,
    /// The content of segments that is not decoded yet, in their order.
    held: BytesMut,
}

impl Wire {
    /// Connects and waits for READY.
    pub async fn connect(address: &str) -> Outcome<Self> {
        Self::connect_as(address, 4).await
    }

    /// Connects in this version of the protocol and waits for READY.
    pub async fn connect_as(address: &str, version: u8) -> Outcome<Self> {
        Self::connect_with(address, version, b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0").await
    }

    /// Connects in version 4 with compressed answers, and waits for READY.
    pub async fn connect_compressed(address: &str) -> Outcome<Self> {
        let options = b"\x00\x02\x00\x0bCQL_VERSION\x00\x053.0.0\x00\x0bCOMPRESSION\x00\x03lz4";
        Self::connect_with(address, 4, options).await
    }

    async fn connect_with(address: &str, version: u8, options: &[u8]) -> Outcome<Self> {
        let mut wire = Self { stream: TcpStream::connect(address).await?, version, segments: None };
        wire.stream.set_nodelay(true)?;
        wire.send(STARTUP, options).await?;
        let (opcode, body) = wire.answer().await?;
        if opcode != READY {
            return Err(format!("{opcode} instead of READY: {}", String::from_utf8_lossy(&body)).into());
        }
        wire.segments = (version == 5).then(|| Segments {
            encoder: SegmentEncoder::new(SegmentFormat::Plain),
            decoder: SegmentDecoder::new(SegmentFormat::Plain),
            read: BytesMut::new(),
            held: BytesMut::new(),
        });
        Ok(wire)
    }

    async fn send(&mut self, opcode: u8, body: &[u8]) -> Outcome {
        let mut frame = vec![self.version, 0, 0, 1, opcode];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend(body);
        let Some(segments) = &mut self.segments else { return Ok(self.stream.write_all(&frame).await?) };
        let mut out = BytesMut::new();
        if frame.len() <= PAYLOAD_SIZE_MAX {
            segments.encoder.append(&mut out, |out| out.extend_from_slice(&frame));
            segments.encoder.finish(&mut out);
            return Ok(self.stream.write_all(&out).await?);
        }
        for part in frame.chunks(PAYLOAD_SIZE_MAX) {
            segments.encoder.append_part(&mut out, part);
            self.stream.write_all(&out.split()).await?;
        }
        Ok(())
    }

    /// Writes a row of an id and a blob, and waits for the answer.
    pub async fn write_blob(&mut self, statement: &str, id: i32, blob: &[u8]) -> Outcome<Answer> {
        let mut body = (statement.len() as u32).to_be_bytes().to_vec();
        body.reserve(statement.len() + blob.len() + 64);
        body.extend(statement.as_bytes());
        body.extend(CONSISTENCY_ONE);
        match self.version {
            5 => body.extend(VALUES.to_be_bytes()),
            _ => body.push(VALUES as u8),
        }
        body.extend(2u16.to_be_bytes());
        body.extend(4u32.to_be_bytes());
        body.extend(id.to_be_bytes());
        body.extend((blob.len() as u32).to_be_bytes());
        body.extend(blob);
        self.send(QUERY, &body).await?;
        self.whole().await
    }

    /// Asks, waits, and gives what the answer says.
    pub async fn query_body(&mut self, statement: &str) -> Outcome<Answer> {
        self.ask(statement).await?;
        self.whole().await
    }

    /// Asks and waits for a result.
    pub async fn expect_rows(&mut self, statement: &str) -> Outcome {
        self.query_body(statement).await?.into_result().map(|_| ())
    }

    async fn whole(&mut self) -> Outcome<Answer> {
        let (opcode, body) = timeout(ANSWER_MAX_TIME * 3, self.answer()).await.map_err(|_| "no answer")??;
        match (opcode, body.split_first_chunk()) {
            (ERROR, Some((code, text))) => {
                Ok(Answer::Error(i32::from_be_bytes(*code), String::from_utf8_lossy(text).into_owned()))
            }
            _ => Ok(Answer::Result(body)),
        }
    }

    /// Sends a statement.
    pub async fn ask(&mut self, statement: &str) -> Outcome {
        let mut body = (statement.len() as u32).to_be_bytes().to_vec();
        body.extend(statement.as_bytes());
        body.extend(CONSISTENCY_ONE);
        body.extend(&[0; 4][..if self.version == 5 { 4 } else { 1 }]);
        self.send(QUERY, &body).await
    }

    async fn answer(&mut self) -> Outcome<(u8, Vec<u8>)> {
        if self.segments.is_some() {
            return self.answer_in_segments().await;
        }
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

    async fn answer_in_segments(&mut self) -> Outcome<(u8, Vec<u8>)> {
        let segments = self.segments.as_mut().ok_or("no segments")?;
        loop {
            if let Some(head) = segments.held.first_chunk::<9>() {
                let (opcode, size) = (head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize);
                if size > ANSWER_MAX {
                    return Err(format!("an answer of {size} bytes").into());
                }
                if segments.held.len() >= 9 + size {
                    let envelope = segments.held.split_to(9 + size);
                    return Ok((opcode, envelope[9..].to_vec()));
                }
                segments.held.reserve(9 + size - segments.held.len());
            }
            match segments.decoder.next(&mut segments.read).map_err(|error| error.to_string())? {
                Some(segment) => segments.held.extend_from_slice(&segment.payload),
                None => {
                    segments.read.reserve(2 * PAYLOAD_SIZE_MAX);
                    if self.stream.read_buf(&mut segments.read).await? == 0 {
                        return Err("the connection was closed".into());
                    }
                }
            }
        }
    }

    /// Waits for the answer to a statement.
    pub async fn said(&mut self) -> Outcome<AnswerSummary> {
        let (opcode, body) = timeout(ANSWER_MAX_TIME, self.answer()).await.map_err(|_| "no answer")??;
        match (opcode, body.first_chunk()) {
            (ERROR, Some(code)) => Ok(AnswerSummary::Error(i32::from_be_bytes(*code))),
            _ => Ok(AnswerSummary::Result(body.len())),
        }
    }

    /// Asks and waits.
    pub async fn query(&mut self, statement: &str) -> Outcome<AnswerSummary> {
        self.ask(statement).await?;
        self.said().await
    }
}
