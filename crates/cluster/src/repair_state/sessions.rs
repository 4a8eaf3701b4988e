//! Sessions of incremental repairs as a participant knows them: rows of `system.repairs`.
//!
//! A session is the parent session of a repair. Its state only goes on as [`may_become`] says; each
//! change is a row before it is told to anybody, so that a restart finds the session in the state
//! that others know. Agrees with `org.apache.cassandra.repair.consistent.{LocalSession,
//! ConsistentSession}` and the columns of its table.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use internode::payload::repair::SessionId;
use internode::payload::repair::consistent::SessionState;
use internode::payload::token_ranges::{Tokens, put_token, read_token};
use rows::{Mutation, Row};
use schema::{TableId, TableMetadata};
use stdx::Cursor;

use crate::identity::inet;
use crate::system_rows::{self, SystemRow};

/// The table's name in the keyspace `system`.
pub(crate) const TABLE: &str = "repairs";

/// A session that this node takes part in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalSession {
    /// The parent session.
    pub id: SessionId,
    /// The node that coordinates the repair.
    pub coordinator: SocketAddr,
    /// The tables.
    pub tables: Vec<TableId>,
    /// The ranges of the repair, also those that this node does not hold.
    pub ranges: Vec<Tokens>,
    /// The nodes that take part, the coordinator among them.
    pub participants: Vec<SocketAddr>,
    /// Milliseconds since 1970, with which the data counts as repaired. 0: the data stays
    /// unrepaired, since not all replicas take part.
    pub repaired_at: i64,
    /// When the session began, seconds since 1970.
    pub started_at: i64,
    /// Seconds since 1970 when the state changed, or another node told of it.
    pub last_update: i64,
    /// How far the session is.
    pub state: SessionState,
}

/// Whether a session may go from one state to another. The same state again is no change.
pub fn may_become(from: SessionState, to: SessionState) -> bool {
    use SessionState::{Failed, FinalizePromised, Finalized, Prepared, Preparing, Repairing};
    let next = match from {
        Preparing => Prepared,
        Prepared => Repairing,
        Repairing => FinalizePromised,
        FinalizePromised => Finalized,
        Finalized | Failed => from,
    };
    from == to || to == next || to == Failed && from != Finalized
}

impl LocalSession {
    /// Whether nothing more happens to the session.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, SessionState::Finalized | SessionState::Failed)
    }

    /// The time in milliseconds with which the session's data counts as repaired; 0: as unrepaired.
    /// None: the session has not ended.
    pub fn outcome(&self) -> Option<i64> {
        match self.state {
            SessionState::Finalized => Some(self.repaired_at),
            SessionState::Failed => Some(0),
            _ => None,
        }
    }

    /// The row of `system.repairs`.
    pub(crate) fn row(&self, table: &Arc<TableMetadata>, timestamp: i64) -> Mutation {
        let int = |number: i32| number.to_be_bytes().to_vec();
        let millis = |millis: i64| millis.to_be_bytes().to_vec();
        let element = |bytes: Vec<u8>| (Bytes::from(bytes), Bytes::new());
        let participants = self.participants.iter();
        let hosts = participants.clone().map(|address| (inet(address.ip()), Bytes::new()));
        let with_ports = participants.map(|address| element(address.to_string().into_bytes()));
        SystemRow::new(table, &[&self.id], &[], timestamp, None)
            .set("started_at", millis(self.started_at * 1000))
            .set("last_update", millis(self.last_update * 1000))
            .set("repaired_at", millis(self.repaired_at))
            .set("state", int(self.state as i32))
            .set("coordinator", inet(self.coordinator.ip()))
            .set("coordinator_port", int(i32::from(self.coordinator.port())))
            .set_elements("participants", hosts)
            .set_elements("participants_wp", with_ports)
            .set_elements("ranges", self.ranges.iter().map(|range| element(range_bytes(*range))))
            .set_elements("cfids", self.tables.iter().map(|table| element(table.0.to_vec())))
            .finish()
    }

    /// The session of a row. None: a column is missing or cannot be read.
    pub(crate) fn of_row(table: &TableMetadata, key: &[u8], row: &Row) -> Option<Self> {
        let value = |name| system_rows::value(table, row, name);
        let int = |name| Some(i32::from_be_bytes(value(name)?.as_ref().try_into().ok()?));
        let millis = |name| Some(i64::from_be_bytes(value(name)?.as_ref().try_into().ok()?));
        let elements = |name| system_rows::elements(table, row, name);
        let address = |text: Bytes| std::str::from_utf8(&text).ok()?.parse().ok();
        let id = |bytes: Bytes| Some(TableId(bytes.as_ref().try_into().ok()?));
        Some(Self {
            id: key.try_into().ok()?,
            coordinator: SocketAddr::new(ip(value("coordinator")?)?, int("coordinator_port")?.try_into().ok()?),
            tables: elements("cfids").into_iter().map(id).collect::<Option<_>>()?,
            ranges: elements("ranges").iter().map(|bytes| range_of(bytes)).collect::<Option<_>>()?,
            participants: elements("participants_wp").into_iter().map(address).collect::<Option<_>>()?,
            repaired_at: millis("repaired_at")?,
            started_at: millis("started_at")? / 1000,
            last_update: millis("last_update")? / 1000,
            state: SessionState::from_number(int("state")?)?,
        })
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.ok().or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

/// A range as the set `ranges` has it: two tokens, each with its size.
fn range_bytes(range: Tokens) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_token(&mut bytes, range.start);
    put_token(&mut bytes, range.end);
    bytes
}

fn range_of(bytes: &[u8]) -> Option<Tokens> {
    let mut cursor = Cursor::new(bytes);
    let range = Tokens { start: read_token(&mut cursor).ok()?, end: read_token(&mut cursor).ok()? };
    (cursor.remaining() == 0).then_some(range)
}

#[cfg(test)]
mod tests {
    use types::Token;

    use super::*;

    #[test]
    fn states_only_go_on() {
        use SessionState::{Failed, FinalizePromised, Finalized, Prepared, Preparing, Repairing};
        let all = [Preparing, Prepared, Repairing, FinalizePromised, Finalized, Failed];
        for (from, expected) in [
            (Preparing, vec![Preparing, Prepared, Failed]),
            (Prepared, vec![Prepared, Repairing, Failed]),
            (Repairing, vec![Repairing, FinalizePromised, Failed]),
            (FinalizePromised, vec![FinalizePromised, Finalized, Failed]),
            (Finalized, vec![Finalized]),
            (Failed, vec![Failed]),
        ] {
            let found: Vec<_> = all.into_iter().filter(|to| may_become(from, *to)).collect();
            assert_eq!(found, expected, "from {from:?}");
        }
    }

    /// A range in a row that Cassandra 5.0.8 has written.
    #[test]
    fn ranges_are_two_tokens_with_their_sizes() {
        let range = Tokens { start: Token(463_714_916_963_805_178), end: Token(1_521_567_249_919_324_121) };
        let bytes = b"\x00\x00\x00\x08\x06orB\x96\xadg\xfa\x00\x00\x00\x08\x15\x1d\xb1Z)O/\xd9";
        assert_eq!(range_bytes(range), bytes);
        assert_eq!(range_of(bytes), Some(range));
        assert_eq!(range_of(&bytes[..23]), None);
        assert_eq!(range_of(&[&bytes[..], &[0]].concat()), None);
    }
}
