//! One session with a node, as its initiator: messages of the control link and news of the files go
//! into the state machine ([`streaming::Session`]), and what comes out is done here.
//!
//! The node takes the session from whoever opens it: a loader is no member of the ring, listens on
//! no port, and is never called back.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use env::{Env, Stream};
use sending::{FileSession, OutgoingFile, offers, write_within};
use streaming::session::Limits;
use streaming::{Effect, Event, LinkReader, Message, Operation, Preview, Session, StreamInit};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use crate::peer_connector::{PeerConnector, TAKING_MAX, own_address};
use crate::sender::{self, OpenLinks, Sender};

/// News of files that wait for the session. Who has more waits.
const EVENTS_MAX: usize = 64;
/// How often the session is told the time.
const TICK: Duration = Duration::from_secs(1);
/// Bytes taken from a control link at once.
const READ_SIZE: usize = 64 << 10;

/// Runs a session to its end. Err: why it has failed.
pub(crate) async fn run(connector: Rc<PeerConnector>, index: i32, files: Vec<OutgoingFile>) -> Result<(), String> {
    let (env, plan) = (connector.env.clone(), connector.shared.plan);
    let from = own_address(connector.peer);
    let init = StreamInit {
        from,
        session_index: index,
        plan,
        operation: Operation::BulkLoad,
        pending_repair: None,
        preview: Preview::None,
    };
    let offers = offers(&files);
    let stream = connector.open().await?;
    let (session, effects) = Session::initiate(init, Vec::new(), offers, Limits::default(), now_ms(&env));
    let (read, write) = tokio::io::split(stream);
    let (events_in, events) = mpsc::channel(EVENTS_MAX);
    let open_links = OpenLinks::default();
    let sender = Rc::new(Sender {
        connector,
        session: FileSession { sender: from, plan, by_follower: false, index },
        files: files.into_iter().map(Arc::new).collect(),
        open_links: Rc::clone(&open_links),
        events: events_in,
    });
    let control = Control { env, session, sender, read, write, input: (LinkReader::new(), BytesMut::new()), events };
    let ended = control.drive(effects.into()).await;
    open_links.borrow_mut().clear();
    ended
}

fn now_ms(env: &Env) -> u64 {
    env.clock.monotonic_nanos() / 1_000_000
}

struct Control {
    env: Env,
    session: Session,
    sender: Rc<Sender>,
    read: ReadHalf<Box<dyn Stream>>,
    write: WriteHalf<Box<dyn Stream>>,
    input: (LinkReader, BytesMut),
    events: mpsc::Receiver<Event>,
}

impl Control {
    async fn drive(mut self, mut effects: VecDeque<Effect>) -> Result<(), String> {
        loop {
            let Some(effect) = effects.pop_front() else {
                let event = self.next().await;
                effects.extend(self.session.on_event(event, now_ms(&self.env)));
                continue;
            };
            match effect {
                Effect::Send(message) => {
                    if self.send(&message).await.is_err() {
                        effects.extend(self.session.on_event(Event::LinkEnded, now_ms(&self.env)));
                    }
                }
                Effect::SendFiles(files) => sender::start(&self.sender, files),
                // only a follower collects, and nothing was asked for that would come
                Effect::Collect(_) | Effect::Add(_) => {
                    let why = "the node sends files to a loader".to_owned();
                    effects.extend(self.session.on_event(Event::Broken(why), now_ms(&self.env)));
                }
                Effect::Close => {}
                Effect::Finished(result) => {
                    drop(self.write.shutdown().await);
                    return result;
                }
            }
        }
    }

    async fn send(&mut self, message: &Message) -> Result<(), String> {
        let mut out = Vec::new();
        message.encode(&mut out).map_err(|error| error.to_string())?;
        write_within(&self.env, TAKING_MAX, &mut self.write, &out).await.map_err(|error| error.to_string())
    }

    /// The next thing that happens.
    async fn next(&mut self) -> Event {
        loop {
            let (reader, input) = &mut self.input;
            if let Some(event) = Event::of_control_link(reader, input) {
                return event;
            }
            input.reserve(READ_SIZE);
            tokio::select! {
                biased;
                event = self.events.recv() => return event.unwrap_or(Event::LinkEnded),
                read = self.read.read_buf(input) => match read {
                    Ok(0) | Err(_) => return Event::LinkEnded,
                    Ok(_) => {}
                },
                () = self.env.sleep(TICK) => return Event::Tick,
            }
        }
    }
}
