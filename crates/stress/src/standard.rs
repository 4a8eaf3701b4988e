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

/// Bits of a hexadecimal digit.
const DIGIT_BITS: usize = 4;
/// Digits of a number of 64 bits.
const NUMBER_DIGITS: usize = 16;

/// The key of a seed: `size` hexadecimal digits, as text. Seeds that are below the number of such
/// keys have keys of their own: of keys that are drawn, two among some million are the same in ten
/// digits, and a read of the one finds the row of the other.
pub fn key(seed: u64, size: usize) -> CqlValue {
    let width = size.min(NUMBER_DIGITS);
    let mut digits = Vec::with_capacity(size + NUMBER_DIGITS);
    let mut state = scatter(seed, width * DIGIT_BITS);
    digits.extend_from_slice(format!("{state:0width$X}").as_bytes());
    while digits.len() < size {
        state = mix(state);
        digits.extend_from_slice(format!("{state:016X}").as_bytes());
    }
    digits.truncate(size);
    CqlValue::Blob(digits)
}

/// Mixes the lowest `bits` of a number. Each step can be undone, so that different numbers of so
/// many bits stay different.
fn scatter(number: u64, bits: usize) -> u64 {
    if bits == 0 {
        return 0;
    }
    let mask = u64::MAX >> (u64::BITS as usize - bits);
    let half = bits.div_ceil(2);
    let mut mixed = number & mask;
    // odd factors
    for factor in [0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        mixed ^= mixed >> half;
        mixed = mixed.wrapping_add(1).wrapping_mul(factor) & mask;
    }
    mixed ^ (mixed >> half)
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn text(seed: u64, size: usize) -> String {
        let CqlValue::Blob(bytes) = key(seed, size) else { panic!("a key is a blob") };
        String::from_utf8(bytes).expect("digits")
    }

    #[test]
    fn seeds_have_keys_of_their_own() {
        for size in [1, 2, 3, 4] {
            let all = 1u64 << (4 * size);
            let keys: HashSet<String> = (0..all).map(|seed| text(seed, size)).collect();
            assert_eq!(keys.len() as u64, all, "{size} digits");
            assert!(keys.iter().all(|key| key.len() == size));
        }
        let keys: HashSet<String> = (0..500_000).map(|seed| text(seed, 10)).collect();
        assert_eq!(keys.len(), 500_000);
        let long: HashSet<String> = (0..1000).map(|seed| text(seed, 16)).collect();
        assert!(long.len() == 1000 && text(7, 40).len() == 40 && text(7, 40).starts_with(&text(7, 16)));
    }

    #[test]
    fn keys_of_neighbours_are_far_apart() {
        // the first digit of the keys of some seeds: each comes about as often
        let mut counts = [0; 16];
        for seed in 1..=16_000 {
            let first = text(seed, 10).chars().next().and_then(|digit| digit.to_digit(16)).expect("a digit");
            counts[first as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
