//! Files that come over a file link: taken apart and written by jobs. While a job writes what has
//! come, the link is read on, up to [`READ_MAX`] bytes. A job never waits for the peer.
//!
//! A file belongs to the session that its header names. A file that cannot be written fails that
//! session. A link that breaks in the middle of a file leaves nothing of the file; the session
//! fails if the file does not begin to come again within [`RESUME_MAX`]. A sender of Cassandra
//! fails the session itself when a link breaks.
//!
//! A file whose table was dropped since the file was announced is passed over: nobody wants its
//! rows, and the sender hears that it is taken. Only a repair fails.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use env::{STREAMED_ALIGNMENT, Stream};
use links::Peer;
use ring::relocation::contains;
use rows::{PartitionHead, PartitionStream, ReadError, Unfiltered};
use schema::TableId;
use sstable::Version;
use storage::received::{Origin, ReceivedRows, ReceivedSSTables, WholeSSTable};
use storage::{StorageError, TableStore};
use streaming::data::partitions::{ReceivedPartitions, Source};
use streaming::{Event, FileHeader, LinkReader, Manifest, Message, Part, Received, ReceivedFile};
use tokio::io::AsyncReadExt;
use types::Token;

use crate::clock::uuid_text;
use crate::node::Node;
use crate::streaming_state::{Incoming, LiveSession, SessionKey};

/// Time within which a file whose link has broken must begin to come again. Longer than a sender
/// tries.
const RESUME_MAX: Duration = Duration::from_secs(60);

/// Most bytes that are read from a link while those before them are being written.
const READ_MAX: usize = 1 << 20;

/// Bytes taken from a socket at once.
const READ_SIZE: usize = 128 << 10;

/// A failure, and the session that it ends; None: it is of no session.
struct Failure(Option<Arc<LiveSession>>, String);

/// Takes the files of a link until it ends. `first` is the header that has come.
pub(super) async fn files(
    node: &Arc<Node>,
    from: Peer,
    first: Box<FileHeader>,
    mut stream: Box<dyn Stream>,
    (reader, mut input): (LinkReader, BytesMut),
) {
    let mut receiver = FileReceiver { node: Arc::clone(node), reader, current: None };
    let mut begins = Some(first);
    let (mut next, mut is_open) = (BytesMut::new(), true);
    loop {
        let live = receiver.current.as_ref().map(|file| Arc::clone(&file.live));
        let place = receiver.place_behind(input.len());
        let header = begins.take();
        let job = move || {
            let taken = receiver.take(header, &mut input);
            (receiver, input, taken)
        };
        let job = node.env.blocking_spare("stream", job);
        tokio::pin!(job);
        let done = loop {
            make_room(&mut next, place);
            tokio::select! {
                biased;
                done = &mut job => break done,
                read = stream.read_buf(&mut next), if is_open && next.len() < READ_MAX => {
                    is_open = read.is_ok_and(|count| count > 0);
                }
            }
        };
        let taken;
        (receiver, input, taken) = match done {
            Ok(done) => done,
            Err(full) => return fail(&from, Failure(live, full.to_string())).await,
        };
        match taken {
            Ok(arrived) => {
                for (live, file) in arrived {
                    drop(live.events.send(Event::Arrived(file)).await);
                }
            }
            Err(failure) => return fail(&from, failure).await,
        }
        let live = receiver.current.as_ref().map(|file| Arc::clone(&file.live));
        if let Some(live) = &live {
            // full: something else keeps the session awake
            drop(live.events.try_send(Event::Progress));
        }
        while next.is_empty() {
            if !is_open {
                return interrupted(node, receiver);
            }
            make_room(&mut next, receiver.place_behind(input.len()));
            let attempt = receiver.current.as_ref().and_then(|file| Some((file.arrived.id, file.attempt?)));
            let written = receiver.current.as_ref().filter(|file| file.incoming.is_some());
            let table = written.map(|file| file.arrived.id.table);
            tokio::select! {
                read = stream.read_buf(&mut next) => is_open = read.is_ok_and(|count| count > 0),
                () = given_up(live.as_deref(), attempt) => return give_up(node, receiver),
                // a job lets go of the file, for which the drop waits
                () = dropped(live.as_deref(), table) => break,
            }
        }
        match input.is_empty() {
            // both buffers go on: memory that is new each time costs the kernel as much as a copy
            true => std::mem::swap(&mut input, &mut next),
            false => input.unsplit(std::mem::take(&mut next)),
        }
    }
}

/// Completes when the session of a file ends, or the file comes again over another link. Never
/// where no file comes.
async fn given_up(live: Option<&LiveSession>, attempt: Option<(Received, u32)>) {
    match (live, attempt) {
        (None, _) => std::future::pending().await,
        (Some(live), None) => live.ended().await,
        (Some(live), Some((id, number))) => tokio::select! {
            () = live.ended() => {}
            () = live.attempts.superseded(id, number) => {}
        },
    }
}

/// Completes when the table of a file that is being written is dropped.
async fn dropped(live: Option<&LiveSession>, table: Option<TableId>) {
    match (live, table) {
        (Some(live), Some(table)) => live.dropped(table).await,
        _ => std::future::pending().await,
    }
}

/// Room for what a socket may give at once, where more is read. A buffer that is too small gets all
/// the room that it needs at once, so that it does not grow step by step. `place`: where the bytes
/// will stand in a file, modulo [`STREAMED_ALIGNMENT`]; an empty buffer begins at such a place of
/// memory, so that they can be written from there.
fn make_room(next: &mut BytesMut, place: usize) {
    let length = next.len();
    if length == 0 {
        next.reserve(READ_MAX + READ_SIZE + STREAMED_ALIGNMENT);
        let skipped = (next.as_ptr().align_offset(STREAMED_ALIGNMENT) + place) % STREAMED_ALIGNMENT;
        next.resize(skipped, 0);
        next.advance(skipped);
    } else if length < READ_MAX && next.capacity() - length < READ_SIZE {
        next.reserve(READ_MAX + READ_SIZE - length);
    }
}

/// Called when a link has ended. A file in the middle of which it has ended is to come again.
fn interrupted(node: &Arc<Node>, receiver: FileReceiver) {
    let Some(file) = &receiver.current else { return };
    let (live, id, attempt) = (Arc::clone(&file.live), file.arrived.id, file.attempt);
    let name = file.name.clone();
    give_up(node, receiver);
    let Some(number) = attempt.filter(|number| live.attempts.interrupt(id, *number)) else { return };
    tracing::warn!(peer = %live.key.peer, file = name, "a link has ended in the middle of a file, which is to come again");
    let env = node.env.clone();
    drop(tokio::task::spawn_local(async move {
        tokio::select! {
            () = env.sleep(RESUME_MAX) => {}
            () = live.ended() => return,
        }
        if live.attempts.is_interrupted(id, number) {
            let why = "a link has ended in the middle of a file, which did not come again".to_owned();
            drop(live.events.send(Event::Broken(why)).await);
        }
    }));
}

/// Gives up the file that comes, by a job, which may wait for the disk.
fn give_up(node: &Node, receiver: FileReceiver) {
    // where too many jobs wait, the refused job is dropped here and gives the file up
    let _ = node.env.tasks.run("stream", Box::new(move || drop(receiver)));
}

async fn fail(from: &Peer, Failure(live, why): Failure) {
    match live {
        Some(live) => drop(live.events.send(Event::Broken(why)).await),
        None => tracing::warn!(peer = %from.address, why, "a link for streamed files is closed"),
    }
}

/// The reason why a link is closed while a file comes.
const SUPERSEDED: &str = "the file comes again over another link";

/// Takes the bytes of a link, by jobs that may wait for the disk.
struct FileReceiver {
    node: Arc<Node>,
    reader: LinkReader,
    /// The file that is being received; None: the next bytes are a header.
    current: Option<File>,
}

/// A file that comes.
struct File {
    live: Arc<LiveSession>,
    /// The number of the attempt; None: the file is there already, and what comes is passed over.
    attempt: Option<u32>,
    /// The place of the files of this table; None when `attempt` is, or when the table was dropped.
    incoming: Option<Arc<Incoming>>,
    arrived: ReceivedFile,
    origin: Origin,
    form: Form,
    /// The name of the file for progress and log.
    name: String,
    total: u64,
    /// The ranges that this node has or is about to have; None: all is taken.
    taken: Option<Vec<(Token, Token)>>,
}

/// The partitions that come. Each is checked: this node must have its range or be about to have
/// it.
struct Checked<'a> {
    partitions: &'a mut ReceivedPartitions<Pieces>,
    node: &'a Node,
    live: &'a LiveSession,
    name: &'a str,
    taken: Option<&'a [(Token, Token)]>,
    /// The sentence of a refusal, behind which the stream has ended.
    refusal: Option<String>,
}

impl PartitionStream for Checked<'_> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.partitions.next_partition()?;
        let (Some(taken), Some(token)) = (self.taken, head.as_ref().map(|head| head.key.token)) else {
            return Ok(head);
        };
        if !taken.iter().any(|range| contains(*range, token)) {
            let plan = uuid_text(&self.live.key.plan);
            let of = (plan.as_str(), self.name, self.live.key.peer);
            if let Err(why) = self.node.note_out_of_range_partition(of, taken, token) {
                self.refusal = Some(why);
                return Err(ReadError::Stopped);
            }
        }
        Ok(head)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.partitions.next_unfiltered()
    }
}

enum Form {
    /// Bytes that are passed over.
    Passed,
    /// Partitions that are written anew.
    Rows(Box<(ReceivedPartitions<Pieces>, ReceivedRows)>),
    /// Components as they are.
    Whole { manifest: Manifest, sstable: WholeSSTable, index: Option<usize> },
}

/// Pieces of sections that have come and were not decoded.
#[derive(Default)]
struct Pieces {
    waiting: std::collections::VecDeque<Bytes>,
    has_ended: bool,
}

impl Source for Pieces {
    fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        match self.waiting.pop_front() {
            Some(piece) => Ok(Some(piece)),
            None if self.has_ended => Ok(None),
            None => Err(ReadError::WouldBlock),
        }
    }
}

impl FileReceiver {
    /// The position, modulo [`STREAMED_ALIGNMENT`], at which the bytes behind the next `waiting`
    /// ones will be written in the present file, if the file is that long.
    fn place_behind(&self, waiting: usize) -> usize {
        let Some(File { form: Form::Whole { sstable, .. }, .. }) = &self.current else { return 0 };
        let place = sstable.position().unwrap_or(0) % STREAMED_ALIGNMENT as u64;
        (usize::try_from(place).unwrap_or(0) + waiting) % STREAMED_ALIGNMENT
    }

    /// Takes all whole parts of `input`. `header`: a header that came before. Gives files that are
    /// complete.
    fn take(
        &mut self,
        header: Option<Box<FileHeader>>,
        input: &mut BytesMut,
    ) -> Result<Vec<(Arc<LiveSession>, ReceivedFile)>, Failure> {
        let taken = self.take_parts(header, input);
        if taken.is_err()
            && let Some(file) = self.current.take()
        {
            file.abort();
        }
        taken
    }

    fn take_parts(
        &mut self,
        header: Option<Box<FileHeader>>,
        input: &mut BytesMut,
    ) -> Result<Vec<(Arc<LiveSession>, ReceivedFile)>, Failure> {
        let mut complete = Vec::new();
        if let Some(header) = header {
            self.current = Some(begin(&self.node, *header)?);
        }
        if let Some(file) = &mut self.current {
            file.leave_dropped();
        }
        loop {
            let live = self.current.as_ref().map(|file| Arc::clone(&file.live));
            let next = self.reader.next(input).map_err(|error| Failure(live.clone(), error.to_string()))?;
            let Some(next) = next else { return Ok(complete) };
            match (next, &mut self.current) {
                (streaming::Incoming::Message(Message::Stream(header)), None) => {
                    self.current = Some(begin(&self.node, *header)?);
                }
                (streaming::Incoming::Message(Message::KeepAlive), _) => {}
                (streaming::Incoming::Message(message), _) => {
                    let why = format!("{} came on a link for files", message.name());
                    return Err(Failure(live, why));
                }
                (streaming::Incoming::Data(part), Some(file)) => {
                    let live = Arc::clone(&file.live);
                    if live.is_ended() {
                        return Err(Failure(None, "its session has ended".to_owned()));
                    }
                    file.is_last().map_err(|why| Failure(None, why))?;
                    file.write(&self.node, part).map_err(|why| Failure(Some(live), why))?;
                }
                (streaming::Incoming::EndOfFile, current) => {
                    let Some(file) = current.take() else { continue };
                    let live = Arc::clone(&file.live);
                    let Some(number) = file.attempt else {
                        file.abort();
                        continue;
                    };
                    if !live.attempts.settle(file.arrived.id, number) {
                        file.abort();
                        return Err(Failure(None, SUPERSEDED.to_owned()));
                    }
                    complete.push(file.finish(&self.node).map_err(|why| Failure(Some(live), why))?);
                }
                (streaming::Incoming::Data(_), None) => return Err(Failure(None, "data without a header".to_owned())),
            }
        }
    }
}

impl Drop for FileReceiver {
    /// Gives up a file that is not complete: the link has ended, or this node stops.
    fn drop(&mut self) {
        if let Some(file) = self.current.take() {
            file.abort();
        }
    }
}

/// Begins to write the file of a header.
fn begin(node: &Arc<Node>, header: FileHeader) -> Result<File, Failure> {
    let key = SessionKey {
        plan: header.plan,
        peer: header.sender,
        index: header.session_index,
        follows: !header.by_follower,
    };
    let Some(live) = node.streaming_state.session(&key) else {
        return Err(Failure(None, format!("a file of {} belongs to no session", header.sender)));
    };
    let of_session = |why: String| Failure(Some(Arc::clone(&live)), why);
    let arrived = ReceivedFile::of(&header);
    let Some(attempt) = live.attempts.begin(arrived.id) else {
        // the sender did not know yet that the file is here
        return Ok(passed_over(live, arrived));
    };
    live.admit(&arrived).map_err(of_session)?;
    let announced = live.announced_at().ok_or_else(|| of_session("a file came before it was announced".to_owned()))?;
    let content = header.content;
    let total = content.transfer_bytes();
    let name = |table: &str| format!("{table}/{}-{}", content.version.name(), header.sequence);
    let begun = live.table(header.table).map(|store| {
        let begin = || ReceivedSSTables::begin(&node.engine, &store, announced, live.if_truncated());
        live.incoming(header.table, begin).map(|incoming| (incoming, Arc::clone(&store)))
    });
    let (incoming, store) = match begun {
        Some(Ok(begun)) => begun,
        _ if live.passes_over(header.table) => {
            let name = name(&header.table.to_string());
            live.progress.receiving().rewind(&name);
            return Ok(File { attempt: Some(attempt), name, total, ..passed_over(live, arrived) });
        }
        Some(Err(error)) => return Err(of_session(error.to_string())),
        None => return Err(of_session(format!("the table {} was dropped", header.table))),
    };
    let name = name(&store.name());
    let origin =
        Origin { level: content.level, repaired_at: header.repaired_at, pending_repair: header.pending_repair };
    live.progress.receiving().rewind(&name);
    let rows = content.rows.resolve(&store.table()).map_err(|error| of_session(format!("{error:?}")))?;
    let receiving = incoming.receiving();
    receiving.check(&rows).map_err(|error| of_session(error.to_string()))?;
    let form = match content.entire {
        Some(manifest) => whole(node, receiving, manifest, content.version).map_err(of_session)?,
        None => {
            let writer = receiving.rows(rows.clone(), content.estimated_keys, origin);
            let writer = writer.map_err(|error| of_session(told(node, &store, &error)))?;
            let partitions = ReceivedPartitions::new(Pieces::default(), store.table(), rows);
            Form::Rows(Box::new((partitions, writer)))
        }
    };
    let (attempt, incoming) = (Some(attempt), Some(incoming));
    let taken = node.taken_ranges(&store.table().keyspace);
    Ok(File { live, attempt, incoming, arrived, origin, form, name, total, taken })
}

/// A file of which nothing is kept.
fn passed_over(live: Arc<LiveSession>, arrived: ReceivedFile) -> File {
    let name = String::new();
    let (origin, form) = (Origin::default(), Form::Passed);
    File { live, attempt: None, incoming: None, arrived, origin, form, name, total: 0, taken: None }
}

fn whole(node: &Node, receiving: &ReceivedSSTables, manifest: Manifest, version: Version) -> Result<Form, String> {
    let sstable = receiving.whole(&node.engine, version).map_err(|error| told(node, receiving.store(), &error))?;
    Ok(Form::Whole { manifest, sstable, index: None })
}

/// The reason for the session why received bytes could not be kept. A disk that fails is also
/// treated by `disk_failure_policy`; wrong bytes of a peer are not.
pub(super) fn told(node: &Node, store: &TableStore, error: &StorageError) -> String {
    if matches!(error, StorageError::Io { .. }) {
        node.engine.inspect(store, error);
    }
    error.to_string()
}

impl File {
    /// Refuses the bytes of an attempt behind which another one has begun.
    fn is_last(&self) -> Result<(), String> {
        let is_last = self.attempt.is_none_or(|number| self.live.attempts.is_last(self.arrived.id, number));
        if is_last { Ok(()) } else { Err(SUPERSEDED.to_owned()) }
    }

    /// Writes nothing more of a table that was dropped. What was written of it goes.
    fn leave_dropped(&mut self) {
        let id = self.arrived.id;
        if self.incoming.is_some() && self.live.passes_over(id.table) {
            std::mem::replace(&mut self.form, Form::Passed).abort();
            self.incoming = None;
        }
    }

    fn write(&mut self, node: &Node, part: Part) -> Result<(), String> {
        self.leave_dropped();
        let Some(incoming) = &self.incoming else {
            // a file that is here already was counted when it came
            if self.attempt.is_some() {
                let counted = match &part {
                    Part::Rows { counted, .. } => *counted,
                    Part::Component { bytes, .. } => bytes.len() as u64,
                };
                self.count(node, counted);
            }
            return Ok(());
        };
        let receiving = incoming.receiving();
        let counted = match (&mut self.form, part) {
            (Form::Rows(both), Part::Rows { bytes, counted }) => {
                let (partitions, writer) = &mut **both;
                partitions.source().waiting.push_back(bytes);
                let (live, name, taken) = (&*self.live, self.name.as_str(), self.taken.as_deref());
                let mut checked = Checked { partitions, node, live, name, taken, refusal: None };
                let ended = receiving.write_some(&node.engine, writer, &mut checked);
                let ended =
                    ended.map_err(|error| checked.refusal.unwrap_or_else(|| told(node, receiving.store(), &error)))?;
                assert!(!ended, "a source that goes on does not end");
                counted
            }
            (Form::Whole { manifest, sstable, index }, Part::Component { index: of_part, bytes }) => {
                if *index != Some(of_part) {
                    *index = Some(of_part);
                    let (name, length) =
                        manifest.components.get(of_part).map_or(("", 0), |(name, length)| (name.as_str(), *length));
                    sstable.component(name, length).map_err(|error| told(node, receiving.store(), &error))?;
                }
                sstable.write(&bytes).map_err(|error| told(node, receiving.store(), &error))?;
                bytes.len() as u64
            }
            _ => return Err("the data of a file has another form than its header says".to_owned()),
        };
        self.count(node, counted);
        Ok(())
    }

    /// Counts bytes that have come.
    fn count(&self, node: &Node, bytes: u64) {
        node.streaming_state.figures.received.add(bytes);
        self.live.progress.receive(&self.name, bytes, self.total);
    }

    /// Called when all bytes of the file have come.
    fn finish(mut self, node: &Node) -> Result<(Arc<LiveSession>, ReceivedFile), String> {
        self.leave_dropped();
        if let Some(incoming) = self.incoming.take() {
            self.keep(node, incoming.receiving())?;
        }
        self.live.progress.receiving().done.files += self.arrived.files as u64;
        Ok((self.live, self.arrived))
    }

    /// Keeps the SSTable, which is complete.
    fn keep(&mut self, node: &Node, receiving: &ReceivedSSTables) -> Result<(), String> {
        match std::mem::replace(&mut self.form, Form::Passed) {
            Form::Passed => Ok(()),
            Form::Rows(both) => {
                let (mut partitions, mut writer) = *both;
                partitions.source().has_ended = true;
                let (live, name, taken) = (&*self.live, self.name.as_str(), self.taken.as_deref());
                let partitions = &mut partitions;
                let mut checked = Checked { partitions, node, live, name, taken, refusal: None };
                let written = receiving.write_some(&node.engine, &mut writer, &mut checked);
                match written.map_err(|error| checked.refusal.unwrap_or_else(|| told(node, receiving.store(), &error)))
                {
                    Ok(ended) => {
                        assert!(ended, "a source that has ended makes nobody wait");
                        receiving.take_rows(writer).map_err(|error| told(node, receiving.store(), &error))
                    }
                    Err(error) => {
                        writer.abort();
                        Err(error)
                    }
                }
            }
            Form::Whole { manifest, mut sstable, .. } => {
                // nothing comes of an empty component, and its file has to be there
                let mut empty = manifest.components.iter().filter(|(_, length)| *length == 0);
                let made = empty.try_for_each(|(name, length)| sstable.component(name, *length));
                let taken = made.and_then(|()| receiving.take(&node.engine, sstable, self.origin));
                taken.map_err(|error| told(node, receiving.store(), &error))
            }
        }
    }

    fn abort(self) {
        self.form.abort();
    }
}

impl Form {
    /// Gives up what was written.
    fn abort(self) {
        match self {
            Self::Passed => {}
            Self::Rows(both) => both.1.abort(),
            Self::Whole { sstable, .. } => sstable.abort(),
        }
    }
}
