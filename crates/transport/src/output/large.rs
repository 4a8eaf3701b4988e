//! Responses that are so large that they are copied into the out buffer piece by piece, as the
//! client takes them.
//!
//! No other message may come between the pieces of a response: answers that are given meanwhile
//! wait behind it. What must hold: `bytes` is the sum of everything that waits here.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use segments::{PAYLOAD_SIZE_MAX, SegmentEncoder};

/// A large response.
#[derive(Debug)]
struct Large {
    /// The first piece: everything before the rest, and as much of the rest as fits into the same
    /// segment.
    head: Bytes,
    rest: Bytes,
    /// Whole messages that wait for the end of this response.
    behind: Vec<BytesMut>,
}

/// Large responses that are not in the out buffer yet, in their order.
#[derive(Debug, Default)]
pub(super) struct LargeResponses {
    queue: VecDeque<Large>,
    bytes: usize,
}

impl LargeResponses {
    /// Whether there are no large responses.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes of all responses and messages that wait here.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a response in two parts.
    pub fn push(&mut self, mut head: BytesMut, mut rest: Bytes) {
        self.bytes += head.len() + rest.len();
        let room = PAYLOAD_SIZE_MAX.saturating_sub(head.len()).min(rest.len());
        head.extend_from_slice(&rest.split_to(room));
        self.queue.push_back(Large { head: head.freeze(), rest, behind: Vec::new() });
    }

    /// Adds a response in one part.
    pub fn push_whole(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.queue.push_back(Large { head: message, rest: Bytes::new(), behind: Vec::new() });
    }

    /// Puts a message behind the responses.
    pub fn push_behind(&mut self, message: BytesMut) {
        if let Some(last) = self.queue.back_mut() {
            self.bytes += message.len();
            last.behind.push(message);
        }
    }

    /// Moves pieces to the end of `out` until that has `size` bytes, or nothing is left.
    pub fn fill(&mut self, out: &mut BytesMut, segments: &mut Option<SegmentEncoder>, size: usize) {
        while out.len() < size
            && let Some(first) = self.queue.front_mut()
        {
            let from = if first.head.is_empty() { &mut first.rest } else { &mut first.head };
            let piece = from.split_to(from.len().min(PAYLOAD_SIZE_MAX).min(size));
            self.bytes -= piece.len();
            match segments {
                Some(segments) => segments.append_part(out, &piece),
                None => out.extend_from_slice(&piece),
            }
            if first.head.has_remaining() || first.rest.has_remaining() {
                continue;
            }
            let behind = self.queue.pop_front().map(|first| first.behind).unwrap_or_default();
            for message in behind {
                self.bytes -= message.len();
                match segments {
                    Some(segments) => segments.append(out, |out| out.extend_from_slice(&message)),
                    None => out.extend_from_slice(&message),
                }
            }
        }
        assert!(self.bytes == 0 || !self.queue.is_empty(), "without large responses no bytes wait");
        let size = |large: &Large| {
            let behind: usize = large.behind.iter().map(BytesMut::len).sum();
            large.head.len() + large.rest.len() + behind
        };
        debug_assert_eq!(self.bytes, self.queue.iter().map(size).sum::<usize>(), "the bytes are those that wait");
    }
}

#[cfg(test)]
mod tests {
    use segments::SegmentFormat;

    use crate::limits::OUT_LARGE;

    use super::*;

    /// An envelope with so many bytes of rows, whole and taken apart.
    fn envelope(number: u8, rows: usize) -> (BytesMut, BytesMut, Bytes) {
        let (head, rows) = (BytesMut::from(&[number; 40][..]), Bytes::from(vec![number ^ 0x55; rows]));
        let mut whole = head.clone();
        whole.extend_from_slice(&rows);
        (whole, head, rows)
    }

    #[test]
    fn pieces_make_the_same_bytes_as_all_at_once() {
        for format in [None, Some(SegmentFormat::Plain), Some(SegmentFormat::Lz4)] {
            let (mut at_once, mut whole_out) = (format.map(SegmentEncoder::new), BytesMut::new());
            let (mut in_pieces, mut out) = (format.map(SegmentEncoder::new), BytesMut::new());
            let mut large = LargeResponses::default();
            let mut taken = BytesMut::new();
            for (number, rows) in [(1, 300 << 10), (2, 10), (3, 1 << 20), (4, 77), (5, 5)] {
                let (whole, head, rows) = envelope(number, rows);
                match &mut at_once {
                    Some(segments) => segments.append(&mut whole_out, |out| out.extend_from_slice(&whole)),
                    None => whole_out.extend_from_slice(&whole),
                }
                match rows.len() > OUT_LARGE {
                    true => large.push(head, rows),
                    false => large.push_behind(whole),
                }
            }
            while !large.is_empty() {
                large.fill(&mut out, &mut in_pieces, 200 << 10);
                assert!(out.len() < (200 << 10) + 2 * (PAYLOAD_SIZE_MAX + 100));
                if large.is_empty()
                    && let Some(segments) = &mut in_pieces
                {
                    segments.finish(&mut out);
                }
                taken.extend_from_slice(&out.split());
            }
            if let Some(segments) = &mut at_once {
                segments.finish(&mut whole_out);
            }
            assert_eq!(large.bytes(), 0);
            assert_eq!(taken, whole_out, "{format:?}");
        }
    }
}
