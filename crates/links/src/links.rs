//! [`Links`]: the thread on which all links of a node live, and the way to it from other threads.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use env::{Env, Joinable, Listener, LocalFutureFactory};
use internode::envelope::HEADER_SIZE_MAX;
use internode::handshake::LARGE_MESSAGE_SIZE;
use internode::{Envelope, LinkType, Priority};
use tokio::sync::{mpsc, oneshot};

use crate::counts::{InboundCountersByPeer, InboundCounts, OutboundCounts};
use crate::inbound::InboundContext;
use crate::limits::{MESSAGE_SIZE_MAX, PEERS_MAX};
use crate::outbound::Outbound;
use crate::peer::{LinkOptions, Receiver};
use crate::queue::{Queue, QueueCapacity, Refused, Reserve};
use crate::settings::LinkSettings;
use crate::streams::StreamOpener;

/// Links that wait to be opened. The thread opens them at once.
const OPENING_MAX: usize = QUEUES_MAX;

/// Queues that there can be: one for each link to each peer.
const QUEUES_MAX: usize = PEERS_MAX * LinkType::MESSAGING.len();

const _: () = assert!(LARGE_MESSAGE_SIZE < MESSAGE_SIZE_MAX, "a large message is none that is too large");
const _: () = assert!(HEADER_SIZE_MAX < MESSAGE_SIZE_MAX, "a message has room for its header");

type Queues = Mutex<HashMap<(SocketAddr, LinkType), Arc<Queue>>>;

/// All links of this node. Dropping it closes them and ends their thread.
pub struct Links {
    address: SocketAddr,
    queues: Queues,
    settings: LinkSettings,
    /// The reserve of bytes that all queues share.
    reserve: Arc<Reserve>,
    inbound: Arc<InboundCountersByPeer>,
    streams: StreamOpener,
    opening: Option<mpsc::Sender<(SocketAddr, LinkType, Arc<Queue>)>>,
    stop: Option<oneshot::Sender<()>>,
    /// The thread of links; behind a lock so that other threads can share the rest.
    thread: Mutex<Option<Box<dyn Joinable>>>,
}

impl Links {
    /// Begins to listen, and to take messages.
    pub fn start(env: &Env, options: LinkOptions, receiver: Arc<dyn Receiver>) -> io::Result<Self> {
        let (opening, to_open) = mpsc::channel(OPENING_MAX);
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let settings = options.settings.clone();
        let reserve = Arc::new(Reserve::new(settings.reserve));
        let streams = StreamOpener::new(env, &options, &receiver);
        let (of_thread, inbound) = (env.clone(), Arc::<InboundCountersByPeer>::default());
        let counts = Arc::clone(&inbound);
        let make: LocalFutureFactory =
            Box::new(move || Box::pin(run(of_thread, options, receiver, counts, to_open, stopped, tell)));
        let thread = env.tasks.spawn_local_worker("links", make);
        let address =
            told.recv().unwrap_or_else(|_| Err(io::Error::other("the thread of links ended at its start")))?;
        Ok(Self {
            address,
            queues: Queues::default(),
            settings,
            reserve,
            inbound,
            streams,
            opening: Some(opening),
            stop: Some(stop),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The address on which this node listens for peers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens links for streams.
    pub fn streams(&self) -> StreamOpener {
        self.streams.clone()
    }

    /// Puts a message into the queue to a peer, on the link for its size and verb.
    pub fn send(&self, to: SocketAddr, message: Envelope) -> Result<(), Refused> {
        let link = match message.payload.len() {
            size if size > LARGE_MESSAGE_SIZE => LinkType::Large,
            _ if message.header.verb.priority() == Priority::P0 => LinkType::Urgent,
            _ => LinkType::Small,
        };
        self.send_on(to, link, message)
    }

    /// Does the work of `Links::send` on a link of the caller's choice: the answer to PING_REQ
    /// goes on the link that was asked about.
    pub fn send_on(&self, to: SocketAddr, link: LinkType, message: Envelope) -> Result<(), Refused> {
        if self.is_too_large(&message) {
            return Err(Refused::TooLarge);
        }
        self.queue(to, link)?.push(message)
    }

    /// Whether the peer would close the link for this message. The header is measured only if the
    /// payload alone nearly reaches the limit.
    fn is_too_large(&self, message: &Envelope) -> bool {
        let limit = self.settings.message_size_max;
        message.payload.len().saturating_add(HEADER_SIZE_MAX) > limit
            && (message.payload.len() > limit || encoded_size(message) > limit)
    }

    fn queue(&self, to: SocketAddr, link: LinkType) -> Result<Arc<Queue>, Refused> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(&(to, link)) {
            return Ok(Arc::clone(queue));
        }
        if queues.len() >= QUEUES_MAX {
            return Err(Refused::TooManyPeers);
        }
        let of_peer = LinkType::MESSAGING.iter().find_map(|link| queues.get(&(to, *link)));
        let capacity = match of_peer {
            Some(queue) => queue.capacity().clone(),
            None => QueueCapacity {
                own: self.settings.queue,
                of_peer: Arc::new(Reserve::new(self.settings.reserve_each)),
                of_all: Arc::clone(&self.reserve),
            },
        };
        let queue = Arc::new(Queue::new(capacity));
        let opening = self.opening.as_ref().ok_or(Refused::Ended)?;
        opening.try_send((to, link, Arc::clone(&queue))).map_err(|_| Refused::Ended)?;
        let before = queues.insert((to, link), Arc::clone(&queue));
        assert!(before.is_none() && queues.len() <= QUEUES_MAX, "each link to a peer has one queue");
        Ok(queue)
    }

    /// Closes the connections to a peer that is taken for dead, and gives up the messages that
    /// wait for it. The next message opens a new one. Otherwise a connection to a machine that has
    /// lost its power would take messages for as long as the kernel repeats bytes without an
    /// acknowledgement.
    pub fn reset(&self, peer: SocketAddr) {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        LinkType::MESSAGING
            .iter()
            .filter_map(|link| queues.get(&(peer, *link)))
            .for_each(|queue| queue.drop_messages_and_close());
    }

    /// Closes the links to a peer that has left the ring, and gives up the messages that wait for
    /// it.
    pub fn forget(&self, peer: SocketAddr) {
        self.inbound.forget(peer);
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for link in LinkType::MESSAGING {
            if let Some(queue) = queues.remove(&(peer, link)) {
                queue.end();
            }
        }
    }

    /// The counts of the links that this node opens, ordered by peer and link. Peers that
    /// were forgotten are left out.
    pub fn outbound_counts(&self) -> Vec<OutboundCounts> {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts: Vec<_> = queues.iter().map(|((peer, link), queue)| queue.counts(*peer, *link)).collect();
        drop(queues);
        counts.sort_by_key(|counts| (counts.peer, counts.link.number()));
        counts
    }

    /// The counts of the links that peers open, ordered by peer and link.
    pub fn inbound_counts(&self) -> Vec<InboundCounts> {
        self.inbound.counts()
    }

    /// Messages and bytes that wait for a peer on a link.
    pub fn waiting(&self, peer: SocketAddr, link: LinkType) -> (usize, usize) {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.get(&(peer, link)).map_or((0, 0), |queue| queue.waiting())
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.opening = None;
        for queue in self.queues.lock().unwrap_or_else(PoisonError::into_inner).values() {
            queue.end();
        }
        drop(self.stop.take());
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(panic)) = thread.map(Joinable::join) {
            tracing::error!(panic, "the thread of links had panicked");
        }
    }
}

async fn run(
    env: Env,
    options: LinkOptions,
    receiver: Arc<dyn Receiver>,
    counts: Arc<InboundCountersByPeer>,
    mut to_open: mpsc::Receiver<(SocketAddr, LinkType, Arc<Queue>)>,
    mut stopped: oneshot::Receiver<()>,
    tell: std::sync::mpsc::Sender<io::Result<SocketAddr>>,
) {
    let listeners = match listen(&env, &options) {
        Ok((address, listeners)) => {
            drop(tell.send(Ok(address)));
            listeners
        }
        Err(error) => return drop(tell.send(Err(error))),
    };
    let context = InboundContext::new(&env, &options, &receiver, counts);
    for listener in listeners {
        tokio::task::spawn_local(context.clone().serve(listener));
    }
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            next = to_open.recv() => {
                let Some((to, link, queue)) = next else { return };
                let (env, options, receiver) = (env.clone(), options.clone(), receiver.clone());
                tokio::task::spawn_local(Outbound { env, options, to, link, queue, receiver }.run());
            }
        }
    }
}

/// Bytes of a message with its header, without frames.
pub(crate) fn encoded_size(message: &Envelope) -> usize {
    let mut header = Vec::new();
    message.header.encode(&mut header, message.payload.len());
    header.len() + message.payload.len()
}

/// Listens for peers. Gives the first address with its port, and a listener for each address.
fn listen(env: &Env, options: &LinkOptions) -> io::Result<(SocketAddr, Vec<Box<dyn Listener>>)> {
    let bind = |address: SocketAddr| env.network.bind_with(address, false, options.settings.accepted());
    let first = bind(options.listen)?;
    let address = first.local_address()?;
    let mut listeners = vec![first];
    if options.settings.listens_on_broadcast && options.local != address {
        listeners.push(bind(options.local)?);
    }
    Ok((address, listeners))
}
