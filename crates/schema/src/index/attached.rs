//! Storage-attached indexes (SAI) in the schema: how they are named, the form in which text is
//! compared, and the types that they take.
//!
//! How the entries are kept beside each SSTable is docs/formats/attached-index.md. Agrees with
//! `org.apache.cassandra.index.sai.{StorageAttachedIndex,utils.IndexTermType}` and
//! `…index.sai.analyzer.NonTokenizingOptions`.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use types::{CqlType, Similarity};

use super::IndexMetadata;
use super::folding::to_ascii;

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
    /// Text is compared in Unicode's form C.
    pub normalized: bool,
    /// Characters count as the same as their ASCII relatives.
    pub ascii: bool,
    /// Text is compared in upper case: SASI alone has that.
    pub uppercase: bool,
}

impl TextForm {
    /// The options that say the form.
    pub const OPTIONS: [&str; 3] = [CASE_SENSITIVE, NORMALIZE, ASCII];

    /// Text is compared as it is.
    pub const PLAIN: Self = Self { case_sensitive: true, normalized: false, ascii: false, uppercase: false };

    /// The form that an index's options ask for.
    pub fn of(index: &IndexMetadata) -> Self {
        let is_on = |name: &str| index.options.get(name).map(|value| value.eq_ignore_ascii_case("true"));
        Self {
            case_sensitive: is_on(CASE_SENSITIVE).unwrap_or(true),
            normalized: is_on(NORMALIZE).unwrap_or(false),
            ascii: is_on(ASCII).unwrap_or(false),
            uppercase: false,
        }
    }

    /// Text is compared as it is.
    pub fn is_plain(&self) -> bool {
        *self == Self::PLAIN
    }

    /// A value in this form: lower case first, then form C, then ASCII, as Cassandra applies them.
    /// Bytes that are no UTF-8 stay as they are.
    pub fn apply<'a>(&self, value: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_plain() {
            return Cow::Borrowed(value);
        }
        let Ok(text) = std::str::from_utf8(value) else { return Cow::Borrowed(value) };
        let mut text = Cow::Borrowed(text);
        if !self.case_sensitive {
            text = Cow::Owned(text.to_lowercase());
        }
        if self.uppercase {
            text = Cow::Owned(text.to_uppercase());
        }
        if self.normalized {
            text = Cow::Owned(ComposingNormalizerBorrowed::new_nfc().normalize(&text).into_owned());
        }
        if self.ascii {
            text = Cow::Owned(to_ascii(&text));
        }
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }

    /// The form among the facts of an index that its files name. Files of versions that knew of
    /// upper and lower case alone name it in the same words.
    pub fn fact(&self) -> String {
        let Self { case_sensitive, normalized, ascii, uppercase } = self;
        match *normalized || *ascii || *uppercase {
            false => format!("TextForm {{ case_sensitive: {case_sensitive} }}"),
            true => {
                format!(
                    "TextForm {{ case_sensitive: {case_sensitive}, normalized: {normalized}, ascii: {ascii}, uppercase: {uppercase} }}"
                )
            }
        }
    }
}

/// The option that says whether a search among vectors is to be fast or to miss few.
pub const OPTIMIZE_FOR: &str = "optimize_for";
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
        let folding = TextForm { case_sensitive: false, ..TextForm::PLAIN };
        assert_eq!(&*folding.apply("ÄbC".as_bytes()), "äbc".as_bytes());
        assert_eq!(&*TextForm::PLAIN.apply(b"AbC"), b"AbC");
        assert_eq!(&*folding.apply(b"\xffA"), b"\xffA");
        let composed = TextForm { normalized: true, ..TextForm::PLAIN };
        assert_eq!(&*composed.apply("a\u{308}\u{212b}".as_bytes()), "ä\u{c5}".as_bytes());
        let ascii = TextForm { ascii: true, ..TextForm::PLAIN };
        assert_eq!(&*ascii.apply("ä".as_bytes()), b"a");
        assert_eq!(&*ascii.apply("a\u{308}".as_bytes()), "a\u{308}".as_bytes(), "a mark by itself has no relative");
        let all = TextForm { case_sensitive: false, normalized: true, ascii: true, uppercase: false };
        assert_eq!(&*all.apply("A\u{308}ﬃ".as_bytes()), b"affi");
    }

    #[test]
    fn a_form_is_told_to_files_in_the_words_of_earlier_versions() {
        assert_eq!(TextForm::PLAIN.fact(), "TextForm { case_sensitive: true }");
        let ascii = TextForm { ascii: true, ..TextForm::PLAIN };
        assert_ne!(ascii.fact(), TextForm { normalized: true, ..TextForm::PLAIN }.fact());
    }
}
