//! Decoders of what peers send.

use bytes::{Bytes, BytesMut};
use internode::payload::batch::StoredBatch;
use internode::payload::counter::CounterMutation;
use internode::payload::failure;
use internode::payload::gossip::tokens::tokens_of;
use internode::payload::gossip::{Ack, Ack2, Shutdown, Syn};
use internode::payload::hint::HintMessage;
use internode::payload::schema;
use internode::payload::simple::{SnapshotRequest, Truncated, Truncation, decode_ping, decode_uuid};
use internode::{Accept, Envelope, Framing, Initiate, MessageReader, MessagingVersion, Verb};

/// Bytes of a message that the reader of links takes.
const MESSAGE_SIZE_MAX: usize = 1 << 20;

/// Both messages of the handshake. What is read is written again as it was.
pub fn handshake(data: &[u8]) {
    if let Ok(Some((initiate, size))) = Initiate::decode(data) {
        assert!(size <= data.len());
        assert_eq!(Initiate::decode(&initiate.encode()).ok().flatten().map(|(again, _)| again), Some(initiate));
    }
    if let Ok(Some((accept, size))) = Accept::decode(data) {
        assert_eq!(accept.encode(), data[..size]);
    }
}

/// A link behind its handshake. First byte: the framing.
pub fn link(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let framing = [Framing::Crc, Framing::Lz4, Framing::Unprotected][usize::from(first % 3)];
    let mut reader = MessageReader::new(framing, MESSAGE_SIZE_MAX);
    let mut input = BytesMut::from(rest);
    while let Ok(Some(_)) = reader.next(&mut input) {
        assert!(reader.buffered() <= rest.len() * 256, "what waits for its rest has come");
    }
}

/// A whole message with its payload. First byte: the version.
pub fn message(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let version = if first & 1 == 0 { MessagingVersion::V12 } else { MessagingVersion::V13 };
    let Ok(envelope) = Envelope::decode(&Bytes::copy_from_slice(rest)) else { return };
    let mut out = Vec::new();
    envelope.encode(&mut out);
    assert_eq!(Envelope::decode(&Bytes::from(out)).as_ref(), Ok(&envelope));
    let payload = &envelope.payload[..];
    match envelope.header.verb {
        Verb::GossipDigestSyn => {
            if let Ok(syn) = Syn::decode(payload) {
                assert_eq!(Syn::decode(&syn.encode().expect("texts that were read fit")).as_ref(), Ok(&syn));
            }
        }
        Verb::GossipDigestAck => drop(Ack::decode(payload)),
        Verb::GossipDigestAck2 => {
            let Ok(ack2) = Ack2::decode(payload) else { return };
            let values = ack2.states.iter().flat_map(|(_, state)| &state.values);
            values.for_each(|(_, value)| drop(tokens_of(&value.value)));
        }
        Verb::GossipShutdown => drop(Shutdown::decode(payload, version)),
        Verb::HintReq => {
            if let Ok(message) = HintMessage::decode(&envelope.payload) {
                assert_eq!(HintMessage::decode(&message.encode().into()).as_ref(), Ok(&message));
            }
        }
        Verb::PingReq => drop(decode_ping(payload)),
        Verb::TruncateReq => drop(Truncation::decode(payload)),
        Verb::TruncateRsp => drop(Truncated::decode(payload)),
        Verb::BatchStoreReq => drop(StoredBatch::decode(&envelope.payload)),
        Verb::CounterMutationReq => drop(CounterMutation::decode(&envelope.payload)),
        Verb::SnapshotReq => drop(SnapshotRequest::decode(payload)),
        Verb::FailureRsp => drop(failure::decode(payload)),
        Verb::SchemaPullRsp | Verb::SchemaPushReq => drop(schema::split(payload)),
        _ => drop(decode_uuid(payload)),
    }
}
