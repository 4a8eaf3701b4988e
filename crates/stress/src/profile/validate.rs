//! `validate`: reads a partition and compares it, row by row and cell by cell, with what inserts of
//! its seed have written (org.apache.cassandra.stress.operations.userdefined.ValidatingSchemaQuery,
//! without its slices).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use scylla::client::session::Session;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;

use super::rows::{Partition, Row, Rows, ValueSource, id_within};
use super::yaml::Profile;
use super::{ROWS_MAX, Table, insert};
use crate::Result;
use crate::seeds::Visit;
use crate::settings::insert::Insert as Settings;
use crate::workload::{Operation, Try};

pub struct Validate {
    name: String,
    session: Arc<Session>,
    statement: PreparedStatement,
    /// The columns in the order of the answer.
    sources: Vec<ValueSource>,
    rows: Arc<Rows>,
    /// Whether every row must be present; false: the rows that are present must be right.
    complete: bool,
}

impl Validate {
    /// Prepares the statement.
    pub async fn new(
        name: String,
        session: &Arc<Session>,
        profile: &Profile,
        table: &Table,
        rows: Arc<Rows>,
        settings: &Settings,
    ) -> Result<Self> {
        if table.counters {
            return Err("validate: what a counter holds depends on how often it was written".into());
        }
        if rows.most() > ROWS_MAX as f64 {
            return Err(format!("validate: partitions of more than {ROWS_MAX} rows are not compared").into());
        }
        let (keys, levels) =
            (rows.partition_key.iter().map(|(name, _)| name), rows.levels.iter().map(|level| &level.name));
        let names = levels.chain(rows.statics.iter().chain(&rows.regular).map(|(name, _)| name));
        let mut columns: Vec<&String> = names.collect();
        if columns.is_empty() {
            columns = keys.clone().collect();
        }
        let sources = columns.iter().filter_map(|name| rows.source_of(name)).collect();
        let selected: Vec<String> = columns.iter().map(|name| format!("\"{name}\"")).collect();
        let tests: Vec<String> = keys.map(|name| format!("\"{name}\" = ?")).collect();
        let text = format!("SELECT {} FROM {} WHERE {}", selected.join(", "), table.name, tests.join(" AND "));
        let statement = session.prepare(text).await?;
        let complete = insert::select(settings, profile)?.min() >= 1.0 && settings.visits.max() <= 1;
        Ok(Self { name, session: session.clone(), statement, sources, rows, complete })
    }

    async fn one(&self, seed: u64) -> Result<u64> {
        let partition = self.rows.partition(seed);
        let all = self.rows.all(&partition, ROWS_MAX);
        let mut expected: HashMap<u64, Row> = all.into_iter().map(|row| (row.id, row)).collect();
        let (mut found, mut page) = (0, PagingState::start());
        loop {
            let (answer, state) = self.session.execute_single_page(&self.statement, &partition.key, page).await?;
            let answer = answer.into_rows_result()?;
            for row in answer.rows::<scylla::value::Row>()? {
                self.compare(seed, &partition, &mut expected, &row?.columns)?;
                found += 1;
            }
            match state {
                PagingStateResponse::HasMorePages { state } => page = state,
                PagingStateResponse::NoMorePages => break,
            }
        }
        match expected.len() {
            missing if missing > 0 && self.complete => {
                Err(format!("{missing} rows of seed {seed} are missing, {found} are there").into())
            }
            _ => Ok(found),
        }
    }

    fn compare(
        &self,
        seed: u64,
        partition: &Partition,
        expected: &mut HashMap<u64, Row>,
        found: &[Option<CqlValue>],
    ) -> Result<()> {
        let cells = || self.sources.iter().zip(found);
        let clustering = cells().filter(|(source, _)| matches!(source, ValueSource::Level(_)));
        let id = clustering.filter_map(|(_, value)| value.as_ref()).fold(partition.id, id_within);
        let row =
            expected.remove(&id).ok_or_else(|| format!("a row of seed {seed} that no insert writes: {found:?}"))?;
        for (source, value) in cells() {
            let wanted = self.rows.cell(partition, &row, *source);
            if wanted.as_ref().and_then(canonical) != value.as_ref().and_then(canonical) {
                return Err(format!("a cell of seed {seed} is {value:?}, an insert writes {wanted:?}").into());
            }
        }
        Ok(())
    }
}

/// The form in which a node returns the value: sets and maps in order, each key once. None for
/// values that equal no value.
fn canonical(value: &CqlValue) -> Option<String> {
    let text = |value: &CqlValue| canonical(value).unwrap_or_default();
    match value {
        CqlValue::Set(elements) => {
            let sorted: BTreeMap<String, ()> = elements.iter().map(|element| (text(element), ())).collect();
            (!sorted.is_empty()).then(|| format!("{:?}", sorted.keys()))
        }
        CqlValue::Map(entries) => {
            let sorted: BTreeMap<String, String> =
                entries.iter().map(|(key, value)| (text(key), text(value))).collect();
            (!sorted.is_empty()).then(|| format!("{sorted:?}"))
        }
        CqlValue::List(elements) => {
            (!elements.is_empty()).then(|| format!("{:?}", elements.iter().map(text).collect::<Vec<_>>()))
        }
        other => Some(format!("{other:?}")),
    }
}

impl Operation for Validate {
    fn name(&self) -> &str {
        &self.name
    }

    fn run<'a>(&'a self, visits: &'a [Visit], _: u64) -> Try<'a> {
        crate::workload::one_by_one(visits, |seed| self.one(seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_compared_as_a_node_gives_them_back() {
        let int = |number| CqlValue::Int(number);
        let set = |numbers: &[i32]| CqlValue::Set(numbers.iter().map(|number| int(*number)).collect());
        assert_eq!(canonical(&set(&[3, 1, 3])), canonical(&set(&[1, 3])));
        assert_ne!(canonical(&set(&[1])), canonical(&set(&[1, 3])));
        let map = |entries: &[(i32, i32)]| CqlValue::Map(entries.iter().map(|(a, b)| (int(*a), int(*b))).collect());
        assert_eq!(canonical(&map(&[(1, 5), (1, 6)])), canonical(&map(&[(1, 6)])));
        assert_eq!(canonical(&CqlValue::List(Vec::new())), None);
    }
}
