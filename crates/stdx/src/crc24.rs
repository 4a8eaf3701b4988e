//! CRC-24 of native protocol v5 segment headers: initial value 0x875060, polynomial 0x1974F0B,
//! lowest byte first.

const INITIAL: u32 = 0x87_5060;
const POLYNOMIAL: u32 = 0x197_4f0b;

const TABLE: [u32; 256] = table();

// the remainder of one bit is the polynomial without its highest bit
const _: () = assert!(TABLE[0] == 0 && TABLE[1] == POLYNOMIAL & 0xff_ffff);

const fn table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            crc <<= 1;
            if crc & 0x100_0000 != 0 {
                crc ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[index] = crc & 0xff_ffff;
        index += 1;
    }
    table
}

/// The checksum of a segment header's bytes.
pub fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(INITIAL, |crc, byte| (crc << 8 & 0xff_ffff) ^ TABLE[((crc >> 16) as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bit_by_bit(bytes: &[u8]) -> u32 {
        bytes.iter().fold(INITIAL, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte) << 16, |crc, _| {
                let shifted = crc << 1;
                if shifted & 0x100_0000 != 0 { shifted ^ POLYNOMIAL } else { shifted }
            })
        })
    }

    #[test]
    fn the_table_equals_the_definition() {
        for length in 0..6 {
            let bytes: Vec<u8> = (0..length).map(|index| (index as u8).wrapping_mul(73)).collect();
            assert_eq!(crc24(&bytes), bit_by_bit(&bytes));
        }
    }
}
