//! The prepared statements of this node, found by their ids.
//!
//! All workers share them, so that a statement is prepared once however many connections its client
//! has. At most `prepared_statements_cache_size` bytes of them are kept, and a statement that alone
//! is larger is refused when it is prepared: its id could never be executed. Agrees with
//! `org.apache.cassandra.cql3.QueryProcessor`.
//!
//! A change of the schema that could change what a statement means or answers ends the statement
//! ([`cql::PreparedStatement::is_outdated`]): EXECUTE is answered UNPREPARED until a client
//! prepares it again, which renews the columns that drivers know. After any other change the
//! statement is planned again, and clients do not notice.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use cql::{CqlError, PreparedStatement};
use protocol::response;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use schema::Schema;
use types::extent::Extents;

/// Bytes counted for a statement besides its text.
const OVERHEAD: u64 = 1024;
/// Bytes counted for a column of the result or a bind variable.
const PER_COLUMN: u64 = 128;
/// Bytes counted for a byte of the text: the text is kept, and so are its literals.
const PER_TEXT_BYTE: u64 = 2;
/// Bytes counted for a sign between two terms, such as a comma: what the plan keeps of a term,
/// however short its text is.
const PER_SIGN: u64 = 64;
/// A statement may be as large as the cache without one part in so many. The cache silently drops
/// an entry that is larger than its part for entries used often, which is 97 %.
const NOT_FOR_ONE: u64 = 16;
/// The most bytes that the types of the columns and bind variables of a statement take together
/// where user types are written out, as answers have them. A statement may name a column of a large
/// type as often as its text has room for.
const TYPES_SIZE_MAX: usize = 64 << 20;
/// Characters of its text that the refusal of a statement shows.
const SHOWN_MAX: usize = 200;

/// The id of a statement.
pub type StatementId = [u8; 16];

/// A statement with its columns in the protocol's form.
pub struct PlannedStatement {
    /// The plan.
    pub prepared: PreparedStatement,
    /// Bind variables.
    pub markers: Arc<[response::ColumnSpec]>,
    /// Columns of the result.
    pub result: Arc<response::ResultMetadata>,
    /// A statement of the same id had other columns before, and clients below protocol version 5
    /// may still know those: see `request::old_columns`.
    pub columns_changed: bool,
    /// Bytes of the types of its columns and bind variables, where user types are written out.
    types_size: usize,
    /// The schema against which a prepared statement was planned. Weak, because otherwise a
    /// statement that nobody executes any more would keep the lists of all tables of its time. Its
    /// address is compared with that of the schema in force; no other schema gets the address
    /// while this is here.
    schema: Weak<Schema>,
}

impl PlannedStatement {
    /// Plans a statement. A statement that is executed once costs no more than its plan: ids and
    /// encoded metadata are made when they are asked for.
    pub fn plan(query: &str, keyspace: Option<&str>, schema: &Arc<Schema>) -> Result<Self, CqlError> {
        let prepared = cql::prepare(query, keyspace, schema)?;
        let types_size = types_size(&prepared)?;
        let markers = prepared.bind_variables.iter().map(column).collect();
        let result = match prepared.result_metadata.columns.as_slice() {
            [] => no_columns(),
            _ => Arc::new(result_metadata(&prepared.result_metadata)),
        };
        Ok(Self { prepared, markers, result, columns_changed: false, types_size, schema: Weak::new() })
    }

    /// A statement that is to be executed more than once.
    fn plan_to_keep(query: &str, keyspace: Option<&str>, schema: &Arc<Schema>) -> Result<Self, CqlError> {
        let planned = Self::plan(query, keyspace, schema)?;
        Ok(Self { schema: Arc::downgrade(schema), ..planned })
    }

    /// Whether the statement was planned against this schema.
    fn is_of(&self, schema: &Arc<Schema>) -> bool {
        std::ptr::eq(self.schema.as_ptr(), Arc::as_ptr(schema))
    }
}

/// Bytes of the types of the columns and bind variables of a statement, where user types are
/// written out. A statement with more of them than can be described is refused, however few columns
/// it has: one may be a tuple of thousands.
fn types_size(prepared: &PreparedStatement) -> Result<usize, CqlError> {
    let specs = prepared.bind_variables.iter().chain(prepared.result_metadata.columns.iter());
    let size = Extents::default().of_all(specs.map(|spec| &spec.ty)).size;
    if size <= TYPES_SIZE_MAX {
        return Ok(size);
    }
    Err(CqlError::invalid(format!(
        "The types of the columns and bind variables of the statement take more than {} MiB where user types are written \
         out, as answers have them",
        TYPES_SIZE_MAX >> 20
    )))
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

impl Weighter<StatementId, Arc<PlannedStatement>> for Weight {
    fn weight(&self, _: &StatementId, statement: &Arc<PlannedStatement>) -> u64 {
        let columns = (statement.markers.len() + statement.result.columns().len()) as u64;
        let text = statement.prepared.query.as_bytes();
        let signs = text.iter().filter(|byte| is_between_terms(**byte)).count() as u64;
        // the columns are kept in the protocol's form: what user types take beside their names
        let types = (statement.types_size as u64).saturating_sub(columns * PER_COLUMN);
        let made = statement.prepared.made_size as u64;
        OVERHEAD + text.len() as u64 * PER_TEXT_BYTE + signs * PER_SIGN + columns * PER_COLUMN + types + made
    }
}

/// Whether a byte of a text is a sign that stands between terms. Quotes and the signs of names
/// stand in terms.
fn is_between_terms(byte: u8) -> bool {
    byte.is_ascii_punctuation() && !matches!(byte, b'\'' | b'"' | b'_' | b'$')
}

/// All prepared statements.
pub struct PreparedStatements {
    cache: Cache<StatementId, Arc<PlannedStatement>, Weight>,
    capacity: u64,
    /// Number of statements that were kept under an id that was not known. A statement that was
    /// prepared again after a change of the schema has the place of the former one.
    added: AtomicU64,
}

impl PreparedStatements {
    /// Keeps at most about `bytes`.
    pub fn new(bytes: u64) -> Self {
        let estimate = usize::try_from(bytes / (OVERHEAD * 2)).unwrap_or(usize::MAX).clamp(16, 100_000);
        // one shard: an entry has to fit into its shard, and the number of cores must not decide
        // which statements can be executed
        let options = OptionsBuilder::new().shards(1).estimated_items_capacity(estimate).weight_capacity(bytes).build();
        let options = options.expect("both capacities are given");
        let cache = Cache::with_options(options, Weight, DefaultHashBuilder::default(), DefaultLifecycle::default());
        Self { cache, capacity: bytes, added: AtomicU64::new(0) }
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
    ) -> Result<(Arc<PlannedStatement>, bool), CqlError> {
        let mut statement = PlannedStatement::plan_to_keep(query, keyspace, &schema)?;
        let id = statement.prepared.id();
        let known = self.cache.get(&id);
        if let Some(known) = &known {
            if known.is_of(&schema) {
                return Ok((Arc::clone(known), false));
            }
            statement.columns_changed = known.columns_changed || known.result.id() != statement.result.id();
        }
        let statement = Arc::new(statement);
        self.check_size(&id, &statement)?;
        let is_new = known.is_none();
        self.added.fetch_add(u64::from(is_new), Ordering::Relaxed);
        self.cache.insert(id, Arc::clone(&statement));
        Ok((statement, is_new))
    }

    fn check_size(&self, id: &StatementId, statement: &Arc<PlannedStatement>) -> Result<(), CqlError> {
        let size = Weight.weight(id, statement);
        if size <= self.capacity - self.capacity / NOT_FOR_ONE {
            return Ok(());
        }
        Err(CqlError::invalid(format!(
            "Prepared statement of size {size} bytes is larger than allowed maximum of {} MB: {}...",
            self.capacity >> 20,
            statement.prepared.query.chars().take(SHOWN_MAX).collect::<String>()
        )))
    }

    /// The statement of an id, planned against `schema`, the one in force. None: a client has to
    /// prepare the statement again.
    ///
    /// A statement that has ended keeps its place, because a client that prepares it again must
    /// learn whether its columns have changed.
    pub fn get(&self, id: &[u8], schema: &Arc<Schema>) -> Option<Arc<PlannedStatement>> {
        let id = StatementId::try_from(id).ok()?;
        let known = self.cache.get(&id)?;
        if known.is_of(schema) {
            return Some(known);
        }
        if known.prepared.is_outdated(schema) { None } else { self.plan_again(id, &known, schema) }
    }

    /// The text of a statement, even of one that has ended. None: no statement of this id is known.
    pub fn text(&self, id: &[u8]) -> Option<Arc<str>> {
        let id = StatementId::try_from(id).ok()?;
        self.cache.get(&id).map(|known| Arc::clone(&known.prepared.query))
    }

    /// Plans a statement again after a change of the schema. None: the statement cannot be planned
    /// any more, or has other columns now. Something else than its table has changed, such as a
    /// user type that it names; the client learns more when it prepares the statement again.
    fn plan_again(
        &self,
        id: StatementId,
        known: &PlannedStatement,
        schema: &Arc<Schema>,
    ) -> Option<Arc<PlannedStatement>> {
        let old = &known.prepared;
        let mut again = PlannedStatement::plan_to_keep(&old.query, old.keyspace.as_deref(), schema).ok()?;
        if again.result.id() != known.result.id() {
            return None;
        }
        again.columns_changed = known.columns_changed;
        let again = Arc::new(again);
        self.cache.insert(id, Arc::clone(&again));
        Some(again)
    }

    /// The number of statements that are kept, and of those that were evicted since the start.
    pub fn count_and_evicted(&self) -> (u64, u64) {
        let count = self.cache.len() as u64;
        (count, self.added.load(Ordering::Relaxed).saturating_sub(count))
    }

    /// Bytes in use, and bytes allowed.
    pub fn usage(&self) -> (u64, u64) {
        (self.cache.weight(), self.cache.capacity())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schema::table::ColumnSpec;
    use schema::{
        ColumnKind, KeyspaceMetadata, Replication, TableFlags, TableId, TableKind, TableMetadata, TableParams,
    };
    use types::{CqlType, UserType};

    use super::*;

    const CAPACITY: u64 = 10 << 20;

    fn padded(length: usize) -> String {
        format!("SELECT key FROM system.local /* {} */", "x".repeat(length))
    }

    /// A statement that PREPARE answers with an id is there when it is executed, whatever else was
    /// prepared; a larger one is refused by PREPARE.
    #[test]
    fn a_statement_is_kept_or_refused() {
        let schema = Arc::new(schema::system::schema());
        let prepared = PreparedStatements::new(CAPACITY);
        let many = format!("SELECT key FROM system.local WHERE key IN ({}'a')", "'a',".repeat(200_000));
        let few = format!("SELECT key FROM system.local WHERE key IN ({}'a')", "'a',".repeat(50_000));
        for (text, is_kept) in [
            (padded(100), true),
            (padded(200_000), true),
            (few, true),
            (padded(4_000_000), true),
            (padded(6_000_000), false),
            (many, false),
        ] {
            let shown: String = text.chars().take(SHOWN_MAX).collect();
            match prepared.prepare(&text, None, Arc::clone(&schema)) {
                Ok((statement, is_new)) => {
                    assert!(is_kept && is_new, "{shown}");
                    assert!(prepared.get(&statement.prepared.id(), &schema).is_some(), "{shown}");
                }
                Err(CqlError::Invalid(message)) => {
                    assert!(!is_kept, "{message}");
                    assert!(message.starts_with("Prepared statement of size "), "{message}");
                    let end = format!(" bytes is larger than allowed maximum of 10 MB: {shown}...");
                    assert!(message.ends_with(&end), "{message}");
                }
                Err(error) => panic!("{shown}: {error}"),
            }
            assert!(prepared.usage().0 <= CAPACITY, "{shown}");
        }
    }

    /// Columns of a large type count with all fields of the type, and a statement that names too
    /// many of them is refused before its answer is described.
    #[test]
    fn types_of_a_statement_are_measured() {
        let fields = (0..30_000).map(|at| (format!("f{at}"), CqlType::Int)).collect();
        let wide = Arc::new(UserType { keyspace: "ks".to_owned(), name: "wide".to_owned(), fields });
        let spec = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
        let key = spec("k", ColumnKind::PartitionKey, CqlType::Int);
        let specs = vec![key, spec("w", ColumnKind::Regular, CqlType::Udt(Arc::clone(&wide), true))];
        let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
        let table = TableMetadata::new(TableId([1; 16]), "ks", "t", kind, flags, params, specs, BTreeMap::new(), None);
        let keyspace = KeyspaceMetadata {
            name: "ks".to_owned(),
            durable_writes: true,
            replication: Replication::simple(1),
            tables: BTreeMap::from([("t".to_owned(), Arc::new(table))]),
            user_types: BTreeMap::from([("wide".to_owned(), wide)]),
            function_rows: Vec::new(),
            functions: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            is_virtual: false,
        };
        let schema = Arc::new(schema::system::schema().with_keyspace(keyspace));
        let select = |count: usize| format!("SELECT {} FROM ks.t", vec!["w"; count].join(", "));
        assert!(PlannedStatement::plan(&select(20), None, &schema).is_ok());
        let one_tuple = format!("SELECT ({}) FROM ks.t", vec!["w"; 100].join(", "));
        for too_large in [select(100), one_tuple] {
            let refused = PlannedStatement::plan(&too_large, None, &schema).map(drop).expect_err("180 MB");
            assert!(refused.to_string().contains("take more than 64 MiB"), "{refused}");
        }
        let prepared = PreparedStatements::new(CAPACITY);
        prepared.prepare(&select(1), None, Arc::clone(&schema)).map(drop).expect("there is room");
        assert!(prepared.usage().0 > 1 << 20);
        let before = prepared.usage().0;
        let literal = "INSERT INTO ks.t (k, w) VALUES (1, {f0: 1})";
        prepared.prepare(literal, None, Arc::clone(&schema)).map(drop).expect("there is room");
        assert!(prepared.usage().0 > before + 4 * 29_999, "fields that a literal leaves out count");
        let refused = prepared.prepare(&select(8), None, schema).map(drop).expect_err("14 MB");
        assert!(refused.to_string().starts_with("Prepared statement of size "), "{refused}");
    }

    /// A statement that nobody executes does not keep the schema against which it was planned.
    #[test]
    fn a_statement_keeps_no_schema() {
        let schema = Arc::new(schema::system::schema());
        let prepared = PreparedStatements::new(CAPACITY);
        let id = {
            let (statement, _) = prepared.prepare(&padded(1), None, Arc::clone(&schema)).expect("a statement");
            statement.prepared.id()
        };
        let (next, former) = (Arc::new(Schema::clone(&schema)), Arc::downgrade(&schema));
        drop(schema);
        assert!(former.upgrade().is_none());
        let again = prepared.get(&id, &next).expect("the table is as it was");
        assert!(again.is_of(&next), "it is planned again");
    }

    /// A statement that is prepared again after a change of the schema was not evicted.
    #[test]
    fn a_statement_that_is_prepared_again_counts_once() {
        let schema = Arc::new(schema::system::schema());
        let prepared = PreparedStatements::new(CAPACITY);
        for schema in [Arc::clone(&schema), Arc::new(Schema::clone(&schema))] {
            assert!(prepared.prepare(&padded(1), None, schema).is_ok());
            assert_eq!(prepared.count_and_evicted(), (1, 0));
        }
    }
}
