//! A request as bytes, from a description of its values. Each request has a number, from which all
//! of its values follow.

use std::fmt::Write as _;

use bytes::{BufMut, Bytes, BytesMut};
use protocol::Opcode;
use serde::Deserialize;
use types::Consistency;

use crate::Result;
use crate::connection::put_frame;

const UNLOGGED: u8 = 1;
const KIND_PREPARED: u8 = 1;
/// Flags of query parameters.
const VALUES: u8 = 0x01;
const SKIP_METADATA: u8 = 0x02;
const PAGE_SIZE: u8 = 0x04;
const PAGING_STATE: u8 = 0x08;

/// A prepared statement and what is bound to it.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The text, prepared once a connection.
    pub statement: String,
    /// The bound values, marker for marker.
    #[serde(default)]
    pub values: Vec<Form>,
    /// Which number a request has.
    #[serde(default)]
    pub index: Index,
    /// How many rows every answer must have; any number without it.
    pub rows: Option<u32>,
    /// So many statements in each unlogged batch; without it, no batch.
    pub batch: Option<u64>,
    /// The most rows of a page; with it, each connection reads page after page until the last.
    pub page_size: Option<i32>,
    /// The consistency level, by its name in CQL; LOCAL_ONE without it.
    pub consistency: Option<String>,
    /// After the last page comes the first again.
    #[serde(default)]
    pub again: bool,
}

/// The number of the `i`-th request.
#[derive(Clone, Copy, Deserialize, Default, Debug)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Index {
    /// Always 0.
    #[default]
    Fixed,
    /// Evenly spread, the same in every run with the same seed.
    Random {
        /// The numbers are below this.
        below: u64,
        /// Another sequence for each.
        seed: u64,
    },
    /// Each number of a range once; then the job is over.
    Each {
        /// The first.
        from: u64,
        /// How many.
        count: u64,
        /// Taken in steps of this, modulo `count`, with which it must have no divisor in common; 1
        /// is in order.
        step: u64,
    },
}

impl Index {
    /// How many requests there are.
    pub fn count(self) -> u64 {
        if let Self::Each { count, .. } = self { count } else { u64::MAX }
    }

    /// The number of the `i`-th.
    pub fn at(self, i: u64) -> u64 {
        match self {
            Self::Fixed => 0,
            Self::Random { below, seed } => mix(seed.rotate_left(32) ^ i) % below.max(1),
            Self::Each { from, count, step } => from + (i % count) * step % count,
        }
    }
}

/// A value that follows from the request's number `n`.
#[derive(Clone, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// This text.
    Text(String),
    /// The name of row `n`: twice the number in ten digits, so that odd numbers are names that no
    /// row has; this is added to it.
    Name(u64),
    /// A list of the names of this many rows from `n` on.
    NamesFrom(u64),
    /// A list of names, one from each of this many equal parts of a partition of `of` rows.
    NamesSpread {
        /// How many.
        count: u64,
        /// Rows of the partition.
        of: u64,
    },
    /// A bigint: `n` divided by this.
    Quotient(u64),
    /// A bigint: the rest of that division.
    Rest(u64),
    /// An int: the rest of `n` divided by this.
    IntRest(u64),
    /// A UUID (version 4) that looks random: of the rest of `n` divided by this, or of `n` itself
    /// if this is 0.
    Uuid(u64),
    /// `n` divided by this, as text.
    QuotientText(u64),
    /// A double.
    Double,
    /// Hexadecimal digits that look random, as many as this.
    Digits(usize),
    /// Bytes that look random, as many as this.
    Blob(usize),
}

impl Form {
    fn put(&self, out: &mut BytesMut, n: u64) -> Result<()> {
        match self {
            Self::Text(text) => put_value(out, text.as_bytes()),
            Self::Name(add) => put_name(out, n * 2 + add),
            Self::NamesFrom(count) => put_list(out, *count, |out, i| put_name(out, (n + i) * 2)),
            Self::NamesSpread { count, of } => {
                let part = of / count;
                put_list(out, *count, |out, i| put_name(out, (i * part + mix(n ^ i << 48) % part) * 2));
            }
            Self::Quotient(by) => put_value(out, &((n / by) as i64).to_be_bytes()),
            Self::Rest(by) => put_value(out, &((n % by) as i64).to_be_bytes()),
            Self::IntRest(by) => put_value(out, &((n % by) as u32).to_be_bytes()),
            Self::Uuid(by) => put_value(out, &uuid(n.checked_rem(*by).unwrap_or(n))),
            Self::QuotientText(by) => put_value(out, format!("device-{:08}", n / by).as_bytes()),
            Self::Double => put_value(out, &((mix(n) % 100_000) as f64 / 100.0).to_be_bytes()),
            Self::Digits(count) => {
                let mut text = String::with_capacity(count + 16);
                for i in 0..count.div_ceil(16) as u64 {
                    write!(text, "{:016x}", mix(n ^ i << 48))?;
                }
                put_value(out, &text.as_bytes()[..*count]);
            }
            Self::Blob(count) => {
                out.put_u32(*count as u32);
                let words = (0..count.div_ceil(8) as u64).flat_map(|i| mix(n ^ i << 48).to_be_bytes());
                words.take(*count).for_each(|byte| out.put_u8(byte));
            }
        }
        Ok(())
    }
}

/// Numbers that look random and are the same in every run (splitmix64).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn uuid(of: u64) -> [u8; 16] {
    let (high, low) = (mix(of) & !0xf000 | 0x4000, mix(!of) >> 2 | 1 << 63);
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

fn put_value(out: &mut BytesMut, value: &[u8]) {
    out.put_u32(value.len() as u32);
    out.put_slice(value);
}

fn put_name(out: &mut BytesMut, number: u64) {
    let mut digits = [b'0'; 10];
    let mut left = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    put_value(out, &digits);
}

fn put_list(out: &mut BytesMut, count: u64, mut put: impl FnMut(&mut BytesMut, u64)) {
    let at = out.len();
    out.put_u32(0);
    out.put_u32(count as u32);
    (0..count).for_each(|i| put(out, i));
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// A request whose statement has been prepared.
pub struct Template<'a> {
    request: &'a Request,
    id: &'a Bytes,
    level: Consistency,
}

impl<'a> Template<'a> {
    /// With the id that PREPARE gave. A consistency that does not exist ends the client.
    pub fn new(request: &'a Request, id: &'a Bytes) -> Self {
        let named = request.consistency.as_deref().map(Consistency::from_name);
        let level = named.map_or(Consistency::LocalOne, |level| level.expect("the name of a consistency level"));
        Self { request, id, level }
    }

    /// Appends the request of number `n`, an EXECUTE.
    pub fn encode(&self, out: &mut BytesMut, stream: u16, n: u64, paging_state: Option<&[u8]>) -> Result<()> {
        let mut done = Ok(());
        put_frame(out, stream, Opcode::Execute, |out| {
            self.put_id(out);
            out.put_u16(self.level as u16);
            let paging = if self.request.page_size.is_some() { PAGE_SIZE } else { 0 };
            let state = if paging_state.is_some() { PAGING_STATE } else { 0 };
            out.put_u8(VALUES | SKIP_METADATA | paging | state);
            done = self.put_values(out, n);
            if let Some(size) = self.request.page_size {
                out.put_i32(size);
            }
            if let Some(state) = paging_state {
                put_value(out, state);
            }
        });
        done
    }

    /// Appends a BATCH of the requests of these numbers.
    pub fn encode_batch(&self, out: &mut BytesMut, stream: u16, numbers: &[u64]) -> Result<()> {
        let mut done = Ok(());
        put_frame(out, stream, Opcode::Batch, |out| {
            out.put_u8(UNLOGGED);
            out.put_u16(numbers.len() as u16);
            for n in numbers {
                out.put_u8(KIND_PREPARED);
                self.put_id(out);
                done = std::mem::replace(&mut done, Ok(())).and_then(|()| self.put_values(out, *n));
            }
            out.put_u16(self.level as u16);
            out.put_u8(0);
        });
        done
    }

    fn put_id(&self, out: &mut BytesMut) {
        out.put_u16(self.id.len() as u16);
        out.put_slice(self.id);
    }

    fn put_values(&self, out: &mut BytesMut, n: u64) -> Result<()> {
        out.put_u16(self.request.values.len() as u16);
        self.request.values.iter().try_for_each(|form| form.put(out, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_once_in_any_step() {
        let index = Index::Each { from: 5, count: 1_000, step: 7_919 };
        let mut numbers: Vec<u64> = (0..index.count()).map(|i| index.at(i)).collect();
        assert_ne!(numbers[1], 6);
        numbers.sort_unstable();
        assert_eq!(numbers, (5..1_005).collect::<Vec<u64>>());
    }

    #[test]
    fn names_and_lists() {
        let bytes = |form: Form, n| {
            let mut out = BytesMut::new();
            form.put(&mut out, n).unwrap();
            out
        };
        assert_eq!(&bytes(Form::Name(1), 21)[..], b"\0\0\0\x0a0000000043");
        assert_eq!(&bytes(Form::NamesFrom(2), 1)[..12], b"\0\0\0\x20\0\0\0\x02\0\0\0\x0a");
        assert_eq!(bytes(Form::NamesSpread { count: 10, of: 1_000 }, 3).len(), 8 + 10 * 14);
        assert_eq!(bytes(Form::Digits(25), 3).len(), 29);
        assert_eq!(bytes(Form::Blob(100), 3).len(), 104);
        let (one, same, other) = (bytes(Form::Uuid(8), 3), bytes(Form::Uuid(8), 11), bytes(Form::Uuid(0), 11));
        assert!(one == same && one != other && one[10] >> 4 == 4 && one[12] >> 6 == 2, "{one:?}");
    }
}
