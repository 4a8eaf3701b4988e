//! Tokens and decorated keys: the order of partitions. Agrees with
//! `org.apache.cassandra.dht.Murmur3Partitioner`.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;

use crate::{CqlType, byte_comparable};

/// A position on the ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub i64);

impl Token {
    /// The smallest token. Only the empty key has it.
    pub const MIN: Self = Self(i64::MIN);
    /// The largest.
    pub const MAX: Self = Self(i64::MAX);
    /// The token of keys that are not ordered by token.
    pub const LOCAL: Self = Self(0);

    /// The token of a serialized partition key.
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

/// A partition key with its token. Order: token, then local form if there is one, then the key's
/// bytes, unsigned.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DecoratedKey {
    /// The token; [`Token::LOCAL`] if the table's partitions are not ordered by token.
    pub token: Token,
    /// The serialized key.
    pub key: Bytes,
    /// The byte-comparable form by which the key is ordered, with its leading separator. Present in
    /// the hidden tables of indexes only, whose keys are ordered by their type
    /// (`LocalPartitioner`); None in all other tables. A table never has both kinds of keys.
    pub local: Option<Arc<[u8]>>,
}

impl DecoratedKey {
    /// A key with the token that follows from it.
    pub fn new(key: Bytes) -> Self {
        Self { token: Token::of_key(&key), key, local: None }
    }

    /// A key with a token that the caller has computed.
    pub fn at(token: Token, key: Bytes) -> Self {
        Self { token, key, local: None }
    }

    /// A key in a table whose partitions are ordered by the type of their key. Agrees with
    /// `org.apache.cassandra.dht.LocalPartitioner`.
    pub fn local(ty: &CqlType, key: Bytes) -> Self {
        let mut form = Vec::with_capacity(key.len() + 8);
        byte_comparable::encode_local_token(ty, &key, &mut form);
        Self { token: Token::LOCAL, key, local: Some(form.into()) }
    }

    /// Appends the byte-comparable form by which this key is ordered.
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
            (Some(a), Some(b)) => byte_comparable::compare_local(a, b).then_with(|| self.key.cmp(&other.key)),
            (a, b) => a.cmp(b).then_with(|| self.key.cmp(&other.key)),
        })
    }
}

impl PartialOrd for DecoratedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CustomType;

    /// An index on a descending column has keys whose forms may begin alike: a flush takes them in
    /// the order of the keys, and its trie in that of their forms.
    #[test]
    fn local_keys_are_ordered_as_their_forms() {
        let reversed = CqlType::Custom(Arc::new(CustomType::Reversed(CqlType::Blob)));
        for ty in [CqlType::Blob, reversed] {
            let values: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"\0\x01", b"a", b"a\0", b"a\0\0", b"\xff\xfe"];
            let keys = values.map(|value| DecoratedKey::local(&ty, Bytes::from_static(value)));
            for (a, b) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
                let form = |key: &DecoratedKey| {
                    let mut form = Vec::new();
                    key.encode_comparable(&mut form);
                    form
                };
                assert_eq!(a.cmp(b), form(a).cmp(&form(b)), "{a:?} {b:?}");
            }
        }
    }

    /// The keys of an index on doubles are ordered by their values, and those of NaNs among
    /// themselves by their bytes, as in Cassandra's files.
    #[test]
    fn local_keys_of_nans_are_the_last() {
        let bits = [f64::NEG_INFINITY.to_bits(), 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0000];
        let key = |bits: u64| DecoratedKey::local(&CqlType::Double, Bytes::copy_from_slice(&bits.to_be_bytes()));
        assert!(bits.map(key).is_sorted());
    }
}
