//! Preparing a statement: parsing its text, looking up its names in the schema, making a plan.
//! Executing the plan neither parses nor looks up names.
//!
//! Agrees with `org.apache.cassandra.cql3.QueryProcessor.prepare` and `CQLStatement.Raw.prepare`.

mod explain;
mod outdated;

use std::sync::Arc;

use md5::{Digest, Md5};
use schema::{Schema, TableMetadata};

use crate::ast::{Modification, Statement};
use crate::context::{MADE_SIZE_MAX, PrepareContext, take_made};
use crate::error::CqlError;
use crate::functions::Function;
use crate::parse::parse;
use crate::result::{ColumnSpec, ResultMetadata};
use crate::statements::batch::{self, BatchPlan};
use crate::statements::modification::{self, ModificationPlan};
use crate::statements::select::{self, SelectPlan};
use crate::values::BoundValue;
pub(crate) use explain::ExplainPlan;

/// A statement that can be executed. It holds the tables of the schema it was prepared against:
/// [`PreparedStatement::is_outdated`] says whether they have changed since.
#[derive(Debug)]
pub struct PreparedStatement {
    /// The text of the statement.
    pub query: Arc<str>,
    /// The keyspace in which unqualified names were looked up.
    pub keyspace: Option<Arc<str>>,
    /// Every table is named with its keyspace, so that the statement means the same in every
    /// keyspace.
    pub qualified: bool,
    /// The bind variables.
    pub bind_variables: Arc<[ColumnSpec]>,
    /// For each column of the partition key the index of the last bind variable that is its value;
    /// empty if a column has none. Drivers compute the routing key from them.
    pub partition_key_bind_indexes: Arc<[u16]>,
    /// The columns of the result; empty for statements without rows.
    pub result_metadata: Arc<ResultMetadata>,
    /// Bytes of what the plan holds beyond the text: the fields that the text leaves out of user
    /// types, and the values that its JSON objects and calls have made.
    pub made_size: usize,
    /// The user-defined functions that the statement calls.
    pub(crate) functions: Vec<Arc<Function>>,
    pub(crate) plan: Plan,
}

/// How many bytes the plans of the texts of a BATCH message may still hold beyond these texts. All
/// of them are held until the message is executed.
#[derive(Debug)]
pub struct BatchRoom(usize);

impl Default for BatchRoom {
    fn default() -> Self {
        Self(MADE_SIZE_MAX)
    }
}

impl BatchRoom {
    /// Counts a plan, or refuses it.
    pub fn take(&mut self, prepared: &PreparedStatement) -> Result<(), CqlError> {
        take_made(&mut self.0, prepared.made_size)
    }
}

/// The plan of a statement: which part of the crate executes it, and with which precomputed values.
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
    /// EXPLAIN
    Explain(Box<ExplainPlan>),
    /// Statements on the schema or on roles, and DESCRIBE. They are parsed again when they are
    /// executed.
    Other,
}

impl PreparedStatement {
    /// The id that drivers are given: the MD5 of keyspace and text; of a qualified statement, of
    /// the text alone.
    pub fn id(&self) -> [u8; 16] {
        statement_id(&self.query, self.keyspace.as_deref().filter(|_| !self.qualified))
    }

    /// Whether the statement may mean something else in the keyspace of a connection, `used`, than
    /// where it was prepared. Cassandra does not look into batches, and neither is that done here.
    pub fn is_of_other_keyspace(&self, used: Option<&str>) -> bool {
        !self.qualified && self.keyspace.as_deref() != used && !matches!(self.plan, Plan::Batch(_) | Plan::Use(_))
    }

    /// Whether the statement only reads: SELECT, DESCRIBE, EXPLAIN, EXPLAIN ANALYZE of a SELECT.
    pub fn only_reads(&self) -> bool {
        match &self.plan {
            Plan::Select(_) => true,
            Plan::Explain(explain) => !explain.analyze || matches!(explain.plan, Plan::Select(_)),
            Plan::Other => crate::parse(&self.query)
                .is_ok_and(|parsed| matches!(parsed.statement, crate::ast::Statement::Describe(_))),
            Plan::Modification(_) | Plan::Batch(_) | Plan::Use(_) | Plan::Truncate(_) => false,
        }
    }

    /// Checks that there are as many values as the statement has bind variables.
    pub(crate) fn check_count(&self, values: &[BoundValue]) -> Result<(), CqlError> {
        if self.bind_variables.len() == values.len() {
            return Ok(());
        }
        Err(CqlError::invalid(format!(
            "there were {} markers(?) in CQL but {} bound variables",
            self.bind_variables.len(),
            values.len()
        )))
    }

    /// The plan of a statement that is to be part of a batch, with these values.
    pub(crate) fn modification(&self, values: &[BoundValue]) -> Result<&ModificationPlan, CqlError> {
        self.check_count(values)?;
        match &self.plan {
            Plan::Modification(plan) => Ok(plan),
            _ => Err(CqlError::invalid(
                "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
            )),
        }
    }
}

/// The id of a prepared statement: the MD5 of keyspace and text. It is computed on demand, because
/// statements that are executed once need none.
pub fn statement_id(query: &str, keyspace: Option<&str>) -> [u8; 16] {
    let mut hash = Md5::new();
    hash.update(keyspace.unwrap_or_default().as_bytes());
    hash.update(query.as_bytes());
    hash.finalize().into()
}

/// Prepares one statement. `keyspace` is that of the connection or request, for unqualified names.
pub fn prepare(query: &str, keyspace: Option<&str>, schema: &Arc<Schema>) -> Result<PreparedStatement, CqlError> {
    let parsed = parse(query).map_err(|error| CqlError::Syntax(error.to_string()))?;
    let mut context = PrepareContext::new(schema, &parsed.bind_markers);
    let plan = plan(&mut context, &parsed.statement, keyspace)?;
    let result_metadata = match &plan {
        Plan::Select(plan) => Arc::clone(&plan.metadata),
        Plan::Explain(plan) => Arc::clone(&plan.metadata),
        _ => Arc::default(),
    };
    let qualified = is_qualified(&parsed.statement);
    let partition_key_bind_indexes = key_columns(&plan).map(|count| context.key_markers(count)).unwrap_or_default();
    let (functions, made_size) = (std::mem::take(&mut context.used), context.made_size());
    let bind_variables = context.into_bind_variables()?;
    let is_variable = |index: &u16| usize::from(*index) < bind_variables.len();
    assert!(partition_key_bind_indexes.iter().all(is_variable), "the routing key is made of bind variables");
    Ok(PreparedStatement {
        query: Arc::from(query),
        keyspace: keyspace.map(Arc::from),
        qualified,
        bind_variables,
        partition_key_bind_indexes,
        result_metadata,
        made_size,
        plan,
        functions,
    })
}

fn plan(context: &mut PrepareContext<'_>, statement: &Statement<'_>, keyspace: Option<&str>) -> Result<Plan, CqlError> {
    Ok(match statement {
        Statement::Select(select) => Plan::Select(select::prepare(context, select, keyspace)?),
        Statement::Insert(insert) => {
            Plan::Modification(validated(modification::prepare_insert(context, insert, keyspace)?)?)
        }
        Statement::Update(update) => {
            Plan::Modification(validated(modification::prepare_update(context, update, keyspace)?)?)
        }
        Statement::Delete(delete) => {
            Plan::Modification(validated(modification::prepare_delete(context, delete, keyspace)?)?)
        }
        Statement::Batch(batch) => Plan::Batch(batch::prepare(context, batch, keyspace)?),
        Statement::Use(name) => Plan::Use(name.as_str().to_owned()),
        Statement::Truncate(name) => {
            let table = context.table(name, keyspace)?;
            crate::statements::check_dependents(&table)?;
            Plan::Truncate(table)
        }
        Statement::Explain(explain) => {
            let explained = plan(context, &explain.statement, keyspace)?;
            Plan::Explain(Box::new(ExplainPlan::new(context, explained, explain.analyze)))
        }
        other => {
            crate::auth::check_applicable(other)?;
            Plan::Other
        }
    })
}

fn validated(plan: ModificationPlan) -> Result<ModificationPlan, CqlError> {
    plan.validate()?;
    Ok(plan)
}

/// Every table of the statement is named with its keyspace.
fn is_qualified(statement: &Statement<'_>) -> bool {
    let modification = |statement: &Modification<'_>| match statement {
        Modification::Insert(insert) => insert.table.keyspace.is_some(),
        Modification::Update(update) => update.table.keyspace.is_some(),
        Modification::Delete(delete) => delete.table.keyspace.is_some(),
    };
    match statement {
        Statement::Select(select) => select.table.keyspace.is_some(),
        Statement::Insert(insert) => insert.table.keyspace.is_some(),
        Statement::Update(update) => update.table.keyspace.is_some(),
        Statement::Delete(delete) => delete.table.keyspace.is_some(),
        Statement::Batch(batch) => batch.statements.iter().all(modification),
        Statement::Truncate(name) => name.keyspace.is_some(),
        Statement::Explain(explain) => is_qualified(&explain.statement),
        _ => false,
    }
}

/// Number of partition key columns of the table that the statement reads or changes; None unless it
/// is a single table.
fn key_columns(plan: &Plan) -> Option<usize> {
    let table = match plan {
        Plan::Select(plan) => &plan.table,
        Plan::Modification(plan) => &plan.table,
        Plan::Batch(plan) => match plan.statements.as_slice() {
            [first, rest @ ..] if rest.iter().all(|other| other.table.id == first.table.id) => &first.table,
            _ => return None,
        },
        Plan::Explain(plan) => return key_columns(&plan.plan),
        Plan::Use(_) | Plan::Truncate(_) | Plan::Other => return None,
    };
    Some(table.partition_key.len())
}
