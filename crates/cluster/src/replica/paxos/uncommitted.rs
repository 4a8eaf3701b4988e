//! The partitions of a table in which something was begun that is not known to have come to its
//! end: what a repair of Paxos has to complete.
//!
//! The rows of `system.paxos` are read from the first to the last, in pages. Agrees in role with
//! `org.apache.cassandra.service.paxos.uncommitted.PaxosUncommittedTracker`, which keeps files of
//! such partitions beside the table.

use std::sync::Arc;

use internode::payload::paxos::Ballot;
use internode::payload::paxos::cleanup::Tokens;
use rows::command::RingBound;
use rows::{PartitionRange, PartitionStream, ReadCommand, ReadError};
use schema::TableMetadata;
use types::{DecoratedKey, Token};

use super::stored::PaxosReadContext;
use super::{READ_MAX, first_row, stored};
use crate::replica::Replica;
use crate::replica::apply::WriteError;
use crate::replica::read::{ReadFigures, ReadRequest};

/// Partitions of a page. Tests of few partitions see several pages.
const PAGE: usize = if cfg!(test) { 3 } else { 256 };
/// Rows that are passed for a page.
const PASSED_MAX: usize = 10_000;

/// A partition in which something is not completed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Uncommitted {
    /// The partition.
    pub key: DecoratedKey,
    /// The latest ballot that was promised or accepted there.
    pub ballot: Ballot,
}

/// The partitions of a page.
pub(crate) struct Page {
    /// The partitions in which something is not completed.
    pub found: Vec<Uncommitted>,
    /// The start of the following page; None: this is the last one.
    pub next: Option<RingBound>,
}

impl Replica {
    /// A page of the partitions of a table between two bounds.
    pub(crate) async fn paxos_uncommitted(
        &self,
        table: &Arc<TableMetadata>,
        start: RingBound,
        end: RingBound,
    ) -> Result<Page, WriteError> {
        let (paxos, table) = (self.paxos_table(), Arc::clone(table));
        let command = ReadCommand {
            range: PartitionRange::Range { start, end },
            ..stored::command(&paxos, &table, &table.decorate(bytes::Bytes::new()))
        };
        // the stored state decides, whatever its age, as in Cassandra: a commit that has expired
        // beside a promise that is stored would be completed again by each repair, and its state
        // would never go. Nothing has expired at the time of this ballot.
        let at = PaxosReadContext { ballot: Ballot::NONE, purging: **self.paxos_purging.load(), oldest: i64::MIN };
        let build = move |stream: &mut dyn PartitionStream| -> Result<Page, ReadError> {
            let mut page = Page { found: Vec::new(), next: None };
            let mut passed = 0;
            while let Some(head) = stream.next_partition()? {
                passed += 1;
                if page.found.len() == PAGE || passed > PASSED_MAX {
                    page.next = Some(RingBound::Key { key: head.key, inclusive: true });
                    return Ok(page);
                }
                let Some(row) = first_row(stream)? else { continue };
                let key = table.decorate(head.key.key);
                let state = stored::state(&paxos, Some(&row), &table, &key, at)?;
                page.found.extend(state.incomplete().map(|ballot| Uncommitted { key, ballot }));
            }
            Ok(page)
        };
        let request = ReadRequest::of(vec![command]);
        let read = self.read(request, READ_MAX, &ReadFigures::default(), build).await;
        read.map_err(super::read_error)
    }
}

/// The bounds of a range: two pairs where it goes over the end of the ring.
pub(crate) fn bounds(range: &Tokens) -> Vec<(RingBound, RingBound)> {
    let start = match range.start {
        Token::MIN => RingBound::Open,
        token => RingBound::Token { token, inclusive: false },
    };
    let end = match range.end {
        Token::MIN => RingBound::Open,
        token => RingBound::Token { token, inclusive: true },
    };
    match range.end == Token::MIN || range.start < range.end {
        true => vec![(start, end)],
        false => vec![(start, RingBound::Open), (RingBound::Open, end)],
    }
}
