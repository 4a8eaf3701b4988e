//! The buffer into which segments are read, one after the other.
//!
//! The file of a segment has its full length from the begin and is mostly zeros, for which no
//! memory is touched. Memory that was touched is read over and not cleared: getting pages from the
//! kernel costs more than reading a segment into pages that are there.

use std::io;

use bytes::{Bytes, BytesMut};
use env::ReadFile;

use super::format;

/// Bytes of the longest file of a segment: offsets are positive 32-bit integers.
pub(super) const FILE_LEN_MAX: u64 = i32::MAX as u64;

/// Bytes of a segment that are read at a time.
const READ_BLOCK: usize = 64 << 10;

/// The buffer: see the head of this file.
#[derive(Default)]
pub(super) struct SegmentBuffer {
    content: BytesMut,
    /// Number of bytes that may differ from zero; all bytes behind them are zeros.
    touched: usize,
}

impl SegmentBuffer {
    /// The bytes of a segment's file.
    pub(super) fn read(&mut self, file: &dyn ReadFile) -> io::Result<Bytes> {
        let length = usize::try_from(file.len().min(FILE_LEN_MAX + 1)).unwrap_or(usize::MAX);
        if length as u64 > FILE_LEN_MAX {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let mut content = std::mem::take(&mut self.content);
        if content.len() != length {
            content = BytesMut::zeroed(length);
            self.touched = 0;
        }
        let mut scratch = Vec::new();
        for (index, target) in content.chunks_mut(READ_BLOCK).enumerate() {
            let at = index * READ_BLOCK;
            if at < self.touched {
                file.read_at(target, at as u64)?;
                continue;
            }
            scratch.resize(target.len(), 0);
            file.read_at(&mut scratch, at as u64)?;
            if format::zeros(&scratch) < scratch.len() {
                target.copy_from_slice(&scratch);
                self.touched = at + target.len();
            }
        }
        Ok(content.freeze())
    }

    /// Takes back the content of a segment that is not read any more, unless it is still held
    /// elsewhere. Other bytes than those of the last file are not taken, because they may be
    /// longer than `touched`.
    pub(super) fn take_back(&mut self, content: Bytes) {
        if self.content.is_empty() {
            self.content = content.try_into_mut().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use env::sim::{DATA, Sim};

    use super::*;

    #[test]
    fn a_file_read_over_another_is_as_if_read_alone() {
        let sim = Sim::new(1);
        let disk = sim.env().disk;
        let length = 5 * READ_BLOCK + 100;
        let files: Vec<Vec<u8>> = [(0, 0), (0, length), (2 * READ_BLOCK, 3 * READ_BLOCK), (1, 2), (length - 1, length)]
            .into_iter()
            .zip(1..)
            .map(|((from, to), byte)| (0..length).map(|at| if at >= from && at < to { byte } else { 0 }).collect())
            .collect();
        let mut buffer = SegmentBuffer::default();
        let order = [0, 1, 0, 2, 3, 1, 4, 3, 2, 0];
        for (step, which) in order.into_iter().enumerate() {
            let path = Path::new(DATA).join(which.to_string());
            let mut file = disk.create(&path).expect("created");
            file.write_all(&files[which]).expect("written");
            let content = buffer.read(&*disk.open_read(&path).expect("opened")).expect("read");
            assert!(content == files[which], "step {step}");
            // now and then somebody keeps it
            let kept = (step % 3 == 0).then(|| content.clone());
            buffer.take_back(content);
            assert!(kept.is_none_or(|kept| kept == files[which]));
        }
    }
}
