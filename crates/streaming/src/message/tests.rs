//! Messages that no capture has, and bytes that are no message.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use rows::codec::EncodingStats;
use sstable::{CompressionParams, HeaderColumn, HeaderComponent, Version};
use types::Token;

use super::content::{Chunk, Compression, Content, Manifest, Section};
use super::init::{Operation, Preview};
use super::prepare::{StreamRequest, TokenRange};
use super::*;
use crate::link::{Incoming, LinkReader};

fn content(version: Version) -> Content {
    let column =
        |name: &str| HeaderColumn { name: name.to_owned(), ty: "org.apache.cassandra.db.marshal.Int32Type".to_owned() };
    let options = BTreeMap::from([("lz4_compressor_type".to_owned(), "fast".to_owned())]);
    let params = CompressionParams { options, ..CompressionParams::lz4() };
    Content {
        version,
        estimated_keys: 128,
        sections: vec![Section { start: 3, end: 100 }, Section { start: 100, end: 40_000 }],
        compression: Some(Compression { chunks: vec![Chunk { offset: 0, length: 5 }; 3], params }),
        level: 2,
        rows: HeaderComponent {
            stats: EncodingStats::default(),
            key_type: column("").ty,
            clustering: vec![column("").ty; 2],
            statics: vec![column("s")],
            regulars: vec![column("a"), column("b")],
            deletion_times: version.deletion_times(),
        },
        entire: None,
    }
}

fn header(content: Content) -> FileHeader {
    FileHeader {
        table: TableId([4; 16]),
        sender: "[2001:db8::1]:7000".parse().unwrap(),
        plan: [9; 16],
        by_follower: true,
        session_index: 1,
        sequence: 3,
        repaired_at: 1_700_000_000_000,
        pending_repair: Some([5; 16]),
        content,
    }
}

fn samples() -> Vec<Message> {
    let from = "127.0.0.2:7000".parse().unwrap();
    let range = |left, right| TokenRange { left: Token(left), right: Token(right) };
    let request = StreamRequest {
        keyspace: "ks".to_owned(),
        endpoint: from,
        full: vec![range(-5, 7), range(i64::MAX, i64::MIN)],
        transient: vec![range(8, 9)],
        tables: vec!["a".to_owned(), "b".to_owned()],
    };
    let summary = Summary { table: TableId([1; 16]), files: 7, bytes: 1 << 40 };
    let manifest = Manifest {
        components: vec![("Data.db".to_owned(), 1 << 33), ("SAI+aa+Meta.db".to_owned(), 0)],
        first_key: Bytes::from_static(b"k"),
    };
    let init = StreamInit {
        from,
        session_index: 2,
        plan: [3; 16],
        operation: Operation::BulkLoad,
        pending_repair: Some([8; 16]),
        preview: Preview::Repaired,
    };
    vec![
        Message::Init(init),
        Message::PrepareSyn(PrepareSyn { requests: vec![request; 2], summaries: vec![summary] }),
        Message::PrepareSynAck(vec![summary; 2]),
        Message::PrepareAck,
        Message::Stream(Box::new(header(content(Version::NB)))),
        Message::Stream(Box::new(header(Content { compression: None, ..content(Version::DA) }))),
        Message::Stream(Box::new(header(Content { entire: Some(manifest), ..content(Version::OA) }))),
        Message::Received(Received { table: TableId([6; 16]), sequence: 12 }),
        Message::Complete,
        Message::SessionFailed,
        Message::KeepAlive,
    ]
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out).unwrap();
    out
}

#[test]
fn messages_are_read_again_and_shorter_ones_ask_for_more() {
    for message in samples() {
        let bytes = encoded(&message);
        assert_eq!(Message::decode(&bytes), Ok((message.clone(), bytes.len())));
        for end in 0..bytes.len() {
            let error = Message::decode(&bytes[..end]).unwrap_err();
            let wanted = error.wanted().unwrap_or_else(|| panic!("{}: {error} at {end}", message.name()));
            assert!((end + 1..=bytes.len()).contains(&wanted), "{} wants {wanted} at {end}", message.name());
        }
    }
}

/// A reader that waits for the bytes that it was told of decodes a few times, not once for each
/// piece of the list.
#[test]
fn a_long_list_is_looked_at_when_it_is_whole() {
    let mut long = content(Version::OA);
    long.sections = vec![Section { start: 0, end: 50_000 * 16_384 }];
    long.compression.as_mut().unwrap().chunks = vec![Chunk { offset: 7, length: 9 }; 50_000];
    let bytes = encoded(&Message::Stream(Box::new(header(long))));
    let list = bytes.len() - 50_000 * 12;
    let error = Message::decode(&bytes[..list]).unwrap_err();
    assert!(error.wanted().unwrap() >= 50_000 * 12, "{error}");
    let (mut reader, mut input, mut given) = (LinkReader::new(), BytesMut::new(), 0);
    for piece in bytes.chunks(100) {
        input.extend_from_slice(piece);
        given += usize::from(reader.next(&mut input).unwrap().is_some());
    }
    assert_eq!((given, input.len()), (1, 0));
}

#[test]
fn wrong_parts_are_refused_by_name() {
    let stream = |change: fn(&mut Content)| {
        let mut content = content(Version::OA);
        change(&mut content);
        encoded(&Message::Stream(Box::new(header(content))))
    };
    let mut kind = encoded(&Message::KeepAlive);
    kind[0] = 4;
    let mut tokens = encoded(&samples()[1]);
    let place = tokens.windows(4).position(|size| size == [0, 0, 0, 8]).unwrap();
    tokens[place + 3] = 9;
    let mut preview = encoded(&samples()[0]);
    *preview.last_mut().unwrap() = 4;
    let manifest = |names: &[&str]| {
        let components = names.iter().map(|name| ((*name).to_owned(), 1)).collect();
        let entire = Some(Manifest { components, first_key: Bytes::new() });
        encoded(&Message::Stream(Box::new(header(Content { entire, ..content(Version::OA) }))))
    };
    for (bytes, part) in [
        (kind, "the type of a stream message"),
        (tokens, "the size of a token"),
        (preview, "the preview kind of a stream"),
        (stream(|content| content.version = Version(*b"ob")), "the version of a streamed SSTable"),
        (stream(|content| content.sections.swap(0, 1)), "a section of a streamed SSTable"),
        (stream(|content| content.sections[0].end = 3), "a section of a streamed SSTable"),
        (stream(|content| content.compression.as_mut().unwrap().params.chunk_length = 1000), "chunk length"),
        (
            stream(|content| content.compression.as_mut().unwrap().chunks[1].length = 1 << 20),
            "length of a streamed chunk",
        ),
        (manifest(&["Filter.db"]), "the components of a streamed SSTable"),
        (manifest(&["Data.db", "Data.db"]), "the components of a streamed SSTable"),
        (manifest(&["Data.db", "../../etc/passwd"]), "the components of a streamed SSTable"),
    ] {
        let error = Message::decode(&bytes).unwrap_err();
        assert!(error.wanted().is_none() && error.to_string().contains(part), "{part}: {error}");
    }
}

/// Sections and chunks that do not fit together are found before data is read by them.
#[test]
fn sections_and_chunks_must_agree() {
    let mut content = content(Version::OA);
    content.compression.as_mut().unwrap().chunks.pop();
    let mut input = BytesMut::from(&encoded(&Message::Stream(Box::new(header(content))))[..]);
    let error = LinkReader::new().next(&mut input).unwrap_err();
    assert!(error.to_string().contains("chunks that sections touch"), "{error}");
}

#[test]
fn a_message_beyond_its_bound_is_refused_before_it_comes() {
    let mut input = BytesMut::from(&[8, 0x7f, 0xff, 0xff, 0xff][..]);
    assert!(matches!(
        LinkReader::new().next(&mut input),
        Err(StreamingError::TooLarge { limit: CONTROL_SIZE_MAX, .. })
    ));
}

#[test]
fn operations_are_known_by_their_text() {
    assert_eq!(Operation::from_text("unBOOTSTRAP"), Operation::Unbootstrap);
    assert_eq!(Operation::from_text("of a later version"), Operation::Other);
    assert!(Operation::Rebuild.keeps_level() && !Operation::Repair.keeps_level());
}

/// A link that ends inside of a message or a file has lost something.
#[test]
fn the_end_of_a_link_is_between_messages() {
    let (mut reader, mut input) = (LinkReader::new(), BytesMut::from(&encoded(&samples()[4])[..]));
    assert!(!reader.is_between(&input));
    assert!(matches!(reader.next(&mut input), Ok(Some(Incoming::Message(Message::Stream(_))))));
    assert!(!reader.is_between(&input), "the data of the file has not come");
}
