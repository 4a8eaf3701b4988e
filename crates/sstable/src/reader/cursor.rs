//! A place in the logical stream of Data.db, across chunks.
//!
//! What is decoded lies in a window: usually one chunk of the cache, shared, not copied. Where
//! something crosses the end of the window, what is left of it is joined with as many bytes of the
//! next chunk, and again if that is too little; behind it, the next chunk itself is the window. A
//! pin keeps the window from moving past a place, so that offsets behind it stay valid.

use bytes::Bytes;
use rows::codec::CodecError;
use rows::{ReadContext, ReadError};

use super::walk::Walk;
use crate::chunk_reader::DataFile;

/// Most bytes of a row, or of a block that is read backwards, with what surrounds it; more is a
/// damaged length. Java could not hold it either.
const WINDOW_LENGTH_MAX: u64 = 1 << 31;

/// Fewest bytes that are joined to a window that is too short: most rows need no more.
const JOINED_MIN: usize = 1 << 10;

/// A position with what surrounds it.
pub(super) struct DataCursor {
    context: ReadContext,
    walk: Walk,
    window: Bytes,
    window_start: u64,
    /// The chunk, by number, of which the window has a part.
    ahead: Option<(u64, Bytes)>,
    position: u64,
    pin: Option<u64>,
}

impl DataCursor {
    pub fn new(context: ReadContext, walk: Walk) -> Self {
        Self { context, walk, window: Bytes::new(), window_start: 0, ahead: None, position: 0, pin: None }
    }

    pub fn context(&self) -> &ReadContext {
        &self.context
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether the bytes at the position are in memory.
    pub fn is_in_window(&self) -> bool {
        self.position >= self.window_start && self.position - self.window_start < self.window.len() as u64
    }

    /// Goes elsewhere; the window stays where it is until something is decoded.
    #[inline]
    pub fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Goes to `position` and keeps everything from there on in the window, until unpinned.
    pub fn pin(&mut self, position: u64) {
        self.position = position;
        self.pin = Some(position);
    }

    /// Lets the window move again.
    pub fn unpin(&mut self) {
        self.pin = None;
    }

    fn chunk(&mut self, data: &DataFile, index: u64) -> Result<Bytes, ReadError> {
        match self.ahead.take_if(|(ahead, _)| *ahead == index) {
            Some((_, chunk)) => Ok(chunk),
            None => self.walk.chunk(data, index, &self.context),
        }
    }

    /// Offset of the position in the window, which is moved or extended to have it.
    #[inline]
    fn offset(&mut self, data: &DataFile) -> Result<usize, ReadError> {
        let base = self.pin.unwrap_or(self.position);
        if base < self.window_start || base >= self.window_start + self.window.len() as u64 {
            self.load(data, base)?;
        }
        while self.position >= self.window_start + self.window.len() as u64 {
            self.extend(data)?;
        }
        Ok((self.position - self.window_start) as usize)
    }

    fn load(&mut self, data: &DataFile, position: u64) -> Result<(), ReadError> {
        if position >= data.length() {
            return Err(data.corruption(position, "a position behind the end of the data").into());
        }
        let index = position / data.chunk_length() as u64;
        let window = self.chunk(data, index)?;
        self.window_start = index * data.chunk_length() as u64;
        self.window = window;
        Ok(())
    }

    /// Joins what is still needed of the window with as many bytes as it has already, at least
    /// [`JOINED_MIN`].
    fn extend(&mut self, data: &DataFile) -> Result<(), ReadError> {
        let keep_from = self.pin.unwrap_or(self.position).max(self.window_start);
        let end = self.window_start + self.window.len() as u64;
        if end >= data.length() {
            return Err(data.corruption(self.position, "the data ends in the middle of a partition").into());
        }
        if self.window.len() as u64 > WINDOW_LENGTH_MAX {
            let what = format!("something longer than {WINDOW_LENGTH_MAX} bytes");
            return Err(data.corruption(self.position, what).into());
        }
        let kept = self.window.slice((keep_from.min(end) - self.window_start) as usize..);
        let wanted = kept.len().max(JOINED_MIN);
        let mut joined = Vec::with_capacity(kept.len() + wanted);
        joined.extend_from_slice(&kept);
        let mut at = end;
        while joined.len() < kept.len() + wanted && at < data.length() {
            let index = at / data.chunk_length() as u64;
            let chunk = self.chunk(data, index)?;
            let from = (at % data.chunk_length() as u64) as usize;
            let to = chunk.len().min(from + kept.len() + wanted - joined.len());
            let Some(part) = chunk.get(from..to).filter(|part| !part.is_empty()) else {
                return Err(data.corruption(at, "a chunk that ends too early").into());
            };
            joined.extend_from_slice(part);
            at += part.len() as u64;
            self.ahead = (to < chunk.len()).then_some((index, chunk));
        }
        self.window_start = end - kept.len() as u64;
        self.window = joined.into();
        Ok(())
    }

    /// Decodes what stands at the position and moves behind it. `decode` may run again on more
    /// bytes.
    #[inline]
    pub fn decode<T>(
        &mut self,
        data: &DataFile,
        mut decode: impl FnMut(&Bytes, usize) -> Result<(T, usize), CodecError>,
    ) -> Result<T, ReadError> {
        loop {
            let offset = self.offset(data)?;
            match decode(&self.window, offset) {
                Ok((value, next)) => match self.window_start.checked_add(next as u64) {
                    Some(position) => {
                        self.position = position;
                        return Ok(value);
                    }
                    None => return Err(data.corruption(self.position, format!("a size of {next} bytes")).into()),
                },
                Err(CodecError::Truncated) => self.extend(data)?,
                Err(CodecError::Invalid(what) | CodecError::UnknownColumn(what)) => {
                    return Err(data.corruption(self.position, what).into());
                }
            }
        }
    }
}
