//! Connections that peers have opened: handshake, then messages until the connection ends.
//!
//! The receiver takes each message before the next one is read: a peer that sends faster than this
//! node works fills its own socket. A connection that breaks the protocol is closed with a line in
//! the log that says why.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use env::{Env, Listener, Stream};
use internode::{LinkType, MessageReader, Received};
use tokio::io::AsyncReadExt;

use crate::handshake::{accept, bad};
use crate::limits::{HANDSHAKE_MAX, INBOUND_MAX, MESSAGE_SIZE_MAX, READ_SIZE, RETRY_MIN};
use crate::neighbour::{LinkOptions, Peer, Receiver};

/// Accepts connections for ever.
pub(crate) async fn serve(
    env: Env,
    options: LinkOptions,
    mut listener: Box<dyn Listener>,
    receiver: Arc<dyn Receiver>,
) {
    let open = Rc::new(Cell::new(0usize));
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
        let (env, options, receiver, open) = (env.clone(), options.clone(), receiver.clone(), open.clone());
        tokio::task::spawn_local(async move {
            match serve_link(&env, &options, stream, &*receiver).await {
                Ok(()) => {}
                Err(error) if is_end(&error) => tracing::debug!(%address, %error, "a link of another node has ended"),
                Err(error) => tracing::warn!(%address, %error, "a link of another node is closed"),
            }
            open.set(open.get() - 1);
        });
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
    mut stream: Box<dyn Stream>,
    receiver: &dyn Receiver,
) -> io::Result<()> {
    let mut input = BytesMut::with_capacity(READ_SIZE);
    let versions = options.versions();
    let shaken = env.timeout(HANDSHAKE_MAX, accept(&mut *stream, &mut input, versions)).await;
    let (initiate, version) = shaken.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if initiate.link == LinkType::Streaming {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "streams are not taken yet"));
    }
    let peer = Peer { address: initiate.from, version, max: i32::from(initiate.versions.max) };
    receiver.connected(&peer);
    let mut reader = MessageReader::new(initiate.framing, MESSAGE_SIZE_MAX);
    loop {
        while let Some(received) = reader.next(&mut input).map_err(bad)? {
            match received {
                Received::Message(message) => receiver.received(&peer, initiate.link, message),
                Received::Lost(error) => {
                    tracing::warn!(peer = %peer.address, %error, "a frame of another node is damaged: its messages are lost");
                }
            }
        }
        input.reserve(READ_SIZE);
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    }
}
