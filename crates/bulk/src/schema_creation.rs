//! Makes what a ring lacks of a schema, so that SSTables can be loaded into it: keyspaces, types,
//! tables, indexes, views, in this order.
//!
//! A keyspace, type, table, index or view that the ring has already stays as it is, even if its
//! definition differs from the wanted one: a load can be repeated, and can be given to a ring that
//! has a part of the schema. gc_grace_seconds of a table that is made here is raised
//! ([`crate::grace`]): the loader sets it back when the table has all of its rows.

use std::collections::BTreeSet;

use cql::ddl::restore::{Object, SchemaStatement, schema_statements};
use env::Env;

use crate::grace::{self, GraceChange};
use crate::native::{Access, NativeConnection};
use crate::run::on_thread;

/// A keyspace that is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantedKeyspace {
    /// Its name.
    pub name: String,
    /// The statement that makes it.
    pub create: String,
}

/// A table or a view that is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantedTable {
    /// The keyspace.
    pub keyspace: String,
    /// The name.
    pub name: String,
    /// The statements of its schema.cql. Where two texts make one thing, the first is taken.
    pub text: String,
}

/// Whether the statements of a schema.cql make a materialized view of this name. The words may
/// stand in the comment of a table, too.
pub fn creates_view(text: &str, keyspace: &str, name: &str) -> Result<bool, String> {
    if !text.contains("MATERIALIZED VIEW") {
        return Ok(false);
    }
    let view = Object::View(keyspace.to_owned(), name.to_owned());
    let schema_statements =
        schema_statements(text, keyspace).map_err(|error| format!("the schema.cql of {keyspace}.{name}: {error}"))?;
    Ok(schema_statements.iter().any(|piece| piece.object == view))
}

/// As [`make_schema`], on a thread of its own; waits for the end.
pub fn complete_schema(
    env: &Env,
    access: &Access,
    keyspaces: Vec<WantedKeyspace>,
    tables: Vec<WantedTable>,
) -> Result<usize, String> {
    let (of_thread, access) = (env.clone(), access.clone());
    on_thread(env, move || Box::pin(async move { make_schema(&of_thread, &access, &keyspaces, &tables).await }))
}

/// Makes what the ring lacks, through one of its nodes; gives the number of statements that this
/// took, without those that raise gc_grace_seconds of the new tables. Err: the first refusal.
pub async fn make_schema(
    env: &Env,
    access: &Access,
    keyspaces: &[WantedKeyspace],
    tables: &[WantedTable],
) -> Result<usize, String> {
    let mut connection = access.open(env).await?;
    let has = existing(&mut connection).await?;
    let missing = missing(&has, keyspaces, tables)?;
    for SchemaStatement { text, object, is_alteration } in &missing {
        connection.execute(text).await.map_err(|why| format!("{why}: {text}"))?;
        if let (Object::Table(keyspace, name), false) = (object, is_alteration) {
            grace::change_one(&mut connection, keyspace, name, GraceChange::Raise).await?;
        }
    }
    Ok(missing.len())
}

/// Makes an [`Object`] from the name of its keyspace and its own name.
type Kind = fn(String, String) -> Object;

/// All things of the ring's schema.
async fn existing(connection: &mut NativeConnection) -> Result<BTreeSet<Object>, String> {
    let kinds: [(&str, &str, Kind); 5] = [
        ("keyspaces", "keyspace_name", |keyspace, _| Object::Keyspace(keyspace)),
        ("types", "type_name", Object::Type),
        ("tables", "table_name", Object::Table),
        ("indexes", "index_name", Object::Index),
        ("views", "view_name", Object::View),
    ];
    let mut found = BTreeSet::new();
    for (table, name, kind) in kinds {
        let columns = if name == "keyspace_name" { name.to_owned() } else { format!("keyspace_name, {name}") };
        let answer = connection.ask(&format!("SELECT {columns} FROM system_schema.{table}")).await?;
        for row in 0..answer.rows.len() {
            let text = |column: &str| answer.text(row, column).unwrap_or_default();
            found.insert(kind(text("keyspace_name"), text(name)));
        }
    }
    Ok(found)
}

/// The statements that make what is lacking. Err: the ring lacks a table that no statement of its
/// text makes.
fn missing(
    has: &BTreeSet<Object>,
    keyspaces: &[WantedKeyspace],
    tables: &[WantedTable],
) -> Result<Vec<SchemaStatement>, String> {
    let (mut made, mut chosen) = (BTreeSet::new(), Vec::<SchemaStatement>::new());
    for WantedTable { keyspace, name, text } in tables {
        let of_table = |error: cql::error::CqlError| format!("the schema.cql of {keyspace}.{name}: {error}");
        let mut made_here = BTreeSet::new();
        for piece in schema_statements(text, keyspace).map_err(of_table)? {
            let is_chosen = match piece.is_alteration {
                // an alteration belongs to the text that makes the table
                true => made_here.contains(&piece.object),
                false => !has.contains(&piece.object) && made.insert(piece.object.clone()),
            };
            if is_chosen {
                made_here.insert(piece.object.clone());
                chosen.push(piece);
            }
        }
        let names = [Object::Table(keyspace.clone(), name.clone()), Object::View(keyspace.clone(), name.clone())];
        if !names.iter().any(|object| has.contains(object) || made.contains(object)) {
            return Err(format!(
                "no statement of CQL makes {keyspace}.{name}, which the ring lacks (COMPACT STORAGE?): make a table \
                 that fits by hand, and load again"
            ));
        }
    }
    let lacks = |keyspace: &&WantedKeyspace| !has.contains(&Object::Keyspace(keyspace.name.clone()));
    let creates = keyspaces.iter().filter(lacks).map(|keyspace| SchemaStatement {
        text: keyspace.create.clone(),
        object: Object::Keyspace(keyspace.name.clone()),
        is_alteration: false,
    });
    // the order of statements of one kind stays
    chosen.sort_by_key(|piece| rank(&piece.object));
    Ok(creates.chain(chosen).collect())
}

/// The place of a kind of things in the order in which they can be made.
fn rank(object: &Object) -> u8 {
    match object {
        Object::Keyspace(_) => 0,
        Object::Type(..) => 1,
        Object::Table(..) => 2,
        Object::Index(..) => 3,
        Object::View(..) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "CREATE TYPE ks.place (n int)";
    const TABLE: &str = "CREATE TABLE ks.t (k int PRIMARY KEY, v int)";
    const ALTER: &str = "ALTER TABLE ks.t ADD w int";
    const INDEX: &str = "CREATE INDEX i ON ks.t (v)";
    /// The index of that statement, whatever kind is the ring's default.
    const MADE_INDEX: &str = "CREATE INDEX i ON ks.t (v)\nUSING 'legacy_local_table'";
    const VIEW: &str = "CREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.t WHERE k IS NOT NULL AND v IS NOT NULL \
                        PRIMARY KEY (v, k)";

    fn wanted(name: &str, statements: &[&str]) -> WantedTable {
        let text = statements.iter().map(|statement| format!("{statement};\n")).collect();
        WantedTable { keyspace: "ks".to_owned(), name: name.to_owned(), text }
    }

    #[test]
    fn only_what_the_ring_lacks_is_made() {
        let keyspace = WantedKeyspace { name: "ks".to_owned(), create: "CREATE KEYSPACE ks".to_owned() };
        let longer = TABLE.replace("v int)", "v int, x int)");
        let tables = [
            wanted("w", &[TYPE, VIEW]),
            wanted("t", &["/* a ; \n in a comment;\n */", TYPE, TABLE, ALTER, INDEX]),
            // the same table as another node had it before a column was added
            wanted("t", &[TYPE, &longer, ALTER, INDEX]),
        ];
        let of = |name: &str| ("ks".to_owned(), name.to_owned());
        let object = |kind: Kind, name: &str| kind(of(name).0, of(name).1);
        let (of_keyspace, of_type) = (Object::Keyspace("ks".to_owned()), object(Object::Type, "place"));
        let (table, index, view) = (object(Object::Table, "t"), object(Object::Index, "i"), object(Object::View, "w"));
        for (has, expected) in [
            (vec![], vec!["CREATE KEYSPACE ks", TYPE, TABLE, ALTER, MADE_INDEX, VIEW]),
            (vec![&of_keyspace, &of_type], vec![TABLE, ALTER, MADE_INDEX, VIEW]),
            (vec![&of_keyspace, &of_type, &table], vec![MADE_INDEX, VIEW]),
            (vec![&of_keyspace, &of_type, &table, &index, &view], vec![]),
        ] {
            let has: BTreeSet<Object> = has.into_iter().cloned().collect();
            let made = missing(&has, std::slice::from_ref(&keyspace), &tables).expect("all can be made");
            let made: Vec<String> = made.into_iter().map(|piece| piece.text).collect();
            assert_eq!(made, expected, "{has:?}");
        }
    }

    #[test]
    fn a_table_that_no_statement_makes_is_told_of_before_anything_is_made() {
        let compact =
            "/*\nWarning: Table ks.c omitted\n\nCREATE TABLE ks.c (k int PRIMARY KEY) WITH COMPACT STORAGE;\n*/";
        let tables = [WantedTable { text: compact.to_owned(), ..wanted("c", &[]) }];
        assert!(missing(&BTreeSet::new(), &[], &tables).expect_err("no statement").contains("ks.c"));
        let has = BTreeSet::from([Object::Table("ks".to_owned(), "c".to_owned())]);
        assert_eq!(missing(&has, &[], &tables), Ok(vec![]));
    }
}
