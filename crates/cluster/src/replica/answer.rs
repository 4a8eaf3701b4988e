//! The answer of this node as one of a read's replicas: to another node, or to itself where it
//! coordinates a read that others have a share in.

use std::sync::Arc;
use std::time::Duration;

use internode::payload::read_answer::{Answer, AnswerError, AnswerKind, AnswerLimits, answer_of};
use internode::payload::read_request::ReadRequest as Question;
use rows::command::{ReadStats, TraceSink};

use super::Replica;
use super::read::{ReadFigures, ReadOutcome, ReadRequest};

impl Replica {
    /// Answers within `limit`: at once if that takes little time, else in the background. `trace`:
    /// the sink of trace lines. `measures`: sizes are measured, and compared with their
    /// thresholds.
    pub async fn answer(
        &self,
        question: &Arc<Question>,
        kind: AnswerKind,
        limits: AnswerLimits,
        limit: Duration,
        trace: Option<Arc<dyn TraceSink>>,
        measures: bool,
    ) -> Result<Answer, ReadOutcome<AnswerError>> {
        let request = ReadRequest { trace, measures, ..ReadRequest::of(question.commands()) };
        let figures = ReadFigures::default();
        let question = Arc::clone(question);
        let build = move |stream: &mut dyn rows::PartitionStream| answer_of(stream, &question, kind, &limits);
        let mut answer = self.read(request, limit, &figures, build).await?;
        answer.local_size = ReadStats::get(&figures.local_size);
        answer.row_index_size = ReadStats::get(&figures.row_index_size);
        answer.indexes = ReadStats::get(&figures.indexes);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests;
