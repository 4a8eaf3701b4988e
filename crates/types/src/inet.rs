//! Internet addresses as text. Agrees with `java.net.InetAddress`: IPv6 is printed in full groups
//! without `::`, and an IPv6 address that holds an IPv4 address becomes that address. Host names
//! are refused, not looked up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The bytes of an address. None: the text is no address.
pub fn parse(text: &str) -> Option<Vec<u8>> {
    if let Some(address) = ipv4(text) {
        return Some(address.to_vec());
    }
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let without_scope = inner.split('%').next().unwrap_or_default();
    let address: Ipv6Addr = without_scope.parse().ok()?;
    Some(match address.to_ipv4_mapped() {
        Some(mapped) => mapped.octets().to_vec(),
        None => address.octets().to_vec(),
    })
}

/// One to four numbers with dots between them; the last number fills all bytes that are left.
fn ipv4(text: &str) -> Option<[u8; 4]> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, first) = parts.split_last().filter(|_| parts.len() <= 4)?;
    let number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|_| digits)
    };
    let mut address = 0;
    for part in first {
        address = address << 8 | number(part).filter(|part| *part <= 0xff)?;
    }
    let bits = 32 - 8 * first.len();
    let last = number(last).filter(|last| last >> bits == 0)?;
    Some(((address << bits | last) as u32).to_be_bytes())
}

/// An address of 4 or 16 bytes as text. None: another number of bytes.
pub fn print(bytes: &[u8]) -> Option<String> {
    match of_bytes(bytes)? {
        IpAddr::V4(address) => Some(address.to_string()),
        IpAddr::V6(address) => {
            let groups: Vec<String> = address.segments().iter().map(|group| format!("{group:x}")).collect();
            Some(groups.join(":"))
        }
    }
}

/// An address of 4 or 16 bytes. None: another number of bytes.
pub fn of_bytes(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
    Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_there_and_back() {
        let cases = [
            ("127.0.0.1", "127.0.0.1"),
            ("1.2", "1.0.0.2"),
            ("256", "0.0.1.0"),
            ("::1", "0:0:0:0:0:0:0:1"),
            ("2001:DB8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
            ("::ffff:1.2.3.4", "1.2.3.4"),
            ("[fe80::1]", "fe80:0:0:0:0:0:0:1"),
            ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1"),
        ];
        for (text, printed) in cases {
            assert_eq!(parse(text).and_then(|bytes| print(&bytes)).as_deref(), Some(printed));
        }
        for text in ["", "localhost", "1.2.3.4.5", "256.0.0.1", "1..2", ":", "4294967296", "1.2.3.+4"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
