//! Sends the files of a session over file links, several side by side, at the pace that the
//! settings allow. The kernel moves the bytes of an SSTable that goes whole over a link without
//! encryption. For everything else a job reads the next piece while the last one is on its way, so
//! two pieces of each link are in memory.
//!
//! A link that breaks is opened again, and the files that the peer has not taken go again from
//! their beginning. A peer of Cassandra gives the session up instead, and says so over the control
//! link.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::{FileSender, Stream};
use links::Distance;
use sending::{FileSession, FileTransfer, OutgoingFile, Piece};
use streaming::{Event, Received};
use tokio::io::{AsyncReadExt, AsyncWrite};

use crate::node::Node;
use crate::streaming_state::{LiveSession, SessionKey};

/// Most file links of one session at one time.
const LINKS_MAX: usize = 2;

/// Seconds before a link that was lost is opened again. A session fails whose link is lost once
/// more than there are pauses, without a file that the peer took in between. Together they are
/// shorter than a receiver waits for a file that it has lost.
const RESEND_PAUSES: [u64; 5] = [1, 2, 4, 8, 16];

type Queue = Rc<RefCell<VecDeque<Received>>>;

/// Sends these files. The session is told only of a failure, because the peer itself tells which
/// files it has.
pub(super) fn start(node: &Arc<Node>, live: &Arc<LiveSession>, files: Vec<Received>) {
    let links = LINKS_MAX.min(files.len());
    let queue: Queue = Rc::new(RefCell::new(files.into()));
    for _ in 0..links {
        let (node, live, queue) = (Arc::clone(node), Arc::clone(live), Rc::clone(&queue));
        drop(tokio::task::spawn_local(async move {
            // the peer may have the last file before this side knows that all of it was read
            let sent = tokio::select! {
                sent = send_all(&node, &live, &queue) => sent,
                () = live.failed() => return,
            };
            if let Err(why) = sent {
                drop(live.events.send(Event::Broken(why)).await);
            }
        }));
    }
}

/// Why a file is not sent.
enum Failure {
    /// The link has ended or takes nothing.
    Link(String),
    /// The file cannot be read here.
    Here(String),
}

/// Sends the files that are left in the queue, over a new link if one breaks. Ends when the peer
/// has all files that were sent here.
async fn send_all(node: &Arc<Node>, live: &LiveSession, queue: &Queue) -> Result<(), String> {
    // the files that went over the present link
    let (mut link, mut over_link) = (None, Vec::new());
    let mut pauses = RESEND_PAUSES.iter();
    loop {
        let Err(why) = send_over(node, live, queue, &mut link, &mut over_link).await else {
            link.into_iter().for_each(|link| live.keep_link(link));
            return Ok(());
        };
        let why = match why {
            Failure::Link(why) => why,
            Failure::Here(why) => return Err(why),
        };
        link = None;
        if over_link.iter().any(|id| live.outgoing(id).is_none()) {
            pauses = RESEND_PAUSES.iter();
        }
        let pause = pauses.next().ok_or(why.clone())?;
        tracing::warn!(peer = %live.key.peer, why, files = over_link.len(), "a link for files is lost, and is opened again");
        // what the peer had already taken it tells over the control link meanwhile; a peer that
        // gives the session up tells that
        node.env.sleep(Duration::from_secs(*pause)).await;
        let lost = over_link.drain(..).filter(|id| live.outgoing(id).is_some());
        let lost: Vec<_> = lost.collect();
        node.streaming_state.figures.resent.add(lost.len() as u64);
        live.progress.sending().again += lost.len() as u64;
        // first of all: the peer waits for them for a minute only
        let mut queue = queue.borrow_mut();
        lost.into_iter().rev().for_each(|id| queue.push_front(id));
    }
}

/// Sends the files that are left in the queue over one link, and waits until the peer has taken
/// all of them.
async fn send_over(
    node: &Arc<Node>,
    live: &LiveSession,
    queue: &Queue,
    link: &mut Option<Box<dyn Stream>>,
    over_link: &mut Vec<Received>,
) -> Result<(), Failure> {
    loop {
        let next = queue.borrow_mut().pop_front();
        let Some(id) = next else { break };
        let Some(file) = live.outgoing(&id) else { continue };
        over_link.push(id);
        let link = match link {
            Some(link) => link,
            None => link.insert(open(node, live).await.map_err(Failure::Link)?),
        };
        send_file(node, live, &mut **link, &file).await?;
    }
    let Some(link) = link else { return Ok(()) };
    // nothing comes over a link for files
    let ended = async { while link.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {} };
    tokio::select! {
        biased;
        () = live.has_taken(over_link) => Ok(()),
        () = ended => Err(Failure::Link("the peer has closed it".to_owned())),
    }
}

async fn open(node: &Node, live: &LiveSession) -> Result<Box<dyn Stream>, String> {
    let opener = node.messenger().and_then(membership::Messenger::streams);
    let opener = opener.ok_or_else(|| "this node has left the ring".to_owned())?;
    opener.open(live.key.peer).await.map_err(|error| format!("no link for files can be opened: {error}"))
}

async fn send_file(
    node: &Arc<Node>,
    live: &LiveSession,
    link: &mut dyn Stream,
    file: &Arc<OutgoingFile>,
) -> Result<(), Failure> {
    let is_inter_dc =
        node.messenger().is_none_or(|messenger| messenger.distance(live.key.peer) == Distance::OtherDataCenter);
    let (is_entire, name) = (file.entire.is_some(), file.name());
    let SessionKey { plan, index, follows: by_follower, .. } = live.key;
    let (session, of_file) =
        (FileSession { sender: node.identity.broadcast, plan, by_follower, index }, Arc::clone(file));
    if is_entire && let Some(kernel) = node.env.network.file_sender(link) {
        return send_whole(node, live, (link, &*kernel), file, (session, is_inter_dc)).await;
    }
    let job = move || of_file.begin(session);
    let begun = node.env.blocking_spare("stream", job).await.map_err(|full| Failure::Here(full.to_string()))?;
    let FileTransfer { head, first: mut piece, mut pieces, total } = begun.map_err(Failure::Here)?;
    live.progress.sending().rewind(&name);
    write(node, link, &head).await.map_err(Failure::Link)?;
    while let Some(Piece { bytes, counted }) = piece.take() {
        let wait = node.streaming_state.throttle(node.env.now(), bytes.len(), is_entire, is_inter_dc);
        if !wait.is_zero() {
            node.env.sleep(wait).await;
        }
        let job = move || (pieces.read_next(), pieces);
        let (written, read) = tokio::join!(write(node, link, &bytes), node.env.blocking_spare("stream", job));
        written.map_err(Failure::Link)?;
        let (next, given_back) = read.map_err(|full| Failure::Here(full.to_string()))?;
        piece = next.map_err(|error| {
            node.engine.inspect_read(&error);
            Failure::Here(error.to_string())
        })?;
        pieces = given_back;
        node.streaming_state.figures.sent.add(bytes.len() as u64);
        live.progress.send(&name, counted, total);
        // full: something else keeps the session awake
        drop(live.events.try_send(Event::Progress));
    }
    Ok(())
}

/// Sends an SSTable that goes whole, whose files the kernel reads.
async fn send_whole(
    node: &Arc<Node>,
    live: &LiveSession,
    (link, kernel): (&mut dyn Stream, &dyn FileSender),
    file: &Arc<OutgoingFile>,
    (session, is_inter_dc): (FileSession, bool),
) -> Result<(), Failure> {
    let of_file = Arc::clone(file);
    let begun = node.env.blocking_spare("stream", move || of_file.begin_whole(session)).await;
    let (head, total) = begun.map_err(|full| Failure::Here(full.to_string()))?.map_err(Failure::Here)?;
    let name = file.name();
    live.progress.sending().rewind(&name);
    write(node, link, &head).await.map_err(Failure::Link)?;
    let pace = |bytes| node.streaming_state.throttle(node.env.now(), bytes, true, is_inter_dc);
    let sent = |bytes| {
        node.streaming_state.figures.sent.add(bytes);
        live.progress.send(&name, bytes, total);
        // full: something else keeps the session awake
        drop(live.events.try_send(Event::Progress));
    };
    let limit = node.streaming_state.settings.load().user_timeout;
    let done = sending::send_components(&node.env, limit, kernel, file, pace, sent).await;
    done.map_err(|error| {
        let why = format!("the files are not sent: {error}");
        match error.kind() {
            io::ErrorKind::Other | io::ErrorKind::UnexpectedEof => Failure::Here(why),
            _ => Failure::Link(why),
        }
    })
}

/// Writes all bytes. A peer that takes none for `internode_streaming_tcp_user_timeout` is given up.
pub(super) async fn write(
    node: &Node,
    link: &mut (impl AsyncWrite + Unpin + ?Sized),
    bytes: &[u8],
) -> Result<(), String> {
    let limit = node.streaming_state.settings.load().user_timeout;
    let written = sending::write_within(&node.env, limit, link, bytes).await;
    written.map_err(|error| format!("the peer takes no bytes: {error}"))
}
