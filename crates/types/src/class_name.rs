//! Types that a statement names by their class: `'ReversedType(Int32Type)'`,
//! `'org.apache.cassandra.db.marshal.DateType'`.
//!
//! [`crate::marshal`] reads the expression; this module then refuses classes that do not exist and
//! gives the form that `system_schema` stores. Agrees with `CQL3Type.Raw` of a custom type and with
//! the refusals of `TypeParser`.

use std::sync::Arc;

use crate::{CqlType, CustomType, UserType, marshal};

const PACKAGE: &str = "org.apache.cassandra.db.marshal.";
/// Java's hash table has 16 buckets up to this number of aliases, and twice as many beyond it.
const ALIASES_IN_16: usize = 12;

/// Classes that must have parameters.
const PARAMETRIZED: &[&str] =
    &["ListType", "SetType", "MapType", "TupleType", "FrozenType", "UserType", "VectorType", "ReversedType"];

/// Reads the type; true: it stands in `ReversedType`. The error is the reason for the refusal.
pub fn parse(expression: &str) -> Result<(CqlType, bool), String> {
    let trimmed = expression.trim();
    if trimmed.is_empty() {
        return Ok((CqlType::Blob, false));
    }
    let class = trimmed.split('(').next().unwrap_or_default().trim_end();
    let full = if class.contains('.') { class.to_owned() } else { format!("{PACKAGE}{class}") };
    let expression = match trimmed.strip_suffix("()") {
        Some(plain) if plain.ends_with("DynamicCompositeType") => {
            return Ok((CqlType::Custom(Arc::new(CustomType::DynamicComposite(Vec::new()))), false));
        }
        Some(plain) => plain,
        None => trimmed,
    };
    let undefined = || format!("Invalid definition for comparator {full}.");
    let simple = full.strip_prefix(PACKAGE).unwrap_or_default();
    match marshal::parse(expression) {
        Ok((CqlType::Custom(custom), _)) if matches!(&*custom, CustomType::Unknown(_)) => {
            Err(format!("Unable to find abstract-type class '{full}'"))
        }
        Ok((ty, reversed)) if is_made_of_known(&ty) => Ok((as_stored(&ty), reversed)),
        Ok(_) => Err(undefined()),
        Err(_) if simple == "PartitionerDefinedOrder" && expression == class => {
            Ok((CqlType::Custom(Arc::new(CustomType::PartitionerDefinedOrder(None))), false))
        }
        Err(_) if PARAMETRIZED.contains(&simple) || simple.ends_with("CompositeType") => Err(undefined()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether the text names a type inside of `ReversedType`.
pub fn is_reversed(expression: &str) -> bool {
    marshal::parse(expression.trim()).is_ok_and(|(_, reversed)| reversed)
}

fn is_made_of_known(ty: &CqlType) -> bool {
    !ty.any(&mut |ty| match ty {
        CqlType::Custom(custom) => matches!(&**custom, CustomType::Unknown(_)),
        CqlType::Vector { dimension, .. } => *dimension == 0,
        CqlType::Tuple(elements) => elements.is_empty(),
        _ => false,
    })
}

/// The type as `system_schema` stores it: a type with a CQL name has that name, `ReversedType` is
/// dropped where there is no order, and aliases stand in the order of Java's hash table.
fn as_stored(ty: &CqlType) -> CqlType {
    let arc = |ty: &Arc<CqlType>| Arc::new(as_stored(ty));
    match ty {
        CqlType::List { element, frozen } => CqlType::List { element: arc(element), frozen: *frozen },
        CqlType::Set { element, frozen } => CqlType::Set { element: arc(element), frozen: *frozen },
        CqlType::Map { key, value, frozen } => CqlType::Map { key: arc(key), value: arc(value), frozen: *frozen },
        CqlType::Vector { element, dimension } => CqlType::Vector { element: arc(element), dimension: *dimension },
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(as_stored).collect()),
        CqlType::Udt(udt, frozen) => {
            let fields = udt.fields.iter().map(|(name, ty)| (name.clone(), as_stored(ty))).collect();
            let (keyspace, name) = (udt.keyspace.clone(), udt.name.clone());
            CqlType::Udt(Arc::new(UserType { keyspace, name, fields }), *frozen)
        }
        CqlType::Custom(custom) => match &**custom {
            CustomType::LegacyDate => CqlType::Timestamp,
            CustomType::Reversed(ty) => as_stored(ty),
            CustomType::DynamicComposite(aliases) => {
                CqlType::Custom(Arc::new(CustomType::DynamicComposite(in_hash_order(aliases))))
            }
            _ => ty.clone(),
        },
        _ => ty.clone(),
    }
}

/// The order of Java's `HashMap<Byte, …>`: by the low bits of the alias. If an alias is given
/// twice, its last type counts.
fn in_hash_order(aliases: &[(u8, CqlType)]) -> Vec<(u8, CqlType)> {
    let mut ordered: Vec<(u8, CqlType)> = Vec::new();
    for (alias, ty) in aliases {
        match ordered.iter_mut().find(|(known, _)| known == alias) {
            Some(known) => known.1 = ty.clone(),
            None => ordered.push((*alias, ty.clone())),
        }
    }
    let mut places = 16;
    while ordered.len() > places / 16 * ALIASES_IN_16 {
        places *= 2;
    }
    ordered.sort_by_key(|(alias, _)| usize::from(*alias) & (places - 1));
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(expression: &str) -> String {
        parse(expression).map_or_else(
            |why| why,
            |(ty, reversed)| format!("{}{}", ty.cql_name(), ["", " reversed"][usize::from(reversed)]),
        )
    }

    #[test]
    fn classes_are_read_as_cassandra_does() {
        let cases = [
            ("", "blob"),
            ("Int32Type", "int"),
            ("  Int32Type() ", "int"),
            ("DateType", "timestamp"),
            ("ReversedType(Int32Type)", "int reversed"),
            ("FrozenType(ReversedType(Int32Type))", "int"),
            ("MapType(UTF8Type, ListType(Int32Type))", "map<text, frozen<list<int>>>"),
            (
                "DynamicCompositeType(s=>UTF8Type, i=>IntegerType)",
                "'org.apache.cassandra.db.marshal.DynamicCompositeType(s=>org.apache.cassandra.db.marshal.UTF8Type,\
                 i=>org.apache.cassandra.db.marshal.IntegerType)'",
            ),
            ("NoSuch", "Unable to find abstract-type class 'org.apache.cassandra.db.marshal.NoSuch'"),
            ("com.example.Type", "Unable to find abstract-type class 'com.example.Type'"),
            ("ListType", "Invalid definition for comparator org.apache.cassandra.db.marshal.ListType."),
            (
                "CompositeType(NoSuch)",
                "Invalid definition for comparator org.apache.cassandra.db.marshal.CompositeType.",
            ),
            (
                "VectorType(FloatType,0)",
                "Invalid definition for comparator org.apache.cassandra.db.marshal.VectorType.",
            ),
        ];
        for (expression, expected) in cases {
            assert_eq!(text(expression), expected, "{expression}");
        }
    }
}
