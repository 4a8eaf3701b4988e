//! Tests: round trips through both formats, known bytes, and broken input.

use bytes::{BufMut, Bytes, BytesMut};

use super::decode::{EnvelopeJoiner, Joined};
use super::*;

const FORMATS: [SegmentFormat; 3] = [SegmentFormat::Plain, SegmentFormat::Unprotected, SegmentFormat::Lz4];

/// A request envelope of version 5 with a body of `size` bytes.
fn envelope(stream: i16, size: usize) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(5);
    out.put_u8(0);
    out.put_i16(stream);
    out.put_u8(7);
    out.put_u32(size as u32);
    out.extend((0..size).map(|position| (position * 7 / 3) as u8));
    out.freeze()
}

fn encode(format: SegmentFormat, envelopes: &[Bytes]) -> BytesMut {
    let mut encoder = SegmentEncoder::new(format);
    let mut out = BytesMut::new();
    for envelope in envelopes {
        encoder.append(&mut out, |buffer| buffer.put_slice(envelope));
    }
    encoder.finish(&mut out);
    out
}

/// Feeds `input` in pieces of `step` bytes. Returns stream and body of each envelope, and the
/// number of segments.
fn decode(format: SegmentFormat, input: &[u8], step: usize) -> (Vec<(i16, Bytes)>, usize) {
    let decoder = SegmentDecoder::new(format);
    let mut joiner = EnvelopeJoiner::new(1 << 20);
    let mut buffer = BytesMut::new();
    let mut found = Vec::new();
    let mut segments = 0;
    for piece in input.chunks(step) {
        buffer.extend_from_slice(piece);
        while let Some(segment) = decoder.next(&mut buffer).unwrap() {
            segments += 1;
            joiner.push(segment).unwrap();
            while let Some(joined) = joiner.next_envelope().unwrap() {
                match joined {
                    Joined::Envelope(header, body) => found.push((header.stream, body)),
                    Joined::TooLarge(header) => found.push((header.stream, Bytes::new())),
                }
            }
        }
    }
    assert!(buffer.is_empty());
    (found, segments)
}

#[test]
fn golden_plain_segment() {
    let out = encode(SegmentFormat::Plain, &[envelope(1, 0)]);
    // 9 bytes, self-contained: the word is 0x020009
    assert_eq!(&out[..3], [0x09, 0x00, 0x02]);
    let crc = crc::crc24(&[0x09, 0x00, 0x02]);
    assert_eq!(&out[3..6], &crc.to_le_bytes()[..3]);
    assert_eq!(&out[6..15], [5, 0, 0, 1, 7, 0, 0, 0, 0]);
    assert_eq!(&out[15..], crc::crc32(&out[6..15]).to_le_bytes());
}

#[test]
fn golden_lz4_segment() {
    let out = encode(SegmentFormat::Lz4, &[envelope(1, 0)]);
    // stored: 9 bytes, uncompressed length 0, self-contained in bit 34
    assert_eq!(&out[..5], [0x09, 0, 0, 0, 0x04]);
    assert_eq!(&out[8..17], [5, 0, 0, 1, 7, 0, 0, 0, 0]);
}

#[test]
fn small_envelopes_share_a_segment() {
    for format in FORMATS {
        let envelopes: Vec<Bytes> = (0..100).map(|stream| envelope(stream, 50)).collect();
        let out = encode(format, &envelopes);
        for step in [1, 7, 1 << 20] {
            let (found, segments) = decode(format, &out, step);
            assert_eq!(segments, 1);
            assert_eq!(found.len(), 100);
            for (position, (stream, body)) in found.iter().enumerate() {
                assert_eq!(*stream as usize, position);
                assert_eq!(*body, envelopes[position].slice(9..));
            }
        }
    }
}

#[test]
fn every_size_around_the_limit() {
    let limit = PAYLOAD_SIZE_MAX - 9;
    for format in FORMATS {
        for size in [limit - 1, limit, limit + 1, 2 * limit, 2 * PAYLOAD_SIZE_MAX - 9, 500_000] {
            let envelopes = [envelope(1, 10), envelope(2, size), envelope(3, 20), envelope(4, size), envelope(5, 0)];
            let out = encode(format, &envelopes);
            let (found, _) = decode(format, &out, 65_536);
            assert_eq!(found.len(), 5, "{format:?} {size}");
            for ((stream, body), sent) in found.iter().zip(&envelopes) {
                assert_eq!(*body, sent.slice(9..), "{format:?} {size} {stream}");
            }
        }
    }
}

#[test]
fn too_large_envelopes_are_passed_over() {
    for format in FORMATS {
        let out = encode(format, &[envelope(1, 3 << 20), envelope(2, 5), envelope(3, 5)]);
        let (found, _) = decode(format, &out, 10_000);
        assert_eq!(found.iter().map(|(stream, _)| *stream).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(found[0].1.len(), 0);
    }
}

#[test]
fn flipped_bits_are_found() {
    for format in [SegmentFormat::Plain, SegmentFormat::Lz4] {
        let good = encode(format, &[envelope(1, 300)]);
        for bit in 0..good.len() * 8 {
            let mut input = good.clone();
            input[bit / 8] ^= 1 << (bit % 8);
            let result = SegmentDecoder::new(format).next(&mut input);
            assert!(
                matches!(result, Err(SegmentError::Header { .. } | SegmentError::Payload { .. })),
                "bit {bit}: {result:?}"
            );
        }
    }
}

#[test]
fn segments_that_cannot_follow_each_other() {
    let whole = envelope(1, 5);
    let mut joiner = EnvelopeJoiner::new(100);
    joiner.push(Segment { payload: whole.slice(..12), self_contained: false }).unwrap();
    assert_eq!(joiner.next_envelope().unwrap(), None);
    assert!(joiner.push(Segment { payload: whole.clone(), self_contained: true }).is_err());

    for cut in 1..whole.len() {
        let mut joiner = EnvelopeJoiner::new(100);
        joiner.push(Segment { payload: whole.slice(..cut), self_contained: true }).unwrap();
        assert!(joiner.next_envelope().is_err());
    }
}

#[test]
fn lz4_payloads_that_lie() {
    let payload = [0u8; 20];
    let (header, size) = SegmentFormat::Lz4.header(payload.len(), PAYLOAD_SIZE_MAX, true);
    let mut input = BytesMut::from(&header[..size]);
    input.put_slice(&payload);
    input.put_u32_le(crc::crc32(&payload));
    assert!(matches!(
        SegmentDecoder::new(SegmentFormat::Lz4).next(&mut input),
        Err(SegmentError::NotLz4 { self_contained: true, .. })
    ));
}
