//! The table `standard1` of cassandra-stress, a key of ten bytes and some columns of blobs, with
//! `write` and `read`.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;

use crate::Result;
use crate::distribution::Distribution;
use crate::seeds::Visit;
use crate::settings::Settings;
use crate::settings::columns::Columns;
use crate::value::{Generator, mix};
use crate::workload::{Operation, Try, one_by_one};

/// Creates the keyspace and both tables, if they do not exist.
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

/// The key of a seed: `size` hexadecimal digits, as text.
pub fn key(seed: u64, size: usize) -> CqlValue {
    let mut digits = Vec::with_capacity(size + 16);
    let mut state = seed;
    while digits.len() < size {
        state = mix(state);
        digits.extend_from_slice(format!("{state:016X}").as_bytes());
    }
    digits.truncate(size);
    CqlValue::Blob(digits)
}

/// Names of columns as CQL text, each followed by the text of `behind`.
pub fn each_column(columns: &Columns, behind: impl Fn(&str) -> String) -> String {
    columns.names.iter().map(|name| behind(&format!("\"{name}\""))).collect::<Vec<_>>().join(", ")
}

/// The values of the columns for a seed.
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

/// The operation `write`.
pub struct Write {
    session: Arc<Session>,
    statement: PreparedStatement,
    values: Values,
    key_size: usize,
}

impl Write {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, settings: &Settings) -> Result<Self> {
        let set = each_column(&settings.columns, |name| format!("{name} = ?"));
        let timestamp =
            settings.columns.timestamp.map(|micros| format!(" USING TIMESTAMP {micros}")).unwrap_or_default();
        let text = format!("UPDATE \"{}\".standard1{timestamp} SET {set} WHERE key = ?", settings.schema.keyspace);
        let mut statement = session.prepare(text).await?;
        statement.set_is_idempotent(true);
        let (values, key_size) = (Values::new(&settings.columns)?, settings.load.key_size);
        Ok(Self { session: session.clone(), statement, values, key_size })
    }
}

impl Operation for Write {
    fn name(&self) -> &str {
        "WRITE"
    }

    fn is_write(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, visits: &'a [Visit], _: u64) -> Try<'a> {
        one_by_one(visits, move |seed| async move {
            let mut values = self.values.of(seed);
            values.push(key(seed, self.key_size));
            self.session.execute_unpaged(&self.statement, values).await?;
            Ok(1)
        })
    }
}

/// The operation `read`.
pub struct Read {
    session: Arc<Session>,
    statement: PreparedStatement,
    /// The values that must be returned; None: they are not checked.
    values: Option<Values>,
    /// The names of the columns in the expected order.
    names: Vec<String>,
    key_size: usize,
}

impl Read {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, settings: &Settings) -> Result<Self> {
        let names = if settings.columns.slice { "*".to_owned() } else { each_column(&settings.columns, str::to_owned) };
        let text = format!("SELECT {names} FROM \"{}\".standard1 WHERE key = ?", settings.schema.keyspace);
        let mut statement = session.prepare(text).await?;
        statement.set_is_idempotent(true);
        let values = settings.errors.validate.then(|| Values::new(&settings.columns)).transpose()?;
        let (names, key_size) = (settings.columns.names.clone(), settings.load.key_size);
        Ok(Self { session: session.clone(), statement, values, names, key_size })
    }

    async fn one(&self, seed: u64) -> Result<u64> {
        let key = key(seed, self.key_size);
        let answer = self.session.execute_unpaged(&self.statement, (key,)).await?.into_rows_result()?;
        let Some(values) = &self.values else { return Ok(answer.rows_num() as u64) };
        let row: Option<scylla::value::Row> = answer.maybe_first_row()?;
        let row = row.ok_or_else(|| format!("no row for seed {seed}: was it written (same -col, same -pop)?"))?;
        let place = |name: &String| answer.column_specs().get_by_name(name).map(|(place, _)| place);
        let found = |name: &String| place(name).and_then(|place| row.columns.get(place)?.as_ref());
        if !self.names.iter().zip(values.of(seed)).all(|(name, value)| found(name) == Some(&value)) {
            return Err(format!("the row for seed {seed} is not what a write with this -col would have written").into());
        }
        Ok(1)
    }
}

impl Operation for Read {
    fn name(&self) -> &str {
        "READ"
    }

    fn run<'a>(&'a self, visits: &'a [Visit], _: u64) -> Try<'a> {
        one_by_one(visits, |seed| self.one(seed))
    }
}
