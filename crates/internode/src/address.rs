//! `addr`: the broadcast address of a node as peers write it.
//!
//! One byte of length (6 or 18), the four or sixteen bytes of the address, two bytes of port
//! (`org.apache.cassandra.locator.InetAddressAndPort.Serializer`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use stdx::Cursor;

use crate::error::InternodeError;

const V4_SIZE: u8 = 6;
const V6_SIZE: u8 = 18;

/// The fewest bytes that an address takes.
pub const SIZE_MIN: usize = 1 + V4_SIZE as usize;
/// The most bytes that an address takes.
pub const SIZE_MAX: usize = 1 + V6_SIZE as usize;

/// Appends the form of `address`.
pub fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(V4_SIZE);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(V6_SIZE);
            out.extend_from_slice(&ip.octets());
        }
    }
    stdx::put_u16(out, address.port());
}

/// Reads an address.
pub fn read_address(cursor: &mut Cursor<'_>) -> Result<SocketAddr, InternodeError> {
    let ip: IpAddr = match cursor.u8()? {
        V4_SIZE => Ipv4Addr::from(cursor.u32()?).into(),
        V6_SIZE => {
            let (high, low) = (cursor.u64()?, cursor.u64()?);
            Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)).into()
        }
        other => return Err(InternodeError::Value { part: "the length of an address", found: i64::from(other) }),
    };
    Ok(SocketAddr::new(ip, cursor.u16()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families() {
        for (address, size) in [("127.0.0.2:7000", 7), ("[2001:db8::1]:7000", 19)] {
            let address: SocketAddr = address.parse().unwrap();
            let mut out = Vec::new();
            put_address(&mut out, address);
            assert_eq!(out.len(), size);
            assert_eq!(read_address(&mut Cursor::new(&out)), Ok(address));
        }
        assert!(read_address(&mut Cursor::new(&[4, 127, 0, 0, 1])).is_err());
    }
}
