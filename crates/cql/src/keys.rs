//! Serialized partition keys: composing, taking apart, limits.
//!
//! Agrees with `org.apache.cassandra.db.marshal.CompositeType.build`, `cql3.Validation.validateKey`
//! and `db.ClusteringPrefix.validate`.

use bytes::Bytes;
use smallvec::SmallVec;
use stdx::Cursor;

use crate::error::CqlError;

/// The longest partition key, in bytes.
pub(crate) const KEY_SIZE_MAX: usize = 65_535;

/// Composes a key. One component is the key itself; of several, each is written as `u16 length,
/// bytes, 0`.
pub(crate) fn compose(components: &[Bytes]) -> Result<Bytes, CqlError> {
    if let [only] = components {
        return Ok(only.clone());
    }
    let length: usize = components.iter().map(|component| component.len() + 3).sum();
    let mut out = Vec::with_capacity(length);
    for component in components {
        if component.len() > KEY_SIZE_MAX {
            return Err(too_long(component.len()));
        }
        stdx::put_short_bytes(&mut out, component);
        out.push(0);
    }
    Ok(out.into())
}

fn too_long(length: usize) -> CqlError {
    CqlError::invalid(format!("Key length of {length} is longer than maximum of {KEY_SIZE_MAX}"))
}

/// Refuses keys that are empty or too long.
pub(crate) fn check(key: &[u8]) -> Result<(), CqlError> {
    if key.is_empty() {
        return Err(CqlError::invalid("Key may not be empty"));
    }
    if key.len() > KEY_SIZE_MAX {
        return Err(too_long(key.len()));
    }
    Ok(())
}

/// Refuses a clustering whose values together are longer than a key may be.
pub(crate) fn check_clustering(values: &[Option<Bytes>]) -> Result<(), CqlError> {
    match values.iter().flatten().map(Bytes::len).sum() {
        length if length > KEY_SIZE_MAX => Err(too_long(length)),
        _ => Ok(()),
    }
}

/// The components of a key.
pub(crate) type Components = SmallVec<[Bytes; 2]>;

/// Takes a key apart. Of a malformed composite the components before the fault are returned.
pub(crate) fn decompose(key: &Bytes, columns: usize) -> Components {
    let mut components = Components::new();
    if columns == 1 {
        components.push(key.clone());
        return components;
    }
    let mut cursor = Cursor::new(key);
    while components.len() < columns {
        let Ok(component) = cursor.short_bytes() else { break };
        components.push(if component.is_empty() { Bytes::new() } else { key.slice_ref(component) });
        if cursor.u8().is_err() {
            break;
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_apart_as_they_were_put_together() {
        let parts = [Bytes::from_static(&[0, 0, 0, 1]), Bytes::from_static(b"a")];
        let key = compose(&parts).unwrap();
        assert_eq!(key.as_ref(), [0, 4, 0, 0, 0, 1, 0, 0, 1, b'a', 0]);
        assert_eq!(decompose(&key, 2).as_slice(), parts);
        assert_eq!(decompose(&parts[1], 1).as_slice(), &parts[1..]);
    }
}
