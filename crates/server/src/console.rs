//! The node's side of the console: logins against the roles, and statements that only read.
//!
//! A statement runs as the user who has logged in, with his permissions and guardrails, at
//! LOCAL_ONE: an operator looks at data, he does not decide by them. Nothing is paged: the first
//! [`ROWS_MAX`] rows are shown.

use std::sync::Arc;

use admin::http::{Console, Table};
use admin::{AdminError, Result};
use bytes::Bytes;
use cql::ast::Permission;
use cql::{ClientState, CqlResult, QueryOptions, ResultSet};
use types::{Consistency, CqlType};

use crate::auth::{self, Auth};
use crate::coordinator::RequestCoordinator;
use crate::prepared::PlannedStatement;
use crate::services::Services;

/// Rows that are shown of an answer.
const ROWS_MAX: u32 = 200;
/// Bytes of a value's text that are shown.
const VALUE_SIZE_MAX: usize = 4 << 10;
/// Bytes of a statement.
const QUERY_SIZE_MAX: usize = 64 << 10;
/// The table whose readers may see what others do: the log holds texts of statements.
const LOG_TABLE: (&str, &str) = ("system_views", "system_logs");

/// The console of a running node.
pub struct NodeConsole(pub Arc<Services>);

impl NodeConsole {
    fn auth(&self) -> Option<&Arc<Auth>> {
        self.0.auth.as_ref()
    }

    /// The state of a client who is this user.
    async fn state(&self, user: Option<&str>) -> Result<ClientState> {
        let (Some(auth), Some(user)) = (self.auth(), user) else {
            return match self.auth() {
                None => Ok(ClientState::default()),
                Some(_) => Err(AdminError::Unauthorized("log in first".to_owned())),
            };
        };
        if !auth::may_log_in(auth, user).await.map_err(AdminError::Failed)? {
            return Err(AdminError::Unauthorized(format!("{user} is not permitted to log in")));
        }
        let user_access = auth.user_access(&Arc::from(user)).await;
        Ok(ClientState { keyspace: None, access: Some(Arc::clone(&user_access.access)) })
    }

    async fn run(&self, user: Option<&str>, query: &str) -> Result<Table> {
        let services = &self.0;
        let invalid = |error: cql::CqlError| AdminError::Invalid(error.to_string());
        let state = self.state(user).await?;
        let statement = PlannedStatement::plan(query, None, &services.node.schema()).map_err(invalid)?;
        if !statement.prepared.only_reads() {
            let why = "the console takes SELECT, DESCRIBE, EXPLAIN, and EXPLAIN ANALYZE of a SELECT";
            return Err(AdminError::Invalid(why.to_owned()));
        }
        let is_ordinary = state.access.as_ref().is_some_and(|access| !access.is_super);
        let options = QueryOptions {
            consistency: Consistency::LocalOne,
            page_size: Some(ROWS_MAX),
            protocol_version: 5,
            limits: services.limits,
            guardrails: is_ordinary.then(|| services.guardrails.of_users()),
            ..QueryOptions::default()
        };
        let coordinator = RequestCoordinator::without_request(Arc::clone(services));
        let begun = services.node.env.now();
        let answer = cql::execute(&statement.prepared, &[], &options, &state, &coordinator).await.map_err(invalid)?;
        let micros = services.micros_since(begun);
        let rows = match &answer.result {
            CqlResult::Rows(rows) => table(rows)?,
            _ => Table::default(),
        };
        Ok(Table { warnings: answer.warnings, micros, ..rows })
    }
}

impl Console for NodeConsole {
    fn needs_login(&self) -> bool {
        self.auth().is_some()
    }

    fn queries_enabled(&self) -> bool {
        self.0.config.switch("console_queries_enabled")
    }

    fn is_managed_without_token(&self) -> bool {
        self.0.config.switch("management_api_without_token_enabled")
    }

    fn log_in(&self, user: &str, password: &str) -> Result<()> {
        let Some(auth) = self.auth() else { return Ok(()) };
        wait(auth::check_password(auth, user, password))?.map_err(AdminError::Unauthorized)
    }

    fn may_see(&self, user: &str) -> Result<()> {
        let state = wait(self.state(Some(user)))??;
        let (schema, (keyspace, name)) = (self.0.node.schema(), LOG_TABLE);
        // as a SELECT is checked: what is granted on all keyspaces is not granted on the system's
        let may_select = schema.table(keyspace, name).is_some_and(|table| {
            state.access.as_ref().is_none_or(|access| access.check_table(Permission::Select, table).is_ok())
        });
        match may_select {
            true => Ok(()),
            false => Err(AdminError::Unauthorized(format!("{user} needs SELECT on {keyspace}.{name}"))),
        }
    }

    fn may_change(&self, user: &str) -> Result<()> {
        match wait(self.state(Some(user)))??.access.is_some_and(|access| access.is_super) {
            true => Ok(()),
            false => Err(AdminError::Unauthorized(format!("{user} is no superuser, who alone changes the node"))),
        }
    }

    fn query(&self, user: Option<&str>, query: &str) -> Result<Table> {
        if query.len() > QUERY_SIZE_MAX {
            return Err(AdminError::Invalid(format!("the statement has more than {QUERY_SIZE_MAX} bytes")));
        }
        let query = query.trim().trim_end_matches(';');
        wait(self.run(user, query))?
    }
}

/// Waits for a future on this thread, which may block.
fn wait<T>(future: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| AdminError::Failed(error.to_string()))?.block_on(future))
}

/// Rows of the wire as texts.
fn table(set: &ResultSet) -> Result<Table> {
    let columns = &set.metadata.columns;
    let mut table = Table {
        columns: columns.iter().map(|column| (column.name.to_string(), types::cql_name::print(&column.ty))).collect(),
        has_more: set.paging_state.is_some() || set.row_count > ROWS_MAX,
        ..Table::default()
    };
    let damaged = || AdminError::Failed("the answer is not readable".to_owned());
    let mut bytes = set.rows.clone();
    for _ in 0..set.row_count.min(ROWS_MAX) {
        let mut row = Vec::with_capacity(columns.len());
        for column in columns {
            row.push(value(&mut bytes).ok_or_else(damaged)?.map(|value| text(&column.ty, &value)));
        }
        table.rows.push(row);
    }
    Ok(table)
}

/// The next value: a length, -1 for null, and its bytes. None: there is no whole value.
fn value(bytes: &mut Bytes) -> Option<Option<Bytes>> {
    let length = i32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    drop(bytes.split_to(4));
    let Ok(length) = usize::try_from(length) else { return Some(None) };
    (bytes.len() >= length).then(|| Some(bytes.split_to(length)))
}

fn text(ty: &CqlType, value: &[u8]) -> String {
    let mut text = match ty {
        CqlType::Text | CqlType::Ascii => String::from_utf8_lossy(value).into_owned(),
        _ if types::validate::validate(ty, value).is_ok() => types::json::to_json(ty, value),
        _ => "(not of its type)".to_owned(),
    };
    if text.len() > VALUE_SIZE_MAX {
        let end = (0..=VALUE_SIZE_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_from_the_wire_and_cut() {
        let mut bytes = Bytes::from_static(&[0, 0, 0, 1, 7, 255, 255, 255, 255, 0, 0, 0, 9, 1]);
        assert_eq!(value(&mut bytes), Some(Some(Bytes::from_static(&[7]))));
        assert_eq!(value(&mut bytes), Some(None));
        assert_eq!(value(&mut bytes), None, "nine bytes are promised and one is there");
        assert_eq!(value(&mut Bytes::from_static(&[0])), None);
        assert_eq!(text(&CqlType::Int, &5i32.to_be_bytes()), "5");
        assert_eq!(text(&CqlType::Int, &[1]), "(not of its type)");
        assert!(text(&CqlType::Text, &vec![b'x'; 2 * VALUE_SIZE_MAX]).len() < VALUE_SIZE_MAX + 4);
    }
}
