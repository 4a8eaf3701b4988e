//! A file that is sent, and the pieces in which its data is read. Reading waits for the disk.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use env::ReadFile;
use env::rare::{Rare, happens};
use rows::{ReadContext, ReadError, ReadMode};
use schema::TableId;
use sstable::SSTable;
use streaming::data::outgoing::{self, BlockPlace, Run};
use streaming::data::plain;
use streaming::{Content, FileHeader, Manifest, Message, OfferedFiles, PlanId, Received, Section};

/// Bytes, approximately, that are read at once and wait for the socket. It may be a block or a
/// chunk more.
pub(crate) const PIECE_SIZE: usize = 1 << 20;

/// The size of the next piece, bytes.
fn piece_size() -> usize {
    if happens(Rare::SmallPieces) { 100 } else { PIECE_SIZE }
}

/// A file that is sent: parts of an SSTable, or all of its files.
pub struct OutgoingFile {
    /// The file's name in the session: its table and number.
    pub id: Received,
    /// The SSTable. Its files stay open, even if a compaction has replaced it.
    pub sstable: SSTable,
    /// The parts of Data.db that are sent.
    pub sections: Vec<Section>,
    /// Names and open files of the components, if the SSTable goes whole; None: sections go.
    pub entire: Option<Vec<(String, Arc<dyn ReadFile>)>>,
    /// Whether the receiver's SSTable has the level of this one.
    pub keeps_level: bool,
    /// The share of the file in the totals: files and bytes.
    pub weight: (usize, u64),
}

/// The session in which a file is sent, as the file's header names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSession {
    /// The sender's broadcast address.
    pub sender: SocketAddr,
    /// The plan.
    pub plan: PlanId,
    /// Whether the session's follower sends the file.
    pub by_follower: bool,
    /// The session's number among those of the plan with the same peer.
    pub index: i32,
}

/// A file whose sending begins.
pub struct FileTransfer {
    /// The bytes of the message STREAM.
    pub head: Vec<u8>,
    /// The first piece of the data; None: there is no data.
    pub first: Option<Piece>,
    /// The further pieces of the data.
    pub pieces: Pieces,
    /// Bytes of all pieces, as the session's summary counts them.
    pub total: u64,
}

/// A piece of a file's data.
pub struct Piece {
    /// The bytes for the peer.
    pub bytes: Vec<u8>,
    /// The number by which these bytes count in the file's total. For sections that go without the
    /// file's compression it is the number of bytes before they became blocks.
    pub counted: u64,
}

impl Piece {
    fn as_stored(bytes: Vec<u8>) -> Self {
        Self { counted: bytes.len() as u64, bytes }
    }
}

/// The summaries by which a session announces these files, one for each table.
pub fn offers<'a>(files: impl IntoIterator<Item = &'a OutgoingFile>) -> Vec<OfferedFiles> {
    let mut offers: BTreeMap<TableId, Vec<(usize, u64)>> = BTreeMap::new();
    for file in files {
        let weights = offers.entry(file.id.table).or_default();
        assert_eq!(weights.len(), file.id.sequence as usize, "the files of a table are numbered in order");
        weights.push(file.weight);
    }
    offers.into_iter().map(|(table, files)| OfferedFiles { table, files }).collect()
}

impl OutgoingFile {
    /// Begins to send the file: its header and the first piece. Waits for the disk. Err: a
    /// sentence.
    pub fn begin(self: &Arc<Self>, session: FileSession) -> Result<FileTransfer, String> {
        let content = self.content().map_err(|error| error.to_string())?;
        let total = content.transfer_bytes();
        let mut pieces = self.pieces(&content);
        let head = self.head(session, content)?;
        let first = pieces.read_next().map_err(|error| error.to_string())?;
        Ok(FileTransfer { head, first, pieces, total })
    }

    /// Begins to send an SSTable that goes whole, whose files the kernel reads
    /// ([`crate::send_components`]): the header, and the bytes that follow it. Err: a sentence.
    pub fn begin_whole(&self, session: FileSession) -> Result<(Vec<u8>, u64), String> {
        assert!(self.entire.is_some(), "the kernel reads whole files");
        let content = self.content().map_err(|error| error.to_string())?;
        let total = content.transfer_bytes();
        Ok((self.head(session, content)?, total))
    }

    /// The bytes of the message STREAM.
    fn head(&self, session: FileSession, content: Content) -> Result<Vec<u8>, String> {
        let stats = &self.sstable.statistics().stats;
        let header = FileHeader {
            table: self.id.table,
            sender: session.sender,
            plan: session.plan,
            by_follower: session.by_follower,
            session_index: session.index,
            sequence: self.id.sequence,
            repaired_at: stats.repaired_at,
            pending_repair: stats.pending_repair,
            content,
        };
        let mut head = Vec::new();
        Message::Stream(Box::new(header)).encode(&mut head).map_err(|error| error.to_string())?;
        Ok(head)
    }

    /// The description of the data.
    pub fn content(&self) -> Result<Content, ReadError> {
        let manifest = self.entire.as_ref().map(|components| Manifest {
            components: components.iter().map(|(name, file)| (name.clone(), file.len())).collect(),
            first_key: self.sstable.first_key().key.clone(),
        });
        outgoing::content(&self.sstable, self.sections.clone(), manifest, self.keeps_level)
    }

    /// A name for people: that of the SSTable's data file.
    pub fn name(&self) -> String {
        self.sstable.descriptor().path(sstable::Component::Data).display().to_string()
    }

    /// The data of a content, piece by piece.
    pub fn pieces(self: &Arc<Self>, content: &Content) -> Pieces {
        let form = match (&self.entire, &content.compression) {
            (Some(_), _) => Form::Entire { component: 0, offset: 0 },
            (None, Some(compression)) => {
                Form::Stored(outgoing::stored_runs(&compression.chunks, piece_size() as u64).into_iter())
            }
            (None, None) => {
                let chunk_length = self.sstable.data().chunk_length();
                let blocks = outgoing::blocks(&content.sections, chunk_length).collect::<Vec<_>>().into_iter();
                Form::Plain { blocks, chunk: None }
            }
        };
        Pieces { file: Arc::clone(self), form, left: content.transfer_bytes() }
    }
}

enum Form {
    Stored(std::vec::IntoIter<Run>),
    Plain {
        blocks: std::vec::IntoIter<BlockPlace>,
        /// Number and content of the chunk that was read last, because neighbouring sections share
        /// one; None: none was.
        chunk: Option<(u64, Bytes)>,
    },
    /// The component that is being read, and the offset in it.
    Entire {
        component: usize,
        offset: u64,
    },
}

/// The data of a file in pieces of about a mebibyte.
pub struct Pieces {
    file: Arc<OutgoingFile>,
    form: Form,
    /// Bytes of the file's total that have not been given.
    left: u64,
}

impl Pieces {
    /// The next piece; None: all were given.
    pub fn read_next(&mut self) -> Result<Option<Piece>, ReadError> {
        let piece = self.read()?;
        let counted = piece.as_ref().map_or(self.left, |piece| piece.counted);
        assert!(counted <= self.left, "the pieces of a file have no more bytes than its header says");
        assert!(piece.is_some() || self.left == 0, "the pieces of a file have all bytes that its header says");
        self.left -= counted;
        Ok(piece)
    }

    fn read(&mut self) -> Result<Option<Piece>, ReadError> {
        let sstable = &self.file.sstable;
        let io = |error: std::io::Error| ReadError::Io { path: self.file.name().into(), message: error.to_string() };
        match &mut self.form {
            Form::Stored(runs) => {
                let Some(run) = runs.next() else { return Ok(None) };
                let mut out = vec![0; usize::try_from(run.length).expect("runs are bounded")];
                sstable.data().file().read_at(&mut out, run.offset).map_err(io)?;
                Ok(Some(Piece::as_stored(out)))
            }
            Form::Plain { blocks, chunk: last } => {
                let (mut out, mut counted) = (Vec::new(), 0);
                while out.len() < piece_size()
                    && let Some(BlockPlace { chunk, bytes }) = blocks.next()
                {
                    let content = match last.take() {
                        Some((number, content)) if number == chunk => content,
                        _ => sstable.data().read_chunk(chunk, ReadMode::Background)?,
                    };
                    let part =
                        content.get(bytes).ok_or_else(|| sstable.data().corruption(0, "a chunk is too short"))?;
                    part.chunks(plain::BLOCK_LENGTH_MAX)
                        .try_for_each(|part| plain::put_block(&mut out, part))
                        .map_err(io)?;
                    counted += part.len() as u64;
                    *last = Some((chunk, content));
                }
                Ok((counted > 0).then_some(Piece { bytes: out, counted }))
            }
            Form::Entire { component, offset } => {
                let components = self.file.entire.as_deref().unwrap_or_default();
                while let Some((_, file)) = components.get(*component) {
                    let left = file.len() - *offset;
                    if left == 0 {
                        (*component, *offset) = (*component + 1, 0);
                        continue;
                    }
                    let mut out = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(piece_size())];
                    file.read_at(&mut out, *offset).map_err(io)?;
                    *offset += out.len() as u64;
                    return Ok(Some(Piece::as_stored(out)));
                }
                Ok(None)
            }
        }
    }
}

/// The context of reads for streams, which go around the cache.
pub fn context() -> ReadContext {
    ReadContext::new(ReadMode::Background)
}
