//! Read repair: replicas that lack something of what a read has seen are told, and the read waits
//! until as many have it as its level asks for. So a later read at that level does not see less.
//!
//! `read_repair = 'NONE'` leaves that out: such a read may be followed by one that sees less, and a
//! partition is never seen with one half of a write. Agrees with
//! `org.apache.cassandra.service.reads.repair.{BlockingReadRepair,BlockingPartitionRepair}`.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use internode::Verb;
use membership::Request;
use rows::codec::encode_mutation;
use rows::{Mutation, PartitionUpdate};

use super::among::Among;
use super::contacts::Contact;
use super::error::{FailedAnswers, FailedRead};
use super::reading::Repair;
use crate::replica::apply::within;
use crate::stripes::Held;

/// Bytes of rows that one message tells. A partition that lacks more is told in several.
const TOLD_MAX: usize = 1 << 20;

/// Messages that are under way at once for one read.
const UNDER_WAY_MAX: usize = 64;

impl Among<'_> {
    /// Tells replicas what they lack.
    pub async fn repair<E>(&self, repairs: Vec<Repair>) -> Result<(), FailedRead<E>> {
        let begun = self.node.env.now();
        let limit = self.node.timeouts().write;
        for Repair { of_replicas } in repairs {
            let count = of_replicas.len();
            let rest = limit.saturating_sub(self.node.env.elapsed(begun));
            let told = within(&self.node.env, rest, self.tell_all(of_replicas, rest)).await;
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

    /// Tells each replica of a part what it lacks; whether all have it.
    async fn tell_all(&self, of_replicas: Vec<(Contact, Vec<PartitionUpdate>)>, rest: Duration) -> bool {
        let mutations = of_replicas.into_iter().flat_map(|(contact, updates)| {
            let pieces = updates.into_iter().flat_map(pieces);
            pieces.map(move |update| (contact, Mutation::of(update)))
        });
        let mut mutations = mutations.collect::<Vec<_>>().into_iter();
        let mut waiting: FuturesUnordered<_> = mutations
            .by_ref()
            .take(UNDER_WAY_MAX)
            .map(|(contact, mutation)| self.tell(contact, mutation, rest))
            .collect();
        let mut all_have_it = true;
        while let Some(has_it) = waiting.next().await {
            all_have_it &= has_it;
            waiting.extend(mutations.next().map(|(contact, mutation)| self.tell(contact, mutation, rest)));
        }
        all_have_it
    }

    /// Tells one replica; whether it has it.
    async fn tell(&self, contact: Contact, mutation: Mutation, rest: Duration) -> bool {
        if !contact.is_local {
            let mut payload = Vec::new();
            encode_mutation(&mut payload, &mutation);
            let request = Request::new(Verb::ReadRepairReq, payload, rest).silent();
            return self.messenger.request(contact.address, request).await.is_ok();
        }
        let replica = &self.node.replica;
        match replica.apply(&[mutation], Held::new()).await {
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
        if size + more > TOLD_MAX && !piece.is_empty() {
            pieces.push(std::mem::replace(&mut piece, empty.clone()));
            size = 0;
        }
        size += more;
        piece.rows.push(row);
    }
    pieces.push(piece);
    pieces
}
