//! `mask_default`: one fixed value for each type. Agrees with the `getMaskedValue` of Cassandra's
//! types.

use types::{CqlType, CustomType, Duration, collection, timeuuid};

use super::super::{Function, Outcome, VALUE_BYTES_MAX};
use crate::error::CqlError;
use crate::scalar::type_name;

/// Appends the fixed value of the function's type.
pub(super) fn mask(function: &Function, _: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let Some(value) = masked(&function.returns) else {
        let ty = type_name(&function.returns);
        return Err(CqlError::invalid(format!("There isn't a defined masked value for type {ty}")));
    };
    out.extend_from_slice(&value);
    Ok(true)
}

/// The fixed value of a type; None: the type has none, or one that is too large.
fn masked(ty: &CqlType) -> Option<Vec<u8>> {
    use CqlType as T;
    Some(match ty {
        T::Text | T::Ascii => b"****".to_vec(),
        T::Blob | T::Empty => Vec::new(),
        T::Boolean | T::TinyInt | T::Varint => vec![0],
        T::SmallInt => vec![0; 2],
        T::Int | T::Float | T::Inet => vec![0; 4],
        // 1970-01-01
        T::Date => (1u32 << 31).to_be_bytes().to_vec(),
        T::BigInt | T::Counter | T::Double | T::Timestamp | T::Time => vec![0; 8],
        // scale 0, unscaled 0
        T::Decimal => vec![0; 5],
        T::Uuid => vec![0; 16],
        T::TimeUuid => timeuuid::min_of_millis(0).to_vec(),
        T::Duration => Duration { months: 0, days: 0, nanoseconds: 0 }.encode(),
        T::List { .. } | T::Set { .. } | T::Map { .. } => collection::build_list::<&[u8]>(&[]),
        T::Tuple(types) => masked_fields(types.iter())?,
        T::Udt(udt, _) => masked_fields(udt.fields.iter().map(|(_, ty)| ty))?,
        T::Vector { element, dimension } => {
            let one = collection::build_vector(element, &[masked(element)?]);
            let count = usize::try_from(*dimension).ok()?;
            // the dimensions of vectors in each other multiply
            let size = one.len().checked_mul(count)?;
            (size <= VALUE_BYTES_MAX).then(|| one.repeat(count))?
        }
        T::Custom(custom) => match custom.as_ref() {
            CustomType::Reversed(ty) => return masked(ty),
            CustomType::LexicalUuid => vec![0; 16],
            CustomType::LegacyDate => vec![0; 8],
            _ => return None,
        },
    })
}

/// The fixed values of fields as one value; None: a field has none, or all together are too large.
/// Each field alone may have as many bytes as the value of a function.
fn masked_fields<'t>(types: impl Iterator<Item = &'t CqlType>) -> Option<Vec<u8>> {
    let (mut fields, mut room) = (Vec::new(), VALUE_BYTES_MAX);
    for ty in types {
        let value = masked(ty)?;
        room = room.checked_sub(value.len())?;
        fields.push(Some(value));
    }
    Some(collection::build_tuple(&fields))
}
