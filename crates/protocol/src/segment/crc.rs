//! The two checksums of segments.
//!
//! CRC-24: polynomial 0x1974F0B, initial value 0x875060, bytes taken lowest first. CRC-32: zlib's, first fed with four fixed
//! bytes so that a run of zeros does not check itself. Agrees with `org.apache.cassandra.net.Crc`.

const CRC24_INITIAL: u32 = 0x0087_5060;
const CRC24_POLYNOMIAL: u32 = 0x0197_4F0B;
const CRC32_PREFIX: [u8; 4] = [0xFA, 0x2D, 0x55, 0xCA];

/// What a byte in the register's top eight bits turns into after eight shifts.
const CRC24_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= CRC24_POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = crc & 0x00FF_FFFF;
        byte += 1;
    }
    table
};

/// CRC-24 of a segment's header word.
pub fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(CRC24_INITIAL, |crc, byte| {
        let index = (crc >> 16) as u8 ^ byte;
        (crc << 8 & 0x00FF_FFFF) ^ CRC24_TABLE[usize::from(index)]
    })
}

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

    /// The specification's loop, a bit at a time.
    fn crc24_by_bits(bytes: &[u8]) -> u32 {
        let mut crc = CRC24_INITIAL;
        for byte in bytes {
            crc ^= u32::from(*byte) << 16;
            for _ in 0..8 {
                crc <<= 1;
                if crc & 0x0100_0000 != 0 {
                    crc ^= CRC24_POLYNOMIAL;
                }
            }
        }
        crc & 0x00FF_FFFF
    }

    #[test]
    fn the_table_equals_the_loop() {
        for seed in 0..2000u32 {
            let bytes = seed.wrapping_mul(0x9E37_79B1).to_le_bytes();
            assert_eq!(crc24(&bytes[..3]), crc24_by_bits(&bytes[..3]));
            assert_eq!(crc24(&bytes), crc24_by_bits(&bytes));
        }
    }

    #[test]
    fn crc32_has_the_prefix() {
        assert_eq!(crc32(b"abc"), crc32fast::hash(b"\xFA\x2D\x55\xCAabc"));
    }
}
