//! One connection to one node: handshake, login, requests that are answered in any order.
//!
//! The shell speaks the native protocol itself instead of through the driver that stress uses. Such
//! a driver speaks version 4 at most, refuses a whole result for one type that it does not know,
//! opens connections to every node where a shell speaks to one, and its TLS brings a second
//! cryptographic library. Here the bytes of each value stay what the server sent, so that every
//! type of the tree can be shown, and COPY binds values without a detour.
//!
//! A task reads answers and hands each one to the request with its stream id; another task writes
//! what requests give it. Bounds: [`STREAMS_MAX`] requests wait for answers, further requests wait
//! for one of them; [`QUEUE_MAX`] envelopes wait to be written; a body has at most
//! [`BODY_SIZE_MAX`] bytes, a longer one ends the connection.

mod server_error;
mod tls;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use rustls::pki_types::ServerName;
use segments::{SegmentDecoder, SegmentEncoder, SegmentFormat};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

pub use server_error::{BAD_CREDENTIALS, PROTOCOL, ServerError};
pub use tls::TlsSettings;
pub use wire::{Answer, BatchKind, Column, Content, Page, Parameters, Prepared, Value};

use wire::opcode;

/// Most requests that wait for an answer. COPY FROM and COPY TO stay below it.
pub const STREAMS_MAX: usize = 1024;
/// Most envelopes that wait to be written.
const QUEUE_MAX: usize = 256;
/// Most bytes of an answer: what drivers accept.
const BODY_SIZE_MAX: usize = 256 << 20;
/// Bytes that are gathered before they are written.
const WRITE_SIZE: usize = 64 << 10;
const HEADER_SIZE: usize = 9;
const RESPONSE_BIT: u8 = 0x80;
/// Versions that are tried, the newest first.
const VERSIONS: [u8; 3] = [5, 4, 3];

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name or address of the node.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// TLS; None: the connection is not encrypted.
    pub tls: Option<TlsSettings>,
    /// User and password.
    pub login: Option<(String, String)>,
    /// The version of the protocol; None: the newest that both sides speak.
    pub version: Option<u8>,
    /// The version of CQL that is asked for.
    pub cql_version: String,
    /// Longest wait for a connection that can be used.
    pub connect_timeout: Duration,
    /// Longest wait for an answer.
    pub request_timeout: Duration,
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum Failure {
    /// The server refused it or failed.
    Server(ServerError),
    /// No answer within the time that the shell waits.
    Timeout(Duration),
    /// The connection is gone, or could not be made.
    Connection(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Timeout(after) => write!(
                f,
                "OperationTimedOut: no answer after {} seconds; the node may still carry the request out (--request-timeout=SECONDS waits longer)",
                after.as_secs()
            ),
            Self::Connection(why) => f.write_str(why),
        }
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

impl From<stdx::CursorError> for Failure {
    fn from(error: stdx::CursorError) -> Self {
        Self::Connection(format!("an answer of the server cannot be read: {error}"))
    }
}

struct Envelope {
    flags: u8,
    opcode: u8,
    body: Bytes,
}

/// A request that waits for its answer. The permit frees the stream id for another request.
struct Waiting {
    answer: oneshot::Sender<Envelope>,
    _stream: OwnedSemaphorePermit,
}

#[derive(Default)]
struct Streams {
    waiting: HashMap<i16, Waiting>,
    free: Vec<i16>,
    /// Why the connection ended; None while it lasts.
    ended: Option<String>,
}

/// A connection. It ends when it is dropped.
pub struct Connection {
    /// The version of the protocol.
    pub version: u8,
    /// The address that was connected to.
    pub address: SocketAddr,
    request_timeout: Duration,
    requests: mpsc::Sender<Vec<u8>>,
    permits: Arc<Semaphore>,
    streams: Arc<Mutex<Streams>>,
    tasks: [tokio::task::AbortHandle; 2],
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

impl Connection {
    /// Connects and logs in.
    pub async fn open(target: &Target) -> Result<Self, Failure> {
        let limit = target.connect_timeout;
        match tokio::time::timeout(limit, Self::negotiate(target)).await {
            Ok(opened) => opened,
            Err(_) => Err(Failure::Connection(format!(
                "no connection to {}:{} within {} seconds (--connect-timeout=SECONDS waits longer)",
                target.host,
                target.port,
                limit.as_secs()
            ))),
        }
    }

    async fn negotiate(target: &Target) -> Result<Self, Failure> {
        let versions = target.version.map_or(VERSIONS.to_vec(), |version| vec![version]);
        let mut refused = None;
        for version in versions {
            match Self::with_version(target, version).await {
                Err(Failure::Server(error)) if error.code == PROTOCOL && error.message.contains("version") => {
                    refused = Some(error);
                }
                opened => return opened,
            }
        }
        Err(refused.map_or(Failure::Connection("no version of the protocol to try".into()), Failure::Server))
    }

    async fn with_version(target: &Target, version: u8) -> Result<Self, Failure> {
        let place = format!("{}:{}", target.host, target.port);
        let stream = TcpStream::connect((target.host.as_str(), target.port)).await.map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "; nothing listens there: is the node up, is this its port?",
                _ => "",
            };
            Failure::Connection(format!("no connection to {place}: {error}{hint}"))
        })?;
        let failed = |error: std::io::Error| Failure::Connection(format!("the connection to {place} failed: {error}"));
        stream.set_nodelay(true).map_err(failed)?;
        let address = stream.peer_addr().map_err(failed)?;
        match &target.tls {
            None => Self::handshake(target, version, address, stream).await,
            Some(settings) => {
                let connector = tls::connector(settings).map_err(Failure::Connection)?;
                let name = ServerName::IpAddress(address.ip().into());
                let stream = connector
                    .connect(name, stream)
                    .await
                    .map_err(|error| Failure::Connection(format!("TLS with {place}: {error}")))?;
                Self::handshake(target, version, address, stream).await
            }
        }
    }

    async fn handshake<S>(target: &Target, version: u8, address: SocketAddr, mut stream: S) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let closed = |error: std::io::Error| {
            let hint = if target.tls.is_none() { "; does the node want TLS (--ssl)?" } else { "" };
            Failure::Connection(format!("{address} ended the connection: {error}{hint}"))
        };
        // STARTUP and its answer stand outside of segments in every version
        let startup = envelope(version, 0, 0, opcode::STARTUP, &wire::startup(&target.cql_version));
        stream.write_all(&startup).await.map_err(closed)?;
        let mut header = [0; HEADER_SIZE];
        stream.read_exact(&mut header).await.map_err(closed)?;
        let size = body_size(&header).map_err(Failure::Connection)?;
        let mut body = Vec::new();
        (&mut stream).take(size as u64).read_to_end(&mut body).await.map_err(closed)?;
        let first = wire::answer(version, header[1], header[4], &body.into(), None)?;
        let (reading, writing) = tokio::io::split(stream);
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let streams =
            Arc::new(Mutex::new(Streams { free: (0..STREAMS_MAX as i16).rev().collect(), ..Streams::default() }));
        let tasks = [
            tokio::spawn(write(writing, version, queue, streams.clone())).abort_handle(),
            tokio::spawn(read(reading, version, streams.clone())).abort_handle(),
        ];
        let permits = Arc::new(Semaphore::new(STREAMS_MAX));
        let request_timeout = target.request_timeout;
        let connection = Self { version, address, request_timeout, requests, permits, streams, tasks };
        connection.log_in(target, first.content).await?;
        Ok(connection)
    }

    async fn log_in(&self, target: &Target, first: Content) -> Result<(), Failure> {
        match first {
            Content::Ready => Ok(()),
            Content::Error(error) => Err(error.into()),
            Content::Authenticate(class) => {
                let Some((user, password)) = &target.login else {
                    return Err(Failure::Server(ServerError {
                        code: BAD_CREDENTIALS,
                        message: format!("the node wants a login ({class}): give -u USER, or a credentials file"),
                        info: String::new(),
                    }));
                };
                match self
                    .request(opcode::AUTH_RESPONSE, &wire::auth_response(user, password), false, None)
                    .await?
                    .content
                {
                    Content::AuthSuccess => Ok(()),
                    _ => Err(Failure::Connection(format!("{class} asks for more than a user and a password"))),
                }
            }
            other => Err(Failure::Connection(format!("the handshake was answered with {other:?}"))),
        }
    }

    /// Whether the connection is gone.
    pub fn is_ended(&self) -> bool {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).ended.is_some()
    }

    /// Executes a statement that is given as text.
    pub async fn query(&self, statement: &str, parameters: &Parameters, trace: bool) -> Result<Answer, Failure> {
        let body = wire::query(self.version, statement, parameters);
        self.request(opcode::QUERY, &body, trace, None).await
    }

    /// Prepares a statement.
    pub async fn prepare(&self, statement: &str) -> Result<Prepared, Failure> {
        let body = wire::prepare(self.version, statement);
        match self.request(opcode::PREPARE, &body, false, None).await?.content {
            Content::Prepared(prepared) => Ok(prepared),
            other => Err(Failure::Connection(format!("PREPARE was answered with {other:?}"))),
        }
    }

    /// Executes a prepared statement.
    pub async fn execute(
        &self,
        prepared: &Prepared,
        values: &[Value],
        parameters: &Parameters,
    ) -> Result<Answer, Failure> {
        let body = wire::execute(self.version, prepared, values, parameters);
        self.request(opcode::EXECUTE, &body, false, Some(&prepared.columns)).await
    }

    /// Executes a prepared statement once for each row, in one batch.
    pub async fn batch(
        &self,
        kind: BatchKind,
        prepared: &Prepared,
        rows: &[&[Value]],
        parameters: &Parameters,
    ) -> Result<Answer, Failure> {
        let (level, serial) = (parameters.consistency, parameters.serial_consistency);
        let body = wire::batch(self.version, kind, prepared, rows, level, serial);
        self.request(opcode::BATCH, &body, false, None).await
    }

    async fn request(
        &self,
        code: u8,
        body: &[u8],
        trace: bool,
        known: Option<&Arc<[Column]>>,
    ) -> Result<Answer, Failure> {
        let answered = tokio::time::timeout(self.request_timeout, self.exchange(code, body, trace)).await;
        let envelope = answered.map_err(|_| Failure::Timeout(self.request_timeout))??;
        let answer = wire::answer(self.version, envelope.flags, envelope.opcode, &envelope.body, known)?;
        match answer.content {
            Content::Error(error) => Err(error.into()),
            _ => Ok(answer),
        }
    }

    async fn exchange(&self, code: u8, body: &[u8], trace: bool) -> Result<Envelope, Failure> {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| Failure::Connection("the connection is closed".into()))?;
        let (answer, received) = oneshot::channel();
        let stream = {
            let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(why) = &streams.ended {
                return Err(Failure::Connection(why.clone()));
            }
            let stream = streams.free.pop().expect("as many permits as stream ids");
            streams.waiting.insert(stream, Waiting { answer, _stream: permit });
            stream
        };
        let flags = if trace { wire::flags::TRACING } else { 0 };
        let lost = |streams: &Mutex<Streams>| {
            let streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
            Failure::Connection(streams.ended.clone().unwrap_or_else(|| "the connection is closed".into()))
        };
        let bytes = envelope(self.version, flags, stream, code, body);
        self.requests.send(bytes).await.map_err(|_| lost(&self.streams))?;
        received.await.map_err(|_| lost(&self.streams))
    }
}

fn envelope(version: u8, flags: u8, stream: i16, code: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_SIZE + body.len());
    out.extend([version, flags]);
    out.extend(stream.to_be_bytes());
    out.push(code);
    out.extend((body.len() as u32).to_be_bytes());
    out.extend(body);
    out
}

/// The size of the body behind a header.
fn body_size(header: &[u8; HEADER_SIZE]) -> Result<usize, String> {
    let [version, .., l0, l1, l2, l3] = *header;
    if version & RESPONSE_BIT == 0 {
        return Err("what answers there does not speak Cassandra's protocol".into());
    }
    let size = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    match size <= BODY_SIZE_MAX {
        true => Ok(size),
        false => Err(format!("an answer of {size} bytes is longer than {BODY_SIZE_MAX}")),
    }
}

async fn write(
    mut socket: impl AsyncWrite + Unpin,
    version: u8,
    mut queue: mpsc::Receiver<Vec<u8>>,
    streams: Arc<Mutex<Streams>>,
) {
    let mut encoder = SegmentEncoder::new(SegmentFormat::Plain);
    let mut out = BytesMut::new();
    let mut put = |out: &mut BytesMut, bytes: &[u8]| match version {
        5.. => {
            for part in [bytes].iter().filter(|bytes| bytes.len() <= segments::PAYLOAD_SIZE_MAX) {
                encoder.append(out, |out| out.extend_from_slice(part));
            }
            encoder.finish(out);
            if bytes.len() > segments::PAYLOAD_SIZE_MAX {
                bytes.chunks(segments::PAYLOAD_SIZE_MAX).for_each(|part| encoder.append_part(out, part));
            }
        }
        _ => out.extend_from_slice(bytes),
    };
    while let Some(first) = queue.recv().await {
        put(&mut out, &first);
        while out.len() < WRITE_SIZE
            && let Ok(next) = queue.try_recv()
        {
            put(&mut out, &next);
        }
        let written = socket.write_all(&out).await;
        out.clear();
        if let Err(error) = written {
            return end(&streams, format!("the connection failed: {error}"));
        }
    }
}

async fn read(mut socket: impl AsyncRead + Unpin, version: u8, streams: Arc<Mutex<Streams>>) {
    let decoder = SegmentDecoder::new(SegmentFormat::Plain);
    let (mut input, mut envelopes) = (BytesMut::with_capacity(WRITE_SIZE), BytesMut::new());
    loop {
        match socket.read_buf(&mut input).await {
            Ok(0) => return end(&streams, "the server closed the connection".into()),
            Ok(_) => {}
            Err(error) => return end(&streams, format!("the connection failed: {error}")),
        }
        let taken = match version {
            5.. => join(&decoder, &mut input, &mut envelopes),
            _ => {
                envelopes.unsplit(input.split());
                Ok(())
            }
        };
        if let Err(why) = taken.and_then(|()| hand_out(&mut envelopes, &streams)) {
            return end(&streams, why);
        }
    }
}

/// Moves the payloads of whole segments to the envelopes.
fn join(decoder: &SegmentDecoder, input: &mut BytesMut, envelopes: &mut BytesMut) -> Result<(), String> {
    loop {
        match decoder.next(input) {
            Ok(Some(segment)) => envelopes.extend_from_slice(&segment.payload),
            Ok(None) => return Ok(()),
            Err(error) => return Err(format!("the server sent a damaged segment: {error:?}")),
        }
    }
}

/// Hands whole envelopes to the requests that wait for them.
fn hand_out(envelopes: &mut BytesMut, streams: &Mutex<Streams>) -> Result<(), String> {
    while let Some(header) = envelopes.first_chunk::<HEADER_SIZE>().copied() {
        let size = body_size(&header)?;
        if envelopes.len() < HEADER_SIZE + size {
            break;
        }
        envelopes.advance(HEADER_SIZE);
        let body = envelopes.split_to(size).freeze();
        let stream = i16::from_be_bytes([header[2], header[3]]);
        let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = streams.waiting.remove(&stream) {
            streams.free.push(stream);
            // nobody listens any more where the request has been given up
            let _ = waiting.answer.send(Envelope { flags: header[1], opcode: header[4], body });
        }
    }
    Ok(())
}

/// Tells every request that waits that the connection is gone.
fn end(streams: &Mutex<Streams>, why: String) {
    let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
    streams.ended.get_or_insert(why);
    streams.waiting.clear();
}
