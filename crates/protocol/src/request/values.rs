//! Bound values, left in the buffer of the frame.
//!
//! Decoding records the position of each value: 8 bytes a value, without an allocation for up to
//! [`VALUES_INLINE`] of them. A value becomes a shared slice when it is asked for.

use std::ops::Range;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Text};

/// Most values whose positions need no heap allocation.
pub const VALUES_INLINE: usize = 8;

/// A bound value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The serialized value.
    Bytes(Bytes),
    /// CQL's null.
    Null,
    /// No value: the column keeps what it has (version 4 and later).
    Unset,
}

const NULL: i32 = -1;
const UNSET: i32 = -2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    start: u32,
    /// The length of the value, or [`NULL`] or [`UNSET`]
    length: i32,
}

/// The values of one statement.
#[derive(Clone, Debug, Default)]
pub struct Values {
    body: Bytes,
    slots: SmallVec<[Slot; VALUES_INLINE]>,
    /// The names, one for each value; empty if values came by position.
    names: Vec<Text>,
}

impl Values {
    /// Reads `[short] n` and n values, each preceded by its name if `named`.
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        body: &Bytes,
        version: ProtocolVersion,
        named: bool,
    ) -> Result<Self, DecodeError> {
        let count = reader.u16("the number of values")?;
        if count == 0 {
            return Ok(Self::default());
        }
        // a value takes at least 4 bytes, for its length
        let room = usize::from(count).min(reader.remaining() / 4);
        let mut slots = SmallVec::with_capacity(room);
        let mut names = Vec::with_capacity(if named { room } else { 0 });
        for _ in 0..count {
            if named {
                names.push(reader.string("the name of a value")?);
            }
            slots.push(Slot::decode(reader, version)?);
        }
        Ok(Self { body: body.clone(), slots, names })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The value at a position. It shares the buffer of the frame.
    pub fn get(&self, position: usize) -> Option<Value> {
        let slot = self.slots.get(position)?;
        Some(match slot.length {
            NULL => Value::Null,
            UNSET => Value::Unset,
            _ => Value::Bytes(self.body.slice(slot.range())),
        })
    }

    /// All values in their order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.len()).map(|position| self.get(position).expect("the position is within"))
    }

    /// The names, one for each value; empty if values came by position.
    pub fn names(&self) -> &[Text] {
        &self.names
    }

    /// The position of a named value; if a name is repeated, the first one, as in Cassandra.
    pub fn position_of(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Bytes of all values, for limits and statistics.
    pub fn size(&self) -> usize {
        self.slots.iter().map(|slot| slot.range().len()).sum()
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names && self.iter().eq(other.iter())
    }
}

impl FromIterator<Value> for Values {
    /// Builds values for tests and for statements that the server makes itself.
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        let mut body = Vec::new();
        let mut slots = SmallVec::new();
        for value in values {
            let start = body.len() as u32;
            let length = match value {
                Value::Null => NULL,
                Value::Unset => UNSET,
                Value::Bytes(bytes) => {
                    body.extend_from_slice(&bytes);
                    bytes.len() as i32
                }
            };
            slots.push(Slot { start, length });
        }
        Self { body: Bytes::from(body), slots, names: Vec::new() }
    }
}

impl Slot {
    /// Reads a value. In version 3 every negative length is null; later versions allow -1 and -2
    /// only.
    fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let length = reader.i32("a value")?;
        match usize::try_from(length) {
            Ok(size) => Ok(Self { start: reader.skip(size, "a value")? as u32, length }),
            Err(_) if length == NULL || version < ProtocolVersion::V4 => Ok(Self { start: 0, length: NULL }),
            Err(_) if length == UNSET => Ok(Self { start: 0, length }),
            Err(_) => Err(DecodeError::Length(length)),
        }
    }

    fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + usize::try_from(self.length).unwrap_or(0)
    }
}
