//! The table `counter1` of cassandra-stress, with `counter_write` and `counter_read`.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{Counter, CqlValue};

use crate::Result;
use crate::distribution::Distribution;
use crate::seeds::Visit;
use crate::settings::Settings;
use crate::standard::{each_column, key};
use crate::workload::{Operation, Try, count_rows, one_by_one};

/// The operation `counter_write`.
pub struct Add {
    session: Arc<Session>,
    statement: PreparedStatement,
    columns: usize,
    add: Distribution,
    key_size: usize,
}

impl Add {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, settings: &Settings) -> Result<Self> {
        let set = each_column(&settings.columns, |name| format!("{name} = {name} + ?"));
        let text = format!("UPDATE \"{}\".counter1 SET {set} WHERE key = ?", settings.schema.keyspace);
        let statement = session.prepare(text).await?;
        let (columns, add, key_size) = (settings.columns.count, settings.load.add.clone(), settings.load.key_size);
        Ok(Self { session: session.clone(), statement, columns, add, key_size })
    }
}

impl Operation for Add {
    fn name(&self) -> &str {
        "COUNTER_WRITE"
    }

    fn is_write(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, visits: &'a [Visit], draw: u64) -> Try<'a> {
        one_by_one(visits, move |seed| async move {
            let amount = |column| CqlValue::Counter(Counter(self.add.draw_of(draw.wrapping_add(column))));
            let mut values: Vec<CqlValue> = (0..self.columns as u64).map(amount).collect();
            values.push(key(seed, self.key_size));
            self.session.execute_unpaged(&self.statement, values).await?;
            Ok(1)
        })
    }
}

/// The operation `counter_read`.
pub struct Get {
    session: Arc<Session>,
    statement: PreparedStatement,
    validate: bool,
    key_size: usize,
}

impl Get {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, settings: &Settings) -> Result<Self> {
        let names = if settings.columns.slice { "*".to_owned() } else { each_column(&settings.columns, str::to_owned) };
        let text = format!("SELECT {names} FROM \"{}\".counter1 WHERE key = ?", settings.schema.keyspace);
        let mut statement = session.prepare(text).await?;
        statement.set_is_idempotent(true);
        let (validate, key_size) = (settings.errors.validate, settings.load.key_size);
        Ok(Self { session: session.clone(), statement, validate, key_size })
    }
}

impl Operation for Get {
    fn name(&self) -> &str {
        "COUNTER_READ"
    }

    fn run<'a>(&'a self, visits: &'a [Visit], _: u64) -> Try<'a> {
        one_by_one(visits, move |seed| async move {
            let found = count_rows(&self.session, &self.statement, (key(seed, self.key_size),)).await?;
            if found == 0 && self.validate {
                return Err(format!("no counters for seed {seed}: were they written (same -pop)?").into());
            }
            Ok(found)
        })
    }
}
