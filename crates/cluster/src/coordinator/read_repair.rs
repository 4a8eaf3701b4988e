//! Read repair: replicas that lack something of what a read has seen are told, and the read waits
//! until as many have it as its level asks for. So a later read at that level does not see less.
//!
//! While nodes are about to be replicas a write at the level waits for more than a read asks. A
//! repair is then told to so many further replicas, those about to be ones among them; otherwise a
//! read behind the change of the ring could see less.
//!
//! A replica that answers reads may be unable to write, or stop in between. So, where it does not
//! have what it lacks within the time of `additional_write_policy`, another replica that was not
//! read is told the same in its place: as many replicas have it then as the read has waited for.
//!
//! `read_repair = 'NONE'` leaves that out: such a read may be followed by one that sees less, and a
//! partition is never seen with one half of a write. Agrees with
//! `org.apache.cassandra.service.reads.repair.{BlockingReadRepair,BlockingPartitionRepair}`.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;
use std::vec::IntoIter;

use futures_util::StreamExt;
use futures_util::future::{Either, join_all, select};
use futures_util::stream::FuturesUnordered;
use internode::Verb;
use membership::Request;
use rows::codec::encode_mutation;
use rows::{Mutation, PartitionUpdate};
use schema::TableMetadata;
use types::Consistency;

use super::contacts::{Contact, counts};
use super::distributed_read::DistributedRead;
use super::error::{FailedAnswers, FailedRead, RequestError};
use super::part_read::ReadRepair;
use super::plan::placement;
use super::speculation;
use crate::replica::apply::within;
use crate::stripes::StripeGuards;
use crate::traces;

/// Most bytes of rows in one message. A partition that lacks more is told in several messages.
const REPAIR_MESSAGE_SIZE_MAX: usize = 1 << 20;

/// Messages that are under way at once for one read.
const UNDER_WAY_MAX: usize = 64;

/// A replica, and what it lacks.
type ReplicaUpdates = (Contact, Vec<PartitionUpdate>);

/// How the replicas of a part are told what they lack.
#[derive(Clone, Copy)]
struct RepairDelivery {
    /// Time that all messages to the replicas of the part have.
    rest: Duration,
    /// How long one replica may take before another one is told in its place; None: none is.
    patience: Option<Duration>,
    /// Messages that may be under way at once to one replica.
    under_way: usize,
}

/// Whether reads of a table tell replicas what they lack (`read_repair`).
pub(super) fn is_blocking(table: &TableMetadata) -> bool {
    !table.params.read_repair.eq_ignore_ascii_case("none")
}

impl DistributedRead<'_> {
    /// Tells replicas what they lack.
    pub async fn repair<E>(&self, repairs: Vec<ReadRepair>) -> Result<(), FailedRead<E>> {
        let begun = self.node.env.now();
        let limit = self.node.timeouts().write;
        for ReadRepair { mut of_replicas, mut others } in repairs {
            self.add_further(&mut of_replicas).map_err(FailedRead::Refused)?;
            others.retain(|other| of_replicas.iter().all(|(contact, _)| contact != other));
            let count = of_replicas.len();
            let rest = limit.saturating_sub(self.node.env.elapsed(begun));
            let told = within(&self.node.env, rest, self.repair_replicas(of_replicas, others, rest)).await;
            if told != Some(true) {
                let block_for = u32::try_from(count).unwrap_or(u32::MAX);
                return Err(FailedRead::of_answers(FailedAnswers {
                    level: self.level,
                    block_for,
                    received: block_for.saturating_sub(1),
                    data_present: true,
                    failures: Vec::new(),
                    timed_out: true,
                }));
            }
        }
        Ok(())
    }

    /// Adds the replicas that a write at this level would wait for beside those that were read,
    /// with all that others lack: of partitions that nodes are about to be replicas of, or were
    /// replicas of until a moment ago. Agrees with
    /// `org.apache.cassandra.locator.ReplicaPlans.writeReadRepair`.
    fn add_further(&self, of_replicas: &mut Vec<ReplicaUpdates>) -> Result<(), RequestError> {
        let ring = self.node.ring.load();
        let updates = || of_replicas.iter().flat_map(|(_, updates)| updates);
        let Some(first) = updates().next() else { return Ok(()) };
        let Some(placement) = placement(&ring, &first.table.keyspace)? else { return Ok(()) };
        if self.level == Consistency::EachQuorum {
            return Ok(());
        }
        let mut further: Vec<ReplicaUpdates> = Vec::new();
        let is_changing = |token| !placement.pending(token).is_empty() || !placement.former(token).is_empty();
        for update in updates().filter(|update| is_changing(update.key.token)) {
            let plan = ring.plan_write(placement, update.key.token, self.level);
            let plan = plan.map_err(|shortage| RequestError::Unavailable { level: self.level, shortage })?;
            let lacks = (plan.block_for as usize).saturating_sub(of_replicas.len());
            let is_read = |address: SocketAddr| of_replicas.iter().any(|(contact, _)| contact.address == address);
            let counted = plan.live.iter().filter(|id| counts(&ring, self.level, **id));
            let addresses = counted.map(|id| ring.endpoint(*id).address).filter(|address| !is_read(*address));
            for address in addresses.take(lacks) {
                let is_local = address == self.node.identity.broadcast;
                match further.iter_mut().find(|(contact, _)| contact.address == address) {
                    Some((_, updates)) => updates.push(update.clone()),
                    None => further.push((Contact { address, is_local }, vec![update.clone()])),
                }
            }
        }
        of_replicas.append(&mut further);
        Ok(())
    }

    /// Tells each replica of a part what it lacks; true if as many replicas have it in the end.
    /// One of `others` may take the place of a replica that is late.
    async fn repair_replicas(&self, of_replicas: Vec<ReplicaUpdates>, others: Vec<Contact>, rest: Duration) -> bool {
        let lacking: Vec<ReplicaUpdates> = of_replicas.into_iter().filter(|(_, updates)| !updates.is_empty()).collect();
        let Some(first) = lacking.iter().find_map(|(_, updates)| updates.first()) else { return true };
        let patience = if others.is_empty() { None } else { self.patience_with_writes(&first.table) };
        let delivery = RepairDelivery { rest, patience, under_way: (UNDER_WAY_MAX / lacking.len()).max(1) };
        let others = RefCell::new(others.into_iter());
        let told =
            lacking.iter().map(|(contact, updates)| self.repair_or_another(*contact, updates, &others, delivery));
        join_all(told).await.into_iter().all(|has_it| has_it)
    }

    /// How long a replica may take to write what it lacks before another one is told; None: none
    /// is. The policy's percentiles are of the writes of a coordinator, whose latencies are not
    /// kept: they count as Cassandra counts them before the first writes.
    fn patience_with_writes(&self, table: &TableMetadata) -> Option<Duration> {
        let percentile = |_: f64| self.node.timeouts().write / 2;
        speculation::delay(&table.params.additional_write_policy, &percentile)
    }

    /// Tells a replica what it lacks and, where that fails or takes too long, the next of
    /// `others`. True: one of the two has it. Each of `others` stands for one replica only, so
    /// that everything comes to as many replicas as have lacked it.
    async fn repair_or_another(
        &self,
        contact: Contact,
        updates: &[PartitionUpdate],
        others: &RefCell<IntoIter<Contact>>,
        delivery: RepairDelivery,
    ) -> bool {
        let mut told = pin!(self.send_updates(contact, updates, delivery));
        let Some(patience) = delivery.patience else { return told.await };
        let has_it = within(&self.node.env, patience, told.as_mut()).await;
        if has_it == Some(true) {
            return true;
        }
        let other = others.borrow_mut().next();
        let Some(other) = other else {
            return match has_it {
                Some(has_it) => has_it,
                None => told.await,
            };
        };
        let instead = pin!(self.send_updates(other, updates, delivery));
        if has_it.is_some() {
            return instead.await;
        }
        match select(told, instead).await {
            Either::Left((true, _)) | Either::Right((true, _)) => true,
            Either::Left((false, instead)) => instead.await,
            Either::Right((false, told)) => told.await,
        }
    }

    /// Tells one replica some updates. True: the replica has all of them.
    async fn send_updates(&self, contact: Contact, updates: &[PartitionUpdate], delivery: RepairDelivery) -> bool {
        let mut mutations = updates.iter().cloned().flat_map(pieces).map(Mutation::of);
        let tell = |mutation| self.send_mutation(contact, mutation, delivery.rest);
        let mut waiting: FuturesUnordered<_> = mutations.by_ref().take(delivery.under_way).map(tell).collect();
        let mut all_have_it = true;
        while let Some(has_it) = waiting.next().await {
            all_have_it &= has_it;
            waiting.extend(mutations.next().map(tell));
        }
        all_have_it
    }

    /// Tells one replica a mutation. True: the replica has it.
    async fn send_mutation(&self, contact: Contact, mutation: Mutation, rest: Duration) -> bool {
        if !contact.is_local {
            let mut payload = Vec::new();
            encode_mutation(&mut payload, &mutation);
            let parameters = traces::parameters(self.trace.as_deref());
            let request =
                Request { parameters, ..Request::new(Verb::ReadRepairReq, payload, rest).without_failure_response() };
            self.tell_trace(|| format!("Sending read-repair-mutation to /{}", contact.address));
            return self.messenger.request(contact.address, request).await.is_ok();
        }
        let replica = &self.node.replica;
        match replica.apply_or_in_parts(&[mutation], &[], StripeGuards::new()).await {
            Err(error) => {
                tracing::warn!(%error, "this node lacks what a read has found, and cannot write it");
                false
            }
            Ok(None) => true,
            Ok(Some(position)) => match replica.logged(position) {
                Ok(None) => true,
                Ok(Some(logged)) => logged.await.is_ok(),
                Err(_) => false,
            },
        }
    }
}

/// An update in pieces that are not too large for one message, each of which may be applied alone.
fn pieces(mut update: PartitionUpdate) -> Vec<PartitionUpdate> {
    let rows = std::mem::take(&mut update.rows);
    let empty = PartitionUpdate::new(update.table.clone(), update.key.clone());
    let (mut pieces, mut piece, mut size) = (Vec::new(), update, 0);
    for row in rows {
        let more = row.data_size();
        if size + more > REPAIR_MESSAGE_SIZE_MAX && !piece.is_empty() {
            pieces.push(std::mem::replace(&mut piece, empty.clone()));
            size = 0;
        }
        size += more;
        piece.rows.push(row);
    }
    pieces.push(piece);
    pieces
}
