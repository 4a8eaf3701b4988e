//! Searches in a written trie: by key, by floor, and walking in order both ways.
//!
//! Keys order as byte strings, a prefix before what extends it. Every position comes from bytes
//! that are not trusted; since pointers only go backwards a walk always ends.

use bytes::Bytes;

use super::{Node, PAGE_SIZE};
use crate::error::{IndexError, Malformed};
use crate::index_file::{Access, IndexFile, Pages};

/// The node at a position of the file.
#[inline]
fn node_at(pages: &mut Pages, position: u64) -> Result<Node<'_>, IndexError> {
    let number = position / PAGE_SIZE as u64;
    Ok(Node::at(pages.page(number)?, number * PAGE_SIZE as u64, position)?)
}

/// A trie in a file.
#[derive(Clone, Debug)]
pub struct Trie {
    file: IndexFile,
    root: u64,
    /// The page of the root with its number, where it stays at hand: every search begins there.
    root_page: Option<(u64, Bytes)>,
}

impl Trie {
    /// With its root at a position of the file.
    pub fn new(file: IndexFile, root: u64) -> Self {
        Self { file, root, root_page: None }
    }

    /// Has the page of the root at hand from now on.
    pub fn with_root_page(mut self, access: Access) -> Result<Self, IndexError> {
        let number = self.root / PAGE_SIZE as u64;
        // a copy: the page may be a part of something larger
        self.root_page = Some((number, Bytes::copy_from_slice(&self.file.page(number, access)?)));
        Ok(self)
    }

    /// Gives `read` the deepest node with a payload on the path of `key`, and returns its result:
    /// for tries of unique prefixes the only candidate for it.
    ///
    /// The way goes down only, so one page is held beside that of the root, and neither is shared
    /// with other threads more than it must be: no count of references is touched but those of
    /// pages that come from the cache.
    #[inline]
    pub fn longest_prefix<T>(
        &self,
        key: &[u8],
        access: Access,
        read: impl Fn(&Node<'_>) -> Result<T, Malformed>,
    ) -> Result<Option<T>, IndexError> {
        let mut held: Option<(u64, Bytes)> = None;
        let (mut position, mut found, mut rest) = (self.root, None, key.iter());
        loop {
            let number = position / PAGE_SIZE as u64;
            let has = |slot: &&(u64, Bytes)| slot.0 == number;
            let page = match self.root_page.as_ref().filter(has) {
                Some((_, page)) => page,
                None => {
                    if held.as_ref().filter(has).is_none() {
                        held = Some((number, self.file.page(number, access)?));
                    }
                    &held.as_ref().expect("it has just been filled").1
                }
            };
            let node = Node::at(page, number * PAGE_SIZE as u64, position)?;
            if node.payload_flags() != 0 {
                found = Some(read(&node)?);
            }
            let Some(byte) = rest.next() else { break };
            let Some(child) = node.child(*byte)? else { break };
            position = child;
        }
        Ok(found)
    }

    /// A cursor before the first entry.
    pub fn cursor(&self, access: Access) -> TrieCursor {
        TrieCursor { pages: Pages::new(self.file.clone(), access), root: self.root, path: Vec::new() }
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    position: u64,
    /// The byte by which the parent led here.
    via: u8,
}

/// A place in the order of a trie's entries.
#[derive(Clone, Debug)]
pub struct TrieCursor {
    pages: Pages,
    root: u64,
    /// From the root to the current entry; empty: at no entry.
    path: Vec<Step>,
}

impl TrieCursor {
    /// The node of the current entry.
    pub fn node(&mut self) -> Result<Option<Node<'_>>, IndexError> {
        match self.path.last() {
            Some(step) => node_at(&mut self.pages, step.position).map(Some),
            None => Ok(None),
        }
    }

    /// Where the node of the current entry is; 0 at no entry.
    pub fn position(&self) -> u64 {
        self.path.last().map_or(0, |step| step.position)
    }

    fn push(&mut self, (via, node): (u8, u64)) {
        self.path.push(Step { position: node, via });
    }

    /// From here on pages are waited for.
    pub fn wait(&mut self) {
        self.pages.wait();
    }

    fn start(&mut self) {
        self.path.clear();
        self.path.push(Step { position: self.root, via: 0 });
    }

    /// Goes to the first entry.
    pub fn first(&mut self) -> Result<bool, IndexError> {
        self.start();
        self.descend_to_first()
    }

    /// Goes to the last entry.
    pub fn last(&mut self) -> Result<bool, IndexError> {
        self.start();
        self.descend_to_last()
    }

    /// From the node at the end of the path down to the first entry at or below it.
    fn descend_to_first(&mut self) -> Result<bool, IndexError> {
        while let Some(step) = self.path.last() {
            let node = node_at(&mut self.pages, step.position)?;
            if node.payload_flags() != 0 {
                return Ok(true);
            }
            match node.child_from(0)? {
                Some(child) => self.push(child),
                None => return Err(Malformed::at(step.position, "a trie branch without an entry").into()),
            }
        }
        Ok(false)
    }

    fn descend_to_last(&mut self) -> Result<bool, IndexError> {
        while let Some(step) = self.path.last() {
            let node = node_at(&mut self.pages, step.position)?;
            match node.child_below(256)? {
                Some(child) => self.push(child),
                None if node.payload_flags() != 0 => return Ok(true),
                None => return Err(Malformed::at(step.position, "a trie branch without an entry").into()),
            }
        }
        Ok(false)
    }

    /// Goes to the next entry; false: there is none, and the cursor is at no entry.
    pub fn next(&mut self) -> Result<bool, IndexError> {
        let Some(step) = self.path.last() else { return Ok(false) };
        let mut from = 0;
        let mut position = step.position;
        loop {
            let child = node_at(&mut self.pages, position)?.child_from(from)?;
            if let Some(child) = child {
                self.push(child);
                return self.descend_to_first();
            }
            let Some(done) = self.path.pop() else { return Ok(false) };
            from = u16::from(done.via) + 1;
            let Some(parent) = self.path.last() else { return Ok(false) };
            position = parent.position;
        }
    }

    /// Goes to the entry before; false: there is none, and the cursor is at no entry.
    pub fn previous(&mut self) -> Result<bool, IndexError> {
        while let Some(done) = self.path.pop() {
            let Some(parent) = self.path.last() else { return Ok(false) };
            let node = node_at(&mut self.pages, parent.position)?;
            let child = node.child_below(u16::from(done.via))?;
            if let Some(child) = child {
                self.push(child);
                return self.descend_to_last();
            }
            if node.payload_flags() != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes to the greatest entry that is not greater than `key`; false: there is none, and the
    /// cursor is at no entry.
    pub fn floor(&mut self, key: &[u8]) -> Result<bool, IndexError> {
        self.start();
        // the best so far: how much of the path leads to it, and the lesser child to go on with
        let mut best: Option<(usize, Option<(u8, u64)>)> = None;
        let mut position = self.root;
        let mut rest = key.iter();
        loop {
            let node = node_at(&mut self.pages, position)?;
            if node.payload_flags() != 0 {
                best = Some((self.path.len(), None));
            }
            let Some(byte) = rest.next() else { break };
            if let Some((via, lesser)) = node.child_below(u16::from(*byte))? {
                best = Some((self.path.len(), Some((via, lesser))));
            }
            let Some(child) = node.child(*byte)? else { break };
            position = child;
            self.path.push(Step { position, via: *byte });
        }
        match best {
            None => {
                self.path.clear();
                Ok(false)
            }
            Some((depth, None)) => {
                self.path.truncate(depth);
                Ok(true)
            }
            Some((depth, Some(child))) => {
                self.path.truncate(depth);
                self.push(child);
                self.descend_to_last()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::trie::{PagedBuffer, Payload, TrieWriter};

    fn build(entries: &BTreeMap<Vec<u8>, u32>) -> Trie {
        let mut out = PagedBuffer::default();
        let mut file = vec![0; 100];
        out.bytes = std::mem::take(&mut file);
        let mut writer = TrieWriter::default();
        for (key, value) in entries {
            let payload = Payload { flags: 4, bytes: value.to_be_bytes().as_slice().into() };
            writer.add(key, payload, &mut out);
            file.extend(out.take());
        }
        let root = writer.finish(&mut out);
        file.extend(out.take());
        Trie::new(file.into(), root)
    }

    fn value(node: Option<Node<'_>>) -> Option<u32> {
        node.map(|node| u32::from_be_bytes(*node.payload().unwrap().first_chunk().unwrap()))
    }

    /// Random keys of a small alphabet, so that prefixes and long runs occur.
    fn keys(seed: u64, count: usize, length_max: u64, alphabet: u64) -> BTreeMap<Vec<u8>, u32> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = move |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % limit
        };
        (0..count)
            .map(|index| {
                let length = 1 + random(length_max);
                ((0..length).map(|_| (random(alphabet) * 255 / alphabet) as u8).collect(), index as u32)
            })
            .collect()
    }

    #[test]
    fn walks_and_searches_equal_a_map() {
        for (seed, count, length, alphabet) in
            [(1, 1, 4, 4), (2, 10, 3, 2), (3, 300, 6, 3), (4, 3000, 8, 16), (5, 20_000, 4, 256), (6, 200, 300, 2)]
        {
            let entries = keys(seed, count, length, alphabet);
            let trie = build(&entries);
            let mut cursor = trie.cursor(Access::WAITING);
            let mut walked = Vec::new();
            let mut there = cursor.first().unwrap();
            while there {
                walked.push(value(cursor.node().unwrap()).unwrap());
                there = cursor.next().unwrap();
            }
            assert!(walked.iter().eq(entries.values()));
            let mut there = cursor.last().unwrap();
            while there {
                assert_eq!(value(cursor.node().unwrap()), walked.pop());
                there = cursor.previous().unwrap();
            }
            assert!(walked.is_empty());
            for wanted in keys(seed + 100, 1000, length, alphabet).keys().chain(entries.keys()) {
                let floor = entries.range::<Vec<u8>, _>(..=wanted).next_back();
                cursor.floor(wanted).unwrap();
                assert_eq!(value(cursor.node().unwrap()), floor.map(|(_, value)| *value));
                let expected = (0..=wanted.len()).rev().find_map(|end| entries.get(&wanted[..end]));
                assert_eq!(
                    trie.longest_prefix(wanted, Access::WAITING, |node| Ok(value(Some(*node)))).unwrap().flatten(),
                    expected.copied()
                );
            }
        }
    }

    #[test]
    fn deep_keys_do_not_exhaust_the_stack() {
        let mut entries = BTreeMap::new();
        for index in 0..20u8 {
            let mut key = vec![7u8; 70_000];
            key[65_000] = index;
            key[300] = 7 + index / 5;
            entries.insert(key, u32::from(index));
        }
        let trie = build(&entries);
        let mut cursor = trie.cursor(Access::WAITING);
        for (key, expected) in &entries {
            assert!(cursor.floor(key).unwrap());
            assert_eq!(value(cursor.node().unwrap()), Some(*expected));
        }
    }

    #[test]
    fn no_node_crosses_a_page() {
        let trie = build(&keys(9, 30_000, 12, 40));
        let mut cursor = trie.cursor(Access::WAITING);
        let mut there = cursor.first().unwrap();
        let mut pages = Pages::new(trie.file.clone(), Access::WAITING);
        while there {
            for step in &cursor.path {
                // the bytes of a node end with its page: what crosses it cannot be read
                let node = node_at(&mut pages, step.position).unwrap();
                let payload = if node.payload_flags() != 0 { 4 } else { 0 };
                assert!(node.payload().unwrap().len() >= payload);
            }
            there = cursor.next().unwrap();
        }
    }
}
