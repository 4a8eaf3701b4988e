//! A query of a profile.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;

use super::rows::{Rows, ValueSource};
use super::yaml::{Fields, QuerySpec};
use crate::Result;
use crate::seeds::Visit;
use crate::settings::Settings;
use crate::value::mix;
use crate::workload::{Done, Operation, Try, count_rows};

pub struct Query {
    name: String,
    session: Arc<Session>,
    statement: PreparedStatement,
    /// The columns in the order of the statement's markers.
    sources: Vec<ValueSource>,
    fields: Fields,
    rows: Arc<Rows>,
}

impl Query {
    /// Prepares the statement. A marker takes the value of the column that it is compared with.
    pub async fn new(
        name: String,
        session: &Arc<Session>,
        query: &QuerySpec,
        rows: Arc<Rows>,
        settings: &Settings,
    ) -> Result<Self> {
        let mut statement =
            session.prepare(query.cql.as_str()).await.map_err(|error| format!("query {name}: {error}"))?;
        statement.set_serial_consistency(match settings.load.serial {
            scylla::statement::Consistency::LocalSerial => Some(scylla::statement::SerialConsistency::LocalSerial),
            _ => Some(scylla::statement::SerialConsistency::Serial),
        });
        let unknown = |column: &str| format!("query {name}: the marker for {column} belongs to no column of the table");
        let source = |column: &str| rows.source_of(column).ok_or_else(|| unknown(column));
        let specs = statement.get_variable_col_specs();
        let sources = specs.iter().map(|column| source(column.name())).collect::<std::result::Result<_, _>>()?;
        Ok(Self { name, session: session.clone(), statement, sources, fields: query.fields, rows })
    }

    fn values(&self, seed: u64, draw: u64) -> Vec<CqlValue> {
        let partition = self.rows.partition(seed);
        let row = self.rows.one(&partition, draw);
        let value = |(number, source): (usize, &ValueSource)| match self.fields {
            Fields::SameRow => self.rows.value(&partition, &row, *source),
            Fields::MultiRow => {
                let other = self.rows.one(&partition, mix(draw ^ number as u64));
                self.rows.value(&partition, &other, *source)
            }
        };
        self.sources.iter().enumerate().map(value).collect()
    }
}

impl Operation for Query {
    fn name(&self) -> &str {
        &self.name
    }

    fn run<'a>(&'a self, visits: &'a [Visit], draw: u64) -> Try<'a> {
        Box::pin(async move {
            let mut rows = 0;
            for visit in visits {
                rows += count_rows(&self.session, &self.statement, self.values(visit.seed, draw)).await?;
            }
            Ok(Done { partitions: visits.len() as u64, rows })
        })
    }
}
