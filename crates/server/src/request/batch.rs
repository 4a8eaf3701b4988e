//! BATCH: its statements planned or found, then executed as one.
//!
//! Agrees with `org.apache.cassandra.transport.messages.BatchMessage`.

use std::sync::Arc;

use cql::{BoundValue, Prepared};
use protocol::Response;
use protocol::request::{Batch, BatchStatement};

use super::{Failure, Reply, Running, options};
use crate::prepared::Statement;

impl Running<'_> {
    pub(super) async fn batch(&self, batch: &Batch) -> Result<Reply, Failure> {
        let state = self.state(batch.parameters.keyspace.as_deref()).await;
        self.trace(|| format!("Planning a batch of {} statements", batch.statements.len()));
        let mut statements: Vec<(Arc<Statement>, Vec<BoundValue>)> = Vec::with_capacity(batch.statements.len());
        for statement in &batch.statements {
            let planned = match statement {
                BatchStatement::Prepared { id, .. } => self.prepared(id)?,
                BatchStatement::Query { query, .. } => {
                    let schema = self.services.node.schema();
                    Arc::new(Statement::plan(query, state.keyspace.as_deref(), schema)?)
                }
            };
            let values = options::by_position(statement.values(), &planned.prepared)?;
            statements.push((planned, values));
        }
        let borrowed: Vec<(&Prepared, &[BoundValue])> =
            statements.iter().map(|(statement, values)| (&statement.prepared, values.as_slice())).collect();
        let guardrails = self.guardrails(&state);
        let options = options::of(&batch.parameters, self.version, self.services.limits, guardrails)?;
        let answer = cql::execute_batch(batch.kind, &borrowed, &options, &state, self.coordinator).await?;
        match statements.first() {
            Some((first, _)) => Ok(self.reply(answer, first, false, false)),
            None => Ok(Reply { response: Response::Void, warnings: answer.warnings }),
        }
    }
}
