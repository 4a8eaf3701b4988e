//! Keys of several columns as one value: each component is `u16 length, bytes, 00`. Partition keys
//! with more than one column are stored in this form; a key of one column is stored as it is.
//! Agrees with `org.apache.cassandra.db.marshal.CompositeType`.

use stdx::{Cursor, put_short_bytes};

use crate::TypeError;

/// Longest partition key in bytes, which is also the longest component.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Puts the columns of a partition key together. Refuses a key longer than [`KEY_BYTES_MAX`].
pub fn compose(components: &[&[u8]]) -> Result<Vec<u8>, TypeError> {
    let mut out = Vec::new();
    compose_into(components, &mut out)?;
    Ok(out)
}

/// Appends the partition key made of these columns.
pub fn compose_into(components: &[&[u8]], out: &mut Vec<u8>) -> Result<(), TypeError> {
    let length = match components {
        [one] => one.len(),
        many => many.iter().map(|component| component.len() + 3).sum(),
    };
    if length > KEY_BYTES_MAX {
        return Err(TypeError::Bytes(
            format!("Key length of {length} is longer than maximum of {KEY_BYTES_MAX}").into(),
        ));
    }
    if let [one] = components {
        out.extend_from_slice(one);
        return Ok(());
    }
    out.reserve(length);
    let start = out.len();
    for component in components {
        put_short_bytes(out, component);
        out.push(0);
    }
    debug_assert!(
        decompose(&out[start..], components.len()).is_some_and(|read| read == components),
        "a composite key decodes to its components"
    );
    Ok(())
}

/// Takes a partition key of `count` columns apart. None: the bytes are no such key.
pub fn decompose(key: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    if count == 1 {
        return Some(vec![key]);
    }
    let components: Option<Vec<_>> = components(key).take(count + 1).collect();
    components.filter(|components| components.len() == count)
}

/// The components of a composite value, without their end-of-component bytes; None in place of a
/// component that is cut off.
pub fn components(bytes: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut cursor = Cursor::new(bytes);
    let mut broken = false;
    std::iter::from_fn(move || {
        if broken || cursor.is_empty() {
            return None;
        }
        let component = cursor.short_bytes().ok().filter(|_| cursor.u8().is_ok());
        broken = component.is_none();
        Some(component)
    })
}

/// The text of a component as it stands between colons (`AbstractCompositeType.escape`).
pub(crate) fn escape(component: &str) -> String {
    let mut escaped = component.replace(':', "\\:");
    if escaped.ends_with(['\\', '!']) {
        escaped.push('!');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_told_from_colons() {
        let escaped = ["", "a", "a:b", "a\\", "b!", "!:"].map(escape);
        assert_eq!(escaped, ["", "a", "a\\:b", "a\\!", "b!!", "!\\:"]);
    }

    #[test]
    fn keys_come_back() {
        let key = compose(&[&[0, 0, 0, 1], b"a"]).expect("short enough");
        assert_eq!(key, [0, 4, 0, 0, 0, 1, 0, 0, 1, b'a', 0]);
        assert_eq!(decompose(&key, 2), Some(vec![&[0, 0, 0, 1][..], b"a"]));
        assert_eq!(decompose(&key, 3), None);
        assert_eq!(decompose(&key[..8], 2), None);
        assert_eq!(compose(&[b"alone"]).as_deref(), Ok(&b"alone"[..]));
        assert_eq!(decompose(b"alone", 1), Some(vec![&b"alone"[..]]));
        assert_eq!(decompose(&[0, 0, 0, 0, 0, 0], 2), Some(vec![&b""[..], b""]));
    }

    #[test]
    fn keys_have_a_greatest_length() {
        assert!(compose(&[&vec![0; KEY_BYTES_MAX]]).is_ok());
        let error = compose(&[&vec![0; KEY_BYTES_MAX], b""]).expect_err("too long");
        assert_eq!(error.to_string(), "Key length of 65541 is longer than maximum of 65535");
    }
}
