//! Connections that peers have opened: handshake, then messages until the connection ends.
//!
//! The receiver takes each message before the next one is read: a peer that sends faster than this
//! node works fills its own socket. A connection that breaks the protocol is closed with a line in
//! the log that says why.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::BytesMut;
use env::{Env, Instant, Listener, Stream};
use internode::{InternodeError, LinkType, MessageReader, Received};
use tokio::io::AsyncReadExt;

use crate::counts::{Inbound, InboundTallies, Open};
use crate::handshake::{accept, bad};
use crate::limits::{HANDSHAKE_MAX, INBOUND_MAX, MESSAGE_SIZE_MAX, READ_SIZE, RETRY_MIN, TOLD_AGAIN, TOLD_MAX};
use crate::neighbour::{Distance, LinkOptions, Peer, Receiver};
use crate::room::{Borrowed, Room};

/// Accepts connections for ever.
pub(crate) async fn serve(
    env: Env,
    options: LinkOptions,
    mut listener: Box<dyn Listener>,
    receiver: Arc<dyn Receiver>,
    (counts, receive_reserve): (Arc<Inbound>, usize),
) {
    let (open, told) = (Rc::new(Cell::new(0usize)), Rc::<RefCell<Told>>::default());
    let room = Room::new(receive_reserve);
    loop {
        let (stream, address) = match env::accept(&mut *listener).await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept links of other nodes");
                env.sleep(RETRY_MIN).await;
                continue;
            }
        };
        if open.get() >= INBOUND_MAX {
            tracing::warn!(%address, limit = INBOUND_MAX, "a link of another node is closed: too many are open");
            continue;
        }
        open.set(open.get() + 1);
        let (env, options, open, told) = (env.clone(), options.clone(), open.clone(), told.clone());
        let (receiver, counts, room) = (receiver.clone(), counts.clone(), room.clone());
        tokio::task::spawn_local(async move {
            match serve_link(&env, &options, stream, &*receiver, (&counts, &room)).await {
                Ok(()) => {}
                Err(error) if is_end(&error) => tracing::debug!(%address, %error, "a link of another node has ended"),
                Err(error) if told.borrow_mut().is_new(&env, address.ip(), &error) => {
                    tracing::warn!(%address, %error, "a link of another node is closed");
                }
                Err(error) => tracing::debug!(%address, %error, "a link of another node is closed"),
            }
            open.set(open.get() - 1);
        });
    }
}

/// Reasons for which links were closed, and when each was told last: a peer with a wrong
/// certificate or version comes back every second.
#[derive(Default)]
struct Told(HashMap<(IpAddr, String), Instant>);

impl Told {
    /// Whether a reason is to be told: it was not, in the last [`TOLD_AGAIN`].
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

/// A connection's ordinary end: nothing to warn of.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

async fn serve_link(
    env: &Env,
    options: &LinkOptions,
    stream: Box<dyn Stream>,
    receiver: &dyn Receiver,
    (counts, room): (&Inbound, &Rc<Room>),
) -> io::Result<()> {
    let mut input = BytesMut::with_capacity(READ_SIZE);
    let versions = |link| options.versions_of(link);
    let shaking = async {
        let (mut stream, is_encrypted) = match &options.encryption {
            Some(encryption) => encryption.accept.accept_and_tell(stream).await?,
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
    let mut reader = MessageReader::new(initiate.framing, MESSAGE_SIZE_MAX);
    let (mut is_late_told, mut borrowed) = (false, Borrowed::new(room));
    loop {
        take_all(env, &mut reader, &mut input, (&peer, initiate.link), receiver, &tallies).map_err(|error| {
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

/// Gives the receiver all messages that are whole. An error ends the link.
fn take_all(
    env: &Env,
    reader: &mut MessageReader,
    input: &mut BytesMut,
    (peer, link): (&Peer, LinkType),
    receiver: &dyn Receiver,
    tallies: &InboundTallies,
) -> Result<(), InternodeError> {
    while let Some(received) = reader.next(input)? {
        let message = match received {
            Received::Message(message) => message,
            Received::Lost(error) => {
                tallies.damaged.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(peer = %peer.address, %error, "a frame of another node is damaged: its messages are lost");
                continue;
            }
        };
        let bytes = reader.message_size();
        tallies.received.add(1, bytes);
        if message.header.is_expired(env.clock.now_micros() / 1000) {
            tallies.expired.add(1, bytes);
            receiver.expired(message.header.verb);
            continue;
        }
        let verb = message.header.verb;
        match receiver.received(peer, link, message) {
            Ok(()) => tallies.processed.add(1, bytes),
            Err(error) => {
                tallies.errors.add(1, bytes);
                tracing::warn!(peer = %peer.address, verb = verb.name(), %error, "a message of another node cannot be read");
            }
        }
    }
    Ok(())
}
