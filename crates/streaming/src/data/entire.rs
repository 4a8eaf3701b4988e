//! An SSTable that comes whole: the bytes of its components, one component behind the other.

use bytes::{Bytes, BytesMut};

use crate::message::content::Manifest;

/// Takes the components apart.
#[derive(Debug)]
pub struct EntireReader {
    /// Lengths of the components, in the manifest's order.
    lengths: Vec<u64>,
    /// Index of the component that is being read.
    index: usize,
    /// Bytes of this component that were given.
    given: u64,
}

impl EntireReader {
    /// A reader of the components of a manifest.
    pub fn new(manifest: &Manifest) -> Self {
        let lengths = manifest.components.iter().map(|(_, length)| *length).collect();
        let mut reader = Self { lengths, index: 0, given: 0 };
        reader.pass_complete();
        reader
    }

    /// Whether all components have been given.
    pub fn is_done(&self) -> bool {
        self.index == self.lengths.len()
    }

    /// Moves behind components whose bytes have all been given.
    fn pass_complete(&mut self) {
        while self.lengths.get(self.index).is_some_and(|length| *length == self.given) {
            (self.index, self.given) = (self.index + 1, 0);
        }
    }

    /// The bytes in `input` that belong to the next component; None: there are none.
    pub fn next(&mut self, input: &mut BytesMut) -> Option<(usize, Bytes)> {
        let left = self.lengths.get(self.index)? - self.given;
        if input.is_empty() {
            return None;
        }
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        let (index, bytes) = (self.index, input.split_to(count).freeze());
        self.given += count as u64;
        self.pass_complete();
        Some((index, bytes))
    }
}
