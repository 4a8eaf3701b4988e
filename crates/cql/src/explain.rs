//! EXPLAIN and EXPLAIN ANALYZE: how a statement is carried out, and what it took.
//!
//! 1. The statement is prepared as it would be without the words.
//! 2. The statement is executed on a [`RecordingCoordinator`], which records what it is asked.
//!    For EXPLAIN nothing is read or written: reads give nothing, and the node is asked what they
//!    would take. For ANALYZE everything is passed on to the node.
//! 3. The record becomes lines ([`lines`]), each with one figure.
//!
//! So what is told of is what is done: no second planner that could be of another opinion. A SELECT
//! is explained for one page of the request's page size. The answer itself is not paged.

mod access;
mod coordinator;
mod format;
mod hints;
mod lines;
mod recording;
mod sources;
mod writes;

use crate::context::{Bindings, MadeValues};
use crate::error::CqlError;
use crate::options::QueryOptions;
use crate::prepare::{ExplainPlan, Plan};
use crate::result::{Answer, CqlResult};
use crate::statements::{batch, modification, select};
use crate::values::BoundValue;
pub use coordinator::ExplainCoordinator;
use lines::Lines;
use recording::{Recording, RecordingCoordinator};

/// Explains.
pub(crate) async fn execute<C: ExplainCoordinator>(
    plan: &ExplainPlan,
    values: &[BoundValue],
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let recorder = RecordingCoordinator::new(coordinator, plan.analyze);
    let begun = coordinator.monotonic_micros();
    let answer = execute_plan(&plan.plan, values, options, &recorder).await?;
    let micros = coordinator.monotonic_micros().saturating_sub(begun);
    let recording = recorder.into_recording();
    let execution = Execution { recording: &recording, answer: &answer, options, analyze: plan.analyze, micros };
    let bindings = Bindings { values, sources: coordinator, made: &MadeValues::default() };
    let mut lines = Lines::default();
    match &plan.plan {
        Plan::Select(plan) => {
            access::add_lines(&mut lines, plan, &execution, &bindings)?;
            sources::add_lines(&mut lines, &plan.table, &execution);
            hints::add_lines(&mut lines, plan, &execution);
        }
        _ => writes::add_lines(&mut lines, &plan.plan, &execution, coordinator),
    }
    Ok(Answer { result: CqlResult::Rows(lines.into_result(&plan.metadata)), warnings: answer.warnings })
}

/// One execution of the explained statement: the inputs of the rows that EXPLAIN answers with.
struct Execution<'a> {
    recording: &'a Recording,
    answer: &'a Answer,
    options: &'a QueryOptions,
    analyze: bool,
    /// From the values to the answer.
    micros: u64,
}

async fn execute_plan<C: ExplainCoordinator>(
    plan: &Plan,
    values: &[BoundValue],
    options: &QueryOptions,
    recorder: &RecordingCoordinator<'_, C>,
) -> Result<Answer, CqlError> {
    match plan {
        Plan::Select(plan) => select::execute(plan, values, options, false, recorder).await,
        Plan::Modification(plan) => modification::execute(plan, values, options, recorder).await,
        Plan::Batch(plan) => batch::execute(plan, values, options, recorder).await,
        _ => Err(CqlError::Server("EXPLAIN of a statement that is not on data".to_owned())),
    }
}
