//! Round trips through every framing, damage at every place, and messages that are cut in ways of
//! their own.

use bytes::{BufMut, Bytes, BytesMut};
use segments::SegmentEncoder;

use super::*;
use crate::verb::Verb;

const FRAMINGS: [Framing; 3] = [Framing::Crc, Framing::Lz4, Framing::Unprotected];
const SIZE_MAX: usize = 4 << 20;

fn message(id: u64, size: usize) -> Envelope {
    let payload: Vec<u8> = (0..size).map(|place| (place * 7 / 3) as u8).collect();
    Envelope { header: Header::new(Verb::MutationReq, id, 1_700_000_000_000, 2000), payload: payload.into() }
}

fn written(framing: Framing, messages: &[Envelope]) -> BytesMut {
    let mut writer = MessageWriter::new(framing);
    let mut out = BytesMut::new();
    for message in messages {
        writer.append(&mut out, message);
    }
    writer.finish(&mut out);
    out
}

/// All that comes of `bytes`, given in pieces of `step` bytes.
fn read(framing: Framing, bytes: &[u8], step: usize) -> Result<Vec<Received>, InternodeError> {
    let mut reader = MessageReader::new(framing, SIZE_MAX);
    let (mut input, mut found) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(step) {
        input.extend_from_slice(piece);
        while let Some(received) = reader.next(&mut input)? {
            found.push(received);
        }
    }
    Ok(found)
}

fn messages(sizes: &[usize]) -> Vec<Envelope> {
    sizes.iter().enumerate().map(|(id, size)| message(id as u64 + 1, *size)).collect()
}

#[test]
fn messages_of_every_size_come_back_however_they_arrive() {
    let sent = messages(&[0, 10, 131_000, 131_071, 131_072, 5, 400_000, 0, 3]);
    for framing in FRAMINGS {
        let bytes = written(framing, &sent);
        for step in [1 << 20, 4099, 61] {
            let found = read(framing, &bytes, step).unwrap();
            let expected: Vec<_> = sent.iter().cloned().map(Received::Message).collect();
            assert_eq!(found, expected, "{framing:?} {step}");
        }
    }
}

#[test]
fn a_large_message_leaves_in_pieces() {
    let sent = messages(&[10, 900_000, 131_072, 20, 300_000]);
    for framing in FRAMINGS {
        let mut writer = MessageWriter::new(framing);
        let (mut out, mut bytes, mut largest) = (BytesMut::new(), Vec::new(), 0);
        for message in &sent {
            let mut next = Some(0);
            while let Some(from) = next {
                next = writer.append_from(&mut out, message, from, 200_000);
                largest = largest.max(out.len());
                if next.is_some() {
                    bytes.extend_from_slice(&out.split());
                }
            }
            let mut whole = Vec::new();
            message.encode(&mut whole);
            assert_eq!(writer.message_size(), whole.len());
        }
        writer.finish(&mut out);
        bytes.extend_from_slice(&out);
        assert!(largest < 600_000, "{framing:?}: {largest} bytes at once");
        assert_eq!(&bytes[..], &written(framing, &sent)[..], "{framing:?}");
    }
}

/// Cassandra cuts a large message every 34,806 bytes; any cut is as good.
#[test]
fn any_cut_of_a_large_message_is_read() {
    let sent = message(9, 100_000);
    let mut bytes = Vec::new();
    sent.encode(&mut bytes);
    for cut in [34_806, 40, 99_999] {
        let mut out = BytesMut::new();
        let mut encoder = SegmentEncoder::new(Framing::Crc.segments());
        bytes.chunks(cut).for_each(|part| encoder.append_part(&mut out, part));
        assert_eq!(read(Framing::Crc, &out, 1000), Ok(vec![Received::Message(sent.clone())]), "{cut}");
    }
}

#[test]
fn a_damaged_frame_costs_its_messages_and_not_the_link() {
    let mut bytes = written(Framing::Crc, &messages(&[10]));
    let first = bytes.len();
    bytes.extend_from_slice(&written(Framing::Crc, &[message(2, 20)]));
    bytes[first - 1] ^= 1;
    let found = read(Framing::Crc, &bytes, 7).unwrap();
    assert!(matches!(found[..], [Received::Lost(SegmentError::Payload { .. }), Received::Message(_)]), "{found:?}");
    // a header's checksum: the link
    bytes[0] ^= 1;
    assert!(matches!(read(Framing::Crc, &bytes, 7), Err(InternodeError::Frame(SegmentError::Header { .. }))));
}

#[test]
fn a_damaged_part_costs_its_message_if_it_is_not_the_first() {
    let mut whole = Vec::new();
    message(1, 100).encode(&mut whole);
    let mut parts: Vec<BytesMut> = Vec::new();
    for part in whole.chunks(40) {
        let mut out = BytesMut::new();
        SegmentEncoder::new(Framing::Crc.segments()).append_part(&mut out, part);
        parts.push(out);
    }
    let behind = written(Framing::Crc, &[message(2, 5)]);
    for damaged in 0..parts.len() {
        let mut bytes = BytesMut::new();
        for (place, part) in parts.iter().enumerate() {
            let mut part = part.clone();
            let last = part.len() - 1;
            part[last] ^= u8::from(place == damaged);
            bytes.extend_from_slice(&part);
        }
        bytes.extend_from_slice(&behind);
        match (damaged, read(Framing::Crc, &bytes, 11)) {
            (0, found) => assert!(matches!(found, Err(InternodeError::Frame(_))), "{found:?}"),
            (_, found) => {
                let found = found.unwrap();
                assert!(matches!(found[..], [Received::Lost(_), Received::Message(_)]), "{damaged}: {found:?}");
            }
        }
    }
}

#[test]
fn what_cannot_follow_is_refused() {
    let mut whole = Vec::new();
    message(1, 100).encode(&mut whole);
    let cut = |parts: &[&[u8]]| {
        let mut out = BytesMut::new();
        let mut encoder = SegmentEncoder::new(Framing::Crc.segments());
        parts.iter().for_each(|part| encoder.append_part(&mut out, part));
        out
    };
    let mut more = whole.clone();
    more.push(0);
    let overrun = cut(&[&whole[..50], &more[50..]]);
    assert!(matches!(read(Framing::Crc, &overrun, 999), Err(InternodeError::Sequence(_))));
    let mut interrupted = cut(&[&whole[..50]]);
    interrupted.extend_from_slice(&written(Framing::Crc, &[message(2, 5)]));
    assert!(matches!(read(Framing::Crc, &interrupted, 999), Err(InternodeError::Sequence(_))));
    let headless = cut(&[&whole[..5], &whole[5..]]);
    assert!(matches!(read(Framing::Crc, &headless, 999), Err(InternodeError::Sequence(_))));
    let mut early = BytesMut::new();
    let mut encoder = SegmentEncoder::new(Framing::Crc.segments());
    encoder.append(&mut early, |out| out.put_slice(&whole[..60]));
    encoder.finish(&mut early);
    assert!(matches!(read(Framing::Crc, &early, 999), Err(InternodeError::Sequence(_))));
}

#[test]
fn a_size_over_the_limit_is_refused_before_its_bytes_come() {
    let header = Header::new(Verb::MutationReq, 1, 0, 2000);
    let mut bytes = Vec::new();
    header.encode(&mut bytes, SIZE_MAX);
    let mut out = BytesMut::new();
    SegmentEncoder::new(Framing::Crc.segments()).append_part(&mut out, &bytes);
    assert!(matches!(read(Framing::Crc, &out, 999), Err(InternodeError::TooLarge { limit: SIZE_MAX, .. })));
    let small = Bytes::from_static(b"x");
    assert_eq!(read(Framing::Crc, &written(Framing::Crc, &[Envelope { header, payload: small }]), 9).unwrap().len(), 1);
}
