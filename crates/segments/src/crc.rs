//! The two checksums of segments: CRC-24 of the header, and zlib's CRC-32 of the payload, first fed
//! with four fixed bytes so that a run of zeros does not check itself. Agrees with
//! `org.apache.cassandra.net.Crc`.

pub use stdx::crc24::crc24;

const CRC32_PREFIX: [u8; 4] = [0xFA, 0x2D, 0x55, 0xCA];

/// CRC-32 of a segment's payload.
pub fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&CRC32_PREFIX);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32_has_the_prefix() {
        assert_eq!(crc32(b"abc"), crc32fast::hash(b"\xFA\x2D\x55\xCAabc"));
    }
}
