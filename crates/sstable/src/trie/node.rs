//! One trie node in its sixteen forms: reading by checked access, and the choice of form, size and
//! bytes for writing.
//!
//! First byte: form in the high nibble, payload flags in the low one (0 = no payload; forms 1 and 3
//! keep part of the distance there and have none). Agrees with
//! `org.apache.cassandra.io.tries.TrieNode`.

use crate::error::Malformed;

/// How distances are held: bits each.
const POINTER_BITS: [u32; 8] = [4, 8, 12, 16, 24, 32, 40, 64];
/// Form of a node with one child, by pointer class.
const SINGLES: [u8; 8] = [1, 2, 3, 4, 12, 13, 14, 15];
/// Sparse form of a node with several children, by pointer class.
const SPARSES: [u8; 8] = [5, 5, 6, 7, 8, 9, 9, 15];
/// Dense form, by pointer class.
const DENSES: [u8; 8] = [10, 10, 10, 11, 12, 13, 14, 15];
/// Bits of a distance, by form.
const FORM_BITS: [usize; 16] = [0, 4, 8, 12, 16, 8, 12, 16, 24, 40, 12, 16, 24, 32, 40, 64];

const PAYLOAD_ONLY: u8 = 0;
const SINGLE_NOPAYLOAD_4: u8 = 1;
const SINGLE_NOPAYLOAD_12: u8 = 3;

fn is_single(form: u8) -> bool {
    (1..=4).contains(&form)
}

fn is_sparse(form: u8) -> bool {
    (5..=9).contains(&form)
}

/// A node in the page that holds it. Children are given by their positions in the file: they may be
/// in other pages.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    position: u64,
    /// From the node's first byte to the end of the page.
    bytes: &'a [u8],
    form: u8,
    low: u8,
}

impl<'a> Node<'a> {
    /// The node at a position of the file, of which `page` begins at `page_start`.
    #[inline]
    pub fn at(page: &'a [u8], page_start: u64, position: u64) -> Result<Self, Malformed> {
        let start = position.checked_sub(page_start).and_then(|start| usize::try_from(start).ok());
        let bytes = start.and_then(|start| page.get(start..)).unwrap_or_default();
        let Some(first) = bytes.first() else {
            return Err(Malformed::at(position, "a trie node beyond the end of the file"));
        };
        Ok(Self { position, bytes, form: first >> 4, low: first & 0x0f })
    }

    /// Where it is.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Flags of the payload; 0 when there is none.
    #[inline]
    pub fn payload_flags(&self) -> u8 {
        if self.form == SINGLE_NOPAYLOAD_4 || self.form == SINGLE_NOPAYLOAD_12 { 0 } else { self.low }
    }

    /// The bytes from the payload on to the end of the page.
    pub fn payload(&self) -> Result<&'a [u8], Malformed> {
        let start = match self.form {
            PAYLOAD_ONLY => 1,
            form if is_single(form) => 2 + FORM_BITS[usize::from(form)] / 8,
            form if is_sparse(form) => self.sparse_pointers()? + packed_len(self.count()?, form),
            form => 3 + packed_len(self.dense_len()?, form),
        };
        self.bytes.get(start..).ok_or_else(|| self.truncated())
    }

    fn truncated(&self) -> Malformed {
        Malformed::at(self.position, "a trie node that its page ends in")
    }

    #[inline]
    fn byte(&self, index: usize) -> Result<u8, Malformed> {
        self.bytes.get(index).copied().ok_or_else(|| self.truncated())
    }

    fn count(&self) -> Result<usize, Malformed> {
        Ok(usize::from(self.byte(1)?))
    }

    fn sparse_pointers(&self) -> Result<usize, Malformed> {
        Ok(2 + self.count()?)
    }

    fn dense_len(&self) -> Result<usize, Malformed> {
        Ok(usize::from(self.byte(2)?) + 1)
    }

    fn transitions(&self) -> Result<&'a [u8], Malformed> {
        self.bytes.get(2..2 + self.count()?).ok_or_else(|| self.truncated())
    }

    fn single_transition(&self) -> Result<u8, Malformed> {
        self.byte(if self.form == SINGLE_NOPAYLOAD_12 { 2 } else { 1 })
    }

    fn single_distance(&self) -> Result<u64, Malformed> {
        Ok(match self.form {
            SINGLE_NOPAYLOAD_4 => u64::from(self.low),
            SINGLE_NOPAYLOAD_12 => (u64::from(self.low) << 8) | u64::from(self.byte(1)?),
            2 => u64::from(self.byte(2)?),
            _ => (u64::from(self.byte(2)?) << 8) | u64::from(self.byte(3)?),
        })
    }

    /// Distance number `index` of an array that starts at `start`.
    #[inline]
    fn distance(&self, start: usize, index: usize) -> Result<u64, Malformed> {
        let bits = FORM_BITS[usize::from(self.form)];
        if bits == 12 {
            let at = start + index / 2 * 3 + index % 2;
            let (a, b) = (u64::from(self.byte(at)?), u64::from(self.byte(at + 1)?));
            return Ok(if index.is_multiple_of(2) { (a << 4) | (b >> 4) } else { ((a & 0x0f) << 8) | b });
        }
        let width = bits / 8;
        let at = start + index * width;
        let bytes = self.bytes.get(at..at + width).ok_or_else(|| self.truncated())?;
        Ok(bytes.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn target(&self, distance: u64) -> Result<u64, Malformed> {
        match self.position.checked_sub(distance) {
            Some(position) if distance > 0 => Ok(position),
            _ => Err(Malformed::at(self.position, format!("a trie node with a child {distance} bytes before it"))),
        }
    }

    /// The child in slot `index` of a dense node, if there is one.
    fn dense_child(&self, index: usize) -> Result<Option<u64>, Malformed> {
        match self.distance(3, index)? {
            0 => Ok(None),
            distance => self.target(distance).map(Some),
        }
    }

    fn sparse_child(&self, index: usize) -> Result<u64, Malformed> {
        self.target(self.distance(self.sparse_pointers()?, index)?)
    }

    /// The child by a transition byte.
    #[inline]
    pub fn child(&self, byte: u8) -> Result<Option<u64>, Malformed> {
        match self.form {
            PAYLOAD_ONLY => Ok(None),
            form if is_single(form) => {
                if self.single_transition()? != byte {
                    return Ok(None);
                }
                self.target(self.single_distance()?).map(Some)
            }
            form if is_sparse(form) => match self.transitions()?.binary_search(&byte) {
                Ok(index) => self.sparse_child(index).map(Some),
                Err(_) => Ok(None),
            },
            _ => match usize::from(byte).checked_sub(usize::from(self.byte(1)?)) {
                Some(index) if index < self.dense_len()? => self.dense_child(index),
                _ => Ok(None),
            },
        }
    }

    /// The child with the smallest transition of at least `from` (0 to 256).
    pub fn child_from(&self, from: u16) -> Result<Option<(u8, u64)>, Malformed> {
        match self.form {
            PAYLOAD_ONLY => Ok(None),
            form if is_single(form) => {
                let byte = self.single_transition()?;
                if u16::from(byte) < from {
                    return Ok(None);
                }
                Ok(Some((byte, self.target(self.single_distance()?)?)))
            }
            form if is_sparse(form) => {
                let transitions = self.transitions()?;
                let index = transitions.partition_point(|byte| u16::from(*byte) < from);
                match transitions.get(index) {
                    Some(byte) => Ok(Some((*byte, self.sparse_child(index)?))),
                    None => Ok(None),
                }
            }
            _ => {
                let first = usize::from(self.byte(1)?);
                for index in usize::from(from).saturating_sub(first)..self.dense_len()? {
                    if let Some(child) = self.dense_child(index)? {
                        return Ok(Some((self.dense_transition(first + index)?, child)));
                    }
                }
                Ok(None)
            }
        }
    }

    /// The child with the greatest transition below `limit` (0 to 256).
    pub fn child_below(&self, limit: u16) -> Result<Option<(u8, u64)>, Malformed> {
        match self.form {
            PAYLOAD_ONLY => Ok(None),
            form if is_single(form) => {
                let byte = self.single_transition()?;
                if u16::from(byte) >= limit {
                    return Ok(None);
                }
                Ok(Some((byte, self.target(self.single_distance()?)?)))
            }
            form if is_sparse(form) => {
                let transitions = self.transitions()?;
                let index = transitions.partition_point(|byte| u16::from(*byte) < limit);
                match index.checked_sub(1) {
                    Some(index) => Ok(Some((transitions[index], self.sparse_child(index)?))),
                    None => Ok(None),
                }
            }
            _ => {
                let first = usize::from(self.byte(1)?);
                let end = usize::from(limit).saturating_sub(first).min(self.dense_len()?);
                for index in (0..end).rev() {
                    if let Some(child) = self.dense_child(index)? {
                        return Ok(Some((self.dense_transition(first + index)?, child)));
                    }
                }
                Ok(None)
            }
        }
    }

    fn dense_transition(&self, byte: usize) -> Result<u8, Malformed> {
        u8::try_from(byte).map_err(|_| Malformed::at(self.position, "a dense trie node beyond byte 255"))
    }
}

/// Bytes of `count` distances of a form.
fn packed_len(count: usize, form: u8) -> usize {
    (count * FORM_BITS[usize::from(form)]).div_ceil(8)
}

/// The facts that decide the form of a node: its transitions, the greatest distance to a child, and
/// whether it has a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub children: usize,
    pub first: u8,
    pub last: u8,
    pub distance_max: u64,
    pub payload: bool,
}

impl Shape {
    /// The form that a writer uses: the smallest.
    pub fn form(&self) -> u8 {
        if self.children == 0 {
            return PAYLOAD_ONLY;
        }
        let mut class = POINTER_BITS
            .iter()
            .position(|bits| *bits == 64 || self.distance_max < 1 << bits)
            .unwrap_or(POINTER_BITS.len() - 1);
        if self.children == 1 {
            if self.payload && (class == 0 || class == 2) {
                class += 1;
            }
            return SINGLES[class];
        }
        let (sparse, dense) = (SPARSES[class], DENSES[class]);
        if self.size(sparse) < self.size(dense) { sparse } else { dense }
    }

    /// Bytes of the node without its payload.
    pub fn size(&self, form: u8) -> usize {
        match form {
            PAYLOAD_ONLY => 1,
            SINGLE_NOPAYLOAD_4 => 2,
            SINGLE_NOPAYLOAD_12 => 3,
            form if is_single(form) => 2 + FORM_BITS[usize::from(form)] / 8,
            form if is_sparse(form) => 2 + self.children + packed_len(self.children, form),
            form => 3 + packed_len(self.dense_len(), form),
        }
    }

    fn dense_len(&self) -> usize {
        usize::from(self.last - self.first) + 1
    }
}

/// Appends a node without its payload. `children`: transitions, ascending, and distances.
pub(super) fn put_node(out: &mut Vec<u8>, shape: &Shape, payload_flags: u8, children: &[(u8, u64)]) {
    let form = shape.form();
    let head = (form << 4) | payload_flags;
    match form {
        PAYLOAD_ONLY => out.push(head),
        SINGLE_NOPAYLOAD_4 => out.extend([(form << 4) | children[0].1 as u8, children[0].0]),
        SINGLE_NOPAYLOAD_12 => {
            let distance = children[0].1;
            out.extend([(form << 4) | (distance >> 8) as u8, distance as u8, children[0].0]);
        }
        form if is_single(form) => {
            out.extend([head, children[0].0]);
            put_distances(out, form, children.iter().map(|child| child.1));
        }
        form if is_sparse(form) => {
            out.extend([head, children.len() as u8]);
            out.extend(children.iter().map(|child| child.0));
            put_distances(out, form, children.iter().map(|child| child.1));
        }
        form => {
            out.extend([head, shape.first, shape.last - shape.first]);
            let mut rest = children.iter().peekable();
            let slots =
                (shape.first..=shape.last).map(|byte| rest.next_if(|child| child.0 == byte).map_or(0, |child| child.1));
            put_distances(out, form, slots);
        }
    }
}

fn put_distances(out: &mut Vec<u8>, form: u8, distances: impl Iterator<Item = u64>) {
    let bits = FORM_BITS[usize::from(form)];
    if bits == 12 {
        let mut half: Option<u8> = None;
        for distance in distances {
            match half.take() {
                None => {
                    out.push((distance >> 4) as u8);
                    half = Some((distance as u8) << 4);
                }
                Some(left) => out.extend([left | (distance >> 8) as u8, distance as u8]),
            }
        }
        out.extend(half);
        return;
    }
    for distance in distances {
        out.extend_from_slice(&distance.to_be_bytes()[8 - bits / 8..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_back() {
        for class in 0..8u32 {
            for count in [1usize, 2, 3, 7, 16, 100, 256] {
                for step in [1usize, 2, 9] {
                    if (count - 1) * step > 255 {
                        continue;
                    }
                    check_form(class, count, step);
                }
            }
        }
    }

    fn check_form(class: u32, count: usize, step: usize) {
        // the file is imaginary below the node: positions are checked, not contents
        let distance_max: u64 = match class {
            0 => 15,
            1 => 255,
            2 => 4095,
            3 => 65535,
            _ => 70_000,
        };
        let children: Vec<(u8, u64)> =
            (0..count).map(|index| ((index * step) as u8, distance_max - index as u64 % distance_max)).collect();
        for payload in [false, true] {
            let shape =
                Shape { children: count, first: children[0].0, last: children[count - 1].0, distance_max, payload };
            let mut file = vec![0u8; 70_000];
            put_node(&mut file, &shape, if payload { 9 } else { 0 }, &children);
            assert_eq!(file.len() - 70_000, shape.size(shape.form()));
            file.push(0xAB);
            let node = Node::at(&file, 0, 70_000).unwrap();
            assert_eq!(node.payload_flags(), if payload { 9 } else { 0 });
            if payload {
                assert_eq!(node.payload().unwrap(), [0xAB]);
            }
            for (byte, distance) in &children {
                assert_eq!(node.child(*byte).unwrap().unwrap(), 70_000 - distance);
            }
            let mut walked = Vec::new();
            let mut from = 0;
            while let Some((byte, _)) = node.child_from(from).unwrap() {
                walked.push(byte);
                from = u16::from(byte) + 1;
            }
            assert!(walked.iter().eq(children.iter().map(|child| &child.0)));
            let mut limit = 256;
            while let Some((byte, _)) = node.child_below(limit).unwrap() {
                assert_eq!(walked.pop(), Some(byte));
                limit = u16::from(byte);
            }
            assert!(walked.is_empty());
        }
    }

    #[test]
    fn wide_pointers_read_back() {
        for form in [8u8, 9, 12, 13, 14, 15] {
            let mut file = vec![0u8; 300];
            let distances = [200u64, 100];
            if is_sparse(form) {
                file.extend([form << 4, 2, 3, 4]);
            } else {
                file.extend([form << 4, 3, 1]);
            }
            put_distances(&mut file, form, distances.into_iter());
            let node = Node::at(&file, 0, 300).unwrap();
            assert_eq!(node.child(3).unwrap().unwrap(), 100);
            assert_eq!(node.child(4).unwrap().unwrap(), 200);
            assert!(node.child(5).unwrap().is_none());
        }
    }

    #[test]
    fn rubbish_is_refused() {
        for seed in 0..20_000u64 {
            let bytes: Vec<u8> = (0..40u64)
                .map(|index| ((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (index % 57)) as u8)
                .collect();
            for position in [0, 20, 39, 40, u64::MAX] {
                let Ok(node) = Node::at(&bytes, 0, position) else { continue };
                let _ = (node.child(7), node.child_from(0), node.child_below(256), node.payload());
            }
        }
    }
}
