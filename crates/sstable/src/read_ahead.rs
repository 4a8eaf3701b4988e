//! Reading a data file from front to back with few system calls: a window of stored bytes, filled
//! by larger reads than a chunk takes.
//!
//! The first chunks of a walk are read one by one; from then on a read fetches twice as much as the
//! one before, up to [`WINDOW_LENGTH_MAX`], and the kernel is told of the window behind it, which
//! it fetches meanwhile. So a walk that ends early has read little in vain. The window belongs to
//! one walk and is never shared: nothing of it goes to the cache.

use std::io;

use env::ReadFile;

/// Most stored bytes that are fetched by one read.
pub const WINDOW_LENGTH_MAX: usize = 256 << 10;
/// Windows begin with so many.
const WINDOW_LENGTH_MIN: usize = 32 << 10;

/// The window of a walk.
#[derive(Debug, Default)]
pub struct ReadAhead {
    stored: Vec<u8>,
    /// Where in the file it starts.
    start: u64,
    /// How much the next one fetches; 0: what is asked for.
    next_length: usize,
}

impl ReadAhead {
    /// The walk goes on elsewhere: what is fetched next is what is asked for.
    pub fn restart(&mut self) {
        self.next_length = 0;
    }

    /// The stored bytes at a place, which the file must have. May wait for the device.
    pub fn bytes(&mut self, file: &dyn ReadFile, offset: u64, length: usize) -> io::Result<&[u8]> {
        if !self.has(offset, length) {
            self.fetch(file, offset, length)?;
        }
        let from = offset.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let found = from.and_then(|from| self.stored.get(from..)?.get(..length));
        found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn has(&self, offset: u64, length: usize) -> bool {
        let end = self.start + self.stored.len() as u64;
        offset >= self.start && offset.checked_add(length as u64).is_some_and(|wanted| wanted <= end)
    }

    fn fetch(&mut self, file: &dyn ReadFile, offset: u64, length: usize) -> io::Result<()> {
        let left = usize::try_from(file.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        if length > left {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let window = self.next_length.max(length).min(left);
        self.next_length = (self.next_length * 2).clamp(WINDOW_LENGTH_MIN, WINDOW_LENGTH_MAX);
        self.stored.resize(window, 0);
        self.start = offset;
        let read = file.read_at(&mut self.stored, offset);
        if read.is_err() {
            self.stored.clear();
            return read;
        }
        if window < left {
            file.advise_wanted(offset + window as u64, self.next_length.min(left - window) as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::Memory;

    #[test]
    fn what_is_read_ahead_is_what_the_file_has() {
        let content: Vec<u8> = (0..1_000_000u32).flat_map(|i| (i / 3).to_le_bytes()).take(1_000_003).collect();
        let file = Memory::new(content.clone());
        let mut ahead = ReadAhead::default();
        for (step, restart) in [(100usize, false), (16 << 10, true), (70_000, false), (300_000, false)] {
            for start in (0..content.len()).step_by(step) {
                let end = (start + step).min(content.len());
                let found = ahead.bytes(&file, start as u64, end - start).unwrap();
                assert!(found == &content[start..end], "{step} at {start}");
                if restart && start % 3 == 0 {
                    ahead.restart();
                }
            }
        }
        assert!(ahead.bytes(&file, 1_000_000, 4).is_err());
        assert!(ahead.bytes(&file, u64::MAX, 4).is_err());
    }
}
