//! Tokens and decorated keys: the order of partitions. Agrees with `org.apache.cassandra.dht.Murmur3Partitioner`.

use std::cmp::Ordering;

use bytes::Bytes;

/// A place on the ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub i64);

impl Token {
    /// The smallest; that of no key but the empty one.
    pub const MIN: Self = Self(i64::MIN);
    /// The largest.
    pub const MAX: Self = Self(i64::MAX);

    /// Token of a serialized partition key.
    pub fn of_key(key: &[u8]) -> Self {
        if key.is_empty() {
            return Self::MIN;
        }
        match stdx::murmur3(key).0 {
            i64::MIN => Self::MAX,
            token => Self(token),
        }
    }
}

/// A partition key with its token. Order: token, then unsigned key bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DecoratedKey {
    /// Its token.
    pub token: Token,
    /// The serialized key.
    pub key: Bytes,
}

impl DecoratedKey {
    /// Of a serialized key.
    pub fn new(key: Bytes) -> Self {
        Self { token: Token::of_key(&key), key }
    }
}

impl Ord for DecoratedKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.token.cmp(&other.token).then_with(|| self.key.cmp(&other.key))
    }
}

impl PartialOrd for DecoratedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
