//! The task that empties the queue of one outbound link: it connects while there are messages, and
//! tries again after failures.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use env::rare::{Rare, happens};
use env::{Env, Stream};
use internode::{Envelope, Framing, Initiate, LinkType, MessageWriter};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::counts::OutboundCounters;
use crate::handshake;
use crate::limits::{HANDSHAKE_MAX, RETRY_MAX, RETRY_MIN, WRITE_SIZE};
use crate::peer::{LinkOptions, Peer, Receiver};
use crate::queue::Queue;

/// A link that this node opens.
pub(crate) struct Outbound {
    pub(crate) env: Env,
    pub(crate) options: LinkOptions,
    pub(crate) to: SocketAddr,
    pub(crate) link: LinkType,
    pub(crate) queue: Arc<Queue>,
    pub(crate) receiver: Arc<dyn Receiver>,
}

impl Outbound {
    /// Sends messages until the queue ends.
    pub(crate) async fn run(self) {
        let mut pause = RETRY_MIN;
        let (mut failures, mut warned) = (0, String::new());
        while self.queue.wait_for_message().await {
            OutboundCounters::add(&self.queue.counts.attempts);
            match self.connect(failures).await {
                Ok((stream, framing)) => {
                    pause = RETRY_MIN;
                    failures = 0;
                    warned.clear();
                    OutboundCounters::add(&self.queue.counts.connections);
                    self.queue.counts.is_open.store(true, Ordering::Relaxed);
                    let ended = self.send_all(stream, framing).await;
                    self.queue.counts.is_open.store(false, Ordering::Relaxed);
                    if let Err(error) = ended {
                        tracing::debug!(to = %self.to, link = ?self.link, %error, "a link has ended");
                    }
                }
                Err(error) => {
                    failures += 1;
                    self.tell_failure(&error, &mut warned);
                    self.env.sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
            // what nobody waits for any more does not open a connection
            self.queue.drop_expired(self.now_millis());
        }
    }

    fn now_millis(&self) -> i64 {
        self.env.clock.now_micros() / 1000
    }

    /// Logs a failed attempt. A node that does not answer is no reason for a warning. One that
    /// answers but does not understand this node is a mistake in a configuration: that is warned
    /// of once, until the link is open or the reason is another one.
    fn tell_failure(&self, error: &io::Error, warned: &mut String) {
        let text = error.to_string();
        if error.kind() == io::ErrorKind::InvalidData && *warned != text {
            tracing::warn!(to = %self.to, link = ?self.link, error = text, "no link to another node: the handshake failed");
            *warned = text;
        } else {
            tracing::debug!(to = %self.to, link = ?self.link, %error, "a node cannot be reached");
        }
    }

    /// Opens a connection; `failures`: attempts that have failed since there was one. Gives the
    /// connection and the framing of its messages.
    async fn connect(&self, failures: u32) -> io::Result<(Box<dyn Stream>, Framing)> {
        let address = self.receiver.route(self.to);
        let connecting = self.env.network.connect_with(address, self.options.settings.opened());
        let stream = with_timeout(&self.env, self.options.settings.connect_timeout, connecting).await?;
        let distance = self.receiver.distance(self.to);
        let framing = if self.options.compression.has(distance) { Framing::Lz4 } else { Framing::Crc };
        let versions = self.options.versions();
        let initiate = Initiate { link: self.link, framing, versions, from: self.options.local };
        let shaking = async {
            let mut stream = match self.options.encryption_to(distance, failures) {
                Some(encryption) => encryption.connect.connect(address.ip(), stream).await?,
                None => stream,
            };
            let (version, max) = handshake::open(&mut *stream, &initiate).await?;
            Ok((stream, Peer { address: self.to, version, max }))
        };
        let (stream, peer) = with_timeout(&self.env, HANDSHAKE_MAX, shaking).await?;
        self.queue.connected();
        self.receiver.connected(&peer);
        Ok((stream, framing))
    }

    /// Sends until the connection or the queue ends. The acceptor sends nothing, so the socket is
    /// only readable at the end.
    async fn send_all(&self, stream: Box<dyn Stream>, framing: Framing) -> io::Result<()> {
        let (mut read, mut write) = tokio::io::split(stream);
        let mut writer = MessageWriter::new(framing);
        let (mut out, mut ignored) = (BytesMut::new(), [0; 16]);
        loop {
            tokio::select! {
                biased;
                ended = read.read(&mut ignored) => {
                    return match ended? {
                        0 => Ok(()),
                        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the acceptor of a link sent more than its handshake")),
                    };
                }
                () = self.queue.reset() => return Err(io::ErrorKind::ConnectionReset.into()),
                goes_on = self.queue.wait_for_message() => if !goes_on { return Ok(()) },
            }
            let size_max = if happens(Rare::LinkWritesOne) { 1 } else { WRITE_SIZE };
            let messages = self.queue.take(size_max, self.now_millis());
            if messages.is_empty() {
                continue;
            }
            let mut bytes = 0;
            let written = tokio::select! {
                written = self.send(&mut writer, &mut write, &mut out, &messages, &mut bytes) => written,
                () = self.queue.reset() => Err(io::ErrorKind::ConnectionReset.into()),
            };
            self.count(messages.len(), bytes, written)?;
        }
    }

    /// Sends messages, a large one piece by piece, so that `out` stays small; adds the bytes of the
    /// messages that it has begun to `bytes`.
    async fn send(
        &self,
        writer: &mut MessageWriter,
        to: &mut (impl AsyncWrite + Unpin),
        out: &mut BytesMut,
        messages: &[Envelope],
        bytes: &mut usize,
    ) -> io::Result<()> {
        for message in messages {
            let mut next = writer.append_from(out, message, 0, WRITE_SIZE);
            *bytes += writer.message_size();
            while let Some(from) = next {
                self.write(to, out).await?;
                next = writer.append_from(out, message, from, WRITE_SIZE);
            }
        }
        writer.finish(out);
        self.write(to, out).await
    }

    /// Writes all of `out`. Err: the peer has taken no byte for
    /// [`crate::LinkSettings::user_timeout`]; a new connection has to be made.
    async fn write(&self, to: &mut (impl AsyncWrite + Unpin), out: &mut BytesMut) -> io::Result<()> {
        while !out.is_empty() {
            if self.taken(to.write_buf(out)).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        self.taken(to.flush()).await
    }

    async fn taken<T>(&self, writing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut writing = pin!(writing);
        // a socket with room takes the bytes at once, and no timer is made
        let at_once = poll_fn(|context| match writing.as_mut().poll(context) {
            Poll::Ready(written) => Poll::Ready(Some(written)),
            Poll::Pending => Poll::Ready(None),
        });
        if let Some(written) = at_once.await {
            return written;
        }
        match self.options.settings.user_timeout {
            Duration::ZERO => writing.await,
            limit => with_timeout(&self.env, limit, writing).await,
        }
    }

    fn count(&self, messages: usize, bytes: usize, written: io::Result<()>) -> io::Result<()> {
        let counts = &self.queue.counts;
        match written {
            Ok(()) => counts.sent.add(messages, bytes),
            Err(_) => counts.errors.add(messages, bytes),
        }
        written
    }
}

/// Awaits a future for a limited time. Err: the time is over.
pub(crate) async fn with_timeout<T>(
    env: &Env,
    limit: Duration,
    future: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    env.timeout(limit, future).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
