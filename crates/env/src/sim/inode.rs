//! A simulated file's content: the bytes that a process sees, and the bytes on the platter.
//!
//! `dirty` sectors were written since the last sync: at a power cut each independently survives or
//! not. `lost` sectors were dirty when a sync failed: Linux marks such pages clean, so no later
//! sync writes them, and they never survive (unless written again).

use std::collections::BTreeSet;
use std::ops::Range;

use super::random::SimRandom;

/// Bytes that the device writes as one: after a power cut all of them are new, or none.
const SECTOR: usize = 512;

/// Bytes from which on a file grows into pages that the system has zeroed. Segments of the commit
/// log are made 32 MiB long at once: filling them byte by byte, twice, was half of a ring's start.
const ZEROED_MIN: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
    lost: BTreeSet<usize>,
}

/// The fate of unsynced changes in a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    All,
    Nothing,
    ByChance,
}

impl Loss {
    /// Whether one unsynced change survives.
    pub(super) fn keeps(self, random: &SimRandom) -> bool {
        match self {
            Loss::All => false,
            Loss::Nothing => true,
            Loss::ByChance => random.chance(50),
        }
    }
}

impl Inode {
    pub(super) fn live(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if end > self.live.len() {
            self.set_len(end);
        }
        self.live.get_mut(offset..end).expect("extended above").copy_from_slice(data);
        self.touch(offset..end);
    }

    pub(super) fn set_len(&mut self, length: usize) {
        let old = self.live.len();
        resize(&mut self.live, length);
        // Past the end of what is on the platter a power cut finds zeros anyway.
        self.touch(old.min(length)..old.max(length).min(self.durable.len()));
    }

    fn touch(&mut self, bytes: Range<usize>) {
        if !bytes.is_empty() {
            let sectors = bytes.start / SECTOR..bytes.end.div_ceil(SECTOR);
            self.lost.retain(|sector| !sectors.contains(sector));
            self.dirty.extend(sectors);
        }
    }

    pub(super) fn sync(&mut self) {
        resize(&mut self.durable, self.live.len());
        for sector in std::mem::take(&mut self.dirty) {
            copy_sector(&self.live, &mut self.durable, sector);
        }
    }

    pub(super) fn fail_sync(&mut self) {
        self.lost.append(&mut self.dirty);
    }

    /// Does the work of [`Self::fail_sync`], but the given percentage of the sectors has reached
    /// the platter.
    pub(super) fn fail_sync_in_part(&mut self, kept_percent: u64, random: &SimRandom) {
        for sector in std::mem::take(&mut self.dirty) {
            if random.chance(kept_percent) {
                let end = ((sector + 1) * SECTOR).min(self.live.len());
                if self.durable.len() < end {
                    resize(&mut self.durable, end);
                }
                copy_sector(&self.live, &mut self.durable, sector);
            } else {
                self.lost.insert(sector);
            }
        }
    }

    /// Writes the sector `from` over the sector `to` as well. False: one of them does not exist.
    pub(super) fn misdirect(&mut self, from: usize, to: usize) -> bool {
        let (from, to) = (from * SECTOR..(from + 1) * SECTOR, to * SECTOR..(to + 1) * SECTOR);
        let is_there = from.end.max(to.end) <= self.live.len().min(self.durable.len());
        if is_there {
            for content in [&mut self.live, &mut self.durable] {
                content.copy_within(from.clone(), to.start);
            }
        }
        is_there
    }

    /// Undoes the writes of a sector, although they were synced: it is as in a new file. False:
    /// the file has no such sector.
    pub(super) fn make_stale(&mut self, sector: usize) -> bool {
        let bytes = sector * SECTOR..(sector + 1) * SECTOR;
        let is_there = bytes.end <= self.live.len().min(self.durable.len());
        if is_there {
            for content in [&mut self.live, &mut self.durable] {
                content.get_mut(bytes.clone()).expect("the sector is there").fill(0);
            }
        }
        is_there
    }

    /// Flips one bit, on the platter and in the cache.
    pub(super) fn flip_bit(&mut self, bit: usize) {
        for content in [&mut self.live, &mut self.durable] {
            if let Some(byte) = content.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }

    pub(super) fn power_cut(&mut self, loss: Loss, random: &SimRandom) {
        if self.dirty.is_empty() && self.lost.is_empty() && self.live.len() == self.durable.len() {
            return;
        }
        let length = if loss.keeps(random) { self.live.len() } else { self.durable.len() };
        resize(&mut self.durable, length);
        let longer = length.max(self.live.len());
        resize(&mut self.live, longer);
        for sector in std::mem::take(&mut self.dirty) {
            if loss.keeps(random) {
                copy_sector(&self.live, &mut self.durable, sector);
            }
        }
        self.lost.clear();
        self.live = self.durable.clone();
    }
}

/// Cuts content, or lengthens it by zeros.
fn resize(content: &mut Vec<u8>, length: usize) {
    if length < content.len() + ZEROED_MIN {
        content.resize(length, 0);
        return;
    }
    let mut grown = vec![0; length];
    for (to, from) in grown.chunks_mut(ZEROED_MIN).zip(content.chunks(ZEROED_MIN)) {
        to.split_at_mut(from.len()).0.copy_from_slice(from);
    }
    *content = grown;
}

/// Copies a sector, as many of its bytes as both have.
fn copy_sector(from: &[u8], to: &mut [u8], sector: usize) {
    let start = sector * SECTOR;
    let end = (start + SECTOR).min(from.len()).min(to.len());
    if let (Some(from), Some(to)) = (from.get(start..end), to.get_mut(start..end)) {
        to.copy_from_slice(from);
    }
}
