//! A ballot: the number of an attempt to agree on one change of one partition.
//!
//! A ballot is a version-1 UUID whose time is microseconds · 10 + flag, in units of 100 ns since
//! 1582-10-15; its last eight bytes are random. Ballots are compared by their times alone: of two
//! different ballots with the same time neither is after the other. Agrees with
//! `org.apache.cassandra.service.paxos.Ballot`.

use std::fmt;

use types::timeuuid;

/// Units of 100 ns in a microsecond.
const TICKS_PER_MICRO: i64 = 10;
/// Units of 100 ns from 1582-10-15, where UUID time begins, to 1970.
const EPOCH_TICKS: i64 = 122_192_928_000_000_000;
/// The last eight bytes of [`Ballot::NONE`] as releases before 4.1 wrote them (CASSANDRA-20493).
const NONE_END_BEFORE_4_1: u64 = 0x8080_8080_8080_8080;

/// The meaning of the last decimal digit of a ballot's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BallotFlag {
    /// Nothing.
    None,
    /// Replicas of one data center decide: the serial level is LOCAL_SERIAL.
    Local,
    /// Replicas of all data centers decide: the serial level is SERIAL.
    Global,
}

/// The number of an attempt. Two ballots are equal if all of their bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ballot([u8; 16]);

impl Ballot {
    /// The ballot that stands where there is none: 1970, with zeros behind the time.
    pub const NONE: Self = Self([0x13, 0x81, 0x40, 0x00, 0x1d, 0xd2, 0x11, 0xb2, 0, 0, 0, 0, 0, 0, 0, 0]);

    /// The ballot of a time in microseconds since 1970. `random` becomes the last eight bytes.
    pub fn new(time_micros: i64, flag: BallotFlag, random: u64) -> Self {
        let ticks = time_micros.saturating_mul(TICKS_PER_MICRO).saturating_add(flag as i64);
        Self(timeuuid::from_parts(ticks, random))
    }

    /// The ballot of the bytes of a UUID, of which only the time and the last eight bytes count.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let [.., a, b, c, d, e, f, g, h] = bytes;
        let (ticks, random) = (timeuuid::unix_ticks(&bytes), u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        if random == NONE_END_BEFORE_4_1 && ticks / TICKS_PER_MICRO == 0 {
            return Self::NONE;
        }
        Self(timeuuid::from_parts(ticks, random))
    }

    /// The bytes of the UUID.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The time in units of 100 ns since 1582-10-15, by which ballots are compared.
    pub fn ticks(&self) -> i64 {
        timeuuid::unix_ticks(&self.0) + EPOCH_TICKS
    }

    /// The time in microseconds since 1970: the timestamp of the cells that the ballot writes.
    pub fn micros(&self) -> i64 {
        timeuuid::unix_micros(&self.0)
    }

    /// The meaning of the last digit of the time.
    pub fn flag(&self) -> BallotFlag {
        match self.ticks() % TICKS_PER_MICRO {
            1 => BallotFlag::Local,
            2 => BallotFlag::Global,
            _ => BallotFlag::None,
        }
    }

    /// Whether this ballot's time is later than the other's.
    pub fn is_after(&self, other: &Self) -> bool {
        self.ticks() > other.ticks()
    }

    /// Whether this is the other ballot or a later one. Another ballot of the same time is neither.
    pub fn is_same_or_after(&self, other: &Self) -> bool {
        self == other || self.is_after(other)
    }

    /// The later of two ballots; this one if their times are the same.
    #[must_use]
    pub fn latest(self, other: Self) -> Self {
        if other.is_after(&self) { other } else { self }
    }
}

impl fmt::Display for Ballot {
    /// The text of the UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_1970_in_all_of_its_forms() {
        assert_eq!(Ballot::new(0, BallotFlag::None, 0), Ballot::NONE);
        assert_eq!(Ballot::NONE.to_string(), "13814000-1dd2-11b2-0000-000000000000");
        assert_eq!((Ballot::NONE.micros(), Ballot::NONE.ticks()), (0, EPOCH_TICKS));
        let mut before_4_1 = *Ballot::NONE.bytes();
        before_4_1[8..].copy_from_slice(&NONE_END_BEFORE_4_1.to_be_bytes());
        assert_eq!(Ballot::from_bytes(before_4_1), Ballot::NONE);
        let later = Ballot::new(1, BallotFlag::None, NONE_END_BEFORE_4_1);
        assert_eq!(Ballot::from_bytes(*later.bytes()), later);
    }

    #[test]
    fn times_alone_order_ballots() {
        let ballot = |micros, flag, random| Ballot::new(micros, flag, random);
        let one = ballot(1_795_375_342_788_000, BallotFlag::Global, 7);
        let twin = ballot(1_795_375_342_788_000, BallotFlag::Global, 9);
        assert!(!one.is_after(&twin) && !twin.is_after(&one) && one != twin);
        assert!(one.is_same_or_after(&one) && !one.is_same_or_after(&twin));
        assert_eq!((one.latest(twin), twin.latest(one)), (one, twin));
        let local = ballot(1_795_375_342_788_000, BallotFlag::Local, 9);
        assert!(one.is_after(&local), "the flag is part of the time");
        assert_eq!((one.micros(), local.micros()), (1_795_375_342_788_000, 1_795_375_342_788_000));
        assert_eq!(
            (one.flag(), local.flag(), Ballot::NONE.flag()),
            (BallotFlag::Global, BallotFlag::Local, BallotFlag::None)
        );
    }

    #[test]
    fn any_bytes_are_a_ballot_that_is_a_version_1_uuid() {
        for bytes in [[0; 16], [0xff; 16]] {
            let ballot = Ballot::from_bytes(bytes);
            assert_eq!(ballot.bytes()[6] >> 4, 1);
            assert_eq!(Ballot::from_bytes(*ballot.bytes()), ballot);
        }
        assert_eq!(Ballot::from_bytes([0; 16]).ticks(), 0);
        assert_eq!(Ballot::from_bytes([0xff; 16]).ticks(), (1 << 60) - 1);
    }
}
