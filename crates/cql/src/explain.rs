//! EXPLAIN and EXPLAIN ANALYZE: how a statement is carried out, and what it took.
//!
//! 1. The statement is prepared as it would be without the words.
//! 2. It is executed on a coordinator of its own, [`Watching`], which writes down what is asked of
//!    it. For EXPLAIN nothing is read or written: reads give nothing, and the node is asked what
//!    they would take. For ANALYZE everything is passed on to the node.
//! 3. What was written down becomes lines ([`table`]), each with one figure.
//!
//! So what is told of is what is done: no second planner that could be of another opinion. A SELECT
//! is explained for one page of the request's page size. The answer itself is not paged.

mod access;
mod hints;
mod node;
mod sources;
mod table;
mod watching;
mod words;
mod writes;

use crate::context::{Bindings, JsonObjects};
use crate::error::CqlError;
use crate::options::QueryOptions;
use crate::prepare::{ExplainPlan, Plan};
use crate::result::{Answer, CqlResult};
use crate::statements::{batch, modification, select};
use crate::values::BoundValue;
pub use node::Explain;
use table::Lines;
use watching::{Seen, Watching};

/// Explains.
pub(crate) async fn execute<C: Explain>(
    plan: &ExplainPlan,
    values: &[BoundValue],
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let watching = Watching::new(coordinator, plan.analyze);
    let begun = coordinator.monotonic_micros();
    let answer = carry_out(&plan.plan, values, options, &watching).await?;
    let micros = coordinator.monotonic_micros().saturating_sub(begun);
    let seen = watching.into_seen();
    let told = Told { seen: &seen, answer: &answer, options, analyze: plan.analyze, micros };
    let bindings = Bindings { values, sources: coordinator, json: &JsonObjects::default() };
    let mut lines = Lines::default();
    match &plan.plan {
        Plan::Select(plan) => {
            access::tell(&mut lines, plan, &told, &bindings)?;
            sources::tell(&mut lines, &plan.table, &told);
            hints::tell(&mut lines, plan, &told);
        }
        _ => writes::tell(&mut lines, &plan.plan, &told, coordinator),
    }
    Ok(Answer { result: CqlResult::Rows(lines.into_result(&plan.metadata)), warnings: answer.warnings })
}

/// The inputs of the rows that EXPLAIN answers with.
struct Told<'a> {
    seen: &'a Seen,
    answer: &'a Answer,
    options: &'a QueryOptions,
    analyze: bool,
    /// From the values to the answer.
    micros: u64,
}

async fn carry_out<C: Explain>(
    plan: &Plan,
    values: &[BoundValue],
    options: &QueryOptions,
    watching: &Watching<'_, C>,
) -> Result<Answer, CqlError> {
    match plan {
        Plan::Select(plan) => select::execute(plan, values, options, false, watching).await,
        Plan::Modification(plan) => modification::execute(plan, values, options, watching).await,
        Plan::Batch(plan) => batch::execute(plan, values, options, watching).await,
        _ => Err(CqlError::Server("EXPLAIN of a statement that is not on data".to_owned())),
    }
}
