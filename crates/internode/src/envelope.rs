//! The envelope of a message: who wants what answered until when, and the payload.
//!
//! ```text
//! uvint   id                 an answer has the id of its request
//! i32     creation time      the low 32 bits of milliseconds since 1970
//! uvint   life               milliseconds
//! uvint32 verb
//! uvint32 flags
//! uvint32 number of parameters, each: uvint32 id, uvint32 length, value
//! uvint32 payload size
//! payload
//! ```
//!
//! The sender is not in it: it is the address in the link's handshake. The layout is the same in
//! versions 12 and 13. `org.apache.cassandra.net.Message.Serializer`.

use std::net::SocketAddr;

use bytes::Bytes;
use stdx::{Cursor, CursorError};

use crate::address::{self, put_address, read_address};
use crate::error::InternodeError;
use crate::integers::{put_uvint32, read_length, read_uvint32};
use crate::verb::Verb;

/// The most parameters that are believed: Cassandra has 15 kinds.
const PARAMETERS_MAX: usize = 64;

/// The most bytes that a header is believed to have: FORWARD_TO grows with a data center's
/// replicas.
pub const HEADER_SIZE_MAX: usize = 64 << 10;

/// The most bytes of RESPOND_TO: its id, its length and an address.
const RESPOND_TO_SIZE_MAX: usize = 2 + address::SIZE_MAX;

/// Wishes of the sender to the handler (`MessageFlag`). Bits that are not known are kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub i32);

impl Flags {
    /// A failure is answered by FAILURE_RSP.
    pub const CALL_BACK_ON_FAILURE: Self = Self(1);
    /// The answer tells the digest of the data that is repaired.
    pub const TRACK_REPAIRED_DATA: Self = Self(2);
    /// The answer carries warnings of the replica as parameters.
    pub const TRACK_WARNINGS: Self = Self(4);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A parameter that we know; its value is checked when it is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// The replicas of this data center to which the receiver forwards the message, each with the
    /// id to answer with.
    ForwardTo(Vec<(SocketAddr, u64)>),
    /// The endpoint that gets the answer instead of the link's peer.
    RespondTo(SocketAddr),
    /// The tracing session (a time UUID).
    TraceSession([u8; 16]),
    /// The kind of tracing session: 0 none, 1 query, 2 repair.
    TraceType(u8),
    /// A parameter that is passed on as it is: (`ParamType` id, value).
    Other(i32, Bytes),
}

/// The number of tombstones for which a replica ended a read (an answer to TRACK_WARNINGS).
pub const TOMBSTONE_FAIL: i32 = 8;
/// The number of tombstones of which a replica warns (an answer to TRACK_WARNINGS).
pub const TOMBSTONE_WARNING: i32 = 9;
/// The bytes for which a replica ended a read.
pub const LOCAL_READ_SIZE_FAIL: i32 = 10;
/// The bytes of which a replica warns.
pub const LOCAL_READ_SIZE_WARN: i32 = 11;
/// The bytes of row index entries for which a replica ended a read.
pub const ROW_INDEX_READ_SIZE_FAIL: i32 = 12;
/// The bytes of row index entries of which a replica warns.
pub const ROW_INDEX_READ_SIZE_WARN: i32 = 13;
/// The number of indexes of SSTables of which a replica warns.
pub const TOO_MANY_REFERENCED_INDEXES_WARN: i32 = 16;
/// The number of indexes of SSTables for which a replica ended a read.
pub const TOO_MANY_REFERENCED_INDEXES_FAIL: i32 = 17;

const FORWARD_TO: i32 = 0;
const RESPOND_TO: i32 = 1;
const TRACE_SESSION: i32 = 5;
const TRACE_TYPE: i32 = 6;

/// All of a message but its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Unique among a sender's requests that still wait for their answer; an answer's is its
    /// request's.
    pub id: u64,
    /// When the message was made, by the sender's clock: the low 32 bits of milliseconds since
    /// 1970.
    pub created: u32,
    /// For how many milliseconds from then on the message is worth anything.
    pub life: u64,
    /// The verb, which decides the payload's layout.
    pub verb: Verb,
    /// Wishes of the sender to the handler.
    pub flags: Flags,
    /// In the order in which they came.
    pub parameters: Vec<Parameter>,
}

impl Header {
    /// A header without flags and parameters.
    pub fn new(verb: Verb, id: u64, created_millis: i64, life: u64) -> Self {
        Self { id, created: created_millis as u32, life, verb, flags: Flags::default(), parameters: Vec::new() }
    }

    /// The header of the answer to this message, made at `now_millis`: it lives as long as its
    /// request would.
    pub fn answer(&self, verb: Verb, now_millis: i64) -> Self {
        let gone = u64::try_from(self.age(now_millis)).unwrap_or(0);
        let traces =
            self.parameters.iter().filter(|p| matches!(p, Parameter::TraceSession(_) | Parameter::TraceType(_)));
        let parameters = traces.cloned().collect();
        Self { parameters, ..Self::new(verb, self.id, now_millis, self.life.saturating_sub(gone)) }
    }

    /// Milliseconds since the message was made, by the receiver's clock. 0 where the clocks differ
    /// by more than a quarter of an hour, or the sender's is ahead: then the message is taken as
    /// made now (`MessagingService`, `internode_timeout`).
    pub fn age(&self, now_millis: i64) -> i64 {
        const DIFFERENCE_MAX: i64 = 15 * 60 * 1000;
        let age = i64::from((now_millis as u32).wrapping_sub(self.created) as i32);
        if (0..=DIFFERENCE_MAX).contains(&age) { age } else { 0 }
    }

    /// Whether nobody waits for it any more.
    pub fn is_expired(&self, now_millis: i64) -> bool {
        u64::try_from(self.age(now_millis)).unwrap_or(0) > self.life
    }

    /// Where the answer goes that the sender asked to be sent elsewhere.
    pub fn respond_to(&self) -> Option<SocketAddr> {
        self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::RespondTo(address) => Some(*address),
            _ => None,
        })
    }

    /// Appends the envelope up to the payload of `payload_size` bytes.
    ///
    /// # Panics
    /// When a payload has 2 GiB or more: `internode_max_message_size` is checked before.
    pub fn encode(&self, out: &mut Vec<u8>, payload_size: usize) {
        stdx::put_uvint(out, self.id);
        stdx::put_u32(out, self.created);
        stdx::put_uvint(out, self.life);
        put_uvint32(out, self.verb.id());
        put_uvint32(out, self.flags.0);
        put_uvint32(out, i32::try_from(self.parameters.len()).expect("a message has a handful of parameters"));
        let mut value = Vec::new();
        for parameter in &self.parameters {
            value.clear();
            put_uvint32(out, parameter.put_value(&mut value));
            put_uvint32(out, i32::try_from(value.len()).expect("a parameter is short"));
            out.extend_from_slice(&value);
        }
        put_uvint32(out, i32::try_from(payload_size).expect("a message is below 2 GiB"));
    }

    /// The header at the start of `bytes`, its own length and that of the payload behind it; `None`
    /// asks for more bytes. A header of more than [`HEADER_SIZE_MAX`] bytes is refused, because it
    /// has to fit in one frame where it is passed on.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize, usize)>, InternodeError> {
        let mut cursor = Cursor::new(bytes);
        match read_header(&mut cursor) {
            Ok((header, _)) if cursor.position() > header.size_max() => {
                Err(broken("the size of a header", cursor.position()))
            }
            Ok((header, payload)) => Ok(Some((header, cursor.position(), payload))),
            Err(InternodeError::Bytes(CursorError::Truncated { .. })) if bytes.len() < HEADER_SIZE_MAX => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The most bytes that this header may have. A node that passes its message on puts RESPOND_TO
    /// in the place of FORWARD_TO, and the nodes behind refuse a header that is too large by that.
    fn size_max(&self) -> usize {
        let is_passed_on = self.parameters.iter().any(|parameter| matches!(parameter, Parameter::ForwardTo(_)));
        if is_passed_on { HEADER_SIZE_MAX - RESPOND_TO_SIZE_MAX } else { HEADER_SIZE_MAX }
    }
}

fn read_header(cursor: &mut Cursor<'_>) -> Result<(Header, usize), InternodeError> {
    let (id, created, life) = (cursor.uvint()?, cursor.u32()?, cursor.uvint()?);
    let verb = read_uvint32(cursor, "a verb")?;
    let verb = Verb::from_id(verb).ok_or(InternodeError::UnknownVerb(i64::from(verb)))?;
    let flags = Flags(read_uvint32(cursor, "the flags of a message")?);
    let count = read_length(cursor, "the number of parameters")?;
    if count > PARAMETERS_MAX {
        return Err(InternodeError::Value { part: "the number of parameters", found: count as i64 });
    }
    let mut parameters = Vec::with_capacity(count);
    for _ in 0..count {
        let id = read_uvint32(cursor, "a parameter")?;
        let length = read_length(cursor, "the length of a parameter")?;
        parameters.push(Parameter::read(id, cursor.take(length)?)?);
    }
    let payload = read_length(cursor, "the size of a payload")?;
    Ok((Header { id, created, life, verb, flags, parameters }, payload))
}

impl Parameter {
    /// A number, as of tombstones ([`TOMBSTONE_FAIL`], [`TOMBSTONE_WARNING`]).
    pub fn of_count(id: i32, count: u64) -> Self {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        Self::Other(id, Bytes::copy_from_slice(&count.to_be_bytes()))
    }

    /// A number of bytes, as of what was read ([`LOCAL_READ_SIZE_FAIL`]).
    pub fn of_size(id: i32, size: u64) -> Self {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        Self::Other(id, Bytes::copy_from_slice(&size.to_be_bytes()))
    }

    fn read(id: i32, value: &[u8]) -> Result<Self, InternodeError> {
        let mut cursor = Cursor::new(value);
        let parameter = match id {
            FORWARD_TO => {
                let count = read_length(&mut cursor, "the number of addresses to forward to")?;
                if count.saturating_mul(address::SIZE_MIN + 1) > cursor.remaining() {
                    return Err(broken("the number of addresses to forward to", count));
                }
                let mut forward = Vec::with_capacity(count);
                for _ in 0..count {
                    forward.push((read_address(&mut cursor)?, cursor.uvint()?));
                }
                Self::ForwardTo(forward)
            }
            RESPOND_TO => Self::RespondTo(read_address(&mut cursor)?),
            TRACE_SESSION => match cursor.take(16)?.first_chunk() {
                Some(session) => Self::TraceSession(*session),
                None => return Err(broken("the length of a tracing session", value.len())),
            },
            TRACE_TYPE => Self::TraceType(cursor.u8()?),
            _ => return Ok(Self::Other(id, Bytes::copy_from_slice(value))),
        };
        if cursor.is_empty() { Ok(parameter) } else { Err(broken("the length of a parameter", value.len())) }
    }

    /// Appends the value, and gives the id.
    fn put_value(&self, out: &mut Vec<u8>) -> i32 {
        match self {
            Self::ForwardTo(forward) => {
                put_uvint32(out, i32::try_from(forward.len()).expect("a data center has fewer nodes"));
                for (address, id) in forward {
                    put_address(out, *address);
                    stdx::put_uvint(out, *id);
                }
                FORWARD_TO
            }
            Self::RespondTo(address) => {
                put_address(out, *address);
                RESPOND_TO
            }
            Self::TraceSession(session) => {
                out.extend_from_slice(session);
                TRACE_SESSION
            }
            Self::TraceType(kind) => {
                out.push(*kind);
                TRACE_TYPE
            }
            Self::Other(id, value) => {
                out.extend_from_slice(value);
                *id
            }
        }
    }
}

/// A length that its content contradicts. Truncation inside a value whose length is known is no
/// reason to wait for more bytes.
fn broken(part: &'static str, found: usize) -> InternodeError {
    InternodeError::Value { part, found: i64::try_from(found).unwrap_or(i64::MAX) }
}

/// A whole message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// All but the payload.
    pub header: Header,
    /// The verb's payload; its layout is the verb's and the link's version's.
    pub payload: Bytes,
}

impl Envelope {
    /// A whole message from its bytes, all of them.
    pub fn decode(bytes: &Bytes) -> Result<Self, InternodeError> {
        let truncated = InternodeError::Bytes(CursorError::Truncated { offset: bytes.len(), needed: 1 });
        let (header, start, size) = Header::decode(bytes)?.ok_or(truncated.clone())?;
        match bytes.len().checked_sub(start + size) {
            Some(0) => Ok(Self { header, payload: bytes.slice(start..) }),
            Some(left) => Err(InternodeError::Trailing { left }),
            None => Err(truncated),
        }
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.header.encode(out, self.payload.len());
        out.extend_from_slice(&self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_echo() {
        let header = Header { created: 0x0102_0304, ..Header::new(Verb::EchoReq, 1, 0, 10_000) };
        let mut out = Vec::new();
        header.encode(&mut out, 0);
        assert_eq!(out, [1, 1, 2, 3, 4, 0xA7, 0x10, 0x1F, 0, 0, 0]);
        assert_eq!(Header::decode(&out), Ok(Some((header, 11, 0))));
        for end in 0..out.len() {
            assert_eq!(Header::decode(&out[..end]), Ok(None));
        }
    }

    #[test]
    fn age_survives_the_wrap_of_the_clock_and_a_wrong_one() {
        let made = |at: i64| Header::new(Verb::EchoReq, 1, at, 1000);
        let wrap = 0xffff_fff0_i64;
        assert_eq!(made(wrap).age(wrap + 100), 100);
        assert!(made(wrap).is_expired(wrap + 1001) && !made(wrap).is_expired(wrap + 1000));
        // ahead of us, or hours behind: as if made now
        assert_eq!(made(5000).age(4000), 0);
        assert_eq!(made(0).age(3_600_000), 0);
    }

    #[test]
    fn an_answer_lives_as_long_as_its_request() {
        let mut request = Header::new(Verb::ReadReq, 7, 1_000_000, 5000);
        request.parameters = vec![Parameter::TraceSession([3; 16]), Parameter::Other(14, Bytes::from_static(b"\0"))];
        let answer = request.answer(Verb::ReadRsp, 1_000_200);
        assert_eq!((answer.id, answer.life), (7, 4800));
        assert_eq!(answer.parameters, [Parameter::TraceSession([3; 16])]);
    }

    #[test]
    fn parameters_that_lie_are_refused() {
        let with = |id: u8, value: &[u8]| {
            let mut out = vec![1, 0, 0, 0, 0, 10, 31, 0, 1, id, value.len() as u8];
            out.extend_from_slice(value);
            out.push(0);
            Header::decode(&out)
        };
        assert!(matches!(with(0, &[0xf0, 0x7f, 0xff, 0xff, 0xff]), Err(InternodeError::Value { .. })));
        assert!(matches!(with(6, &[1, 2]), Err(InternodeError::Value { .. })));
        assert!(matches!(with(99, &[1, 2]), Ok(Some(_))));
    }

    /// A node that passes a message on could not put a larger header into one frame.
    #[test]
    fn a_header_has_a_bound() {
        for (size, is_taken) in [(HEADER_SIZE_MAX - 20, true), (HEADER_SIZE_MAX, false)] {
            let mut header = Header::new(Verb::MutationReq, 1, 0, 10_000);
            header.parameters = vec![Parameter::Other(99, Bytes::from(vec![0; size]))];
            let mut out = Vec::new();
            header.encode(&mut out, 0);
            assert_eq!(Header::decode(&out).is_ok(), is_taken, "{size} bytes");
        }
    }

    /// A header that is taken is taken by the next node too, to which it goes with RESPOND_TO.
    #[test]
    fn a_header_that_is_passed_on_stays_within_the_bound() {
        let decoded = |header: &Header| {
            let mut out = Vec::new();
            header.encode(&mut out, 0);
            Header::decode(&out)
        };
        let (near, far) = ("127.0.0.2:7000".parse().unwrap(), "[2001:db8::1]:7000".parse().unwrap());
        let mut taken = 0;
        for size in HEADER_SIZE_MAX - 60..HEADER_SIZE_MAX {
            let mut header = Header::new(Verb::MutationReq, 1, 0, 10_000);
            let other = Parameter::Other(99, Bytes::from(vec![0; size]));
            header.parameters = vec![Parameter::ForwardTo(vec![(near, 1)]), other.clone()];
            if decoded(&header).is_ok() {
                taken += 1;
                header.parameters = vec![other, Parameter::RespondTo(far)];
                assert!(decoded(&header).is_ok(), "{size} bytes");
            }
        }
        assert!((1..60).contains(&taken), "{taken} of 60 sizes");
    }
}
