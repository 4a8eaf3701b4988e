//! The uncompressed data, chunk by chunk, where a chunk may be damaged.

use bytes::Bytes;
use rows::codec::CodecError;
use rows::{ReadError, ReadMode};

use crate::chunk_reader::DataFile;

/// Nothing that is decoded at once is longer: a length beyond is damage.
const LENGTH_MAX: u64 = 1 << 30;

/// Bytes that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Nothing before this offset can be read.
    pub to: u64,
    /// The defect.
    pub what: String,
}

/// Some chunks, joined.
#[derive(Debug, Default)]
pub struct Window {
    bytes: Bytes,
    start: u64,
}

impl Window {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The bytes from `position` to the end of the window, which is moved to have it.
    pub fn at(&mut self, data: &DataFile, position: u64) -> Result<Bytes, Damage> {
        if position < self.start || position >= self.end() {
            self.bytes = read(data, position)?;
            self.start = position / data.chunk_length() as u64 * data.chunk_length() as u64;
            if position >= self.end() {
                return Err(Damage { to: data.length(), what: "the data ends".to_owned() });
            }
        }
        Ok(self.bytes.slice((position - self.start) as usize..))
    }

    /// Adds chunks behind, about as many as there are; drops what is before `position`.
    pub fn extend(&mut self, data: &DataFile, position: u64) -> Result<(), Damage> {
        let end = self.end();
        let kept = self.bytes.slice((position.clamp(self.start, end) - self.start) as usize..);
        if end >= data.length() {
            return Err(Damage { to: data.length(), what: "the data ends in the middle of a partition".to_owned() });
        }
        if kept.len() as u64 > LENGTH_MAX {
            return Err(Damage { to: position + 1, what: format!("a length beyond {LENGTH_MAX}") });
        }
        let chunks = (kept.len() / data.chunk_length()).max(1) as u64;
        let mut joined = Vec::from(&kept[..]);
        for index in 0..chunks {
            let at = end + index * data.chunk_length() as u64;
            if at >= data.length() {
                break;
            }
            match read(data, at) {
                Ok(chunk) => joined.extend_from_slice(&chunk),
                Err(damage) if index == 0 => return Err(damage),
                // what is before may do
                Err(_) => break,
            }
        }
        (self.start, self.bytes) = (end - kept.len() as u64, joined.into());
        Ok(())
    }

    /// Decodes what stands at `position`; gives it and the position behind it.
    pub fn decode<T>(
        &mut self,
        data: &DataFile,
        position: u64,
        mut decode: impl FnMut(&Bytes, usize) -> Result<(T, usize), CodecError>,
    ) -> Result<(T, u64), Damage> {
        self.at(data, position)?;
        loop {
            match decode(&self.bytes, (position - self.start) as usize) {
                Ok((value, next)) => return Ok((value, self.start + next as u64)),
                Err(CodecError::Truncated) => self.extend(data, position)?,
                Err(CodecError::Invalid(what) | CodecError::UnknownColumn(what)) => {
                    return Err(Damage { to: position + 1, what });
                }
            }
        }
    }
}

/// The chunk that holds a position.
fn read(data: &DataFile, position: u64) -> Result<Bytes, Damage> {
    let index = position / data.chunk_length() as u64;
    data.read_chunk(index, ReadMode::Background).map_err(|error| {
        let to = ((index + 1) * data.chunk_length() as u64).min(data.length());
        let what = match error {
            ReadError::Corrupt(corruption) => format!("chunk {index} at {}: {}", corruption.offset, corruption.what),
            other => format!("chunk {index}: {other}"),
        };
        Damage { to: to.max(position + 1), what }
    })
}
