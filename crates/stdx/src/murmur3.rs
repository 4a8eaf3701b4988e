//! MurmurHash3 x64 128-bit, seed 0, with Cassandra's deviation: the bytes of the tail (length
//! modulo 16) are sign-extended before they are shifted in. Agrees with
//! `org.apache.cassandra.utils.MurmurHash.hash3_x64_128`.

pub mod standard;

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Both halves of the hash. The first half is the token of a partition key (except that `i64::MIN`
/// becomes `i64::MAX`, see `types::token`); bloom filters use both.
pub fn murmur3(key: &[u8]) -> (i64, i64) {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let (low, high) = block.split_at(8);
        let k1 = u64::from_le_bytes(low.try_into().expect("half of sixteen bytes"));
        let k2 = u64::from_le_bytes(high.try_into().expect("half of sixteen bytes"));
        h1 ^= mix1(k1);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2(k2);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let extended = |bytes: &[u8]| {
        bytes.iter().enumerate().fold(0u64, |k, (index, byte)| k ^ ((*byte as i8 as i64 as u64) << (8 * index)))
    };
    if tail.len() > 8 {
        h2 ^= mix2(extended(&tail[8..]));
    }
    if !tail.is_empty() {
        h1 ^= mix1(extended(&tail[..tail.len().min(8)]));
    }
    let length = key.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1 as i64, h2 as i64)
}

fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::murmur3;

    #[test]
    fn tokens_of_the_python_drivers_test() {
        let cases: [(&[u8], i64); 4] = [
            (b"123", -7_468_325_962_851_647_638),
            (b"\x00\xff\x10\xfa\x99".repeat(10).leak(), 5_837_342_703_291_459_765),
            (b"\xfe".repeat(8).leak(), -8_927_430_733_708_461_935),
            (b"\x10".repeat(8).leak(), 1_446_172_840_243_228_796),
        ];
        for (key, token) in cases {
            assert_eq!(murmur3(key).0, token);
        }
    }
}
