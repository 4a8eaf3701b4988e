//! `insert`: rows of some partitions in a batch.

use std::sync::Arc;

use rand::rngs::SmallRng;
use scylla::client::session::Session;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;

use super::Table;
use super::rows::{Row, Rows};
use super::yaml::{Profile, Ratio};
use crate::Result;
use crate::distribution::Distribution;
use crate::value::mix;
use crate::workload::{Done, Operation, Try};

/// Statements that a batch may have: the protocol counts them in 16 bits.
const MOST_ROWS: usize = 65_535;

pub struct Insert {
    session: Arc<Session>,
    statement: PreparedStatement,
    /// Columns in the order of the statement's markers.
    columns: Vec<String>,
    rows: Arc<Rows>,
    partitions: Distribution,
    select: Ratio,
    batch: BatchType,
}

impl Insert {
    /// Prepares the statement.
    pub async fn new(session: &Arc<Session>, profile: &Profile, table: &Table, rows: Arc<Rows>) -> Result<Self> {
        if table.counters {
            return Err("insert: a table of counters takes no inserts; write a query with UPDATE instead".into());
        }
        let columns: Vec<String> = [&table.partition_key, &table.clustering, &table.statics, &table.regular]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let names = columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let markers = vec!["?"; columns.len()].join(", ");
        let statement = session.prepare(format!("INSERT INTO {} ({names}) VALUES ({markers})", table.name)).await?;
        let spec = &profile.insert;
        let batch = match spec.batchtype.as_deref().map(str::to_ascii_uppercase).as_deref() {
            None | Some("UNLOGGED") => BatchType::Unlogged,
            Some("LOGGED") => BatchType::Logged,
            Some(other) => return Err(format!("insert: batchtype {other} is not LOGGED or UNLOGGED").into()),
        };
        let partitions =
            spec.partitions.as_ref().map_or(Ok(Distribution::fixed(1)), |text| Distribution::parse(text))?;
        let select = Ratio::parse(spec.select.as_deref())?;
        Ok(Self { session: session.clone(), statement, columns, rows, partitions, select, batch })
    }

    /// The rows of a partition that this insert has: at least one.
    fn chosen(&self, partition: u64, draw: u64) -> Vec<Row> {
        let share = self.select.draw(mix(draw ^ partition));
        if share >= 1.0 {
            return self.rows.all(partition, MOST_ROWS);
        }
        let wanted = (self.rows.most() * share).ceil().clamp(1.0, MOST_ROWS as f64) as u64;
        (0..wanted).map(|number| self.rows.one(partition, mix(draw.wrapping_add(number)))).collect()
    }

    fn values(&self, row: &Row) -> Vec<Option<CqlValue>> {
        self.columns.iter().map(|column| self.rows.value(row, column)).collect()
    }
}

impl Operation for Insert {
    fn name(&self) -> &str {
        "insert"
    }

    fn partitions(&self, random: &mut SmallRng) -> usize {
        self.partitions.draw(0, random).max(1) as usize
    }

    fn run<'a>(&'a self, seeds: &'a [u64], draw: u64) -> Try<'a> {
        Box::pin(async move {
            let rows: Vec<Row> = seeds.iter().flat_map(|seed| self.chosen(*seed, draw)).take(MOST_ROWS).collect();
            match rows.as_slice() {
                [row] => {
                    self.session.execute_unpaged(&self.statement, self.values(row)).await?;
                }
                _ => {
                    let mut batch = Batch::new(self.batch);
                    rows.iter().for_each(|_| batch.append_statement(self.statement.clone()));
                    let values: Vec<_> = rows.iter().map(|row| self.values(row)).collect();
                    self.session.batch(&batch, values).await?;
                }
            }
            Ok(Done { partitions: seeds.len() as u64, rows: rows.len() as u64 })
        })
    }
}
