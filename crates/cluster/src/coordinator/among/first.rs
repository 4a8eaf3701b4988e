//! The first answers of a part's replicas: whom the read waits for, how long, and who is asked
//! instead of a replica that fails or is late.
//!
//! The nearest replica gives data, the others a digest of it. Where digests differ, the replicas
//! that gave one are asked for data as well.

use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use env::rare::{Rare, happens};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use internode::payload::read_answer::Wanted;
use internode::payload::read_request::ReadRequest as Question;
use rows::ReadCommand;
use types::{FailureReason, ReplicaFailure};

use super::replies::{Asking, Reply};
use super::{Among, count};
use crate::coordinator::contacts::Contact;
use crate::coordinator::error::FailedAnswers;
use crate::coordinator::parts::Part;
use crate::coordinator::read_repair::is_blocking;
use crate::coordinator::reading::{Asked, Portion};
use crate::coordinator::speculation;
use crate::replica::apply::within;

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
pub(super) struct First {
    pub command: ReadCommand,
    pub portions: Vec<(Contact, Portion)>,
    pub confirmed: Vec<Contact>,
}

impl First {
    /// Bytes of the answers.
    pub fn size(&self) -> usize {
        self.portions.iter().map(|(_, portion)| portion.size).sum()
    }
}

impl Among<'_> {
    /// The first answers of a part's replicas: as many as the level wants.
    pub(super) async fn ask_first(&self, asked: &Asked) -> Result<First, FailedAnswers> {
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
        Ok(First { portions: answers.into_iter().map(portion).collect(), confirmed, command })
    }

    /// Waits for the answers of as many replicas as the level wants, data among them.
    async fn gather(
        &self,
        asked: &Asked,
        question: &Arc<Question>,
        form: Form,
    ) -> Result<Vec<(Contact, Reply)>, FailedAnswers> {
        let contacts = &asked.part.contacts;
        let block_for = contacts.asked.len();
        let wanted = |is_first: bool| match form {
            Form::Data => Wanted::Data,
            Form::OneData if !is_first => Wanted::Digest,
            Form::OneData | Form::DataWithDigests => Wanted::Both,
        };
        let asking = contacts.asked.iter().enumerate();
        let mut waiting: FuturesUnordered<Asking<'_>> =
            asking.map(|(index, contact)| self.ask(*contact, question, wanted(index == 0))).collect();
        let mut spare = contacts.spare.iter();
        let begun = self.node.env.now();
        let mut patience = self.patience(asked);
        let (mut replies, mut failures): (Vec<(Contact, Reply)>, Vec<ReplicaFailure>) = (Vec::new(), Vec::new());
        loop {
            let has_data = replies.iter().any(|(_, reply)| reply.data.is_some());
            if replies.len() >= block_for && has_data {
                let is_repeated = |(at, (contact, _)): (usize, &(Contact, Reply))| {
                    replies[..at].iter().any(|(other, _)| other.address == contact.address)
                };
                assert!(!replies.iter().enumerate().any(is_repeated), "a replica answers a read once");
                self.record(asked, begun);
                return Ok(replies);
            }
            let failed = |failures, timed_out| FailedAnswers {
                level: self.level,
                block_for: count(block_for),
                received: count(replies.len()),
                data_present: has_data,
                failures,
                timed_out,
            };
            let patient = patience.map(|delay| delay.saturating_sub(self.node.env.elapsed(begun)));
            let wait = self.rest().min(patient.unwrap_or(Duration::MAX));
            match within(&self.node.env, wait, waiting.next()).await {
                None if patience.take().is_some() && !self.rest().is_zero() => {
                    let other = spare.next().expect("patience ends where another one can be asked");
                    if let Some(store) = self.node.engine.table(asked.part.command.table.id) {
                        store.metrics.speculative_retries.add(1);
                    }
                    waiting.push(self.ask(*other, question, wanted(!has_data)));
                }
                None => return Err(failed(failures, true)),
                Some(None) => {
                    let timed_out = failures.iter().all(|failure| failure.reason == FailureReason::Timeout);
                    return Err(failed(failures, timed_out));
                }
                Some(Some((contact, Ok(reply)))) => replies.push((contact, reply)),
                Some(Some((contact, Err(reason)))) => {
                    failures.push(ReplicaFailure { endpoint: contact.address, reason });
                    if let Some(other) = spare.next() {
                        patience = patience.filter(|_| spare.len() > 0);
                        waiting.push(self.ask(*other, question, wanted(!has_data)));
                    }
                }
            }
        }
    }

    /// How long the replicas of a part may take before another one is asked; None: none is.
    fn patience(&self, asked: &Asked) -> Option<Duration> {
        let Part { command, contacts } = &asked.part;
        if asked.part.is_of_range() || contacts.spare.is_empty() {
            return None;
        }
        if happens(Rare::SpeculateNow) {
            return Some(Duration::ZERO);
        }
        let store = self.node.engine.table(command.table.id)?;
        let percentile = |share| {
            // an allocation of a kilobyte, beside the messages of the read
            let latencies = store.metrics.coordinator_read_latency.snapshot();
            match latencies.count() {
                0 => self.node.timeouts().read / 2,
                _ => Duration::from_micros(latencies.percentile(share)),
            }
        };
        speculation::delay(&command.table.params.speculative_retry, &percentile)
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
    fn record(&self, asked: &Asked, begun: Instant) {
        let store = self.node.engine.table(asked.part.command.table.id);
        if let Some(store) = store.filter(|_| !asked.part.is_of_range()) {
            let micros = u64::try_from(self.node.env.elapsed(begun).as_micros()).unwrap_or(u64::MAX);
            store.metrics.coordinator_read_latency.record(micros);
        }
    }

    /// Asks those who have given a digest for data. Where one of them fails, or takes longer than
    /// `speculative_retry` lets the read wait, a replica that has not answered is asked as well.
    /// The replicas that give data first have a place in `answers`.
    pub(super) async fn ask_for_data(
        &self,
        asked: &Asked,
        answers: &mut [(Contact, Reply)],
        question: &Arc<Question>,
    ) -> Result<(), FailedAnswers> {
        let has_answered = |contact: &Contact| answers.iter().any(|(other, _)| other == contact);
        let spare = asked.part.contacts.spare.iter().copied();
        let mut spare = spare.filter(|contact| !has_answered(contact)).collect::<Vec<_>>().into_iter();
        let lacking = answers.iter().filter(|(_, reply)| reply.data.is_none());
        let mut waiting: FuturesUnordered<Asking<'_>> =
            lacking.map(|(contact, _)| self.ask(*contact, question, Wanted::Data)).collect();
        let begun = self.node.env.now();
        let mut patience = self.patience(asked).filter(|_| spare.len() > 0);
        let mut failures: Vec<ReplicaFailure> = Vec::new();
        loop {
            let missing = answers.iter().filter(|(_, reply)| reply.data.is_none()).count();
            if missing == 0 {
                return Ok(());
            }
            let block_for = count(answers.len());
            let failed = |failures, timed_out| FailedAnswers {
                level: self.level,
                block_for,
                received: block_for - count(missing),
                data_present: true,
                failures,
                timed_out,
            };
            let patient = patience.map(|delay| delay.saturating_sub(self.node.env.elapsed(begun)));
            let wait = self.rest().min(patient.unwrap_or(Duration::MAX));
            match within(&self.node.env, wait, waiting.next()).await {
                None if patience.take().is_some() && !self.rest().is_zero() => {
                    waiting.extend(spare.next().map(|other| self.ask(other, question, Wanted::Data)));
                }
                None => return Err(failed(failures, true)),
                Some(None) => {
                    let timed_out = failures.iter().all(|failure| failure.reason == FailureReason::Timeout);
                    return Err(failed(failures, timed_out));
                }
                Some(Some((contact, Ok(reply)))) => {
                    let lacks = |(_, reply): &(Contact, Reply)| reply.data.is_none();
                    let own = answers.iter().position(|answer| answer.0 == contact && lacks(answer));
                    let place = own.or_else(|| answers.iter().position(lacks));
                    if let Some(place) = place {
                        answers[place] = (contact, reply);
                    }
                }
                Some(Some((contact, Err(reason)))) => {
                    failures.push(ReplicaFailure { endpoint: contact.address, reason });
                    waiting.extend(spare.next().map(|other| self.ask(other, question, Wanted::Data)));
                    patience = patience.filter(|_| spare.len() > 0);
                }
            }
        }
    }
}
