//! BATCH: its statements planned or found, then executed as one.
//!
//! Texts are planned a few at a time, so that other connections of the worker have their turn: a
//! message may have 65,535 of them, which are half a second of work. Equal texts share a plan.
//!
//! Agrees with `org.apache.cassandra.transport.messages.BatchMessage`.

use std::collections::HashMap;
use std::sync::Arc;

use cql::{BatchRoom, BoundValue, CqlError, PreparedStatement};
use protocol::Response;
use protocol::request::{Batch, BatchStatement};

use super::{Failure, Reply, RequestExecution, options};
use crate::prepared::PlannedStatement;

/// Statements of a batch with texts that are planned before others have their turn.
const PLANNED_AT_ONCE: usize = 100;

/// The plans of the texts of a batch so far.
#[derive(Default)]
struct PlannedTexts<'b> {
    plans: HashMap<&'b str, Arc<PlannedStatement>>,
    room: BatchRoom,
}

/// A statement, and the values that are bound to it.
type Planned = (Arc<PlannedStatement>, Vec<BoundValue>);

impl RequestExecution<'_> {
    pub(super) async fn batch(&self, batch: &Batch) -> Result<Reply, Failure> {
        self.services.requests.batch_messages.add(1);
        self.check_keyspace(batch.parameters.keyspace.as_deref())?;
        let state = self.state(batch.parameters.keyspace.as_deref()).await;
        self.trace(|| format!("Planning a batch of {} statements", batch.statements.len()));
        let has_texts = batch.statements.iter().any(|statement| matches!(statement, BatchStatement::Query { .. }));
        let keyspace = state.keyspace.as_deref();
        let statements = match has_texts {
            // boxed: by value it would make the future of every request larger
            true => Box::pin(self.planned_in_turns(batch, keyspace)).await?,
            false => {
                let (mut statements, mut texts) = (Vec::with_capacity(batch.statements.len()), PlannedTexts::default());
                for statement in &batch.statements {
                    statements.push(self.planned(statement, keyspace, &mut texts)?);
                }
                statements
            }
        };
        let borrowed: Vec<(&PreparedStatement, &[BoundValue])> =
            statements.iter().map(|(statement, values)| (&statement.prepared, values.as_slice())).collect();
        let guardrails = self.guardrails(&state);
        let options = options::of(&batch.parameters, self.version, self.services.limits, guardrails)?;
        let answer = cql::execute_batch(batch.kind, &borrowed, &options, &state, self.coordinator).await?;
        match statements.first() {
            Some((first, _)) => Ok(self.reply(answer, first, false, false)),
            None => Ok(Reply { response: Response::Void, warnings: answer.warnings }),
        }
    }

    /// Does the work of `planned` for all statements of a batch. Other connections of the worker
    /// have their turn in between.
    async fn planned_in_turns(&self, batch: &Batch, keyspace: Option<&str>) -> Result<Vec<Planned>, Failure> {
        let (mut statements, mut texts) = (Vec::with_capacity(batch.statements.len()), PlannedTexts::default());
        for some in batch.statements.chunks(PLANNED_AT_ONCE) {
            if !statements.is_empty() {
                tokio::task::yield_now().await;
            }
            for statement in some {
                statements.push(self.planned(statement, keyspace, &mut texts)?);
            }
        }
        Ok(statements)
    }

    /// A statement with its values: found, or planned. `texts`: the plans of the texts so far.
    fn planned<'b>(
        &self,
        statement: &'b BatchStatement,
        keyspace: Option<&str>,
        texts: &mut PlannedTexts<'b>,
    ) -> Result<Planned, Failure> {
        let planned = match statement {
            BatchStatement::Prepared { id, .. } => self.prepared(id)?,
            BatchStatement::Query { query, .. } => match texts.plans.get(&**query) {
                Some(known) => Arc::clone(known),
                None => {
                    let planned = Arc::new(PlannedStatement::plan(query, keyspace, &self.services.node.schema())?);
                    texts.room.take(&planned.prepared)?;
                    texts.plans.insert(query, Arc::clone(&planned));
                    planned
                }
            },
        };
        let (values, markers) = (statement.values(), planned.prepared.bind_variables.len());
        if values.len() != markers {
            // in a batch the sentence of Cassandra begins with a capital
            let given = values.len();
            let text = format!("There were {markers} markers(?) in CQL but {given} bound variables");
            return Err(CqlError::invalid(text).into());
        }
        let values = values.iter().map(options::bound).collect();
        Ok((planned, values))
    }
}
