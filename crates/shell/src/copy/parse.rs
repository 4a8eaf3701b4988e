//! A field of CSV as the bytes of a value: the texts that COPY TO writes, and those that cqlsh's
//! COPY FROM reads.
//!
//! Collections, tuples and user types are split at separators outside of brackets and quotes.
//! Nesting is bounded by [`DEPTH_MAX`].

use jiff::fmt::strtime::BrokenDownTime;
use types::collection::{build_list, build_map, build_set, build_tuple, build_vector};
use types::{CqlType, parse_text};

use crate::value::{Style, TIMESTAMP_FORMAT};

/// Values may be nested this deep.
const DEPTH_MAX: usize = 64;

/// The value of a field; None: a null.
pub fn field(ty: &CqlType, text: &str, style: &Style) -> Result<Option<Vec<u8>>, String> {
    if text == style.null {
        return Ok(None);
    }
    match value(ty, text, style, 0) {
        Ok(bytes) => Ok(Some(bytes)),
        // where NULL is another word, an empty field is a null of the types without an empty text
        Err(_) if text.is_empty() => Ok(None),
        Err(why) => Err(why),
    }
}

fn value(ty: &CqlType, text: &str, style: &Style, depth: usize) -> Result<Vec<u8>, String> {
    if depth > DEPTH_MAX {
        return Err(format!("values are nested more than {DEPTH_MAX} deep"));
    }
    let of_types = |text: &str| parse_text(ty, text).map_err(|error| error.to_string());
    let all = |element: &CqlType| -> Result<Vec<Vec<u8>>, String> {
        split(text, ',')?.into_iter().map(|part| inner(element, part, style, depth)).collect()
    };
    match ty {
        CqlType::Text | CqlType::Ascii => of_types(text),
        CqlType::Blob => of_types(text.trim()),
        CqlType::Boolean => match text.trim() {
            text if text.eq_ignore_ascii_case(&style.booleans[0]) => Ok(vec![1]),
            text if text.eq_ignore_ascii_case(&style.booleans[1]) => Ok(vec![0]),
            text => Err(format!("'{text}' is neither {} nor {}", style.booleans[0], style.booleans[1])),
        },
        _ if text.trim().is_empty() => Err("an empty text".into()),
        CqlType::TinyInt | CqlType::SmallInt | CqlType::Int | CqlType::BigInt | CqlType::Varint => {
            of_types(&without_groups(text.trim(), style))
        }
        CqlType::Counter => {
            let text = without_groups(text.trim(), style);
            parse_text(&CqlType::BigInt, &text).map_err(|error| error.to_string())
        }
        CqlType::Decimal | CqlType::Float | CqlType::Double => {
            let text = without_groups(text.trim(), style);
            match &style.decimal_separator {
                Some(separator) => of_types(&text.replace(separator.as_str(), ".")),
                None => of_types(&text),
            }
        }
        CqlType::Timestamp => timestamp(text.trim(), style),
        CqlType::List { element, .. } => Ok(build_list(&all(element)?)),
        CqlType::Set { element, .. } => Ok(build_set(element, all(element)?)),
        CqlType::Vector { element, dimension } => {
            let parts = all(element)?;
            match parts.len() == *dimension as usize {
                true => Ok(build_vector(element, &parts)),
                false => Err(format!("{} elements for a vector of {dimension}", parts.len())),
            }
        }
        CqlType::Map { key, value: of_value, .. } => {
            let mut entries = Vec::new();
            for part in split(text, ',')? {
                // cqlsh writes times without quotes: two colons are the key's own
                let is_bare_time = matches!(**key, CqlType::Time) && !part.trim_start().starts_with('\'');
                let (k, v) = pair(part, if is_bare_time { 2 } else { 0 })?;
                entries.push((inner(key, k, style, depth)?, inner(of_value, v, style, depth)?));
            }
            Ok(build_map(key, entries))
        }
        CqlType::Tuple(parts) => {
            let texts = split(text, ',')?;
            if texts.len() > parts.len() {
                return Err(format!("{} fields for a tuple of {}", texts.len(), parts.len()));
            }
            let fields: Result<Vec<_>, _> =
                texts.iter().zip(parts.iter()).map(|(text, ty)| nullable(ty, text, style, depth)).collect();
            Ok(build_tuple(&fields?))
        }
        CqlType::Udt(user_type, _) => {
            let mut given = Vec::new();
            for part in split(text, ',')? {
                let (name, text) = pair(part, 0)?;
                let name = unquote(name.trim(), '"');
                if !user_type.fields.iter().any(|(known, _)| *known == name) {
                    return Err(format!("type {} has no field {name}", user_type.name));
                }
                given.push((name, text));
            }
            let fields =
                user_type.fields.iter().map(|(name, ty)| match given.iter().find(|(known, _)| known == name) {
                    Some((_, text)) => nullable(ty, text, style, depth),
                    None => Ok(None),
                });
            Ok(build_tuple(&fields.collect::<Result<Vec<_>, _>>()?))
        }
        _ => of_types(text.trim()),
    }
}

/// A value within another one: strings may stand in quotes there.
fn inner(ty: &CqlType, text: &str, style: &Style, depth: usize) -> Result<Vec<u8>, String> {
    value(ty, &unquote(text.trim(), '\''), style, depth + 1)
}

fn nullable(ty: &CqlType, text: &str, style: &Style, depth: usize) -> Result<Option<Vec<u8>>, String> {
    // cqlsh writes nulls within tuples as Python's None
    let trimmed = text.trim();
    match trimmed == style.null || trimmed == "null" || trimmed == "None" {
        true => Ok(None),
        false => inner(ty, text, style, depth).map(Some),
    }
}

fn unquote(text: &str, quote: char) -> String {
    match text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
        Some(inner) => inner.replace(&format!("{quote}{quote}"), &quote.to_string()),
        None => text.to_owned(),
    }
}

fn without_groups(text: &str, style: &Style) -> String {
    match &style.thousands_separator {
        Some(separator) => text.replace(separator.as_str(), ""),
        None => text.to_owned(),
    }
}

/// The parts of a text in brackets. Separators within inner brackets or quotes are none.
fn split(text: &str, separator: char) -> Result<Vec<&str>, String> {
    let text = text.trim();
    let inside = [('{', '}'), ('[', ']'), ('(', ')')]
        .into_iter()
        .find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close))
        .ok_or_else(|| format!("'{text}' does not stand in brackets"))?;
    if inside.trim().is_empty() {
        return Ok(Vec::new());
    }
    Ok(parts(inside, separator))
}

fn parts(inside: &str, separator: char) -> Vec<&str> {
    let (mut found, mut start, mut level, mut quoted) = (Vec::new(), 0, 0, false);
    for (at, c) in inside.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' | '(' => level += 1,
            '}' | ']' | ')' => level -= 1,
            _ if c == separator && level == 0 => {
                found.push(&inside[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    found.push(&inside[start..]);
    found
}

/// Key and value: what stands before and behind a colon that is neither in quotes nor in brackets.
/// `within`: as many colons before it are part of the key.
fn pair(text: &str, within: usize) -> Result<(&str, &str), String> {
    let end = parts(text, ':').iter().take(within + 1).map(|part| part.len() + 1).sum::<usize>() - 1;
    match (text.get(..end), text.get(end + 1..)) {
        (Some(key), Some(value)) => Ok((key, value)),
        _ => Err(format!("'{text}' is not key: value")),
    }
}

/// A timestamp in the format of the options, in one of CQL's, or in milliseconds.
fn timestamp(text: &str, style: &Style) -> Result<Vec<u8>, String> {
    let bytes = |millis: i64| millis.to_be_bytes().to_vec();
    if style.timestamp_format != TIMESTAMP_FORMAT
        && let Some(millis) = by_format(text, style)
    {
        return Ok(bytes(millis));
    }
    match parse_text(&CqlType::Timestamp, text) {
        Ok(value) => Ok(value),
        Err(error) => by_format(text, style).map(bytes).ok_or_else(|| error.to_string()),
    }
}

fn by_format(text: &str, style: &Style) -> Option<i64> {
    let time = BrokenDownTime::parse(&style.timestamp_format, text).ok()?;
    let moment = match time.to_timestamp() {
        Ok(moment) => moment,
        Err(_) => {
            let civil = time.to_datetime().or_else(|_| time.to_date().map(|date| date.at(0, 0, 0, 0))).ok()?;
            civil.to_zoned(style.zone.clone()).ok()?.timestamp()
        }
    };
    Some(moment.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::show;

    fn style() -> Style {
        Style { null: String::new(), escape: false, milliseconds_only: true, double_precision: 12, ..Style::default() }
    }

    #[test]
    fn texts_of_copy_to_come_back() {
        let user_type = |text: &str| {
            (text == "place").then(|| {
                let fields = vec![("street".to_owned(), CqlType::Text), ("Number".to_owned(), CqlType::Int)];
                std::sync::Arc::new(types::UserType { keyspace: "ks".into(), name: "place".into(), fields })
            })
        };
        let cases = [
            ("int", "-5"),
            ("text", "it's, {a: b}\\\n"),
            ("boolean", "True"),
            ("double", "1.25"),
            ("decimal", "0E-10"),
            ("blob", "0x00ff"),
            ("timestamp", "2024-02-29 12:34:56.789+0000"),
            ("date", "2024-02-29"),
            ("time", "23:59:59.999999999"),
            ("duration", "1y2mo25d5h6m7s8ms9us10ns"),
            ("inet", "2001:db8::1"),
            ("uuid", "50554d6e-29bb-11e5-b345-feff819cdc9f"),
            ("counter", "7"),
            ("list<text>", "['a, b', 'it''s', ': }']"),
            ("set<int>", "{1, 2}"),
            ("map<text, frozen<list<int>>>", "{'a:b': [1, 2], 'c': []}"),
            ("map<timestamp, inet>", "{'2024-02-29 12:34:56.789+0000': '127.0.0.1'}"),
            ("map<time, uuid>", "{}"),
            ("map<time, int>", "{'12:34:56.000000000': 1, '23:59:59.999999999': 2}"),
            ("map<int, time>", "{1: '12:34:56.000000000'}"),
            ("list<time>", "['12:34:56.000000000']"),
            ("frozen<tuple<int, text>>", "(1, 'x')"),
            ("vector<float, 3>", "[1.5, -2, 3]"),
            ("place", "{street: 'High', Number: 7}"),
            ("place", "{street: , Number: 7}"),
        ];
        for (ty, text) in cases {
            let ty = types::cql_name::parse(ty, &user_type).unwrap();
            let bytes = field(&ty, text, &style()).unwrap_or_else(|error| panic!("{text}: {error}")).unwrap();
            assert_eq!(show(&ty, Some(&bytes), &style()), text);
        }
    }

    /// cqlsh writes times within collections without quotes.
    #[test]
    fn times_of_cqlsh_are_read() {
        for (ty, theirs, ours) in [
            (
                "map<time, time>",
                "{12:34:56.000000000: 01:02:03.000000000}",
                "{'12:34:56.000000000': '01:02:03.000000000'}",
            ),
            ("set<time>", "{12:34:56.000000000}", "{'12:34:56.000000000'}"),
        ] {
            let ty = types::cql_name::parse(ty, &|_| None).unwrap();
            let bytes = field(&ty, theirs, &style()).unwrap().unwrap();
            assert_eq!(show(&ty, Some(&bytes), &style()), ours);
        }
        let ty = types::cql_name::parse("map<time, int>", &|_| None).unwrap();
        assert!(field(&ty, "{12:34: 1}", &style()).is_err());
    }

    #[test]
    fn nulls_and_refusals() {
        assert_eq!(field(&CqlType::Text, "", &style()), Ok(None));
        let other = Style { null: "NULL".into(), ..style() };
        assert_eq!(field(&CqlType::Text, "", &other), Ok(Some(Vec::new())));
        assert_eq!(field(&CqlType::Int, "", &other), Ok(None));
        assert_eq!(field(&CqlType::Int, "NULL", &other), Ok(None));
        for (ty, text) in [
            ("int", "x"),
            ("boolean", "maybe"),
            ("list<int>", "1"),
            ("vector<int, 2>", "[1]"),
            ("map<int, int>", "{1}"),
        ] {
            let ty = types::cql_name::parse(ty, &|_| None).unwrap();
            assert!(field(&ty, text, &style()).is_err(), "{text}");
        }
    }

    #[test]
    fn separators_and_formats() {
        let style = Style {
            thousands_separator: Some(".".into()),
            decimal_separator: Some(",".into()),
            timestamp_format: "%d.%m.%Y %H:%M".into(),
            ..style()
        };
        let int = field(&CqlType::Int, "1.234.567", &style).unwrap().unwrap();
        assert_eq!(int, 1_234_567i32.to_be_bytes());
        let double = field(&CqlType::Double, "1.234,5", &style).unwrap().unwrap();
        assert_eq!(double, 1234.5f64.to_be_bytes());
        let time = field(&CqlType::Timestamp, "01.01.1970 00:01", &style).unwrap().unwrap();
        assert_eq!(time, 60_000i64.to_be_bytes());
    }
}
