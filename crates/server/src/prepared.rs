//! The prepared statements of this node, found by their ids.
//!
//! All workers share them, so that a statement is prepared once however many connections its client
//! has. At most `prepared_statements_cache_size` bytes of them are kept. Agrees with
//! `org.apache.cassandra.cql3.QueryProcessor`.
//!
//! A change of the schema that could change what a statement means or answers ends the statement
//! ([`cql::Prepared::is_outdated`]): EXECUTE is answered UNPREPARED until a client prepares it
//! again, which renews the columns that drivers know. After any other change the statement is
//! planned again, and clients do not notice.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cql::{CqlError, Prepared};
use protocol::response;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use schema::Schema;

/// Bytes counted for a statement besides its text.
const OVERHEAD: u64 = 1024;
/// Bytes counted for a column of the result or a bind variable.
const PER_COLUMN: u64 = 128;

/// The id of a statement.
pub type StatementId = [u8; 16];

/// A statement with its columns in the protocol's form.
pub struct Statement {
    /// The plan.
    pub prepared: Prepared,
    /// Bind variables.
    pub markers: Arc<[response::ColumnSpec]>,
    /// Columns of the result.
    pub result: Arc<response::ResultMetadata>,
    /// A statement of the same id had other columns before, and clients below protocol version 5
    /// may still know those: see `request::old_columns`.
    pub columns_changed: bool,
    /// The schema that the statement was planned against.
    schema: Arc<Schema>,
}

impl Statement {
    /// Plans a statement. What is executed once costs no more than its plan: ids and encoded
    /// metadata are made when they are asked for.
    pub fn plan(query: &str, keyspace: Option<&str>, schema: Arc<Schema>) -> Result<Self, CqlError> {
        let prepared = cql::prepare(query, keyspace, &schema)?;
        let markers = prepared.bind_variables.iter().map(column).collect();
        let result = match prepared.result_metadata.columns.as_slice() {
            [] => no_columns(),
            _ => Arc::new(result_metadata(&prepared.result_metadata)),
        };
        Ok(Self { prepared, markers, result, columns_changed: false, schema })
    }
}

/// The metadata of statements that give no rows, shared by all of them.
fn no_columns() -> Arc<response::ResultMetadata> {
    static NONE: OnceLock<Arc<response::ResultMetadata>> = OnceLock::new();
    Arc::clone(NONE.get_or_init(|| Arc::new(response::ResultMetadata::empty())))
}

/// Columns in the protocol's form.
pub fn result_metadata(metadata: &cql::ResultMetadata) -> response::ResultMetadata {
    response::ResultMetadata::new(metadata.columns.iter().map(column).collect())
}

fn column(spec: &cql::ColumnSpec) -> response::ColumnSpec {
    response::ColumnSpec {
        keyspace: Arc::clone(&spec.keyspace),
        table: Arc::clone(&spec.table),
        name: Arc::clone(&spec.name),
        cql_type: spec.ty.clone(),
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<StatementId, Arc<Statement>> for Weight {
    fn weight(&self, _: &StatementId, statement: &Arc<Statement>) -> u64 {
        let columns = statement.markers.len() + statement.result.columns().len();
        OVERHEAD + statement.prepared.query.len() as u64 * 2 + columns as u64 * PER_COLUMN
    }
}

/// All prepared statements.
pub struct PreparedStatements {
    cache: Cache<StatementId, Arc<Statement>, Weight>,
    capacity: u64,
    added: AtomicU64,
}

impl PreparedStatements {
    /// Keeps at most about `bytes`.
    pub fn new(bytes: u64) -> Self {
        let estimate = usize::try_from(bytes / (OVERHEAD * 2)).unwrap_or(usize::MAX).clamp(16, 100_000);
        Self { cache: Cache::with_weighter(estimate, bytes, Weight), capacity: bytes, added: AtomicU64::new(0) }
    }

    /// Bytes that may be kept.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Prepares a statement, or finds it prepared. The flag: the statement was not known before.
    pub fn prepare(
        &self,
        query: &str,
        keyspace: Option<&str>,
        schema: Arc<Schema>,
    ) -> Result<(Arc<Statement>, bool), CqlError> {
        let mut statement = Statement::plan(query, keyspace, schema)?;
        let id = statement.prepared.id();
        let known = self.cache.get(&id);
        if let Some(known) = &known {
            if Arc::ptr_eq(&known.schema, &statement.schema) {
                return Ok((Arc::clone(known), false));
            }
            statement.columns_changed = known.columns_changed || known.result.id() != statement.result.id();
        }
        let statement = Arc::new(statement);
        self.added.fetch_add(1, Ordering::Relaxed);
        self.cache.insert(id, Arc::clone(&statement));
        Ok((statement, known.is_none()))
    }

    /// The statement of an id, planned against `schema`, the one in force. None: a client has to
    /// prepare the statement again.
    ///
    /// A statement that has ended keeps its place: whoever prepares it again must learn whether its
    /// columns were others.
    pub fn get(&self, id: &[u8], schema: &Arc<Schema>) -> Option<Arc<Statement>> {
        let id = StatementId::try_from(id).ok()?;
        let known = self.cache.get(&id)?;
        if Arc::ptr_eq(&known.schema, schema) {
            return Some(known);
        }
        if known.prepared.is_outdated(schema) { None } else { self.plan_again(id, &known, schema) }
    }

    /// The text of a statement, even of one that has ended. None: no statement of this id is known.
    pub fn text(&self, id: &[u8]) -> Option<Arc<str>> {
        let id = StatementId::try_from(id).ok()?;
        self.cache.get(&id).map(|known| Arc::clone(&known.prepared.query))
    }

    /// None: the statement cannot be planned any more, or has other columns now. Something else
    /// than its table has changed, such as a user type that it names; the client learns more when
    /// it prepares the statement again.
    fn plan_again(&self, id: StatementId, known: &Statement, schema: &Arc<Schema>) -> Option<Arc<Statement>> {
        let old = &known.prepared;
        let mut again = Statement::plan(&old.query, old.keyspace.as_deref(), Arc::clone(schema)).ok()?;
        if again.result.id() != known.result.id() {
            return None;
        }
        again.columns_changed = known.columns_changed;
        let again = Arc::new(again);
        self.cache.insert(id, Arc::clone(&again));
        Some(again)
    }

    /// How many there are, and how many have been forgotten.
    pub fn count_and_evicted(&self) -> (u64, u64) {
        let count = self.cache.len() as u64;
        (count, self.added.load(Ordering::Relaxed).saturating_sub(count))
    }

    /// Bytes kept and allowed.
    pub fn usage(&self) -> (u64, u64) {
        (self.cache.weight(), self.cache.capacity())
    }
}
