//! The thread on which all streams of a node live: it takes the links that peers open and the
//! sessions that this node opens. Files are read and written by jobs, so that no session waits for
//! the disk of another.

use std::sync::{Arc, PoisonError, Weak};

use bytes::BytesMut;
use config::Streams;
use env::{LocalFuture, LocalFutureFactory, Stream};
use links::Peer;
use streaming::{Incoming, LinkReader, Message};
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, mpsc};

use super::{control, receiver};
use crate::node::Node;
use crate::streaming_state::{COMMANDS_MAX, Command, Worker};

/// Most links for streams that peers may have open to this node. Further ones are closed.
const LINKS_MAX: usize = 4096;

/// Bytes taken from a socket at once before it is known what a link is for.
const READ_SIZE: usize = 64 << 10;

impl Node {
    /// Makes it possible to open streams and to take those of peers. Called once, before the node
    /// joins.
    pub(crate) fn start_streams(self: &Arc<Self>, settings: Streams) {
        self.streaming_state.settings.store(Arc::new(settings));
        let (commands, taken) = mpsc::channel(COMMANDS_MAX);
        let node = Arc::downgrade(self);
        let make: LocalFutureFactory = Box::new(move || -> LocalFuture { Box::pin(serve(node, taken)) });
        let thread = self.env.tasks.spawn_local_worker("streams", make);
        let worker = Worker { commands, thread };
        *self.streaming_state.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
    }

    /// Ends all sessions: their peers see links that end. Called when the node stops, by a thread
    /// that may wait.
    pub fn stop_streams(&self) {
        let worker = self.streaming_state.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Worker { commands, thread }) = worker else { return };
        drop(commands);
        for live in self.streaming_state.all() {
            let end = Err("this node stops".to_owned());
            self.streaming_state.end(&live.key, live.snapshot(self.env.now()), end);
            drop(live.end(false));
        }
        if let Err(panic) = thread.join() {
            tracing::error!(panic, "the thread of streams had panicked");
        }
    }

    /// Takes a link that a peer has opened for a stream.
    pub(crate) fn take_stream(&self, from: &Peer, stream: Box<dyn Stream>, input: BytesMut) {
        if !self.streaming_state.command(Command::Link(*from, stream, input)) {
            tracing::warn!(peer = %from.address, "a link for a stream is closed: too many wait, or this node stops");
        }
    }
}

async fn serve(node: Weak<Node>, mut commands: mpsc::Receiver<Command>) {
    let room = Arc::new(Semaphore::new(LINKS_MAX));
    while let Some(command) = commands.recv().await {
        match command {
            Command::Run(make) => drop(tokio::task::spawn_local(make())),
            Command::Link(from, stream, input) => {
                let Some(node) = node.upgrade() else { return };
                let Ok(turn) = Arc::clone(&room).try_acquire_owned() else {
                    tracing::warn!(peer = %from.address, limit = LINKS_MAX, "a link for a stream is closed: too many are open");
                    continue;
                };
                drop(tokio::task::spawn_local(async move {
                    link(&node, from, stream, input).await;
                    drop(turn);
                }));
            }
        }
    }
}

/// The first message says what a link is for: STREAM_INIT begins a session, whose control link it
/// is then, STREAM a file of a session that runs.
async fn link(node: &Arc<Node>, from: Peer, mut stream: Box<dyn Stream>, mut input: BytesMut) {
    let mut reader = LinkReader::new();
    loop {
        match reader.next(&mut input) {
            Ok(Some(Incoming::Message(Message::KeepAlive))) => {}
            Ok(Some(Incoming::Message(Message::Init(init)))) => {
                return control::follow(node, from, init, stream, (reader, input)).await;
            }
            Ok(Some(Incoming::Message(Message::Stream(header)))) => {
                return receiver::files(node, from, header, stream, (reader, input)).await;
            }
            Ok(Some(other)) => {
                return tracing::warn!(peer = %from.address, ?other, "a stream begins with another message than it may");
            }
            Err(error) => return tracing::warn!(peer = %from.address, %error, "a stream cannot be read"),
            Ok(None) => {
                input.reserve(READ_SIZE);
                match stream.read_buf(&mut input).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
        }
    }
}
