//! Everything that is not about data: statements on the schema, and DESCRIBE.
//!
//! Agrees with `AlterSchemaStatement.execute` and `DescribeStatement.execute`.

use std::sync::Arc;

use schema::TableId;

use crate::ast::Statement;
use crate::coordinator::Coordinator;
use crate::ddl::{self, DdlContext};
use crate::describe::describe;
use crate::error::CqlError;
use crate::execute::{ClientState, QueryOptions};
use crate::parse::parse;
use crate::prepare::Prepared;
use crate::result::{Answer, CqlResult};

/// Executes a statement that is neither on data nor a session's.
pub(crate) async fn execute<C: Coordinator>(
    prepared: &Prepared,
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let keyspace = prepared.keyspace.as_deref();
    // DESCRIBE goes by the keyspace in use now, whichever was when it was prepared.
    let statement = &parse(&prepared.query)?.statement;
    if let Statement::Describe(statement) = statement {
        let keyspace = client.keyspace.as_deref().or(keyspace);
        let rows = describe(statement, keyspace, &coordinator.schema(), &coordinator.cluster(), options)?;
        return Ok(CqlResult::Rows(rows).into());
    }
    let cluster = coordinator.cluster();
    let context = DdlContext {
        keyspace: keyspace.map(str::to_owned),
        now_micros: coordinator.now_micros(),
        new_table_id: TableId(coordinator.next_timeuuid()),
        datacenters: cluster.data_centers,
        default_index: cluster.default_index,
        restoring: false,
        switches: options.limits.switches,
    };
    let before = coordinator.schema();
    let change = ddl::change(Arc::clone(&prepared.query), context);
    let event = coordinator.change_schema(change).await?;
    let warnings = match (&event, statement) {
        (None, Statement::CreateKeyspace(_)) => Vec::new(),
        _ => ddl::warnings(statement, &before, &coordinator.schema()),
    };
    Ok(Answer { result: event.map_or(CqlResult::Void, CqlResult::SchemaChange), warnings })
}
