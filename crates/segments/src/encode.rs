//! Puts segments together: many small envelopes in one, a large one cut over several.
//!
//! Without compression envelopes are written where they will be sent from: the segment's header is
//! left open and filled in when the next envelope does not fit or the batch ends. With LZ4 they are
//! gathered in a scratch buffer and compressed.

use bytes::{BufMut, BytesMut};

use lz4::block::CompressionMode;

use crate::{PAYLOAD_SIZE_MAX, SegmentFormat, crc};

/// Packs envelopes into segments at the end of an out buffer.
#[derive(Debug)]
pub struct SegmentEncoder {
    format: SegmentFormat,
    /// Where the open segment's header begins in the out buffer (plain).
    open: Option<usize>,
    /// The open segment's payload (LZ4).
    scratch: BytesMut,
    /// Room for compression, kept between segments.
    compressed: Vec<u8>,
}

/// Twice the speed of the tightest mode, 2 % larger.
const LZ4_MODE: Option<CompressionMode> = Some(CompressionMode::FAST(2));

/// Incompressible or tiny payloads are stored: below this size LZ4 costs more than it saves.
const COMPRESS_SIZE_MIN: usize = 128;

impl SegmentEncoder {
    /// An encoder for one direction of a connection.
    pub fn new(format: SegmentFormat) -> Self {
        Self { format, open: None, scratch: BytesMut::new(), compressed: Vec::new() }
    }

    /// Bytes of envelopes that have not reached the out buffer yet.
    pub fn buffered(&self) -> usize {
        self.scratch.len()
    }

    /// Appends the one envelope that `write` writes at the end of the buffer it is given.
    pub fn append(&mut self, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
        match self.format {
            SegmentFormat::Plain | SegmentFormat::Unprotected => self.append_plain(out, write),
            SegmentFormat::Lz4 => self.append_lz4(out, write),
        }
    }

    /// Closes the open segment. Must be called before `out` is sent.
    pub fn finish(&mut self, out: &mut BytesMut) {
        match self.format {
            SegmentFormat::Plain | SegmentFormat::Unprotected => {
                if let Some(start) = self.open.take() {
                    close_plain(self.format, out, start, true);
                }
            }
            SegmentFormat::Lz4 => {
                if !self.scratch.is_empty() {
                    let payload = std::mem::take(&mut self.scratch);
                    self.put_lz4(out, &payload, true);
                    self.scratch = payload;
                    self.scratch.clear();
                }
            }
        }
    }

    /// Appends a part of an envelope that is cut over segments: at most [`PAYLOAD_SIZE_MAX`] bytes,
    /// and nothing else until its last part.
    pub fn append_part(&mut self, out: &mut BytesMut, part: &[u8]) {
        self.finish(out);
        match self.format {
            SegmentFormat::Plain | SegmentFormat::Unprotected => {
                let start = out.len();
                out.reserve(self.format.header_size() + part.len() + super::TRAILER_SIZE);
                out.put_bytes(0, self.format.header_size());
                out.put_slice(part);
                close_plain(self.format, out, start, false);
            }
            SegmentFormat::Lz4 => self.put_lz4(out, part, false),
        }
    }

    fn append_plain(&mut self, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
        let header_size = self.format.header_size();
        let start = *self.open.get_or_insert_with(|| {
            let start = out.len();
            out.put_bytes(0, header_size);
            start
        });
        let envelope_start = out.len();
        write(out);
        debug_assert!(out.len() >= envelope_start, "an envelope stands behind what was there before it");
        if out.len() - start - header_size <= PAYLOAD_SIZE_MAX {
            return;
        }
        // it does not fit: take it out again, close what was open before it, and put it into
        // segments of its own
        let envelope = out.split_off(envelope_start);
        self.open = None;
        if envelope_start > start + header_size {
            close_plain(self.format, out, start, true);
        } else {
            out.truncate(start);
        }
        if envelope.len() <= PAYLOAD_SIZE_MAX {
            self.open = Some(out.len());
            out.put_bytes(0, header_size);
            out.put_slice(&envelope);
        } else {
            for piece in envelope.chunks(PAYLOAD_SIZE_MAX) {
                let start = out.len();
                out.put_bytes(0, header_size);
                out.put_slice(piece);
                close_plain(self.format, out, start, false);
            }
        }
    }

    fn append_lz4(&mut self, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
        debug_assert!(self.scratch.len() <= PAYLOAD_SIZE_MAX, "an open segment holds no more than a payload may");
        let envelope_start = self.scratch.len();
        write(&mut self.scratch);
        debug_assert!(self.scratch.len() >= envelope_start, "an envelope stands behind what was there before it");
        if self.scratch.len() <= PAYLOAD_SIZE_MAX {
            return;
        }
        let envelope = self.scratch.split_off(envelope_start);
        self.finish(out);
        if envelope.len() <= PAYLOAD_SIZE_MAX {
            self.scratch = envelope;
        } else {
            for piece in envelope.chunks(PAYLOAD_SIZE_MAX) {
                self.put_lz4(out, piece, false);
            }
        }
    }

    fn put_lz4(&mut self, out: &mut BytesMut, payload: &[u8], self_contained: bool) {
        let mut stored = payload;
        let mut uncompressed_size = 0;
        if payload.len() >= COMPRESS_SIZE_MIN {
            let room = lz4::block::compress_bound(payload.len()).expect("payloads are short");
            self.compressed.resize(room, 0);
            let size = lz4::block::compress_to_buffer(payload, LZ4_MODE, false, &mut self.compressed);
            let size = size.expect("room for the worst case");
            if size < payload.len() {
                stored = &self.compressed[..size];
                uncompressed_size = payload.len();
            }
        }
        let (header, header_size) = self.format.header(stored.len(), uncompressed_size, self_contained);
        out.reserve(header_size + stored.len() + super::TRAILER_SIZE);
        out.put_slice(&header[..header_size]);
        out.put_slice(stored);
        out.put_u32_le(crc::crc32(stored));
    }
}

/// Fills in the header that was left open at `start`, and appends the checksum of formats that have
/// one.
fn close_plain(format: SegmentFormat, out: &mut BytesMut, start: usize, self_contained: bool) {
    let payload_start = start + format.header_size();
    let size = out.len() - payload_start;
    let (header, header_size) = format.header(size, 0, self_contained);
    out[start..payload_start].copy_from_slice(&header[..header_size]);
    if format.trailer_size() > 0 {
        let crc = crc::crc32(&out[payload_start..]);
        out.put_u32_le(crc);
    }
}
