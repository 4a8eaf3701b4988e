//! The bounds that repairs of Paxos leave behind: below which ballot everything is completed.
//!
//! Each table has a history by tokens (`system.paxos_repair_history`, as Cassandra writes it),
//! which promises tell their coordinators. The node has one low bound: the latest high bound of a
//! repair that has begun. Nothing before the low bound is promised or accepted any more, so that a
//! late request cannot begin what the repair will not see. Cassandra keeps the low bound in a file
//! of its own (`ballot.meta`); here it is the history of `system.paxos` itself, a table that
//! Cassandra never looks up there. A directory that changes between the two therefore begins
//! without a low bound.
//!
//! Agrees with `org.apache.cassandra.service.paxos.TablePaxosRepairHistory` and
//! `uncommitted.PaxosBallotTracker`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use internode::payload::paxos::Ballot;
use internode::payload::paxos::cleanup::{History, Tokens};
use rows::{Mutation, ReadError};
use schema::TableMetadata;
use storage::Engine;
use types::Token;

use super::history;
use crate::replica::Replica;
use crate::replica::apply::WriteError;
use crate::system_rows::{self, SystemRow};

/// The name under which the low bound of the node stands among the histories.
const LOW_BOUND: (&str, &str) = ("system", "paxos");

/// The bounds of this node.
pub(crate) struct Bounds(Mutex<State>);

struct State {
    /// The histories of tables, by keyspace and table.
    histories: BTreeMap<(String, String), Arc<History>>,
    /// The latest ballot that was stored since the start, microseconds since 1970.
    high_micros: i64,
    /// The timestamp of the last row that was written, microseconds.
    written_micros: i64,
}

impl Bounds {
    /// The bounds that are stored.
    pub fn read(engine: &Engine) -> Result<Self, ReadError> {
        let table = table(engine);
        let mut histories = BTreeMap::new();
        for (key, row) in system_rows::read(engine, &table, None)? {
            let keyspace = String::from_utf8_lossy(&key.key).into_owned();
            let name = row.clustering.iter().flatten().next().map(|name| String::from_utf8_lossy(name).into_owned());
            let points = system_rows::value(&table, &row, "points");
            if let (Some(name), Some(points)) = (name, points) {
                let what = |error| ReadError::Malformed { offset: 0, what: format!("paxos_repair_history: {error}") };
                histories.insert((keyspace, name), Arc::new(history::decode(points).map_err(what)?));
            }
        }
        Ok(Self(Mutex::new(State { histories, high_micros: 0, written_micros: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ballot before which nothing is promised or accepted.
    pub fn low_bound(&self) -> Ballot {
        let name = (LOW_BOUND.0.to_owned(), LOW_BOUND.1.to_owned());
        self.state().histories.get(&name).map_or(Ballot::NONE, |history| history.last)
    }

    /// The ballot below which everything of a token is completed.
    pub fn of(&self, table: &TableMetadata, token: Token) -> Ballot {
        let history = self.state().histories.get(&name_of(table)).cloned();
        history.map_or(Ballot::NONE, |history| history::ballot_of(&history, token))
    }

    /// Notes that a ballot is stored.
    pub fn note(&self, ballot: &Ballot) {
        let mut state = self.state();
        state.high_micros = state.high_micros.max(ballot.micros());
    }
}

fn table(engine: &Engine) -> Arc<TableMetadata> {
    let schema = engine.schema();
    Arc::clone(schema.table("system", "paxos_repair_history").expect("a built-in table is always there"))
}

fn name_of(table: &TableMetadata) -> (String, String) {
    (table.keyspace.clone(), table.name.clone())
}

impl Replica {
    /// The time of a ballot after every one that this node has stored, microseconds since 1970.
    pub(crate) fn paxos_high_micros(&self) -> i64 {
        self.paxos_bounds.state().high_micros.saturating_add(1)
    }

    /// The ballot below which everything of a token is completed.
    pub(crate) fn paxos_bound_of(&self, table: &TableMetadata, token: Token) -> Ballot {
        self.paxos_bounds.of(table, token)
    }

    /// The history of a table within ranges.
    pub(crate) fn paxos_history(&self, table: &TableMetadata, ranges: &[Tokens]) -> History {
        let history = self.paxos_bounds.state().histories.get(&name_of(table)).cloned();
        history.map_or(history::NOTHING, |history| history::within(&history, ranges))
    }

    /// Called when a repair has begun on all replicas: takes in what they know, and refuses
    /// ballots before its high bound from now on.
    pub(crate) async fn paxos_repair_begun(
        &self,
        table: &TableMetadata,
        known: &History,
        high_bound: Ballot,
    ) -> Result<(), WriteError> {
        let low_bound = History { entries: Vec::new(), last: high_bound };
        let low_name = (LOW_BOUND.0.to_owned(), LOW_BOUND.1.to_owned());
        let rows = [
            self.change_history(name_of(table), |history| history::merged(history, known)),
            self.change_history(low_name, |history| history::merged(history, &low_bound)),
        ];
        self.log_histories(rows.into_iter().flatten().collect()).await
    }

    /// Called when a repair has completed everything before a ballot in these ranges, on all
    /// replicas.
    pub(crate) async fn paxos_repair_completed(
        &self,
        table: &TableMetadata,
        ranges: &[Tokens],
        low_bound: Ballot,
    ) -> Result<(), WriteError> {
        let row = self.change_history(name_of(table), |history| history::with(history, ranges, low_bound));
        self.log_histories(row.into_iter().collect()).await
    }

    /// Changes a history in memory, and gives the row that stores it; None: it stays as it was.
    fn change_history(&self, name: (String, String), change: impl Fn(&History) -> History) -> Option<Mutation> {
        let now = self.env.clock.now_micros();
        let mut state = self.paxos_bounds.state();
        let before = state.histories.get(&name).map_or(history::NOTHING, |history| History::clone(history));
        let after = change(&before);
        if after == before {
            return None;
        }
        let goes_back = |end: Token| history::ballot_of(&before, end).is_after(&history::ballot_of(&after, end));
        let ends = before.entries.iter().map(|(end, _)| *end).filter(|end| *end != Token::MIN);
        assert!(!ends.chain([Token(i64::MAX)]).any(goes_back), "the bound of a token never goes back");
        state.written_micros = now.max(state.written_micros.saturating_add(1));
        let (key, clustering) = (name.0.clone().into_bytes(), name.1.clone().into_bytes());
        let row = SystemRow::new(&table(&self.engine), &[&key], &[&clustering], state.written_micros, None);
        let row = row.set("points", history::encode(&after)).finish();
        state.histories.insert(name, Arc::new(after));
        Some(row)
    }

    async fn log_histories(&self, rows: Vec<Mutation>) -> Result<(), WriteError> {
        if rows.is_empty() { Ok(()) } else { self.apply_and_log(&rows, crate::stripes::StripeGuards::new()).await }
    }
}
