//! Answers as text, in the words of the recorded ones (see tests/drivers/python/answers.py).

use stdx::Cursor;
use types::{CqlType, collection, literal};

use crate::CqlError;
use crate::result::{Answer, CqlResult, ResultSet};

/// An answer: `done`, the columns and rows, or the error.
pub(super) fn answer(answer: &Result<Answer, CqlError>) -> String {
    match answer {
        Err(error) => format!("error {:04x} {error}", error.code()),
        Ok(Answer { result: CqlResult::Rows(rows), .. }) => rows_text(rows),
        Ok(_) => "done".to_owned(),
    }
}

fn rows_text(set: &ResultSet) -> String {
    let columns = &set.metadata.columns;
    let heads: Vec<_> = columns.iter().map(|column| format!("{} {}", column.name, type_text(&column.ty))).collect();
    let mut lines = vec![heads.join(" | ")];
    let mut cursor = Cursor::new(&set.rows);
    for _ in 0..set.row_count {
        let values: Vec<_> = columns
            .iter()
            .map(|column| match cursor.int_bytes().expect("rows are whole") {
                None => "null".to_owned(),
                Some(bytes) => value(&column.ty, bytes),
            })
            .collect();
        lines.push(values.join(" | "));
    }
    assert!(cursor.is_empty(), "there are as many rows as the count says");
    lines.join("\n")
}

/// Types as a driver sees them: what is frozen is not on the wire.
fn type_text(ty: &CqlType) -> String {
    match ty {
        CqlType::Text => "varchar".into(),
        CqlType::List { element, .. } => format!("list<{}>", type_text(element)),
        CqlType::Set { element, .. } => format!("set<{}>", type_text(element)),
        CqlType::Map { key, value, .. } => format!("map<{}, {}>", type_text(key), type_text(value)),
        CqlType::Tuple(fields) => {
            format!("frozen<tuple<{}>>", fields.iter().map(type_text).collect::<Vec<_>>().join(", "))
        }
        CqlType::Udt(udt, _) => format!("frozen<{}>", udt.name),
        CqlType::Vector { element, dimension } => {
            format!("org.apache.cassandra.db.marshal.VectorType<{}, {dimension}>", element.cql_name())
        }
        other => other.cql_name(),
    }
}

fn list<'a>(items: impl Iterator<Item = String> + 'a) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    format!("{number:?}")
}

fn value(ty: &CqlType, bytes: &[u8]) -> String {
    match ty {
        CqlType::Text | CqlType::Ascii => {
            let text = String::from_utf8_lossy(bytes);
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            format!("{quote}{text}{quote}")
        }
        CqlType::Boolean => {
            if bytes == [0] {
                "False".into()
            } else {
                "True".into()
            }
        }
        CqlType::Blob => format!("0x{}", literal::hex(bytes)),
        CqlType::Double => float(f64::from_be_bytes(bytes.try_into().expect("eight bytes"))),
        CqlType::Float => float(f64::from(f32::from_be_bytes(bytes.try_into().expect("four bytes")))),
        CqlType::List { element, .. } => {
            format!(
                "[{}]",
                list(collection::Elements::new(bytes).expect("a list").map(|found| {
                    match found.expect("a list") {
                        Some(found) => value(element, found),
                        None => "null".into(),
                    }
                }))
            )
        }
        CqlType::Set { element, .. } => {
            format!("{{{}}}", list(collection::elements(bytes).map(|found| value(element, found))))
        }
        CqlType::Map { key, value: values, .. } => {
            let entry = |(k, v): (&[u8], &[u8])| format!("{}: {}", value(key, k), value(values, v));
            format!("{{{}}}", list(collection::entries(bytes).map(entry)))
        }
        CqlType::Tuple(types) => {
            let fields = collection::fields(bytes, types.len()).zip(types.iter());
            format!("({})", list(fields.map(|(field, ty)| field.map_or("null".into(), |field| value(ty, field)))))
        }
        CqlType::Udt(udt, _) => {
            let fields = collection::fields(bytes, udt.fields.len()).zip(&udt.fields);
            let spell = |(field, (name, ty)): (Option<&[u8]>, &(String, CqlType))| {
                format!("{name}: {}", field.map_or("null".into(), |field| value(ty, field)))
            };
            format!("{{{}}}", list(fields.map(spell)))
        }
        CqlType::Vector { element, dimension } => {
            let elements = collection::VectorElements::new(element, *dimension, bytes);
            format!("[{}]", list(elements.map(|found| value(element, found.expect("a vector")))))
        }
        CqlType::Inet => match bytes.try_into().map(std::net::Ipv6Addr::from_octets) {
            Ok(address) => format!("'{address}'"),
            Err(_) => format!("'{}'", literal::to_plain_text(ty, bytes)),
        },
        CqlType::Timestamp => {
            let text = literal::to_plain_text(ty, bytes).replace('T', " ").replace('Z', "");
            text.strip_suffix(".000").map_or(format!("{text}000"), ToOwned::to_owned)
        }
        CqlType::Duration => {
            let mut cursor = Cursor::new(bytes);
            let mut part = || cursor.svint().expect("a duration");
            format!("{}mo{}d{}ns", part(), part(), part())
        }
        CqlType::Counter => literal::to_plain_text(&CqlType::BigInt, bytes),
        other => literal::to_plain_text(other, bytes),
    }
}
