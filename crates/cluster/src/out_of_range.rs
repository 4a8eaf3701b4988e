//! Requests of other nodes for tokens and ranges that this node has no copy of: counted always,
//! told in the log (`log_out_of_token_range_requests`), refused
//! (`reject_out_of_token_range_requests`).
//!
//! A node whose peers see another ring than it does gets such requests. A foreign write is refused
//! with a failure, a foreign read is dropped without an answer: its coordinator asks another
//! replica. Ranges of streams and validations are looked at as a whole, partitions of streamed
//! sections one by one; SSTables that are streamed whole are not looked at. Range reads are not
//! looked at either. Agrees with `org.apache.cassandra.db.AbstractMutationVerbHandler`,
//! `db.ReadCommandVerbHandler`, `service.paxos.v1.AbstractPaxosVerbHandler`, `dht.OwnedRanges` and
//! `db.streaming.CassandraStreamReader`.
//!
//! A node that has told LEFT refuses every read of other nodes, whatever the settings. The news
//! takes seconds to reach all nodes. A coordinator that knows it sends this node no writes any
//! more. A coordinator that does not know it still reads from this node. Of three copies, such a
//! read at QUORUM could be answered by this node and by one replica that an acknowledged write has
//! not reached yet, and would miss that write. Without this node the reader needs so many of the
//! replicas that stay that one of them has the write. Cassandra answers such reads unless
//! `reject_out_of_token_range_requests` is on.
//!
//! A request that is not foreign takes no lock here and is not counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ring::relocation::subtract;
use ring::{Replication, Ring};
use types::Token;

use crate::node::Node;
use crate::out_of_range_state::{HINTS, OutOfRangeCounts, RequestKind, STREAMED};

/// The least time between two lines about single tokens, as Cassandra has it.
const LINE_PAUSE: Duration = Duration::from_secs(1);

/// Ranges that one line of the log shows. Cassandra shows all.
const RANGES_SHOWN_MAX: usize = 100;

/// The sender of a request, and the table that the request is about.
pub(crate) struct Asker<'a> {
    /// The node that sent the request and gets the answer.
    pub from: SocketAddr,
    /// The keyspace.
    pub keyspace: &'a str,
    /// The table.
    pub table: &'a str,
}

impl Node {
    /// Sets `log_out_of_token_range_requests` and `reject_out_of_token_range_requests`.
    pub fn set_out_of_range_handling(&self, logs: bool, refuses: bool) {
        self.out_of_range.logs.store(logs, Ordering::Relaxed);
        self.out_of_range.refuses.store(refuses, Ordering::Relaxed);
    }

    /// Requests for tokens and ranges that this node has no copy of, since the start.
    pub fn out_of_range_total(&self) -> u64 {
        self.out_of_range.total.get()
    }

    /// The requests among them that were for single tokens, by keyspaces that exist.
    pub fn out_of_range_counts(&self) -> BTreeMap<String, OutOfRangeCounts> {
        self.out_of_range.follow(&self.schema());
        self.out_of_range.counts().clone()
    }

    /// Whether a request of another node is for a token that this node has no copy of, and is to be
    /// refused. Counts and tells of it.
    pub(crate) fn refuses_token(&self, kind: RequestKind, asker: &Asker<'_>, token: Token) -> bool {
        let ring = self.ring.load();
        is_out_of_range(&ring, kind, asker.keyspace, token)
            && (self.note_out_of_range(kind, asker, token) || (kind == RequestKind::Read && has_left(&ring)))
    }

    /// Whether a range read of another node is to be refused: this node has left the ring, and
    /// gets no writes of a keyspace any more.
    pub(crate) fn refuses_scan(&self, keyspace: &str) -> bool {
        let ring = self.ring.load();
        let is_shared = || ring.placement(keyspace).is_some_and(|placed| placed.replication != Replication::Local);
        has_left(&ring) && is_shared()
    }

    #[cold]
    fn note_out_of_range(&self, kind: RequestKind, asker: &Asker<'_>, token: Token) -> bool {
        let requests = &self.out_of_range;
        requests.total.add(1);
        let is_new = !requests.counts().contains_key(asker.keyspace);
        if is_new {
            requests.follow(&self.schema());
        }
        requests.counts().entry(asker.keyspace.to_owned()).or_default()[kind.place()] += 1;
        if requests.logs() && requests.log_limiters[kind.place()].is_due_after(self.env.now(), LINE_PAUSE) {
            let (Asker { from, keyspace, table }, words, token) = (asker, kind.words(), token.0);
            // Cassandra names no table of a mutation, which may have several
            match kind {
                RequestKind::Write => tracing::warn!(
                    "Receiving {words} for token(s) neither owned nor pending. Example: from /{from} for token {token} in keyspace {keyspace}"
                ),
                _ => tracing::warn!(
                    "Receiving {words} for token(s) neither owned nor pending. Example: from /{from} for token {token} in {keyspace}.{table}"
                ),
            }
        }
        requests.refuses()
    }

    /// Tells of a hint for a token of others, which is kept for its replicas whatever the settings.
    pub(crate) fn note_out_of_range_hint(&self, asker: &Asker<'_>, token: Token) {
        let requests = &self.out_of_range;
        if requests.logs() && requests.log_limiters[HINTS].is_due_after(self.env.now(), LINE_PAUSE) {
            let (Asker { from, keyspace, table }, token) = (asker, token.0);
            tracing::warn!(
                "Receiving hint(s) for token(s) neither owned nor pending. Example: from /{from} for token {token} in {keyspace}.{table}"
            );
        }
    }

    /// Whether a request for ranges of a keyspace is to be refused: this node is no replica of a
    /// part of them. `id` and `what` name the request in the log. Counts and tells of it.
    pub(crate) fn refuses_ranges(
        &self,
        keyspace: &str,
        asked: &[(Token, Token)],
        (id, what, from): (&str, &str, SocketAddr),
    ) -> bool {
        let Some(owned) = owned(&self.ring.load(), keyspace, false) else { return false };
        let unowned = subtract(&asked.to_vec(), &owned);
        if unowned.is_empty() {
            return false;
        }
        self.out_of_range.total.add(1);
        if self.out_of_range.logs() {
            let (unowned, owned) = (shown(&unowned), shown(&owned));
            tracing::warn!(
                "[{id}] Received {what} from /{from} containing ranges {unowned} outside valid ranges {owned}"
            );
        }
        self.out_of_range.refuses()
    }

    /// The ranges of a keyspace that this node has or is about to have, for partitions that come in
    /// a stream. None: the keyspace's place is not known, and all is taken.
    pub(crate) fn taken_ranges(&self, keyspace: &str) -> Option<Vec<(Token, Token)>> {
        owned(&self.ring.load(), keyspace, true)
    }

    /// Whether a partition that has come in a stream, and is in none of the `taken` ranges, is to
    /// be refused. Counts and tells of it. Err: the sentence of the refusal.
    pub(crate) fn note_out_of_range_partition(
        &self,
        (plan, file, peer): (&str, &str, SocketAddr),
        taken: &[(Token, Token)],
        token: Token,
    ) -> Result<(), String> {
        let requests = &self.out_of_range;
        requests.total.add(1);
        if requests.logs() && requests.log_limiters[STREAMED].is_due_after(self.env.now(), LINE_PAUSE) {
            let taken = shown(taken);
            tracing::warn!(
                "[Stream #{plan}] Received streamed SSTable {file} from /{peer} containing key(s) outside valid ranges {taken}. Example: {}",
                token.0
            );
        }
        match requests.refuses() {
            true => Err(format!(
                "Received stream for sstable {file} containing key {} outside of owned ranges {}",
                token.0,
                shown(taken)
            )),
            false => Ok(()),
        }
    }
}

/// Whether this node has no copy of a token and, unless it is to be read, is not about to have one
/// and has had none until a moment ago. A keyspace whose place is not known has no foreign tokens.
fn is_out_of_range(ring: &Ring, kind: RequestKind, keyspace: &str, token: Token) -> bool {
    let Some(placement) = ring.placement(keyspace) else { return false };
    let local = ring.local_id();
    let takes_writes = || placement.pending(token).contains(&local) || placement.former(token).contains(&local);
    !placement.natural(token).contains(&local) && (kind == RequestKind::Read || !takes_writes())
}

/// Whether this node has told the others that it has left the ring: it is not on its way in, and
/// owns no tokens.
fn has_left(ring: &Ring) -> bool {
    ring.local().owns_tokens() && ring.local().tokens.is_empty()
}

/// The ranges of a keyspace of which this node is a replica or, with `pending`, is about to be one.
fn owned(ring: &Ring, keyspace: &str, pending: bool) -> Option<Vec<(Token, Token)>> {
    let (placement, local) = (ring.placement(keyspace)?, ring.local_id());
    let ranges = placement.ranges();
    let ours = ranges
        .filter(|(_, end, natural)| natural.contains(&local) || (pending && placement.pending(*end).contains(&local)));
    Some(ours.map(|(start, end, _)| (start, end)).collect())
}

/// Ranges as Cassandra writes them: `[(1,2], (5,9]]`.
fn shown(ranges: &[(Token, Token)]) -> String {
    let mut text = "[".to_owned();
    for (place, (start, end)) in ranges.iter().take(RANGES_SHOWN_MAX).enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        // writing into a String does not fail
        let _ = write!(text, "{comma}({},{}]", start.0, end.0);
    }
    if let Some(more) = ranges.len().checked_sub(RANGES_SHOWN_MAX).filter(|more| *more > 0) {
        let _ = write!(text, " and {more} more");
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests;
