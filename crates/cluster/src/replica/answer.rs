//! The answer of this node as one of a read's replicas: to another node, or to itself where it
//! coordinates a read that others have a share in.

use std::sync::Arc;
use std::time::Duration;

use internode::payload::read_answer::{Answer, AnswerError, AnswerLimits, Wanted, answer_of};
use internode::payload::read_request::ReadRequest as Question;
use rows::ReadError;
use rows::command::TraceSink;

use super::Replica;
use super::read::{ReadFigures, ReadOutcome, ReadRequest};

impl Replica {
    /// Answers within `limit`: at once where that takes little, else in the background. `trace`:
    /// where trace lines go.
    pub async fn answer(
        &self,
        question: &Arc<Question>,
        wanted: Wanted,
        limits: AnswerLimits,
        limit: Duration,
        trace: Option<Arc<dyn TraceSink>>,
    ) -> Result<Answer, ReadOutcome<AnswerError>> {
        let request = ReadRequest { commands: question.commands(), trace, open: None, sought: None, results: None };
        let question = Arc::clone(question);
        let is_blocked = |error: &AnswerError| *error == AnswerError::Read(ReadError::WouldBlock);
        let build = move |stream: &mut dyn rows::PartitionStream| answer_of(stream, &question, wanted, &limits);
        self.read(request, limit, &ReadFigures::default(), is_blocked, build).await
    }
}

#[cfg(test)]
mod tests;
