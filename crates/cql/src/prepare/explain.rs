//! A prepared EXPLAIN: the plan of a statement on data, and the columns of the answer.
//! `crate::explain` carries it out.

use std::sync::Arc;

use types::CqlType;

use super::Plan;
use crate::context::PrepareContext;
use crate::result::{ColumnSpec, ResultMetadata};

/// A prepared EXPLAIN.
#[derive(Debug)]
pub(crate) struct ExplainPlan {
    /// The statement is carried out.
    pub analyze: bool,
    /// SELECT, INSERT, UPDATE, DELETE or BATCH.
    pub plan: Plan,
    /// The columns of the answer.
    pub metadata: Arc<ResultMetadata>,
}

impl ExplainPlan {
    /// EXPLAIN of what has been prepared.
    pub fn new(context: &PrepareContext<'_>, plan: Plan, analyze: bool) -> Self {
        Self { analyze, plan, metadata: metadata(context) }
    }
}

/// The columns of the answer, which `explain::table` fills.
fn metadata(context: &PrepareContext<'_>) -> Arc<ResultMetadata> {
    let column = |name: &str, ty: CqlType| ColumnSpec {
        keyspace: Arc::clone(&context.keyspace),
        table: Arc::clone(&context.table),
        name: Arc::from(name),
        ty,
    };
    let columns = vec![
        column("step", CqlType::Text),
        column("object", CqlType::Text),
        column("figure", CqlType::Text),
        column("value", CqlType::BigInt),
        column("detail", CqlType::Text),
    ];
    Arc::new(ResultMetadata { columns })
}
