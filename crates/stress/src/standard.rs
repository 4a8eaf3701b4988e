//! The table `standard1` of cassandra-stress: a key of ten bytes and some columns of blobs; `write` and `read` of it.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;

use crate::Result;
use crate::distribution::Distribution;
use crate::settings::Settings;
use crate::settings::columns::Columns;
use crate::value::{Generator, mix};
use crate::workload::{Operation, Try, one_by_one};

/// Bytes of a key.
const KEY_BYTES: usize = 10;

/// Makes the keyspace and both tables of ours, where they are not there yet.
pub async fn create(session: &Session, settings: &Settings) -> Result<()> {
    let schema = &settings.schema;
    let keyspace =
        format!("CREATE KEYSPACE IF NOT EXISTS \"{}\" WITH replication = {}", schema.keyspace, schema.replication);
    session.query_unpaged(keyspace, ()).await?;
    let compaction = schema.compaction.as_ref().map(|map| format!(" AND compaction = {map}")).unwrap_or_default();
    for (table, column_type) in [("standard1", "blob"), ("counter1", "counter")] {
        let columns: String = settings.columns.names.iter().map(|name| format!(", \"{name}\" {column_type}")).collect();
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS \"{}\".{table} (key blob PRIMARY KEY{columns}) WITH compression = {}{compaction}",
            schema.keyspace, schema.compression
        );
        session.query_unpaged(statement, ()).await?;
    }
    session.await_schema_agreement().await?;
    Ok(())
}

/// The key of a seed: ten hexadecimal digits, as text.
pub fn key(seed: u64) -> CqlValue {
    CqlValue::Blob(format!("{:016X}", mix(seed)).as_bytes()[..KEY_BYTES].to_vec())
}

/// Columns' names as CQL wants them, with something behind each.
pub fn each_column(columns: &Columns, behind: impl Fn(&str) -> String) -> String {
    columns.names.iter().map(|name| behind(&format!("\"{name}\""))).collect::<Vec<_>>().join(", ")
}

/// Values of the columns, for a seed.
struct Values {
    generators: Vec<Generator>,
}

impl Values {
    fn new(columns: &Columns) -> Result<Self> {
        let blob =
            || scylla::frame::response::result::ColumnType::Native(scylla::frame::response::result::NativeType::Blob);
        let everything = Distribution::uniform(0, i64::MAX);
        let generator = |name: &String| Generator::new(name, blob(), columns.size.clone(), everything.clone());
        Ok(Self { generators: columns.names.iter().map(generator).collect::<Result<_>>()? })
    }

    fn of(&self, seed: u64) -> Vec<CqlValue> {
        self.generators.iter().map(|generator| generator.value(seed)).collect()
    }
}

/// `write`.
pub struct Write {
    session: Arc<Session>,
    statement: PreparedStatement,
    values: Values,
}

impl Write {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, settings: &Settings) -> Result<Self> {
        let set = each_column(&settings.columns, |name| format!("{name} = ?"));
        let text = format!("UPDATE \"{}\".standard1 SET {set} WHERE key = ?", settings.schema.keyspace);
        let mut statement = session.prepare(text).await?;
        statement.set_is_idempotent(true);
        Ok(Self { session: session.clone(), statement, values: Values::new(&settings.columns)? })
    }
}

impl Operation for Write {
    fn name(&self) -> &str {
        "WRITE"
    }

    fn run<'a>(&'a self, seeds: &'a [u64], _: u64) -> Try<'a> {
        one_by_one(seeds, move |seed| async move {
            let mut values = self.values.of(seed);
            values.push(key(seed));
            self.session.execute_unpaged(&self.statement, values).await?;
            Ok(1)
        })
    }
}

/// `read`.
pub struct Read {
    session: Arc<Session>,
    statement: PreparedStatement,
    /// What must come, unless nobody looks.
    values: Option<Values>,
}

impl Read {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, settings: &Settings) -> Result<Self> {
        let names = each_column(&settings.columns, str::to_owned);
        let text = format!("SELECT {names} FROM \"{}\".standard1 WHERE key = ?", settings.schema.keyspace);
        let mut statement = session.prepare(text).await?;
        statement.set_is_idempotent(true);
        let values = settings.errors.validate.then(|| Values::new(&settings.columns)).transpose()?;
        Ok(Self { session: session.clone(), statement, values })
    }

    async fn one(&self, seed: u64) -> Result<u64> {
        let answer = self.session.execute_unpaged(&self.statement, (key(seed),)).await?.into_rows_result()?;
        let Some(values) = &self.values else { return Ok(answer.rows_num() as u64) };
        let row: Option<scylla::value::Row> = answer.maybe_first_row()?;
        let row = row.ok_or_else(|| format!("no row for seed {seed}: was it written (same -col, same -pop)?"))?;
        let expected: Vec<Option<CqlValue>> = values.of(seed).into_iter().map(Some).collect();
        if row.columns != expected {
            return Err(format!("the row for seed {seed} is not what a write with this -col would have written").into());
        }
        Ok(1)
    }
}

impl Operation for Read {
    fn name(&self) -> &str {
        "READ"
    }

    fn run<'a>(&'a self, seeds: &'a [u64], _: u64) -> Try<'a> {
        one_by_one(seeds, |seed| self.one(seed))
    }
}
