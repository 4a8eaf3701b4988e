//! Streaming links: messages, the data of files, and the partitions in it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use rows::{PartitionStream, ReadError};
use streaming::data::Part;
use streaming::data::partitions::{ReceivedPartitions, Source};
use streaming::{FileHeader, Incoming, LinkReader, Message};

struct Pieces(VecDeque<Bytes>);

impl Source for Pieces {
    fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        Ok(self.0.pop_front())
    }
}

/// A streaming link behind its handshake. Messages that are read are written and read again; the
/// rows of files are decoded.
pub fn link(data: &[u8]) {
    let (mut reader, mut input) = (LinkReader::new(), BytesMut::from(data));
    let (mut file, mut pieces): (Option<Box<FileHeader>>, VecDeque<Bytes>) = (None, VecDeque::new());
    while let Ok(Some(incoming)) = reader.next(&mut input) {
        match incoming {
            Incoming::Message(message) => {
                assert_same(&message);
                if let Message::Stream(header) = message {
                    (file, pieces) = (Some(header), VecDeque::new());
                }
            }
            Incoming::Data(Part::Rows { bytes, .. }) => pieces.push_back(bytes),
            Incoming::Data(Part::Component { bytes, .. }) => assert!(!bytes.is_empty()),
            Incoming::EndOfFile => read_rows(file.as_deref(), std::mem::take(&mut pieces)),
        }
    }
    read_rows(file.as_deref(), pieces);
}

fn assert_same(message: &Message) {
    let mut out = Vec::new();
    message.encode(&mut out).expect("texts that were read fit");
    assert_eq!(Message::decode(&out).as_ref(), Ok(&(message.clone(), out.len())));
}

/// Also of a file of which only a beginning has come.
fn read_rows(file: Option<&FileHeader>, pieces: VecDeque<Bytes>) {
    let Some(rows) = file.map(|file| &file.content.rows) else { return };
    let Ok(table) = rows.table("ks", "t") else { return };
    let Ok(header) = rows.resolve(&table) else { return };
    let mut stream = ReceivedPartitions::new(Pieces(pieces), Arc::new(table), header);
    while let Ok(Some(_)) = stream.next_partition() {
        while let Ok(Some(_)) = stream.next_unfiltered() {}
    }
}
