//! Streaming links of real Cassandra 5.0.8 nodes, read to their last byte and written again.
//!
//! `testdata/links/` holds both sides of whole links of bootstraps, decommissions and repairs in
//! three rings (messaging version 12 with SSTables of version `nb`; 13 with `oa`; 13 in two data
//! centers). `testdata/links.jsonl.gz` has the tables, and each link's messages with the rows of
//! each file as an independent decoder, written from the format's description, reads them.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)] // reads its captures, as any test may

mod lines;
mod links;
mod sessions;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use env::sim::{DATA, Sim};
use links::{Side, sides, tables, text};
use rows::{ReadContext, ReadError, ReadMode};
use schema::TableMetadata;
use sstable::{Component, Descriptor, NoCache, SSTable, SSTableId};
use streaming::data::partitions::{ReceivedPartitions, Source};
use streaming::data::plain::put_block;
use streaming::data::{Part, outgoing};
use streaming::{Content, FileHeader, Incoming, LinkReader, Message};

/// A file that has come, with the bytes of its data.
#[derive(Default)]
struct File {
    header: Option<FileHeader>,
    rows: VecDeque<Bytes>,
    components: Vec<BytesMut>,
}

/// All messages of a link whose bytes come in pieces of `step` bytes, and its files.
fn read(side: &Side, step: usize) -> (Vec<Message>, Vec<File>) {
    let (mut reader, mut input) = (LinkReader::new(), BytesMut::new());
    let (mut messages, mut files, mut file) = (Vec::new(), Vec::new(), File::default());
    for piece in side.bytes.chunks(step) {
        input.extend_from_slice(piece);
        while let Some(incoming) = reader.next(&mut input).unwrap_or_else(|error| panic!("{}: {error}", side.file)) {
            match incoming {
                Incoming::Message(message) => {
                    if let Message::Stream(header) = &message {
                        let count = header.content.entire.as_ref().map_or(0, |entire| entire.components.len());
                        let header = Some((**header).clone());
                        file = File { header, rows: VecDeque::new(), components: vec![BytesMut::new(); count] };
                    }
                    messages.push(message);
                }
                Incoming::Data(Part::Rows { bytes, .. }) => file.rows.push_back(bytes),
                Incoming::Data(Part::Component { index, bytes }) => file.components[index].extend_from_slice(&bytes),
                Incoming::EndOfFile => files.push(std::mem::take(&mut file)),
            }
        }
    }
    assert!(reader.is_between(&input), "{}: {} bytes are left", side.file, input.len());
    (messages, files)
}

struct Pieces(VecDeque<Bytes>);

impl Source for Pieces {
    fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        Ok(self.0.pop_front())
    }
}

/// An SSTable that came whole, on a simulated disk.
fn opened(sim: &Sim, file: &File, table: &Arc<TableMetadata>) -> SSTable {
    let env = sim.env();
    let content = &file.header.as_ref().unwrap().content;
    let descriptor = Descriptor::new(Path::new(DATA), content.version, SSTableId::Sequence(1));
    let names = content.entire.as_ref().unwrap().components.iter();
    for ((name, length), bytes) in names.zip(&file.components) {
        assert_eq!(*length, bytes.len() as u64, "{name}");
        let component = Component::from_name(name).unwrap();
        env.disk.create(&descriptor.path(component)).unwrap().write_all(bytes).unwrap();
    }
    SSTable::open(&env, descriptor, table, Arc::new(NoCache)).unwrap()
}

fn rows_of(file: &File, table: &Arc<TableMetadata>) -> Vec<String> {
    let content = &file.header.as_ref().unwrap().content;
    if content.entire.is_some() {
        let sim = Sim::new(1);
        let sstable = opened(&sim, file, table);
        return lines::of(sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap(), table);
    }
    let header = content.rows.resolve(table).unwrap();
    lines::of(ReceivedPartitions::new(Pieces(file.rows.clone()), Arc::clone(table), header), table)
}

#[test]
fn links_are_read_to_their_last_byte_however_they_arrive() {
    let mut seen = 0;
    for side in sides() {
        let (messages, _) = read(&side, usize::MAX);
        let names: Vec<_> = messages.iter().map(Message::name).collect();
        let told: Vec<_> = side.messages.iter().map(|told| text(&told["kind"])).collect();
        assert_eq!(names, told, "{}", side.file);
        assert_eq!(read(&side, 7).0, messages, "{}", side.file);
        seen += messages.len();
    }
    assert_eq!(seen, 370);
}

/// Every header and message has the bytes that it came with, and ends where the other decoder says.
#[test]
fn messages_are_written_as_they_came() {
    for side in sides() {
        for (message, told) in read(&side, usize::MAX).0.iter().zip(&side.messages) {
            let mut out = Vec::new();
            message.encode(&mut out).unwrap();
            let handshake = if side.file.contains("opener") { 19 } else { 12 };
            let start = told["at"].as_u64().unwrap() as usize - handshake;
            assert_eq!(out, side.bytes[start..start + out.len()], "{} at {start}", side.file);
            if let Some(data) = told.get("data_at") {
                assert_eq!(out.len() + start + handshake, data.as_u64().unwrap() as usize, "{}", side.file);
            }
        }
    }
}

#[test]
fn rows_are_those_that_were_sent() {
    let tables = tables();
    let (mut entire, mut parts, mut rows) = (0, 0, 0);
    for side in sides() {
        let told: Vec<_> = side.messages.iter().filter(|told| told["kind"] == "STREAM").collect();
        let (_, files) = read(&side, 1000);
        assert_eq!(files.len(), told.len());
        for (file, told) in files.iter().zip(told) {
            let header = file.header.as_ref().unwrap();
            let table = &tables[&(side.ring.clone(), header.table)];
            let expected: Vec<_> = told["rows"].as_array().unwrap().iter().map(|line| text(line).to_owned()).collect();
            assert_eq!(rows_of(file, table), expected, "{} {}", side.file, told["at"]);
            rows += expected.len();
            let count = if header.content.entire.is_some() { &mut entire } else { &mut parts };
            *count += 1;
        }
    }
    assert_eq!((entire, parts, rows), (75, 69, 1221));
}

/// An SSTable that came whole gives the header that it came with, but for the list of its chunks,
/// which a header of its sections has.
#[test]
fn headers_are_made_again_from_the_files() {
    let tables = tables();
    let (mut made, mut listed) = (0, 0);
    for side in sides() {
        for file in read(&side, usize::MAX).1 {
            let header = file.header.as_ref().unwrap();
            let Some(manifest) = &header.content.entire else { continue };
            let sim = Sim::new(1);
            let sstable = opened(&sim, &file, &tables[&(side.ring.clone(), header.table)]);
            let sections = header.content.sections.clone();
            assert!(outgoing::are_entire(&sstable, &sections));
            let in_sections = outgoing::content(&sstable, sections.clone(), None, true).unwrap();
            if in_sections.compression.is_some() {
                assert_eq!(in_sections.compression, header.content.compression, "{}", side.file);
                listed += 1;
            }
            let mut content = outgoing::content(&sstable, sections, Some(manifest.clone()), true).unwrap();
            // Cassandra counts the samples of its summary
            content.estimated_keys = header.content.estimated_keys;
            assert_eq!(content, Content { compression: None, ..header.content.clone() }, "{}", side.file);
            made += 1;
        }
    }
    assert_eq!(made, 75);
    assert!(listed > 10, "{listed} of the SSTables are smaller as they are stored");
}

/// Blocks of our own hold what those of Cassandra hold.
#[test]
fn blocks_are_read_again() {
    let mut compared = 0;
    for side in sides() {
        for file in read(&side, usize::MAX).1 {
            let content = &file.header.as_ref().unwrap().content;
            if content.entire.is_some() || content.compression.is_some() {
                continue;
            }
            let rows: Vec<u8> = file.rows.iter().flatten().copied().collect();
            let mut cut = vec![];
            let mut at = 0;
            for section in &content.sections {
                let bytes = &rows[at..at + section.length() as usize];
                bytes.chunks(100).for_each(|block| put_block(&mut cut, block).unwrap());
                at += bytes.len();
            }
            let mut reader = streaming::data::DataReader::new(content).unwrap();
            let (mut input, mut again) = (BytesMut::from(&cut[..]), Vec::new());
            while let Some(Part::Rows { bytes, .. }) = reader.next(&mut input).unwrap() {
                again.extend_from_slice(&bytes);
            }
            assert!(reader.is_done() && input.is_empty());
            assert_eq!(again, rows, "{}", side.file);
            compared += 1;
        }
    }
    assert!(compared > 0, "some files have no compression");
}
