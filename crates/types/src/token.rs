//! Tokens and decorated keys: the order of partitions. Agrees with `org.apache.cassandra.dht.Murmur3Partitioner`.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;

use crate::{CqlType, byte_comparable};

/// A place on the ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub i64);

impl Token {
    /// The smallest; that of no key but the empty one.
    pub const MIN: Self = Self(i64::MIN);
    /// The largest.
    pub const MAX: Self = Self(i64::MAX);
    /// Stands in keys that have none.
    pub const LOCAL: Self = Self(0);

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

/// A partition key with its token. Order: token, local form where there is one, then unsigned key bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DecoratedKey {
    /// Its token; [`Token::LOCAL`] where the order is not by tokens.
    pub token: Token,
    /// The serialized key.
    pub key: Bytes,
    /// In the hidden tables of indexes, whose keys are ordered by their type (`LocalPartitioner`): the byte-comparable form by which they
    /// are, with its leading separator. None elsewhere; never both in one table.
    pub local: Option<Arc<[u8]>>,
}

impl DecoratedKey {
    /// Of a serialized key.
    pub fn new(key: Bytes) -> Self {
        Self { token: Token::of_key(&key), key, local: None }
    }

    /// Of a serialized key with a token that is known.
    pub fn at(token: Token, key: Bytes) -> Self {
        Self { token, key, local: None }
    }

    /// Of a serialized key in a table whose partitions are ordered by the type of their key.
    /// Agrees with `org.apache.cassandra.dht.LocalPartitioner`.
    pub fn local(ty: &CqlType, key: Bytes) -> Self {
        let mut form = Vec::with_capacity(key.len() + 8);
        byte_comparable::encode_local_token(ty, &key, &mut form);
        Self { token: Token::LOCAL, key, local: Some(form.into()) }
    }

    /// Appends the byte-comparable form of the key and its place.
    pub fn encode_comparable(&self, out: &mut Vec<u8>) {
        match &self.local {
            None => byte_comparable::encode_decorated_key(self.token, &self.key, out),
            Some(local) => byte_comparable::encode_local_key(local, &self.key, out),
        }
    }
}

impl Ord for DecoratedKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.token.cmp(&other.token).then_with(|| match (&self.local, &other.local) {
            (None, None) => self.key.cmp(&other.key),
            (a, b) => a.cmp(b).then_with(|| self.key.cmp(&other.key)),
        })
    }
}

impl PartialOrd for DecoratedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
