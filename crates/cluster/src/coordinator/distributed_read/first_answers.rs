//! The first answers of a part's replicas, as many as the level wants.
//!
//! The nearest replica gives data, the others a digest of it. Where digests differ, the replicas
//! that gave one are asked for data as well. [`PendingReplies`] is either wait.

use std::sync::Arc;

use env::Instant;
use env::rare::{Rare, happens};
use internode::payload::read_answer::AnswerKind;
use internode::payload::read_request::ReadRequest as Question;
use rows::ReadCommand;

use super::DistributedRead;
use super::replies::Reply;
use super::waiting::PendingReplies;
use crate::coordinator::contacts::Contact;
use crate::coordinator::error::FailedAnswers;
use crate::coordinator::part_read::{PartRead, Portion};
use crate::coordinator::read_repair::is_blocking;

/// The form of the answers of a part's replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Data of all.
    Data,
    /// Data of the nearest, and digests of the others.
    OneData,
    /// Data of all, from which digests are made.
    DataWithDigests,
}

/// The first answers of a part's replicas.
pub(super) struct FirstAnswers {
    pub command: ReadCommand,
    pub portions: Vec<(Contact, Portion)>,
    pub confirmed: Vec<Contact>,
}

impl FirstAnswers {
    /// Bytes of the answers.
    pub fn size(&self) -> usize {
        self.portions.iter().map(|(_, portion)| portion.size).sum()
    }
}

impl DistributedRead<'_> {
    /// The first answers of a part's replicas: as many as the level wants.
    pub(super) async fn ask_first(&self, asked: &PartRead) -> Result<FirstAnswers, FailedAnswers> {
        let command = asked.first();
        let question = asked.question(&command);
        let has_several = asked.part.contacts.asked.len() > 1;
        let has_digests = !asked.part.is_of_range() && has_several;
        let form = match has_several {
            true if has_digests => Form::OneData,
            true if asked.is_protected() => Form::DataWithDigests,
            _ => Form::Data,
        };
        let mut answers = self.gather(asked, &question, form).await?;
        let differ = answers.windows(2).any(|pair| pair[0].1.digest != pair[1].1.digest)
            || (form != Form::Data && happens(Rare::DigestsDiffer));
        let mut confirmed = Vec::new();
        if has_digests && differ {
            self.count_mismatch(&command);
            self.tell_trace(|| "Digest mismatch: the replicas are asked for data".to_owned());
            self.ask_for_data(asked, &mut answers, &question).await?;
        } else if form != Form::Data && !differ {
            // one answer stands for all
            answers.sort_by_key(|(_, reply)| reply.data.is_none());
            confirmed = answers.drain(1..).map(|(contact, _)| contact).collect();
        }
        let portion = |(contact, reply): (Contact, Reply)| {
            (contact, Portion::new(reply.data.expect("data was asked for"), &question))
        };
        Ok(FirstAnswers { portions: answers.into_iter().map(portion).collect(), confirmed, command })
    }

    /// Waits for the answers of as many replicas as the level wants, data among them.
    async fn gather(
        &self,
        asked: &PartRead,
        question: &Arc<Question>,
        form: Form,
    ) -> Result<Vec<(Contact, Reply)>, FailedAnswers> {
        let contacts = &asked.part.contacts;
        let block_for = contacts.asked.len();
        let wanted = |is_first: bool| match form {
            Form::Data => AnswerKind::Data,
            Form::OneData if !is_first => AnswerKind::Digest,
            Form::OneData | Form::DataWithDigests => AnswerKind::Both,
        };
        let asking = contacts.asked.iter().enumerate();
        let asking = asking.map(|(index, contact)| (*contact, wanted(index == 0)));
        let mut waiting = PendingReplies::new(self, asked, question, &contacts.spare, asking);
        waiting.counts_retries = true;
        let mut replies: Vec<(Contact, Reply)> = Vec::new();
        loop {
            let has_data = replies.iter().any(|(_, reply)| reply.data.is_some());
            if replies.len() >= block_for && has_data {
                let is_repeated = |(at, (contact, _)): (usize, &(Contact, Reply))| {
                    replies[..at].iter().any(|(other, _)| other.address == contact.address)
                };
                assert!(!replies.iter().enumerate().any(is_repeated), "a replica answers a read once");
                self.record(asked, waiting.begun);
                return Ok(replies);
            }
            match waiting.next(wanted(!has_data)).await {
                Ok(answer) => replies.push(answer),
                Err(end) => return Err(waiting.failed(end, block_for, replies.len(), has_data)),
            }
        }
    }

    /// Counts a read whose replicas do not agree, as
    /// `org.apache.cassandra.service.reads.repair.AbstractReadRepair.startRepair` does.
    fn count_mismatch(&self, command: &ReadCommand) {
        let figures = &self.node.read_repairs;
        let figure = if is_blocking(&command.table) { &figures.repaired_blocking } else { &figures.reconcile_read };
        figure.add(1);
        if let Some(store) = self.node.engine.table(command.table.id) {
            store.metrics.digest_mismatches.add(1);
        }
    }

    /// Counts how long the replicas of a part took.
    fn record(&self, asked: &PartRead, begun: Instant) {
        let store = self.node.engine.table(asked.part.command.table.id);
        if let Some(store) = store.filter(|_| !asked.part.is_of_range()) {
            let micros = u64::try_from(self.node.env.elapsed(begun).as_micros()).unwrap_or(u64::MAX);
            store.metrics.coordinator_read_latency.record(micros);
        }
    }

    /// Asks the replicas that have given a digest for data. Where one of them fails, or takes
    /// longer than `speculative_retry` lets the read wait, a replica that has not answered is
    /// asked as well. The replicas that give data first have a place in `answers`.
    pub(super) async fn ask_for_data(
        &self,
        asked: &PartRead,
        answers: &mut [(Contact, Reply)],
        question: &Arc<Question>,
    ) -> Result<(), FailedAnswers> {
        let has_answered = |contact: &Contact| answers.iter().any(|(other, _)| other == contact);
        let spare = asked.part.contacts.spare.iter().copied();
        let spare: Vec<Contact> = spare.filter(|contact| !has_answered(contact)).collect();
        let lacking = answers.iter().filter(|answer| lacks_data(answer));
        let lacking = lacking.map(|(contact, _)| (*contact, AnswerKind::Data));
        let mut waiting = PendingReplies::new(self, asked, question, &spare, lacking);
        loop {
            let missing = answers.iter().filter(|answer| lacks_data(answer)).count();
            if missing == 0 {
                return Ok(());
            }
            let (contact, reply) = match waiting.next(AnswerKind::Data).await {
                Ok(answer) => answer,
                Err(end) => return Err(waiting.failed(end, answers.len(), answers.len() - missing, true)),
            };
            let own = answers.iter().position(|answer| answer.0 == contact && lacks_data(answer));
            let place = own.or_else(|| answers.iter().position(lacks_data));
            if let Some(place) = place {
                answers[place] = (contact, reply);
            }
        }
    }
}

fn lacks_data((_, reply): &(Contact, Reply)) -> bool {
    reply.data.is_none()
}
