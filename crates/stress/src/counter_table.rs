//! The table `counter1` of cassandra-stress: `counter_write` and `counter_read` of it.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{Counter, CqlValue};

use crate::Result;
use crate::distribution::Distribution;
use crate::settings::Settings;
use crate::standard::{each_column, key};
use crate::workload::{Operation, Try, count_rows, one_by_one};

/// `counter_write`.
pub struct Add {
    session: Arc<Session>,
    statement: PreparedStatement,
    columns: usize,
    add: Distribution,
}

impl Add {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, settings: &Settings) -> Result<Self> {
        let set = each_column(&settings.columns, |name| format!("{name} = {name} + ?"));
        let text = format!("UPDATE \"{}\".counter1 SET {set} WHERE key = ?", settings.schema.keyspace);
        let statement = session.prepare(text).await?;
        let (columns, add) = (settings.columns.count, settings.columns.add.clone());
        Ok(Self { session: session.clone(), statement, columns, add })
    }
}

impl Operation for Add {
    fn name(&self) -> &str {
        "COUNTER_WRITE"
    }

    fn run<'a>(&'a self, seeds: &'a [u64], draw: u64) -> Try<'a> {
        one_by_one(seeds, move |seed| async move {
            let amount = |column| CqlValue::Counter(Counter(self.add.draw_of(draw.wrapping_add(column))));
            let mut values: Vec<CqlValue> = (0..self.columns as u64).map(amount).collect();
            values.push(key(seed));
            self.session.execute_unpaged(&self.statement, values).await?;
            Ok(1)
        })
    }
}

/// `counter_read`.
pub struct Get {
    session: Arc<Session>,
    statement: PreparedStatement,
    validate: bool,
}

impl Get {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, settings: &Settings) -> Result<Self> {
        let names = each_column(&settings.columns, str::to_owned);
        let text = format!("SELECT {names} FROM \"{}\".counter1 WHERE key = ?", settings.schema.keyspace);
        let mut statement = session.prepare(text).await?;
        statement.set_is_idempotent(true);
        Ok(Self { session: session.clone(), statement, validate: settings.errors.validate })
    }
}

impl Operation for Get {
    fn name(&self) -> &str {
        "COUNTER_READ"
    }

    fn run<'a>(&'a self, seeds: &'a [u64], _: u64) -> Try<'a> {
        one_by_one(seeds, move |seed| async move {
            let found = count_rows(&self.session, &self.statement, (key(seed),)).await?;
            if found == 0 && self.validate {
                return Err(format!("no counters for seed {seed}: were they written (same -pop)?").into());
            }
            Ok(found)
        })
    }
}
