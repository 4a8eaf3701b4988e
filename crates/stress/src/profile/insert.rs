//! `insert`: rows of some partitions in a batch
//! (org.apache.cassandra.stress.operations.userdefined.SchemaInsert). With `-insert visits=` a
//! partition is written in several parts and waits among others between two of them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scylla::client::session::Session;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, MaybeUnset};

use super::rows::{Row, Rows, ValueSource};
use super::yaml::Profile;
use super::{ROWS_MAX, Table};
use crate::Result;
use crate::distribution::{Distribution, Ratio};
use crate::seeds::{Source, Visit};
use crate::settings::insert::Insert as Settings;
use crate::value::{mix, unit};
use crate::workload::{Done, Operation, Try};

/// Most statements of a batch, because the protocol counts them in 16 bits.
const BATCH_MAX: usize = 65_535;

pub struct Insert {
    name: String,
    session: Arc<Session>,
    statement: PreparedStatement,
    /// The columns in the order of the statement's markers.
    sources: Vec<ValueSource>,
    rows: Arc<Rows>,
    partitions: Distribution,
    select: Ratio,
    batch: BatchType,
    visits: Distribution,
    revisit: Distribution,
    /// Partly written partitions: as many as `revisit` can select, and those that are being
    /// written.
    waiting: Mutex<Vec<Visit>>,
}

/// The share of rows, from the command line or else from the profile.
pub fn select(settings: &Settings, profile: &Profile) -> Result<Ratio> {
    Ok(match (&settings.select, &profile.insert.select) {
        (Some(ratio), _) => ratio.clone(),
        (None, Some(text)) => Ratio::parse(text)?,
        (None, None) => Ratio::ALL,
    })
}

impl Insert {
    /// Prepares the statement.
    pub async fn new(
        name: String,
        session: &Arc<Session>,
        profile: &Profile,
        table: &Table,
        rows: Arc<Rows>,
        settings: &Settings,
    ) -> Result<Self> {
        let statement = session.prepare(text(table, &rows)).await?;
        let specs = statement.get_variable_col_specs();
        let source = |name: &str| rows.source_of(name).ok_or_else(|| format!("insert: no values for column {name}"));
        let sources = specs.iter().map(|column| source(column.name())).collect::<std::result::Result<_, _>>()?;
        let batch = batch_type(settings.batch_type.as_deref().or(profile.insert.batchtype.as_deref()), table)?;
        let partitions = match (&settings.partitions, &profile.insert.partitions) {
            (Some(distribution), _) => distribution.clone(),
            (None, Some(text)) => Distribution::parse(text)?,
            (None, None) => Distribution::fixed(1),
        };
        let (visits, revisit) = (settings.visits.clone(), settings.revisit.clone());
        if visits.max() > 1 && rows.most() > ROWS_MAX as f64 {
            return Err(format!("-insert visits=: partitions of more than {ROWS_MAX} rows are not split").into());
        }
        let (session, select, waiting) = (session.clone(), select(settings, profile)?, Mutex::default());
        Ok(Self { name, session, statement, sources, rows, partitions, select, batch, visits, revisit, waiting })
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Visit>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next partition: one that waits, or a new one.
    fn visit(&self, source: &Source, number: u64) -> Option<Visit> {
        if self.visits.max() > 1 {
            let mut waiting = self.waiting();
            let place = self.revisit.draw_of(mix(number)).max(0) as usize;
            if place < waiting.len() {
                return Some(Visit { number, ..waiting.swap_remove(place) });
            }
        }
        let visit = source.visit(number, true)?;
        Some(Visit { parts: self.visits.draw_of(mix(visit.seed)).max(1) as u64, ..visit })
    }

    /// The rows of a partition that this insert writes.
    fn chosen(&self, partition: &super::rows::Partition, visit: &Visit) -> Vec<Row> {
        let draw = visit.draw();
        let share = self.select.draw(mix(draw ^ partition.id));
        if self.rows.most() > ROWS_MAX as f64 {
            let wanted = (self.rows.most() * share).ceil().clamp(1.0, BATCH_MAX as f64) as u64;
            return (0..wanted).map(|number| self.rows.one(partition, mix(draw.wrapping_add(number)))).collect();
        }
        let all = self.rows.all(partition, ROWS_MAX);
        let cut = |part: u64| (all.len() as u64 * part / visit.parts) as usize;
        let part = &all[cut(visit.part)..cut(visit.part + 1)];
        if share >= 1.0 {
            return part.to_vec();
        }
        let chosen: Vec<Row> = part.iter().filter(|row| unit(draw ^ row.id) < share).cloned().collect();
        // at least one row, because an insert of nothing would not be an insert
        if chosen.is_empty() { part.iter().take(1).cloned().collect() } else { chosen }
    }

    async fn insert(&self, visits: &[Visit]) -> Result<Done> {
        // seeds that give the same key have the same rows; in one batch, at one timestamp, a list
        // would get its elements twice
        let (mut values, mut seen) = (Vec::new(), HashSet::new());
        for visit in visits {
            let partition = self.rows.partition(visit.seed);
            let chosen = self.chosen(&partition, visit);
            values.extend(chosen.iter().filter(|row| seen.insert(row.id)).map(|row| self.values(&partition, row)));
        }
        let rows = values.len() as u64;
        match values.len() {
            0 => {}
            1 => {
                self.session.execute_unpaged(&self.statement, &values[0]).await?;
            }
            _ => {
                for values in values.chunks(BATCH_MAX) {
                    let mut batch = Batch::new(self.batch);
                    values.iter().for_each(|_| batch.append_statement(self.statement.clone()));
                    self.session.batch(&batch, values).await?;
                }
            }
        }
        Ok(Done { partitions: visits.len() as u64, rows })
    }

    fn values(&self, partition: &super::rows::Partition, row: &Row) -> Vec<MaybeUnset<CqlValue>> {
        let cell = |source: &ValueSource| match self.rows.cell(partition, row, *source) {
            Some(value) => MaybeUnset::Set(value),
            None => MaybeUnset::Unset,
        };
        self.sources.iter().map(cell).collect()
    }
}

impl Operation for Insert {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_write(&self) -> bool {
        true
    }

    fn begin(&self) {
        self.waiting().clear();
    }

    fn next(&self, source: &Source) -> Option<Vec<Visit>> {
        let first = source.permit()?;
        let wanted = self.partitions.draw_of(mix(first)).max(1);
        let mut visits = vec![self.visit(source, first)?];
        for _ in 1..wanted {
            let Some(visit) = source.permit().and_then(|number| self.visit(source, number)) else { break };
            visits.push(visit);
        }
        Some(visits)
    }

    fn run<'a>(&'a self, visits: &'a [Visit], _: u64) -> Try<'a> {
        Box::pin(self.insert(visits))
    }

    fn ended(&self, visits: &[Visit]) {
        let next = visits.iter().map(|visit| Visit { part: visit.part + 1, ..*visit });
        let left: Vec<Visit> = next.filter(|visit| visit.part < visit.parts).collect();
        if !left.is_empty() {
            self.waiting().extend(left);
        }
    }
}

/// The INSERT of all columns; for counters, the UPDATE that adds to them.
fn text(table: &Table, rows: &Rows) -> String {
    let quoted = |name: &str| format!("\"{name}\"");
    let keys = rows.partition_key.iter().map(|(name, _)| name).chain(rows.levels.iter().map(|level| &level.name));
    let others = rows.statics.iter().chain(&rows.regular).map(|(name, _)| name);
    if table.counters {
        let set: Vec<String> = others.map(|name| format!("{0} = {0} + ?", quoted(name))).collect();
        let tests: Vec<String> = keys.map(|name| format!("{} = ?", quoted(name))).collect();
        return format!("UPDATE {} SET {} WHERE {}", table.name, set.join(", "), tests.join(" AND "));
    }
    let names: Vec<String> = keys.chain(others).map(|name| quoted(name)).collect();
    let markers = vec!["?"; names.len()].join(", ");
    format!("INSERT INTO {} ({}) VALUES ({markers})", table.name, names.join(", "))
}

fn batch_type(text: Option<&str>, table: &Table) -> Result<BatchType> {
    let wanted = match text.map(str::to_ascii_uppercase).as_deref() {
        None if table.counters => BatchType::Counter,
        None | Some("LOGGED") => BatchType::Logged,
        Some("UNLOGGED") => BatchType::Unlogged,
        Some("COUNTER") => BatchType::Counter,
        Some(other) => return Err(format!("insert: batchtype {other} is not LOGGED, UNLOGGED or COUNTER").into()),
    };
    if matches!(wanted, BatchType::Counter) != table.counters {
        return Err("insert: batchtype COUNTER is for tables of counters, and they take no other".into());
    }
    Ok(wanted)
}
