//! Preparing: from text and schema to a plan that execution can follow without parsing or looking up names.
//!
//! Agrees with `org.apache.cassandra.cql3.QueryProcessor.prepare` and `CQLStatement.Raw.prepare`.

use std::sync::Arc;

use md5::{Digest, Md5};
use schema::{Schema, TableMetadata};

use crate::ast::Statement;
use crate::context::Preparing;
use crate::error::CqlError;
use crate::parse::parse;
use crate::restrictions::{KeyTest, PartitionRestriction, Restrictions};
use crate::result::{ColumnSpec, ResultMetadata};
use crate::statements::batch::{self, BatchPlan};
use crate::statements::modification::{self, ModificationPlan};
use crate::statements::select::{self, SelectPlan};
use crate::terms::Term;

/// A statement ready to be executed. Belongs to the schema it was prepared against: see [`Prepared::is_current`].
#[derive(Debug)]
pub struct Prepared {
    /// The text.
    pub query: Arc<str>,
    /// The keyspace that unqualified names were looked up in.
    pub keyspace: Option<Arc<str>>,
    /// MD5 of keyspace and text: the id that drivers are given.
    pub id: [u8; 16],
    /// The bind variables.
    pub bind_variables: Arc<[ColumnSpec]>,
    /// For each component of the partition key the bind variable that gives it; empty if not all are bound.
    pub partition_key_bind_indexes: Arc<[u16]>,
    /// The columns of the result; empty for what gives no rows.
    pub result_metadata: Arc<ResultMetadata>,
    pub(crate) plan: Plan,
}

/// What is to be done.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // a plan is made once and not moved about
pub(crate) enum Plan {
    /// SELECT
    Select(SelectPlan),
    /// INSERT, UPDATE, DELETE
    Modification(ModificationPlan),
    /// BATCH
    Batch(BatchPlan),
    /// USE
    Use(String),
    /// TRUNCATE
    Truncate(Arc<TableMetadata>),
    /// Statements on the schema, and DESCRIBE: looked at again when they are executed.
    Other,
}

impl Prepared {
    /// Still means the same: its tables have not changed since. Otherwise it must be prepared again.
    pub fn is_current(&self, schema: &Schema) -> bool {
        let is_current =
            |table: &Arc<TableMetadata>| schema.table_by_id(table.id).is_none_or(|now| Arc::ptr_eq(now, table));
        let exists = |table: &Arc<TableMetadata>| {
            is_current(table) && schema.table(&table.keyspace, &table.name).is_some_and(|now| now.id == table.id)
        };
        match &self.plan {
            Plan::Select(plan) => exists(&plan.table),
            Plan::Modification(plan) => exists(&plan.table),
            Plan::Batch(plan) => plan.statements.iter().all(|plan| exists(&plan.table)),
            Plan::Truncate(table) => exists(table),
            Plan::Use(_) | Plan::Other => true,
        }
    }

    /// May be in a BATCH message.
    pub fn is_modification(&self) -> bool {
        matches!(self.plan, Plan::Modification(_))
    }
}

/// The id of a prepared statement.
pub fn statement_id(query: &str, keyspace: Option<&str>) -> [u8; 16] {
    let mut hash = Md5::new();
    hash.update(keyspace.unwrap_or_default().as_bytes());
    hash.update(query.as_bytes());
    hash.finalize().into()
}

/// Prepares one statement. `keyspace` is the connection's, or the request's.
pub fn prepare(query: &str, keyspace: Option<&str>, schema: &Arc<Schema>) -> Result<Prepared, CqlError> {
    let parsed = parse(query).map_err(|error| CqlError::Syntax(error.to_string()))?;
    let mut preparing = Preparing::new(schema, &parsed.bind_markers);
    let plan = match &parsed.statement {
        Statement::Select(select) => Plan::Select(select::prepare(&mut preparing, select, keyspace)?),
        Statement::Insert(insert) => {
            Plan::Modification(validated(modification::prepare_insert(&mut preparing, insert, keyspace)?)?)
        }
        Statement::Update(update) => {
            Plan::Modification(validated(modification::prepare_update(&mut preparing, update, keyspace)?)?)
        }
        Statement::Delete(delete) => {
            Plan::Modification(validated(modification::prepare_delete(&mut preparing, delete, keyspace)?)?)
        }
        Statement::Batch(batch) => Plan::Batch(batch::prepare(&mut preparing, batch, keyspace)?),
        Statement::Use(name) => Plan::Use(name.as_str().to_owned()),
        Statement::Truncate(name) => {
            let table = preparing.table(name, keyspace)?;
            crate::statements::check_dependents(preparing.schema, &table)?;
            Plan::Truncate(table)
        }
        other => {
            crate::statements::roles::check_applicable(other)?;
            Plan::Other
        }
    };
    let result_metadata = match &plan {
        Plan::Select(plan) => Arc::clone(&plan.metadata),
        _ => Arc::default(),
    };
    Ok(Prepared {
        query: Arc::from(query),
        keyspace: keyspace.map(Arc::from),
        id: statement_id(query, keyspace),
        bind_variables: preparing.into_bind_variables()?,
        partition_key_bind_indexes: key_indexes(&plan),
        result_metadata,
        plan,
    })
}

fn validated(plan: ModificationPlan) -> Result<ModificationPlan, CqlError> {
    plan.validate()?;
    Ok(plan)
}

fn key_indexes(plan: &Plan) -> Arc<[u16]> {
    let of = |restrictions: &Restrictions| -> Option<Vec<u16>> {
        let PartitionRestriction::Keys(tests) = &restrictions.partition else { return None };
        let index = |test: &KeyTest| match test {
            KeyTest::Eq(Term::Bind { index, .. }) => Some(*index),
            _ => None,
        };
        tests.iter().map(index).collect()
    };
    let found = match plan {
        Plan::Select(plan) => of(&plan.restrictions),
        Plan::Modification(plan) => of(&plan.restrictions),
        Plan::Batch(plan) => match plan.statements.as_slice() {
            [first, rest @ ..] if rest.iter().all(|other| other.table.id == first.table.id) => of(&first.restrictions),
            _ => None,
        },
        Plan::Use(_) | Plan::Truncate(_) | Plan::Other => None,
    };
    found.unwrap_or_default().into()
}
