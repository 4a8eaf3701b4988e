//! Storage-attached indexes (SAI) in the schema: how they are named, the form in which text is
//! compared, and the types that they take.
//!
//! How the entries are kept beside each SSTable is docs/formats/attached-index.md. Agrees with
//! `org.apache.cassandra.index.sai.{StorageAttachedIndex,utils.IndexTermType}` and
//! `…index.sai.analyzer.NonTokenizingOptions`.

use std::borrow::Cow;

use types::{CqlType, Similarity};

use super::IndexMetadata;

/// The class, as it may be named in full.
pub const CLASS: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";
/// The option by which upper and lower case count as the same.
pub const CASE_SENSITIVE: &str = "case_sensitive";
/// The option by which text is compared in Unicode's form C.
pub const NORMALIZE: &str = "normalize";
/// The option by which letters are compared by their ASCII relatives.
pub const ASCII: &str = "ascii";

/// Whether a class named by a statement or by `system_schema.indexes` is that of storage-attached
/// indexes. Short names are compared without case.
pub fn is_attached_class(class: &str) -> bool {
    class == CLASS || class.eq_ignore_ascii_case("sai") || class.eq_ignore_ascii_case("StorageAttachedIndex")
}

/// Whether an index of the schema is storage-attached.
pub fn is_attached(index: &IndexMetadata) -> bool {
    index.options.get("class_name").is_some_and(|class| is_attached_class(class))
}

/// The form in which an index compares text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextForm {
    /// False: upper and lower case count as the same.
    pub case_sensitive: bool,
}

impl TextForm {
    /// Text is compared as it is.
    pub const PLAIN: Self = Self { case_sensitive: true };

    /// The form that an index's options ask for. None: a form that this version does not have
    /// (`normalize`, `ascii`), so that its index cannot be kept up.
    pub fn of(index: &IndexMetadata) -> Option<Self> {
        let is_on = |name: &str| index.options.get(name).map(|value| value.eq_ignore_ascii_case("true"));
        if is_on(NORMALIZE) == Some(true) || is_on(ASCII) == Some(true) {
            return None;
        }
        Some(Self { case_sensitive: is_on(CASE_SENSITIVE).unwrap_or(true) })
    }

    /// A value in this form. Bytes that are no UTF-8 stay as they are.
    pub fn apply<'a>(&self, value: &'a [u8]) -> Cow<'a, [u8]> {
        if self.case_sensitive {
            return Cow::Borrowed(value);
        }
        match std::str::from_utf8(value) {
            Ok(text) => Cow::Owned(text.to_lowercase().into_bytes()),
            Err(_) => Cow::Borrowed(value),
        }
    }
}

/// The option with the function by which vectors are compared.
pub const SIMILARITY_FUNCTION: &str = "similarity_function";

/// The function by which an index on vectors compares them. None: the option names none that there
/// is.
pub fn similarity_of(index: &IndexMetadata) -> Option<Similarity> {
    index.options.get(SIMILARITY_FUNCTION).map_or(Some(Similarity::Cosine), |name| Similarity::of_name(name))
}

/// Whether values of a type can be terms of an index: the simple types but blob, counter and
/// duration, and everything that is frozen.
pub fn is_supported(ty: &CqlType) -> bool {
    match ty {
        CqlType::Blob | CqlType::Counter | CqlType::Duration | CqlType::Empty | CqlType::Custom(_) => false,
        CqlType::Vector { .. } => false,
        CqlType::List { frozen, .. } | CqlType::Set { frozen, .. } | CqlType::Map { frozen, .. } => *frozen,
        _ => true,
    }
}

/// Whether an index on values of a type answers `<` and `>`.
pub fn has_ranges(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::BigInt
            | CqlType::Date
            | CqlType::Decimal
            | CqlType::Double
            | CqlType::Float
            | CqlType::Inet
            | CqlType::Int
            | CqlType::SmallInt
            | CqlType::Time
            | CqlType::TimeUuid
            | CqlType::Timestamp
            | CqlType::TinyInt
            | CqlType::Varint
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_class() {
        for name in ["sai", "SAI", "StorageAttachedIndex", "storageattachedindex", CLASS] {
            assert!(is_attached_class(name), "{name}");
        }
        for name in ["legacy_local_table", "org.apache.cassandra.index.sasi.SASIIndex", "x.StorageAttachedIndex"] {
            assert!(!is_attached_class(name), "{name}");
        }
    }

    #[test]
    fn text_in_its_form() {
        let folding = TextForm { case_sensitive: false };
        assert_eq!(&*folding.apply("ÄbC".as_bytes()), "äbc".as_bytes());
        assert_eq!(&*TextForm::PLAIN.apply(b"AbC"), b"AbC");
        assert_eq!(&*folding.apply(b"\xffA"), b"\xffA");
    }
}
