//! Whether the rows of an SSTable are rows of the ring's table: the types of keys and columns.
//!
//! A column that the table has dropped may come, and is passed over by whoever reads it. One that
//! the table never had is refused, since its cells would be lost in silence.

use schema::TableMetadata;
use sstable::{HeaderColumn, HeaderComponent};
use types::{CqlType, marshal};

/// Err: a sentence that says what of the SSTable the table has not.
pub(crate) fn check(header: &HeaderComponent, table: &TableMetadata) -> Result<(), String> {
    let key = marshal::print(&table.partition_key_type, false);
    check_type("the partition key", &header.key_type, &key)?;
    if header.clustering.len() != table.clustering.len() {
        let (found, wanted) = (header.clustering.len(), table.clustering.len());
        return Err(format!("it has {found} clustering columns, and the table has {wanted}"));
    }
    for (found, column) in header.clustering.iter().zip(&table.clustering) {
        let wanted = marshal::print(&column.ty, column.reversed);
        check_type(&format!("clustering column {}", column.name), found, &wanted)?;
    }
    let statics = header.statics.iter().map(|column| (column, true));
    let regulars = header.regulars.iter().map(|column| (column, false));
    statics.chain(regulars).try_for_each(|(column, is_static)| check_column(column, is_static, table))
}

fn check_column(column: &HeaderColumn, is_static: bool, table: &TableMetadata) -> Result<(), String> {
    let name = &column.name;
    match table.column_by_name(name) {
        Some(known) if known.is_primary_key() || known.is_static() != is_static => {
            Err(format!("column {name} is of another kind in the table"))
        }
        Some(known) => check_type(&format!("column {name}"), &column.ty, &marshal::print(&known.ty, false)),
        None if table.dropped.contains_key(name) => Ok(()),
        None => Err(format!("the table has no column {name}")),
    }
}

/// Whether a type of the SSTable is the table's. `what`: of which column, for people.
fn check_type(what: &str, found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    match (marshal::parse(found), marshal::parse(wanted)) {
        (Ok((one, one_reversed)), Ok((other, other_reversed)))
            if one_reversed == other_reversed && is_alike(&one, &other) =>
        {
            Ok(())
        }
        _ => Err(format!("{what} has the type {found}, and {wanted} in the table")),
    }
}

/// Whether values of the one type are values of the other. User types may have been given fields
/// and other names in between; headers before 3.6 do not say that they are frozen.
fn is_alike(found: &CqlType, wanted: &CqlType) -> bool {
    match (found, wanted) {
        (CqlType::List { element: one, frozen: f }, CqlType::List { element: other, frozen: g })
        | (CqlType::Set { element: one, frozen: f }, CqlType::Set { element: other, frozen: g }) => {
            f == g && is_alike(one, other)
        }
        (
            CqlType::Map { key: key_one, value: one, frozen: f },
            CqlType::Map { key: key_other, value: other, frozen: g },
        ) => f == g && is_alike(key_one, key_other) && is_alike(one, other),
        (CqlType::Tuple(one), CqlType::Tuple(other)) => {
            one.len() == other.len() && one.iter().zip(other.iter()).all(|(one, other)| is_alike(one, other))
        }
        (CqlType::Udt(..), CqlType::Udt(..)) => true,
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_compared_and_user_types_by_kind() {
        let of = |words: &str| words.replace('@', "org.apache.cassandra.db.marshal.");
        let check = |one: &str, other: &str| check_type("column v", &of(one), &of(other)).is_ok();
        assert!(check("@Int32Type", "@Int32Type"));
        assert!(!check("@Int32Type", "@UTF8Type"));
        assert!(!check("@ReversedType(@Int32Type)", "@Int32Type"));
        assert!(!check("@ListType(@Int32Type)", "@SetType(@Int32Type)"));
        assert!(!check("@ListType(@Int32Type)", "@FrozenType(@ListType(@Int32Type))"));
        let user = |keyspace: &str| format!("@FrozenType(@UserType({keyspace},75,61:@Int32Type))");
        assert!(check(&user("ks"), &user("other")));
        assert!(!check(&user("ks"), "@Int32Type"));
    }
}
