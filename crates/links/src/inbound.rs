//! Connections that peers have opened: handshake, then messages until the connection ends.
//!
//! The receiver takes each message before the next one is read: if a peer sends faster than this
//! node works, the bytes wait in the peer's socket. A connection that breaks the protocol is
//! closed with a line in the log that says why.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::BytesMut;
use env::{Env, Instant, Listener, Stream};
use internode::{InternodeError, LinkType, MessageReader, Received};
use tokio::io::AsyncReadExt;

use crate::counts::{InboundCounters, InboundCountersByPeer, OpenConnection};
use crate::handshake::{accept, bad};
use crate::limits::{HANDSHAKE_MAX, INBOUND_MAX, LOG_REPEAT_INTERVAL, LOGGED_MAX, READ_SIZE, RETRY_MIN};
use crate::peer::{Distance, LinkOptions, Peer, Receiver};
use crate::receive_memory::{MemoryLoan, ReceiveMemory};

/// The parts that all listeners of a node share.
#[derive(Clone)]
pub(crate) struct InboundContext {
    env: Env,
    options: LinkOptions,
    receiver: Arc<dyn Receiver>,
    counts: Arc<InboundCountersByPeer>,
    /// The memory of messages that come in several frames.
    memory: Rc<ReceiveMemory>,
    /// Number of open connections, at most [`INBOUND_MAX`].
    open: Rc<Cell<usize>>,
    logged: Rc<RefCell<LoggedReasons>>,
}

impl InboundContext {
    pub(crate) fn new(
        env: &Env,
        options: &LinkOptions,
        receiver: &Arc<dyn Receiver>,
        counts: Arc<InboundCountersByPeer>,
    ) -> Self {
        let memory = ReceiveMemory::new(options.settings.receive_reserve);
        let (env, options, receiver) = (env.clone(), options.clone(), Arc::clone(receiver));
        Self { env, options, receiver, counts, memory, open: Rc::default(), logged: Rc::default() }
    }

    /// Accepts the connections of a listener for ever.
    pub(crate) async fn serve(self, mut listener: Box<dyn Listener>) {
        loop {
            let (stream, address) = match env::accept(&mut *listener).await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept links of other nodes");
                    self.env.sleep(RETRY_MIN).await;
                    continue;
                }
            };
            if self.open.get() >= INBOUND_MAX {
                tracing::warn!(%address, limit = INBOUND_MAX, "a link of another node is closed: too many are open");
                continue;
            }
            self.open.set(self.open.get() + 1);
            let context = self.clone();
            tokio::task::spawn_local(async move {
                let ended = serve_link(&context, stream).await;
                context.open.set(context.open.get() - 1);
                context.log_end(address, ended);
            });
        }
    }

    fn log_end(&self, address: SocketAddr, ended: io::Result<()>) {
        match ended {
            Ok(()) => {}
            Err(error) if is_ordinary_end(&error) => {
                tracing::debug!(%address, %error, "a link of another node has ended")
            }
            Err(error) if self.logged.borrow_mut().is_to_be_logged(&self.env, address.ip(), &error) => {
                tracing::warn!(%address, %error, "a link of another node is closed");
            }
            Err(error) => tracing::debug!(%address, %error, "a link of another node is closed"),
        }
    }
}

/// Reasons for which links were closed, and when each was logged last: a peer with a wrong
/// certificate or version comes back every second.
#[derive(Default)]
struct LoggedReasons(HashMap<(IpAddr, String), Instant>);

impl LoggedReasons {
    /// Whether a reason has to be logged: it was not in the last [`LOG_REPEAT_INTERVAL`].
    fn is_to_be_logged(&mut self, env: &Env, from: IpAddr, error: &io::Error) -> bool {
        let key = (from, error.to_string());
        if self.0.get(&key).is_some_and(|told| env.elapsed(*told) < LOG_REPEAT_INTERVAL) {
            return false;
        }
        if self.0.len() >= LOGGED_MAX {
            self.0.clear();
        }
        self.0.insert(key, env.now());
        true
    }
}

/// Whether an error is an ordinary end of a connection, which needs no warning.
fn is_ordinary_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

async fn serve_link(context: &InboundContext, stream: Box<dyn Stream>) -> io::Result<()> {
    let InboundContext { env, options, counts, memory, .. } = context;
    let receiver = &*context.receiver;
    let mut input = BytesMut::with_capacity(READ_SIZE);
    let versions = |link| options.versions_of(link);
    let shaking = async {
        let (mut stream, is_encrypted) = match &options.encryption {
            Some(encryption) => {
                let (stream, encrypted) = encryption.accept.accept_with_info(stream).await?;
                (stream, encrypted.is_some())
            }
            None => (stream, false),
        };
        let (initiate, version) = accept(&mut *stream, &mut input, versions, |initiate| {
            check_encryption(options, receiver.distance(initiate.from), is_encrypted)
        })
        .await?;
        Ok::<_, io::Error>((stream, initiate, version))
    };
    let shaken = env.timeout(HANDSHAKE_MAX, shaking).await;
    let (mut stream, initiate, version) = shaken.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let peer = Peer { address: initiate.from, version, max: i32::from(initiate.versions.max) };
    if initiate.link == LinkType::Streaming {
        receiver.stream(&peer, stream, input);
        return Ok(());
    }
    receiver.connected(&peer);
    let counters = counts.of(peer.address, initiate.link);
    let _open = OpenConnection::new(&counters);
    let mut reader = MessageReader::new(initiate.framing, options.settings.message_size_max);
    let (mut is_late_told, mut borrowed) = (false, MemoryLoan::new(memory));
    loop {
        take_all(context, &mut reader, &mut input, (&peer, initiate.link), &counters).map_err(|error| {
            counters.closed.fetch_add(1, Ordering::Relaxed);
            bad(error)
        })?;
        if !is_late_told && counters.expired.load().count > 0 {
            is_late_told = true;
            tracing::warn!(peer = %peer.address, link = ?initiate.link, "messages are too old when they come: the clocks of the two nodes differ, or one of them is overloaded");
        }
        borrowed.resize(env, reader.buffered()).await?;
        input.reserve(READ_SIZE);
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    }
}

/// Refuses a link without encryption from a peer whose links must have it.
fn check_encryption(options: &LinkOptions, distance: Distance, is_encrypted: bool) -> io::Result<()> {
    let is_required = options.encryption.as_ref().is_some_and(|encryption| encryption.is_required(distance));
    match is_required && !is_encrypted {
        true => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the peer does not encrypt its link, which is required here (server_encryption_options)",
        )),
        false => Ok(()),
    }
}

/// Gives the receiver all complete messages. An error ends the link.
fn take_all(
    context: &InboundContext,
    reader: &mut MessageReader,
    input: &mut BytesMut,
    (peer, link): (&Peer, LinkType),
    counters: &InboundCounters,
) -> Result<(), InternodeError> {
    while let Some(received) = reader.next(input)? {
        let mut message = match received {
            Received::Message(message) => message,
            Received::Lost(error) => {
                counters.damaged.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(peer = %peer.address, %error, "a frame of another node is damaged: its messages are lost");
                continue;
            }
        };
        let bytes = reader.message_size();
        counters.received.add(1, bytes);
        let now_millis = context.env.clock.now_micros() / 1000;
        if !context.options.settings.trusts_clocks {
            message.header.created = now_millis as u32;
        }
        if message.header.is_expired(now_millis) {
            counters.expired.add(1, bytes);
            context.receiver.expired(message.header.verb);
            continue;
        }
        let verb = message.header.verb;
        match context.receiver.received(peer, link, message) {
            Ok(()) => counters.processed.add(1, bytes),
            Err(error) => {
                counters.errors.add(1, bytes);
                tracing::warn!(peer = %peer.address, verb = verb.name(), %error, "a message of another node cannot be read");
            }
        }
    }
    Ok(())
}
