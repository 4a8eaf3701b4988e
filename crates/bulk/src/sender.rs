//! Sends the files of a session over file links, several side by side, at the pace that the options
//! allow. A job reads the next piece of a file while the last one is on its way.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use env::Stream;
use sending::{FileSession, FileTransfer, OutgoingFile, Piece, send_components, write_within};
use streaming::{Event, Received};
use tokio::sync::mpsc;

use crate::peer_connector::{PeerConnector, TAKING_MAX};

/// File links of one session at one time.
const LINKS_MAX: usize = 2;

/// The links on which all files were sent. A receiver of Cassandra fails its session when one of
/// them ends before it has taken COMPLETE, so they stay open until the session ends.
pub(crate) type OpenLinks = Rc<RefCell<Vec<Box<dyn Stream>>>>;

/// The state that the tasks of one session share.
pub(crate) struct Sender {
    pub connector: Rc<PeerConnector>,
    pub session: FileSession,
    pub files: Vec<Arc<OutgoingFile>>,
    pub open_links: OpenLinks,
    pub events: mpsc::Sender<Event>,
}

/// Sends these files. The session hears of a failure, and of progress; the peer tells what it has.
pub(crate) fn start(sender: &Rc<Sender>, files: Vec<Received>) {
    let links = LINKS_MAX.min(files.len());
    let queue = Rc::new(RefCell::new(VecDeque::from(files)));
    for _ in 0..links {
        let (sender, queue) = (Rc::clone(sender), Rc::clone(&queue));
        drop(tokio::task::spawn_local(async move {
            match sender.send_all(&queue).await {
                Ok(link) => sender.open_links.borrow_mut().extend(link),
                Err(why) => drop(sender.events.send(Event::Broken(why)).await),
            }
        }));
    }
}

impl Sender {
    /// Sends what is left in the queue; gives the link.
    async fn send_all(&self, queue: &RefCell<VecDeque<Received>>) -> Result<Option<Box<dyn Stream>>, String> {
        let mut link = None;
        loop {
            let next = queue.borrow_mut().pop_front();
            let Some(id) = next else { return Ok(link) };
            let file = self.files.iter().find(|file| file.id == id).ok_or("a file that was never offered")?;
            let link = match &mut link {
                Some(link) => link,
                None => link.insert(self.connector.open().await?),
            };
            self.send(&mut **link, file).await?;
        }
    }

    async fn send(&self, link: &mut dyn Stream, file: &Arc<OutgoingFile>) -> Result<(), String> {
        let PeerConnector { env, shared, peer, is_far, .. } = &*self.connector;
        let (session, of_file) = (self.session, Arc::clone(file));
        let taken = |error: std::io::Error| format!("the node takes no bytes: {error}");
        if file.entire.is_some()
            && let Some(kernel) = env.network.file_sender(link)
        {
            let begun = env.blocking_long("load", move || of_file.begin_whole(session)).await;
            let (head, _) = begun.map_err(|full| full.to_string())??;
            write_within(env, TAKING_MAX, link, &head).await.map_err(taken)?;
            let pace = |bytes| shared.paces.borrow_mut().take(env, bytes, true, *is_far);
            let sent = |bytes| {
                shared.watch.sent(*peer, bytes);
                // full: something else keeps the session awake
                drop(self.events.try_send(Event::Progress));
            };
            let done = send_components(env, TAKING_MAX, &*kernel, file, pace, sent).await;
            return done.map_err(|error| format!("the files are not sent: {error}"));
        }
        let job = move || of_file.begin(session);
        let begun = env.blocking_long("load", job).await.map_err(|full| full.to_string())?;
        let FileTransfer { head, first: mut piece, mut pieces, .. } = begun?;
        write_within(env, TAKING_MAX, link, &head).await.map_err(taken)?;
        while let Some(Piece { bytes, counted }) = piece.take() {
            let wait = shared.paces.borrow_mut().take(env, bytes.len(), file.entire.is_some(), *is_far);
            if !wait.is_zero() {
                env.sleep(wait).await;
            }
            let job = move || (pieces.read_next(), pieces);
            let (written, read) =
                tokio::join!(write_within(env, TAKING_MAX, link, &bytes), env.blocking_long("load", job));
            written.map_err(taken)?;
            let (next, given_back) = read.map_err(|full| full.to_string())?;
            piece = next.map_err(|error| error.to_string())?;
            pieces = given_back;
            shared.watch.sent(*peer, counted);
            // full: something else keeps the session awake
            drop(self.events.try_send(Event::Progress));
        }
        Ok(())
    }
}
