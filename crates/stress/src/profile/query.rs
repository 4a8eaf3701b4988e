//! A query of the profile.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;

use super::rows::Rows;
use super::yaml::{Fields, Profile, QuerySpec};
use crate::Result;
use crate::settings::Settings;
use crate::value::mix;
use crate::workload::{Done, Operation, Try, count_rows};

pub struct Query {
    name: String,
    session: Arc<Session>,
    statement: PreparedStatement,
    /// Columns in the order of the statement's markers.
    columns: Vec<String>,
    fields: Fields,
    rows: Arc<Rows>,
}

impl Query {
    /// Prepares the statement. Markers take their values from the columns that they are compared with.
    pub async fn new(
        session: &Arc<Session>,
        profile: &Profile,
        name: &str,
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
        let columns: Vec<String> =
            statement.get_variable_col_specs().iter().map(|column| column.name().to_owned()).collect();
        let probe = rows.one(1, 1);
        if let Some(column) = columns.iter().find(|column| rows.value(&probe, column).is_none()) {
            return Err(
                format!("query {name}: the marker for {column} belongs to no column of {}", profile.table).into()
            );
        }
        Ok(Self { name: name.to_owned(), session: session.clone(), statement, columns, fields: query.fields, rows })
    }

    fn values(&self, partition: u64, draw: u64) -> Vec<Option<CqlValue>> {
        let row = self.rows.one(partition, draw);
        let value = |(number, column): (usize, &String)| match self.fields {
            Fields::SameRow => self.rows.value(&row, column),
            Fields::MultiRow => self.rows.value(&self.rows.one(partition, mix(draw ^ number as u64)), column),
        };
        self.columns.iter().enumerate().map(value).collect()
    }
}

impl Operation for Query {
    fn name(&self) -> &str {
        &self.name
    }

    fn run<'a>(&'a self, seeds: &'a [u64], draw: u64) -> Try<'a> {
        Box::pin(async move {
            let mut rows = 0;
            for seed in seeds {
                rows += count_rows(&self.session, &self.statement, self.values(*seed, draw)).await?;
            }
            Ok(Done { partitions: seeds.len() as u64, rows })
        })
    }
}
