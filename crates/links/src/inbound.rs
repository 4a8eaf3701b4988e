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

use crate::counts::{Inbound, InboundTallies, Open};
use crate::handshake::{accept, bad};
use crate::limits::{HANDSHAKE_MAX, INBOUND_MAX, READ_SIZE, RETRY_MIN, TOLD_AGAIN, TOLD_MAX};
use crate::neighbour::{Distance, LinkOptions, Peer, Receiver};
use crate::room::{Borrowed, Room};

/// The parts that all listeners of a node share.
#[derive(Clone)]
pub(crate) struct Doors {
    env: Env,
    options: LinkOptions,
    receiver: Arc<dyn Receiver>,
    counts: Arc<Inbound>,
    /// The memory of messages that come in several frames.
    room: Rc<Room>,
    /// Number of open connections, at most [`INBOUND_MAX`].
    open: Rc<Cell<usize>>,
    told: Rc<RefCell<Told>>,
}

impl Doors {
    pub(crate) fn new(env: &Env, options: &LinkOptions, receiver: &Arc<dyn Receiver>, counts: Arc<Inbound>) -> Self {
        let room = Room::new(options.settings.receive_reserve);
        let (env, options, receiver) = (env.clone(), options.clone(), Arc::clone(receiver));
        Self { env, options, receiver, counts, room, open: Rc::default(), told: Rc::default() }
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
            let doors = self.clone();
            tokio::task::spawn_local(async move {
                let ended = serve_link(&doors, stream).await;
                doors.open.set(doors.open.get() - 1);
                doors.tell_end(address, ended);
            });
        }
    }

    fn tell_end(&self, address: SocketAddr, ended: io::Result<()>) {
        match ended {
            Ok(()) => {}
            Err(error) if is_end(&error) => tracing::debug!(%address, %error, "a link of another node has ended"),
            Err(error) if self.told.borrow_mut().is_new(&self.env, address.ip(), &error) => {
                tracing::warn!(%address, %error, "a link of another node is closed");
            }
            Err(error) => tracing::debug!(%address, %error, "a link of another node is closed"),
        }
    }
}

/// Reasons for which links were closed, and when each was logged last: a peer with a wrong
/// certificate or version comes back every second.
#[derive(Default)]
struct Told(HashMap<(IpAddr, String), Instant>);

impl Told {
    /// Whether a reason has to be logged: it was not in the last [`TOLD_AGAIN`].
    fn is_new(&mut self, env: &Env, from: IpAddr, error: &io::Error) -> bool {
        let key = (from, error.to_string());
        if self.0.get(&key).is_some_and(|told| env.elapsed(*told) < TOLD_AGAIN) {
            return false;
        }
        if self.0.len() >= TOLD_MAX {
            self.0.clear();
        }
        self.0.insert(key, env.now());
        true
    }
}

/// Whether an error is an ordinary end of a connection, which needs no warning.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

async fn serve_link(doors: &Doors, stream: Box<dyn Stream>) -> io::Result<()> {
    let Doors { env, options, counts, room, .. } = doors;
    let receiver = &*doors.receiver;
    let mut input = BytesMut::with_capacity(READ_SIZE);
    let versions = |link| options.versions_of(link);
    let shaking = async {
        let (mut stream, is_encrypted) = match &options.encryption {
            Some(encryption) => {
                let (stream, encrypted) = encryption.accept.accept_and_tell(stream).await?;
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
    let tallies = counts.of(peer.address, initiate.link);
    let _open = Open::new(&tallies);
    let mut reader = MessageReader::new(initiate.framing, options.settings.message_size_max);
    let (mut is_late_told, mut borrowed) = (false, Borrowed::new(room));
    loop {
        take_all(doors, &mut reader, &mut input, (&peer, initiate.link), &tallies).map_err(|error| {
            tallies.closed.fetch_add(1, Ordering::Relaxed);
            bad(error)
        })?;
        if !is_late_told && tallies.expired.figure().count > 0 {
            is_late_told = true;
            tracing::warn!(peer = %peer.address, link = ?initiate.link, "messages are too old when they come: the clocks of the two nodes differ, or one of them is overloaded");
        }
        borrowed.hold(env, reader.buffered()).await?;
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
    doors: &Doors,
    reader: &mut MessageReader,
    input: &mut BytesMut,
    (peer, link): (&Peer, LinkType),
    tallies: &InboundTallies,
) -> Result<(), InternodeError> {
    while let Some(received) = reader.next(input)? {
        let mut message = match received {
            Received::Message(message) => message,
            Received::Lost(error) => {
                tallies.damaged.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(peer = %peer.address, %error, "a frame of another node is damaged: its messages are lost");
                continue;
            }
        };
        let bytes = reader.message_size();
        tallies.received.add(1, bytes);
        let now_millis = doors.env.clock.now_micros() / 1000;
        if !doors.options.settings.trusts_clocks {
            message.header.created = now_millis as u32;
        }
        if message.header.is_expired(now_millis) {
            tallies.expired.add(1, bytes);
            doors.receiver.expired(message.header.verb);
            continue;
        }
        let verb = message.header.verb;
        match doors.receiver.received(peer, link, message) {
            Ok(()) => tallies.processed.add(1, bytes),
            Err(error) => {
                tallies.errors.add(1, bytes);
                tracing::warn!(peer = %peer.address, verb = verb.name(), %error, "a message of another node cannot be read");
            }
        }
    }
    Ok(())
}
