//! Asks for what protects the filtered answers to a part ([`super::protection`]).

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use internode::payload::read_answer::AnswerKind;
use internode::payload::read_request::ReadRequest as Question;
use rows::replicas::Answers;
use rows::{PartitionStream, ReadCommand, ReadError};
use types::{FailureReason, ReplicaFailure};

use super::contacts::Contact;
use super::distributed_read::{DistributedRead, INLINE_SIZE_MAX, count};
use super::error::{FailedAnswers, FailedRead};
use super::part_read::{PartRead, READING_SIZE_MAX};
use super::protection::{Candidates, window};
use crate::node::ProtectionLimits;
use crate::replica::apply::within;
use crate::replica::read::ReadOutcome;

/// Partitions of which rows are read again at once.
const PARTITIONS_AT_ONCE: usize = 16;

impl DistributedRead<'_> {
    /// The part as it can be read, and behind it the parts that are left to be asked for. `held`:
    /// bytes of answers that the read holds, to which those are added that are asked for here.
    pub(super) async fn protected<E: From<ReadError>>(
        &self,
        mut asked: PartRead,
        held: &mut usize,
    ) -> Result<Vec<PartRead>, FailedRead<E>> {
        let command = asked.first();
        let answers: Vec<Answers> = asked.replicas.iter().map(|(_, answers)| answers.clone()).collect();
        let window = window(&command, &answers.iter().collect::<Vec<_>>());
        let left = window.as_ref().map_or_else(Vec::new, |(key, row)| asked.behind(key, row.as_ref(), row.is_none()));
        if asked.replicas.len() > 1 {
            let window = window.clone();
            let compare = move || Candidates::of(&command, &answers.iter().collect::<Vec<_>>(), window.as_ref());
            let candidates = match asked.size <= INLINE_SIZE_MAX {
                true => compare(),
                false => self.long("compare answers", compare).await?,
            };
            let candidates = candidates.map_err(|error| self.failed(ReadOutcome::Failed(error.into())))?;
            let before = *held;
            let completed = self.complete(&asked, candidates, held).await?;
            asked.size += *held - before;
            for ((_, answers), completed) in asked.replicas.iter_mut().zip(completed) {
                *answers = completed;
            }
        } else if let (Some((key, _)), [(_, answers)]) = (&window, &mut asked.replicas[..]) {
            // all replicas gave this answer
            answers.has_all_rows(key);
            answers.has_all_partitions();
        }
        Ok(std::iter::once(asked).chain(left).collect())
    }

    /// Reads the rows whose answers differ from every replica. Their bytes count for the read like
    /// those of its other answers: a few rows may be large ones.
    async fn complete<E: From<ReadError>>(
        &self,
        asked: &PartRead,
        mut candidates: Candidates,
        held: &mut usize,
    ) -> Result<Vec<Answers>, FailedRead<E>> {
        self.check_protection(&asked.part.command, candidates.rows)?;
        let contacts: Vec<Contact> = asked.replicas.iter().map(|(contact, _)| *contact).collect();
        let commands = candidates.commands();
        for (replica, contact) in contacts.iter().enumerate() {
            let asking = stream::iter(&commands).map(|command| self.ask_again::<E>(*contact, command, contacts.len()));
            let mut asking = pin!(asking.buffered(PARTITIONS_AT_ONCE));
            let mut answers = Vec::with_capacity(commands.len());
            loop {
                let next = within(&self.node.env, self.time_left(), asking.next()).await;
                let Some(answer) = next.ok_or_else(|| self.lacking(contacts.len(), Vec::new()))? else { break };
                let (answer, size) = answer?;
                *held += size;
                if *held > READING_SIZE_MAX {
                    return Err(self.too_large());
                }
                answers.push(answer);
            }
            candidates.complete(replica, answers).map_err(|error| self.unreadable(*contact, error))?;
        }
        candidates.into_answers(contacts.len()).map_err(|error| self.failed(ReadOutcome::Failed(error.into())))
    }

    /// Asks a replica for rows by name, without conditions. Gives the bytes of the answer, too.
    async fn ask_again<E>(
        &self,
        contact: Contact,
        command: &ReadCommand,
        replicas: usize,
    ) -> Result<(Box<dyn PartitionStream>, usize), FailedRead<E>> {
        let question = Arc::new(Question::of(command));
        let (_, reply) = self.ask(contact, &question, AnswerKind::Data).await;
        let failed = |reason| self.lacking(replicas, vec![ReplicaFailure { endpoint: contact.address, reason }]);
        let data = reply.map_err(failed)?.data.unwrap_or_default();
        Ok((data.stream(&question), data.size()))
    }

    /// Too few replicas gave the rows whose answers differ.
    fn lacking<E>(&self, replicas: usize, failures: Vec<ReplicaFailure>) -> FailedRead<E> {
        let timed_out = failures.iter().all(|failure| failure.reason == FailureReason::Timeout);
        let (block_for, level) = (count(replicas), self.level);
        let received = block_for.saturating_sub(1);
        FailedRead::of_answers(FailedAnswers { level, block_for, received, data_present: true, failures, timed_out })
    }

    /// Warns of a read that holds many rows, and refuses one that holds too many.
    fn check_protection<E>(&self, command: &ReadCommand, rows: u32) -> Result<(), FailedRead<E>> {
        let ProtectionLimits { warn, fail } = **self.node.protection.load();
        let table = &command.table;
        let sentence = |threshold: u32, key: &str| {
            format!(
                "Replica filtering protection has cached over {threshold} rows during query on {}.{}. \
                 (See '{key}' in cassandra.yaml.)",
                table.keyspace, table.name
            )
        };
        if rows > fail {
            let sentence = sentence(fail, "cached_replica_rows_fail_threshold");
            tracing::error!("{sentence}");
            return Err(FailedRead::Overloaded(sentence));
        }
        if rows > warn {
            let sentence = sentence(warn, "cached_replica_rows_warn_threshold");
            tracing::warn!("{sentence}");
            self.warnings.add(sentence);
        }
        Ok(())
    }
}
