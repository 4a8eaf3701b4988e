//! SASI indexes in the schema: their modes, and the form in which they compare text.
//!
//! Their entries are kept as those of storage-attached indexes are
//! (docs/formats/attached-index.md). Analyzers that cut a text into
//! words are not known: an index with one of them is not kept up.
//! Agrees with `org.apache.cassandra.index.sasi.conf.IndexMode` and `…sasi.analyzer`.

use types::CqlType;

use super::IndexMetadata;
use super::attached::TextForm;

/// The class, as it is named in full.
pub const CLASS: &str = "org.apache.cassandra.index.sasi.SASIIndex";
/// The package of the analyzers.
pub const ANALYZERS: &str = "org.apache.cassandra.index.sasi.analyzer.";

/// The conditions that an index is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The beginning of a text; of numbers a range.
    Prefix,
    /// Any part of a text.
    Contains,
    /// A range of numbers that have few rows each.
    Sparse,
}

/// The kind of a LIKE, by the places of its `%`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LikeKind {
    /// `'text%'`
    Prefix,
    /// `'%text'`
    Suffix,
    /// `'%text%'`
    Contains,
    /// `'text'`
    Matches,
}

impl LikeKind {
    /// The operator as messages show it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Prefix => "LIKE '<term>%'",
            Self::Suffix => "LIKE '%<term>'",
            Self::Contains => "LIKE '%<term>%'",
            Self::Matches => "LIKE '<term>'",
        }
    }

    /// Whether a text meets the condition.
    pub fn holds(self, found: &[u8], given: &[u8]) -> bool {
        match self {
            Self::Prefix => found.starts_with(given),
            Self::Suffix => found.ends_with(given),
            Self::Contains => given.is_empty() || found.windows(given.len()).any(|part| part == given),
            Self::Matches => found == given,
        }
    }
}

/// The settings of an index of this class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sasi {
    /// The mode.
    pub mode: Mode,
    /// The terms are text.
    pub is_literal: bool,
    /// The form of text.
    pub form: TextForm,
}

/// Whether a type is text.
fn is_text(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Text | CqlType::Ascii)
}

/// Whether an index of the schema is of this class.
pub fn is_sasi(index: &IndexMetadata) -> bool {
    index.options.get("class_name").is_some_and(|class| class == CLASS)
}

impl Mode {
    /// The mode that a text names, in any case of letters.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "PREFIX" => Self::Prefix,
            "CONTAINS" => Self::Contains,
            "SPARSE" => Self::Sparse,
            _ => return None,
        })
    }
}

impl Sasi {
    /// The index on a column of a type. None: its options are not understood, or ask for words.
    pub fn of(index: &IndexMetadata, ty: &CqlType) -> Option<Self> {
        let option = |name: &str| index.options.get(name).map(String::as_str);
        let is_on = |name: &str| option(name).map(|value| value.eq_ignore_ascii_case("true"));
        let mode = option("mode").map_or(Some(Mode::Prefix), Mode::of_name)?;
        let is_literal = is_text(ty);
        if is_on("is_literal").is_some_and(|given| given != is_literal) {
            return None;
        }
        let analyzer = option("analyzer_class").map(|class| class.strip_prefix(ANALYZERS).unwrap_or(class));
        let is_analyzed = is_on("analyzed").unwrap_or(analyzer.is_some());
        let form = match (is_analyzed, analyzer) {
            (false, _) | (true, Some("NoOpAnalyzer")) => TextForm::PLAIN,
            (true, Some("NonTokenizingAnalyzer")) => form_of(index),
            (true, None) if !is_literal => TextForm::PLAIN,
            (true, _) => return None,
        };
        Some(Self { mode, is_literal, form })
    }

    /// Whether the index answers `=`, and of what is no text ranges.
    pub fn has_ranges(&self) -> bool {
        !self.is_literal && self.mode != Mode::Contains
    }

    /// Whether the index answers a LIKE.
    pub fn answers(&self, kind: LikeKind) -> bool {
        match self.mode {
            Mode::Prefix => self.is_literal && matches!(kind, LikeKind::Prefix | LikeKind::Matches),
            Mode::Contains => self.is_literal,
            Mode::Sparse => false,
        }
    }
}

/// The form that NonTokenizingAnalyzer gives a text.
fn form_of(index: &IndexMetadata) -> TextForm {
    let is_on = |name: &str| index.options.get(name).map(|value| value.eq_ignore_ascii_case("true"));
    if is_on("case_sensitive") == Some(false) || is_on("normalize_lowercase") == Some(true) {
        return TextForm { case_sensitive: false, ..TextForm::PLAIN };
    }
    TextForm { uppercase: is_on("normalize_uppercase") == Some(true), ..TextForm::PLAIN }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::IndexKind;

    fn of(options: &[(&str, &str)], ty: &CqlType) -> Option<Sasi> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let options: BTreeMap<String, String> = options.iter().map(own).collect();
        Sasi::of(&IndexMetadata { name: "i".into(), kind: IndexKind::Custom, options }, ty)
    }

    #[test]
    fn options_say_mode_and_form() {
        let plain = of(&[], &CqlType::Text).expect("kept up");
        assert!(
            plain.answers(LikeKind::Prefix) && plain.answers(LikeKind::Matches) && !plain.answers(LikeKind::Suffix)
        );
        assert!(!plain.has_ranges() && of(&[], &CqlType::Int).is_some_and(|number| number.has_ranges()));
        let class = format!("{ANALYZERS}NonTokenizingAnalyzer");
        let folded =
            of(&[("mode", "contains"), ("analyzer_class", &class), ("case_sensitive", "false")], &CqlType::Text);
        let folded = folded.expect("kept up");
        assert_eq!(&*folded.form.apply("ÄB".as_bytes()), "äb".as_bytes());
        assert!(folded.answers(LikeKind::Suffix) && folded.answers(LikeKind::Contains));
        let upper =
            of(&[("analyzer_class", &class), ("normalize_uppercase", "true")], &CqlType::Text).expect("kept up");
        assert_eq!(&*upper.form.apply("äb".as_bytes()), "ÄB".as_bytes());
        let words = format!("{ANALYZERS}StandardAnalyzer");
        assert_eq!(of(&[("analyzer_class", &words)], &CqlType::Text), None);
        assert_eq!(of(&[("analyzed", "true")], &CqlType::Text), None, "text is cut into words without a class");
    }
}
