//! How far a movement is, on disk: `system.local.bootstrapped`, and the ranges that have come
//! (`system.available_ranges_v2`) or gone (`system.transferred_ranges_v2`).
//!
//! A bootstrap that has failed fetches what it has not recorded yet when the operator resumes it.
//! Rows and values are Cassandra's: a directory may change hands between two starts.
//! `org.apache.cassandra.db.SystemKeyspace` (`setBootstrapState`, `updateAvailableRanges`,
//! `updateTransferredRanges`, `rangeToBytes`).

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use ring::primary::Ranges;
use rows::Mutation;
use stdx::Cursor;
use storage::StorageError;
use types::Token;

use crate::identity::{inet, local_table};
use crate::node::Node;
use crate::range_movement_state::BootstrapState;
use crate::streaming::Operation;
use crate::system_rows::{self, SystemRow, partition_key};

/// During a shortage of the commit log, pause before another look whether a record is durable.
const SHORTAGE_PAUSE: Duration = Duration::from_secs(1);

/// The kind of a range of tokens in its serial form.
const KIND_TOKEN_RANGE: i32 = 0;
/// Bytes of a token.
const TOKEN_SIZE: i32 = 8;

impl Node {
    /// Writes how far the node is on its way in or out, and waits until that is durable.
    pub(crate) async fn save_bootstrap_state(&self, state: BootstrapState) -> Result<(), String> {
        let table = local_table(&self.engine);
        let row = SystemRow::new(&table, &[b"local"], &[], self.clock.next_micros(), None);
        self.write_durably(row.set("bootstrapped", state.text().as_bytes()).finish()).await
    }

    /// Writes the tokens that the node owns from now on, and waits until that is durable.
    pub(crate) async fn save_tokens(&self, tokens: &[Token]) -> Result<(), String> {
        let table = local_table(&self.engine);
        let elements = tokens.iter().map(|token| (Bytes::from(token.0.to_string()), Bytes::new()));
        let row = SystemRow::new(&table, &[b"local"], &[], self.clock.next_micros(), None);
        self.write_durably(row.set_elements("tokens", elements).finish()).await
    }

    /// Writes to a table of the node itself, and waits until that is durable, also where writes do
    /// not wait for a sync (`commitlog_sync: periodic`): Cassandra flushes the table. Otherwise the
    /// other nodes could know what a power cut makes this one forget. A log that keeps the record
    /// during a shortage, as of a full disk, writes it afterwards, so a shortage does not end the
    /// wait. Otherwise the next start would find a record whose write was told to have failed.
    pub(crate) async fn write_durably(&self, mutation: Mutation) -> Result<(), String> {
        let applied = loop {
            match self.engine.apply(std::slice::from_ref(&mutation)) {
                Err(StorageError::Busy) => self.engine.log.wait_for_room().await,
                applied => break applied.map_err(|error| error.to_string())?,
            }
        };
        let Some(position) = applied.position else { return Ok(()) };
        loop {
            match self.engine.log.wait_synced(position).await {
                Err(error) if error.is_shortage() => self.env.sleep(SHORTAGE_PAUSE).await,
                settled => return settled.map_err(|error| error.to_string()),
            }
        }
    }

    /// The ranges of a keyspace that an earlier bootstrap of this process has fetched.
    pub(crate) fn available_ranges(&self, keyspace: &str) -> Result<Ranges, String> {
        let schema = self.schema();
        let table = schema.table("system", "available_ranges_v2").expect("a built-in table");
        let key = partition_key(table, &[keyspace.as_bytes()]);
        let rows = system_rows::read(&self.engine, table, Some(key)).map_err(|error| error.to_string())?;
        let elements = rows.iter().flat_map(|(_, row)| system_rows::elements(table, row, "full_ranges"));
        Ok(elements.filter_map(|bytes| range_of(&bytes)).collect())
    }

    /// Records that ranges of a keyspace have come.
    pub(crate) fn record_available(&self, keyspace: &str, ranges: &Ranges) -> Result<(), String> {
        let mut all = self.available_ranges(keyspace)?;
        all.extend(ranges);
        self.write_available(keyspace, &all)
    }

    /// Forgets which ranges have come: they are fetched anew.
    pub(crate) fn forget_available(&self, keyspace: &str) -> Result<(), String> {
        self.write_available(keyspace, &Ranges::new())
    }

    fn write_available(&self, keyspace: &str, ranges: &Ranges) -> Result<(), String> {
        let schema = self.schema();
        let table = schema.table("system", "available_ranges_v2").expect("a built-in table");
        let elements = ranges.iter().map(|range| (bytes_of(*range), Bytes::new()));
        let row = SystemRow::new(table, &[keyspace.as_bytes()], &[], self.clock.next_micros(), None);
        let row = row.set_elements("full_ranges", elements).finish();
        self.write_system_rows(&[row]).map_err(|error| error.to_string())
    }

    /// Records that ranges of a keyspace have gone to a peer. For operators: a decommission that is
    /// begun again by a new process hands everything on again, because writes came meanwhile.
    pub(crate) fn record_transferred(&self, operation: Operation, peer: SocketAddr, keyspace: &str, ranges: &Ranges) {
        let schema = self.schema();
        let table = schema.table("system", "transferred_ranges_v2").expect("a built-in table");
        let (address, port) = (inet(peer.ip()), i32::from(peer.port()).to_be_bytes());
        let key: [&[u8]; 2] = [operation.text().as_bytes(), keyspace.as_bytes()];
        let clustering: [&[u8]; 2] = [&address, &port];
        let row = SystemRow::new(table, &key, &clustering, self.clock.next_micros(), None);
        let elements = ranges.iter().map(|range| (bytes_of(*range), Bytes::new()));
        if let Err(error) = self.write_system_rows(&[row.set_elements("ranges", elements).finish()]) {
            tracing::warn!(%error, "the ranges that were handed on cannot be recorded");
        }
    }
}

/// `i32 kind | i32 size, 8 bytes left | i32 size, 8 bytes right`: the form that Cassandra had
/// before 3.0, and still has in these tables.
fn bytes_of((left, right): (Token, Token)) -> Bytes {
    let mut bytes = BytesMut::with_capacity(28);
    bytes.put_i32(KIND_TOKEN_RANGE);
    for token in [left, right] {
        bytes.put_i32(TOKEN_SIZE);
        bytes.put_i64(token.0);
    }
    debug_assert_eq!(range_of(&bytes), Some((left, right)), "a range is read as it is written");
    bytes.freeze()
}

/// None: the bytes are no range of tokens. Such a range is fetched again.
fn range_of(bytes: &[u8]) -> Option<(Token, Token)> {
    let mut cursor = Cursor::new(bytes);
    let kind = cursor.i32().ok()?;
    let mut token = || (cursor.i32().ok()? == TOKEN_SIZE).then(|| cursor.i64().ok().map(Token)).flatten();
    let range = (token()?, token()?);
    (kind == KIND_TOKEN_RANGE).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that `SystemKeyspace.rangeToBytes` gives.
    #[test]
    fn a_range_in_the_form_of_cassandra() {
        let range = (Token(-2), Token(0x0102));
        let bytes = bytes_of(range);
        assert_eq!(
            bytes.as_ref(),
            [0, 0, 0, 0, 0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 254, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2]
        );
        assert_eq!(range_of(&bytes), Some(range));
        for end in 0..bytes.len() {
            assert_eq!(range_of(&bytes[..end]), None);
        }
        assert_eq!(range_of(&bytes_of(range)[4..]), None);
    }
}
