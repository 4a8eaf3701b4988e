//! A write that is in the memtables and waits for the commit log: what is left of its request.
//!
//! Only writes of a node alone end like this. Among several nodes a request waits for the answers
//! of its replicas as any other request waits, because these answers come in any order.
//!
//! The request, its plan, the mutations and the future that made them are gone by then. With the
//! log synced for many writes at once there are as many of these as requests in flight; whatever
//! they held would be cold when it is freed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cluster::{Acknowledgement, ReadFigures};
use env::Instant;
use protocol::request::{BatchStatement, Request};
use protocol::{Response, ResponseEnvelope};

use super::{count_failure, text_of_id};
use crate::errors;
use crate::services::Services;

/// The statement that a request executes, by the id under which it is found again.
pub(super) enum StatementRef {
    Prepared([u8; 16]),
    /// A batch: the number of its statements, and the id of the first.
    Batch(usize, [u8; 16]),
}

impl StatementRef {
    /// The statement of a request. None: it has no id, so its text would have to be kept.
    pub(super) fn of(request: &Request) -> Option<Self> {
        match request {
            Request::Execute(execute) => Some(Self::Prepared(execute.id.as_ref().try_into().ok()?)),
            Request::Batch(batch) => match batch.statements.first()? {
                BatchStatement::Prepared { id, .. } => {
                    Some(Self::Batch(batch.statements.len(), id.as_ref().try_into().ok()?))
                }
                BatchStatement::Query { .. } => None,
            },
            _ => None,
        }
    }

    fn text(&self, services: &Services) -> String {
        match self {
            Self::Prepared(id) => text_of_id(services, id),
            Self::Batch(count, first) => format!("BATCH of {count}, the first: {}", text_of_id(services, first)),
        }
    }
}

/// A write that is in the memtables and waits for the commit log: see the head of this file.
pub struct CommitLogWait {
    pub(super) services: Arc<Services>,
    pub(super) statement: StatementRef,
    pub(super) received: Instant,
    pub(super) wait: Acknowledgement,
    /// The answer, if all goes well.
    pub(super) answer: ResponseEnvelope,
}

impl Future for CommitLogWait {
    type Output = ResponseEnvelope;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let written = std::task::ready!(Pin::new(&mut self.wait).poll(context));
        let (services, figures) = (&self.services, &self.services.requests);
        let micros = services.micros_since(self.received);
        let histogram = match self.statement {
            StatementRef::Batch(..) => &figures.batch,
            StatementRef::Prepared(_) => &figures.write,
        };
        histogram.record(micros);
        if services.slow.is_slow(micros) {
            services.slow.add(&services.node.env, &self.statement.text(services), micros, &ReadFigures::default());
        }
        Poll::Ready(match written {
            Ok(()) => std::mem::replace(&mut self.answer, ResponseEnvelope::new(0, Response::Void)),
            Err(error) => {
                let error = errors::of_request(error);
                count_failure(figures, &error);
                let message = errors::message(&error);
                ResponseEnvelope::new(self.answer.stream, Response::Error(message))
            }
        })
    }
}
