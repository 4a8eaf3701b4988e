//! All keys that Cassandra knows, and how each is treated. The list is `catalogue.txt`.

use std::sync::OnceLock;

use crate::units::{DATA, TIME};

const TEXT: &str = include_str!("catalogue.txt");

/// A key.
#[derive(Debug)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// The form of its values.
    pub kind: Kind,
    /// How its values are treated.
    pub treatment: Treatment,
    /// The default as text; empty: null.
    pub default: &'static str,
    /// Names in earlier versions, each with the unit of its plain numbers.
    pub old: Vec<(&'static str, OldUnit)>,
}

/// The form of a key's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// true, false
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Double,
    /// Any text.
    Text,
    /// A class name, alone or with parameters.
    Class,
    /// A list.
    List,
    /// A map of named sub-keys.
    Map,
    /// A duration, with the smallest unit that is allowed.
    Duration(&'static str),
    /// A size, with the smallest unit that is allowed.
    Size(&'static str),
    /// A rate.
    Rate,
}

/// How a key is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// The key is honoured.
    Use,
    /// The key has no meaning for this program and is accepted at every value.
    Any,
    /// The key is accepted only at the value that describes what the program does.
    Same,
}

/// The unit of the plain numbers of an old name; empty: values have the present form.
pub type OldUnit = &'static str;

/// All keys, ordered by name.
pub fn keys() -> &'static [Key] {
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(|| TEXT.lines().filter(|line| !line.starts_with("--")).map(read).collect())
}

/// Finds a key by its name or an old name; the second part is the unit of the old name.
pub fn find(name: &str) -> Option<(&'static Key, Option<OldUnit>)> {
    if let Some(key) = keys().iter().find(|key| key.name == name) {
        let same_name = key.old.iter().find(|(old, _)| *old == name).map(|(_, unit)| *unit);
        return Some((key, same_name));
    }
    keys().iter().find_map(|key| {
        let (_, unit) = key.old.iter().find(|(old, _)| *old == name)?;
        Some((key, Some(*unit)))
    })
}

/// The known name most similar to this one, if it is similar enough to be a typing error.
pub fn nearest(name: &str) -> Option<&'static str> {
    let names = keys().iter().flat_map(|key| std::iter::once(key.name).chain(key.old.iter().map(|(old, _)| *old)));
    let (distance, nearest) = names.map(|known| (distance(name, known), known)).min()?;
    (distance <= 1 + name.len() / 6).then_some(nearest)
}

/// Number of letters to insert, delete or change to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let changed = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn read(line: &'static str) -> Key {
    let mut fields = line.split('|').map(str::trim);
    let name = fields.next().expect("a name");
    let kind = kind(fields.next().expect("a kind"));
    let treatment = match fields.next() {
        Some("use") => Treatment::Use,
        Some("any") => Treatment::Any,
        Some("same") => Treatment::Same,
        other => unreachable!("treatment {other:?} of {name} in catalogue.txt"),
    };
    let default = fields.next().unwrap_or("");
    let old = fields
        .next()
        .unwrap_or("")
        .split_whitespace()
        .map(|old| old.split_once(':').expect("OLD_NAME:UNIT"))
        .map(|(name, unit)| (name, if unit == "=" { "" } else { unit }))
        .collect();
    Key { name, kind, treatment, default, old }
}

fn kind(text: &'static str) -> Kind {
    match text.split_once(':') {
        Some(("duration", least)) => Kind::Duration(least),
        Some(("size", least)) => Kind::Size(least),
        _ => match text {
            "bool" => Kind::Bool,
            "int" => Kind::Int,
            "double" => Kind::Double,
            "class" => Kind::Class,
            "list" => Kind::List,
            "map" => Kind::Map,
            "rate" => Kind::Rate,
            _ => Kind::Text,
        },
    }
}

/// How many of the smallest unit (nanoseconds, bytes, bytes a second) a plain number of an old name
/// counts.
pub(crate) fn old_factor(unit: OldUnit) -> u64 {
    match unit {
        "MiB/s" => 1 << 20,
        "Mbit/s" => 125_000,
        _ => TIME.iter().chain(DATA).find(|(known, _)| *known == unit).map_or(1, |(_, factor)| *factor),
    }
}

/// The built-in keyspaces or tables that a number of an old name counts and one of the present name
/// does not.
pub(crate) fn old_built_in(unit: OldUnit) -> i64 {
    unit.strip_prefix('-').and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_in_order_and_its_defaults_are_valid() {
        assert!(keys().is_sorted_by(|a, b| a.name < b.name));
        for key in keys() {
            if let Err(error) = crate::value::Value::of_default(key) {
                panic!("{}: {error}", key.name);
            }
        }
    }

    #[test]
    fn slips_are_recognized() {
        assert_eq!(nearest("num_token"), Some("num_tokens"));
        assert_eq!(nearest("comitlog_sync"), Some("commitlog_sync"));
        assert_eq!(nearest("colour_of_the_logo"), None);
    }
}
