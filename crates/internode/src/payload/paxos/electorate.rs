//! The electorate: the nodes that a coordinator takes for those that decide about a partition.
//!
//! ```text
//! uvint32 n, n × addr: natural replicas; uvint32 n, n × addr: pending replicas
//! ```
//!
//! A replica that knows others tells what it knows of them all, so that the coordinator learns of a
//! change of the ring. Agrees with `org.apache.cassandra.service.paxos.Paxos.Electorate`.

use std::net::SocketAddr;

use stdx::Cursor;

use crate::address::{self, put_address, read_address};
use crate::error::InternodeError;
use crate::integers::{put_uvint32, read_length};

/// The nodes that decide. Of LOCAL_SERIAL those of one data center.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Electorate {
    /// The replicas.
    pub natural: Vec<SocketAddr>,
    /// The nodes that are about to become replicas.
    pub pending: Vec<SocketAddr>,
}

impl Electorate {
    /// Whether both have the same nodes, in whatever order.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same = |a: &[SocketAddr], b: &[SocketAddr]| {
            let of = |list: &[SocketAddr]| {
                let mut list = list.to_vec();
                list.sort_unstable();
                list.dedup();
                list
            };
            of(a) == of(b)
        };
        is_same(&self.natural, &other.natural) && is_same(&self.pending, &other.pending)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        for list in [&self.natural, &self.pending] {
            put_uvint32(out, i32::try_from(list.len()).expect("a partition has fewer replicas"));
            list.iter().for_each(|address| put_address(out, *address));
        }
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, InternodeError> {
        Ok(Self { natural: read_addresses(cursor)?, pending: read_addresses(cursor)? })
    }
}

fn read_addresses(cursor: &mut Cursor<'_>) -> Result<Vec<SocketAddr>, InternodeError> {
    let count = bounded_count(cursor, address::SIZE_MIN, "the number of nodes of an electorate")?;
    (0..count).map(|_| read_address(cursor)).collect()
}

/// Reads a uvint32 count of elements that take at least `size_min` bytes each. A count of more than
/// the bytes that are left can hold is refused.
pub(super) fn bounded_count(
    cursor: &mut Cursor<'_>,
    size_min: usize,
    part: &'static str,
) -> Result<usize, InternodeError> {
    let count = read_length(cursor, part)?;
    match count.saturating_mul(size_min) <= cursor.remaining() {
        true => Ok(count),
        false => Err(InternodeError::Value { part, found: i64::try_from(count).unwrap_or(i64::MAX) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter_and_kinds_do() {
        let [a, b]: [SocketAddr; 2] = [1, 2].map(|host| SocketAddr::from(([127, 0, 0, host], 7000)));
        let of = |natural: &[SocketAddr], pending: &[SocketAddr]| Electorate {
            natural: natural.to_vec(),
            pending: pending.to_vec(),
        };
        assert!(of(&[a, b], &[]).is_same(&of(&[b, a], &[])));
        assert!(!of(&[a, b], &[]).is_same(&of(&[a], &[b])));
        assert!(!of(&[a], &[]).is_same(&of(&[a, b], &[])));
    }
}
