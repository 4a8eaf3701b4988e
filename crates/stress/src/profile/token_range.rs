//! `token_range_queries`: reads everything in each range of the ring, page by page
//! (org.apache.cassandra.stress.operations.userdefined.TokenRangeQuery). An operation is one page;
//! ranges that are begun come before new ones.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scylla::client::session::Session;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::prepared::PreparedStatement;

use super::Table;
use super::yaml::TokenRangeSpec;
use crate::Result;
use crate::seeds::{Source, Visit};
use crate::settings::token_ranges::TokenRanges;
use crate::workload::{Done, Operation, Try};

pub struct TokenRange {
    name: String,
    session: Arc<Session>,
    statement: PreparedStatement,
    ranges: Vec<(i64, i64)>,
    wrap: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Ranges that are not begun; the first is next.
    new: VecDeque<(i64, i64)>,
    begun: Vec<Begun>,
    /// Ranges of which a page is being read, by the number of the operation.
    under_way: HashMap<u64, Begun>,
}

/// A range that is being read.
#[derive(Clone)]
struct Begun {
    range: (i64, i64),
    page: PagingState,
    /// The token of its last row. A partition that continues on the next page is not counted again.
    last: Option<i64>,
}

impl TokenRange {
    /// Prepares the statement and reads the ring.
    pub async fn new(
        name: String,
        session: &Arc<Session>,
        query: &TokenRangeSpec,
        table: &Table,
        settings: &TokenRanges,
    ) -> Result<Self> {
        let names: Vec<String> = table.partition_key.iter().map(|name| format!("\"{name}\"")).collect();
        let token = format!("token({})", names.join(", "));
        let columns = match query.columns.trim() {
            "*" => table.columns().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "),
            columns => columns.to_owned(),
        };
        let text = format!("SELECT {token}, {columns} FROM {} WHERE {token} > ? AND {token} <= ?", table.name);
        let mut statement =
            session.prepare(text).await.map_err(|error| format!("token range query {name}: {error}"))?;
        if query.page_size < 1 {
            return Err(format!("token range query {name}: page_size is at least 1").into());
        }
        statement.set_page_size(query.page_size);
        let ranges = split(&ring(session).await?, settings.split);
        Ok(Self { name, session: session.clone(), statement, ranges, wrap: settings.wrap, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn page(&self, number: u64) -> Result<Done> {
        let begun = self.state().under_way.get(&number).cloned();
        let Some(mut begun) = begun else { return Err("the range is taken by nobody".into()) };
        let asked = self.session.execute_single_page(&self.statement, begun.range, begun.page.clone());
        let (answer, state) = asked.await?;
        let answer = answer.into_rows_result()?;
        let mut done = Done { partitions: 0, rows: 0 };
        for row in answer.rows::<scylla::value::Row>()? {
            let token = row?.columns.first().and_then(|value| value.as_ref()?.as_bigint());
            done.rows += 1;
            if token != begun.last {
                done.partitions += 1;
                begun.last = token;
            }
        }
        let mut ranges = self.state();
        ranges.under_way.remove(&number);
        if let PagingStateResponse::HasMorePages { state } = state {
            begun.page = state;
            ranges.begun.push(begun);
        }
        Ok(done)
    }
}

impl Operation for TokenRange {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin(&self) {
        *self.state() = State { new: self.ranges.iter().copied().collect(), ..State::default() };
    }

    fn next(&self, source: &Source) -> Option<Vec<Visit>> {
        let mut state = self.state();
        if self.wrap && state.new.is_empty() {
            state.new.extend(&self.ranges);
        }
        let fresh = |range| Begun { range, page: PagingState::start(), last: None };
        // an operation continues with its range afterwards, so one that finds none here may end
        let begun = state.begun.pop().or_else(|| state.new.pop_front().map(fresh))?;
        let Some(number) = source.permit() else {
            state.begun.push(begun);
            return None;
        };
        state.under_way.insert(number, begun);
        Some(vec![Visit { seed: number, number, place: number, part: 0, parts: 1 }])
    }

    fn run<'a>(&'a self, visits: &'a [Visit], _: u64) -> Try<'a> {
        Box::pin(self.page(visits.first().map_or(0, |visit| visit.number)))
    }

    fn ended(&self, visits: &[Visit]) {
        let mut state = self.state();
        // a page that failed is read again
        let failed: Vec<Begun> = visits.iter().filter_map(|visit| state.under_way.remove(&visit.number)).collect();
        state.begun.extend(failed);
    }
}

/// The tokens of all nodes, ascending.
async fn ring(session: &Session) -> Result<Vec<i64>> {
    let mut tokens = HashSet::new();
    for table in ["local", "peers"] {
        let answer =
            session.query_unpaged(format!("SELECT tokens FROM system.{table}"), ()).await?.into_rows_result()?;
        for row in answer.rows::<(Option<Vec<String>>,)>()? {
            for token in row?.0.unwrap_or_default() {
                tokens
                    .insert(token.parse::<i64>().map_err(|_| format!("'{token}' is no token of Murmur3Partitioner"))?);
            }
        }
    }
    let mut tokens: Vec<i64> = tokens.into_iter().collect();
    tokens.sort_unstable();
    Ok(tokens)
}

/// The ranges between tokens, without their starts, each split into `parts`. The range that crosses
/// the end of the ring becomes two.
fn split(tokens: &[i64], parts: u64) -> Vec<(i64, i64)> {
    let mut edges: Vec<i64> = [i64::MIN].into_iter().chain(tokens.iter().copied()).chain([i64::MAX]).collect();
    edges.dedup();
    let mut ranges = Vec::new();
    for pair in edges.windows(2) {
        let (from, to) = (i128::from(pair[0]), i128::from(pair[1]));
        let edge = |part: u64| (from + (to - from) * i128::from(part) / i128::from(parts)) as i64;
        ranges.extend((0..parts).map(|part| (edge(part), edge(part + 1))).filter(|(from, to)| from < to));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_the_whole_ring_without_overlap() {
        for (tokens, parts, expected) in
            [(&[][..], 1, 1), (&[-5, 0, 7][..], 1, 4), (&[-5, 0, 7][..], 4, 16), (&[1, 2][..], 3, 7)]
        {
            let ranges = split(tokens, parts);
            assert_eq!(ranges.len(), expected, "{ranges:?}");
            assert_eq!((ranges[0].0, ranges[expected - 1].1), (i64::MIN, i64::MAX));
            assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
        }
    }
}
