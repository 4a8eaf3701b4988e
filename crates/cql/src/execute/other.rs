//! Executing statements on the schema and on roles, and DESCRIBE.
//!
//! Agrees with `AlterSchemaStatement.execute` and `DescribeStatement.execute`.

use std::sync::Arc;

use schema::{Schema, TableId};

use super::authorize;
use crate::ast::Statement;
use crate::auth::Resource;
use crate::coordinator::Coordinator;
use crate::ddl::{self, DdlContext};
use crate::describe::describe;
use crate::error::CqlError;
use crate::options::{ClientState, QueryOptions};
use crate::parse::parse;
use crate::prepare::Prepared;
use crate::result::{Answer, CqlResult, SchemaChangeKind, SchemaEvent, SchemaTarget};
use crate::roles::{self, store};

/// Executes a statement whose plan is [`Plan::Other`](crate::prepare).
pub(super) async fn execute<C: Coordinator>(
    prepared: &Prepared,
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let keyspace = prepared.keyspace.as_deref();
    // DESCRIBE uses the present keyspace of the connection, not the one in which it was prepared
    let statement = &parse(&prepared.query)?.statement;
    if let Statement::Describe(statement) = statement {
        let keyspace = client.keyspace.as_deref().or(keyspace);
        let rows = describe(statement, keyspace, &coordinator.schema(), &coordinator.cluster(), options)?;
        return Ok(CqlResult::Rows(rows).into());
    }
    if roles::is_of_roles(statement) {
        return roles::execute(statement, options, client, coordinator).await;
    }
    let before = coordinator.schema();
    if let Some(access) = &client.access {
        authorize::change(statement, keyspace, access, &before)?;
    }
    let cluster = coordinator.cluster();
    let context = DdlContext {
        keyspace: keyspace.map(str::to_owned),
        now_micros: coordinator.now_micros(),
        new_table_id: TableId(coordinator.next_timeuuid()),
        datacenters: cluster.data_centers,
        default_index: cluster.default_index,
        default_compaction: cluster.default_compaction,
        restoring: false,
        switches: options.limits.switches,
        guardrails: options.guardrails.clone(),
    };
    let change = ddl::change(Arc::clone(&prepared.query), context.clone());
    let event = coordinator.change_schema(change).await?;
    if let Some(event) = &event {
        follow(event, client, options, coordinator, &before).await?;
    }
    let disagreement = match event {
        Some(_) => coordinator.schema_agreement().await,
        None => Vec::new(),
    };
    let after = coordinator.schema();
    // the change was not refused, so the guardrails have nothing but warnings left
    let mut warnings = ddl::guard(statement, &context, &before, &after).unwrap_or_default();
    if event.is_some() || !matches!(statement, Statement::CreateKeyspace(_)) {
        warnings.extend(ddl::warnings(statement, &before, &after));
    }
    warnings.extend(disagreement);
    Ok(Answer { result: event.map_or(CqlResult::Void, CqlResult::SchemaChange), warnings })
}

/// Lets permissions follow the schema: the creator of a keyspace or table gets all permissions on
/// it, and dropping it revokes every permission on it.
///
/// Agrees with `AlterSchemaStatement.createdResources` and `AuthSchemaChangeListener`.
async fn follow<C: Coordinator>(
    event: &SchemaEvent,
    client: &ClientState,
    options: &QueryOptions,
    coordinator: &C,
    before: &Schema,
) -> Result<(), CqlError> {
    let Some(access) = &client.access else { return Ok(()) };
    let roles = coordinator.roles();
    if !roles.settings.authorizes {
        return Ok(());
    }
    let mut changes = store::Changes::new(coordinator, options);
    let resources = resources_of(event, before);
    for resource in &resources {
        match event.change {
            SchemaChangeKind::Created => {
                let missing = resource.applicable().without(roles.granted(&access.user, &resource.name()));
                store::grant(&mut changes, &access.user, resource, missing)?;
            }
            SchemaChangeKind::Dropped => store::revoke_all_on(&mut changes, resource, &roles)?,
            SchemaChangeKind::Updated => {}
        }
    }
    changes.write().await
}

/// The resources that an event is about.
fn resources_of(event: &SchemaEvent, before: &Schema) -> Vec<Resource> {
    let SchemaEvent { keyspace, name, .. } = event;
    match event.target {
        SchemaTarget::Keyspace => {
            let own = [Resource::Keyspace(keyspace.clone()), Resource::KeyspaceFunctions(keyspace.clone())];
            if event.change == SchemaChangeKind::Created {
                return own.to_vec();
            }
            let tables = before.keyspace(keyspace).into_iter().flat_map(|keyspace| keyspace.tables.keys());
            let tables = tables.map(|table| Resource::Table(keyspace.clone(), table.clone()));
            tables.chain(own).chain([Resource::AllTables(keyspace.clone())]).collect()
        }
        // a change of an index is an update of its table
        SchemaTarget::Table => vec![Resource::Table(keyspace.clone(), name.clone())],
        _ => Vec::new(),
    }
}
