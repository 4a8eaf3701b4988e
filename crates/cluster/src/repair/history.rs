//! `system_distributed.parent_repair_history` and `repair_history`: what repairs there were, for
//! operators and their tools.
//!
//! Rows are written at ONE; a row that cannot be written is told of in the log, and the repair goes
//! on. Agrees with `org.apache.cassandra.schema.SystemDistributedKeyspace`.

use bytes::Bytes;
use internode::payload::repair::SessionId;
use internode::payload::token_ranges::Tokens;
use types::Consistency;

use super::ranges::CommonRange;
use crate::identity::inet;
use crate::node::Node;
use crate::repair_state::options::RepairOptions;
use crate::system_rows::SystemRow;

const KEYSPACE: &str = "system_distributed";
/// `default_time_to_live` of both tables, seconds.
const TTL: u32 = 2_592_000;

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn texts(list: impl IntoIterator<Item = String>) -> Vec<(Bytes, Bytes)> {
    list.into_iter().map(|one| (Bytes::from(one), Bytes::new())).collect()
}

/// The history of one command.
pub(super) struct History<'n> {
    node: &'n Node,
    parent: SessionId,
    keyspace: &'n str,
}

impl<'n> History<'n> {
    /// The history of a command.
    pub fn new(node: &'n Node, parent: SessionId, keyspace: &'n str) -> Self {
        Self { node, parent, keyspace }
    }

    fn now(&self) -> Vec<u8> {
        (self.node.env.clock.now_micros() / 1000).to_be_bytes().to_vec()
    }

    fn row(&self, name: &str, key: &[&[u8]], clustering: &[&[u8]]) -> Option<SystemRow> {
        let schema = self.node.schema();
        let table = schema.table(KEYSPACE, name)?;
        let expiry = Some((TTL, self.node.env.clock.now_seconds()));
        Some(SystemRow::new(table, key, clustering, self.node.clock.next_micros(), expiry))
    }

    async fn write(&self, rows: Vec<SystemRow>) {
        let mutations = rows.into_iter().map(SystemRow::finish).collect();
        if let Err(error) = self.node.write(mutations, Consistency::One).await {
            tracing::warn!(?error, "the history of repairs cannot be written");
        }
    }

    /// Writes that the command begins.
    pub async fn start(&self, tables: &[String], ranges: &[Tokens], options: &RepairOptions) {
        let Some(row) = self.row("parent_repair_history", &[&self.parent], &[]) else { return };
        let pairs = options.pairs().into_iter().map(|(name, value)| (text(name), Bytes::from(value)));
        let row = row
            .set("keyspace_name", text(self.keyspace))
            .set_elements("columnfamily_names", texts(tables.iter().cloned()))
            .set_elements("requested_ranges", texts(ranges.iter().map(ToString::to_string)))
            .set("started_at", self.now())
            .set_elements("options", pairs);
        self.write(vec![row]).await;
    }

    /// Writes that the command has ended well, in these ranges.
    pub async fn succeed(&self, ranges: &[Tokens]) {
        let Some(row) = self.row("parent_repair_history", &[&self.parent], &[]) else { return };
        let ranges = texts(ranges.iter().map(ToString::to_string));
        self.write(vec![row.set("finished_at", self.now()).set_elements("successful_ranges", ranges)]).await;
    }

    /// Writes that the command has failed.
    pub async fn fail(&self, why: &str) {
        let Some(row) = self.row("parent_repair_history", &[&self.parent], &[]) else { return };
        let row = row.set("finished_at", self.now()).set("exception_message", text(why));
        self.write(vec![row.set("exception_stacktrace", text(why))]).await;
    }

    fn of_job(&self, session: &SessionId, table: &str) -> Option<SystemRow> {
        self.row("repair_history", &[self.keyspace.as_bytes(), table.as_bytes()], &[session])
    }

    /// Writes that a session begins.
    pub async fn start_session(&self, session: &SessionId, tables: &[String], common: &CommonRange) {
        let local = self.node.identity.broadcast;
        let participants = common.neighbours.iter().map(|address| (inet(address.ip()), Bytes::new()));
        let participants: Vec<_> = participants.collect();
        let with_ports = texts(common.neighbours.iter().map(ToString::to_string));
        // as in Cassandra the ranges of a session share a row: the last one stays
        let Some(range) = common.ranges.last() else { return };
        let row = |table: &String| {
            let row = self
                .of_job(session, table)?
                .set("parent_id", self.parent.to_vec())
                .set("range_begin", text(&range.start.0.to_string()))
                .set("range_end", text(&range.end.0.to_string()))
                .set("coordinator", inet(local.ip()))
                .set("coordinator_port", i32::from(local.port()).to_be_bytes().to_vec())
                .set_elements("participants", participants.clone())
                .set_elements("participants_v2", with_ports.clone())
                .set("status", text("STARTED"))
                .set("started_at", self.now());
            Some(row)
        };
        self.write(tables.iter().filter_map(row).collect()).await;
    }

    /// Writes that a job of a session has ended.
    pub async fn end_job(&self, session: &SessionId, table: &str, result: Result<(), &str>) {
        let Some(row) = self.of_job(session, table) else { return };
        let row = row.set("finished_at", self.now());
        let row = match result {
            Ok(()) => row.set("status", text("SUCCESS")),
            Err(why) => row
                .set("status", text("FAILED"))
                .set("exception_message", text(why))
                .set("exception_stacktrace", text(why)),
        };
        self.write(vec![row]).await;
    }
}
