//! Links for streams that this node opens: a connection with the handshake behind it, given to the
//! caller directly, without a queue or the thread of links in between.
//!
//! Streams use this node's current version only, without frames. Streams that peers open are given
//! to [`Receiver::stream`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use env::{Env, Stream};
use internode::{Framing, Initiate, LinkType};

use crate::handshake;
use crate::limits::HANDSHAKE_MAX;
use crate::outbound::with_timeout;
use crate::peer::{Encryption, LinkOptions, Receiver};

/// Opens links for streams. All clones do the same.
#[derive(Clone)]
pub struct StreamOpener {
    env: Env,
    options: LinkOptions,
    receiver: Arc<dyn Receiver>,
}

impl StreamOpener {
    /// An opener of links with these options; `receiver` knows the places of peers.
    pub fn new(env: &Env, options: &LinkOptions, receiver: &Arc<dyn Receiver>) -> Self {
        Self { env: env.clone(), options: options.clone(), receiver: Arc::clone(receiver) }
    }

    /// Opens a link to a peer. The connection belongs to the calling thread.
    pub async fn open(&self, to: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let distance = self.receiver.distance(to);
        match self.options.encryption_to(distance, 0) {
            Some(encryption) => match self.attempt(to, Some(encryption)).await {
                Err(_) if encryption.optional => self.attempt(to, None).await,
                opened => opened,
            },
            None => self.attempt(to, None).await,
        }
    }

    async fn attempt(&self, to: SocketAddr, encryption: Option<&Encryption>) -> io::Result<Box<dyn Stream>> {
        let address = self.receiver.route(to);
        let connecting = self.env.network.connect_with(address, self.options.settings.opened_for_stream());
        let stream = with_timeout(&self.env, self.options.settings.connect_timeout, connecting).await?;
        let versions = self.options.versions_of(LinkType::Streaming);
        let (link, framing) = (LinkType::Streaming, Framing::Unprotected);
        let initiate = Initiate { link, framing, versions, from: self.options.local };
        let shaking = async {
            let mut stream = match encryption {
                Some(encryption) => encryption.connect.connect(address.ip(), stream).await?,
                None => stream,
            };
            handshake::open(&mut *stream, &initiate).await?;
            Ok(stream)
        };
        with_timeout(&self.env, HANDSHAKE_MAX, shaking).await
    }
}
