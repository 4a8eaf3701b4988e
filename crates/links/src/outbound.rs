//! What empties the queue of one outbound link: a connection while there is something to send, and
//! new attempts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use env::{Env, Stream};
use internode::{Initiate, LinkType, MessageWriter};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::counts::OutboundTallies;
use crate::handshake;
use crate::limits::{CONNECT_MAX, HANDSHAKE_MAX, RETRY_MAX, RETRY_MIN, WRITE_SIZE};
use crate::neighbour::{LinkOptions, Peer, Receiver};
use crate::queue::Queue;

/// One of our links.
pub(crate) struct Outbound {
    pub(crate) env: Env,
    pub(crate) options: LinkOptions,
    pub(crate) to: SocketAddr,
    pub(crate) link: LinkType,
    pub(crate) queue: Arc<Queue>,
    pub(crate) receiver: Arc<dyn Receiver>,
}

impl Outbound {
    /// Sends what comes until the queue ends.
    pub(crate) async fn run(self) {
        let mut pause = RETRY_MIN;
        while self.queue.filled().await {
            OutboundTallies::add(&self.queue.counts.attempts);
            match self.connect().await {
                Ok(stream) => {
                    pause = RETRY_MIN;
                    OutboundTallies::add(&self.queue.counts.connections);
                    self.queue.counts.is_open.store(true, Ordering::Relaxed);
                    let ended = self.send_all(stream).await;
                    self.queue.counts.is_open.store(false, Ordering::Relaxed);
                    if let Err(error) = ended {
                        tracing::debug!(to = %self.to, link = ?self.link, %error, "a link has ended");
                    }
                }
                Err(error) => {
                    tracing::debug!(to = %self.to, link = ?self.link, %error, "a node cannot be reached");
                    self.env.sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
            // what nobody waits for any more does not open a connection
            self.queue.has_fresh(self.now_millis());
        }
    }

    fn now_millis(&self) -> i64 {
        self.env.clock.now_micros() / 1000
    }

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let connecting = self.env.network.connect(self.to);
        let mut stream = within(&self.env, CONNECT_MAX, connecting).await?;
        let versions = self.options.versions();
        let initiate = Initiate { link: self.link, framing: self.options.framing, versions, from: self.options.local };
        let (version, max) = within(&self.env, HANDSHAKE_MAX, handshake::open(&mut *stream, &initiate)).await?;
        self.receiver.connected(&Peer { address: self.to, version, max });
        Ok(stream)
    }

    /// Sends until the connection or the queue ends. The acceptor sends nothing: what can be read
    /// is the end.
    async fn send_all(&self, stream: Box<dyn Stream>) -> io::Result<()> {
        let (mut read, mut write) = tokio::io::split(stream);
        let mut writer = MessageWriter::new(self.options.framing);
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
                goes_on = self.queue.filled() => if !goes_on { return Ok(()) },
            }
            let messages = self.queue.take(WRITE_SIZE, self.now_millis());
            if messages.is_empty() {
                continue;
            }
            let bytes = messages.iter().map(|message| writer.append(&mut out, message)).sum();
            writer.finish(&mut out);
            let written = async {
                write.write_all_buf(&mut out).await?;
                write.flush().await
            };
            self.count(messages.len(), bytes, written.await)?;
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

async fn within<T>(env: &Env, limit: Duration, future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    env.timeout(limit, future).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
