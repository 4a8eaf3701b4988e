//! The partition as the replicas of a round of Paxos v2 had it when they promised.
//!
//! Their data is merged like that of any read, and nobody is repaired: a majority has every commit.
//! A read that wants more rows than came with the promises asks for them
//! ([`PromisedPartition::was_extended`]); such a read is linearizable only once something has been
//! accepted with the ballot. Agrees with the end of
//! `org.apache.cassandra.service.paxos.Paxos.begin`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use internode::payload::read_request::ReadRequest as Question;
use rows::{Build, ReadCommand, ReadError};
use types::Consistency;

use crate::coordinator::cas::Round;
use crate::coordinator::contacts::{Contact, Contacts};
use crate::coordinator::distributed_read::DistributedRead;
use crate::coordinator::error::FailedRead;
use crate::coordinator::part_read::{Data, PartRead, Portion};
use crate::coordinator::parts::Part;
use crate::node::Node;
use crate::replica::read::{ReadFigures, ReadRequest};

/// The answers that came with promises.
pub struct PromisedPartition {
    data: Vec<(Contact, Bytes)>,
    question: Arc<Question>,
    was_extended: AtomicBool,
}

impl std::fmt::Debug for PromisedPartition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromisedPartition").field("replicas", &self.data.len()).finish_non_exhaustive()
    }
}

impl PromisedPartition {
    pub(super) fn new(data: Vec<(Contact, Bytes)>, question: &Arc<Question>) -> Self {
        Self { data, question: Arc::clone(question), was_extended: AtomicBool::new(false) }
    }

    /// Whether replicas were asked for more than came with their promises.
    pub(super) fn was_extended(&self) -> bool {
        self.was_extended.load(Ordering::Relaxed)
    }
}

/// The question that goes along with a prepare: the read's first portion.
pub(super) fn question(command: &ReadCommand) -> Arc<Question> {
    let asked = asked(command, Vec::new());
    asked.question(&asked.first())
}

fn asked(command: &ReadCommand, asked: Vec<Contact>) -> PartRead {
    let contacts = Contacts { asked, spare: Vec::new(), shortage: None, is_planned: true };
    PartRead::new(Part { command: command.clone(), contacts }, None)
}

impl Node {
    /// Reads for a conditional statement in a round: what replicas gave with their promises, or
    /// what is read now.
    pub async fn read_to_decide<B: Build>(
        &self,
        request: ReadRequest,
        round: &Round,
        figures: &ReadFigures,
        build: B,
    ) -> Result<B::Built, FailedRead<B::Error>> {
        match &round.found {
            Some(found) => self.read_promised_partition(request, round.read_at, found, figures, build).await,
            None => self.read_now(request, round.read_at, figures, build).await,
        }
    }

    /// Builds something from the stream of what replicas gave with their promises. `request`: the
    /// read, of one command.
    pub(in crate::coordinator) async fn read_promised_partition<B: Build>(
        &self,
        request: ReadRequest,
        level: Consistency,
        found: &PromisedPartition,
        figures: &ReadFigures,
        build: B,
    ) -> Result<B::Built, FailedRead<B::Error>> {
        let (Some(messenger), [command]) = (self.messenger(), &request.commands[..]) else {
            let error = ReadError::Malformed { offset: 0, what: "a promise is about one partition".to_owned() };
            let outcome = crate::replica::read::ReadOutcome::Failed(error.into());
            return Err(self.failed_read(outcome, level, 1));
        };
        let (limit, trace) = (self.read_limit(&request.commands), request.trace.clone());
        let mut asked = asked(command, found.data.iter().map(|(contact, _)| *contact).collect());
        let participants = DistributedRead::new(self, messenger, level, limit, &figures.warnings, trace);
        let participants = participants.waiting_for(std::slice::from_ref(&asked.part));
        let first = asked.first();
        for (contact, data) in &found.data {
            let added = asked.add_first(*contact, &first, Portion::new(Data::Encoded(data.clone()), &found.question));
            added.map_err(|error| participants.unreadable(*contact, error))?;
        }
        let (built, was_extended) =
            participants.build_of(vec![asked], request.results.as_ref(), figures, build).await?;
        if was_extended {
            found.was_extended.store(true, Ordering::Relaxed);
        }
        Ok(built)
    }
}
