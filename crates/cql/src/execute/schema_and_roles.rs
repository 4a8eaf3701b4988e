//! Executing statements on the schema and on roles, and DESCRIBE.
//!
//! Agrees with `AlterSchemaStatement.execute` and `DescribeStatement.execute`.

use std::sync::Arc;

use schema::{Schema, TableId};

use super::authorize;
use crate::ast::Statement;
use crate::auth::{Access, Resource, RolesOf};
use crate::coordinator::{Coordinator, UpdatePermissions};
use crate::ddl::{self, DdlContext};
use crate::describe::describe;
use crate::error::CqlError;
use crate::options::{ClientState, QueryOptions};
use crate::parse::parse;
use crate::prepare::PreparedStatement;
use crate::result::{Answer, CqlResult, SchemaChangeKind, SchemaEvent, SchemaTarget};
use crate::roles::{self, store};

/// Executes a statement whose plan is [`Plan::Other`](crate::prepare).
pub(super) async fn execute<C: Coordinator>(
    prepared: &PreparedStatement,
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let keyspace = prepared.keyspace.as_deref();
    // DESCRIBE uses the present keyspace of the connection, not the one in which it was prepared
    let statement = &parse(&prepared.query)?.statement;
    if let Statement::Describe(statement) = statement {
        let keyspace = client.keyspace.as_deref().or(keyspace);
        let ownership = |keyspace: &str| coordinator.ownership(keyspace);
        let rows = describe(statement, keyspace, &coordinator.schema(), &coordinator.cluster(), ownership, options)?;
        return Ok(CqlResult::Rows(rows).into());
    }
    if roles::is_of_roles(statement) {
        return roles::execute(statement, options, client, coordinator).await;
    }
    let before = coordinator.schema();
    if let Some(access) = &client.access {
        authorize::check_schema_change(statement, keyspace, access, &before)?;
    }
    let cluster = coordinator.cluster();
    let context = DdlContext {
        keyspace: keyspace.map(str::to_owned),
        now_micros: coordinator.now_micros(),
        new_table_id: TableId(coordinator.next_timeuuid()),
        datacenters: cluster.data_centers,
        moving: cluster.moving,
        default_index: cluster.default_index,
        default_compaction: cluster.default_compaction,
        restoring: false,
        switches: options.limits.switches,
        guardrails: options.guardrails.clone(),
    };
    let change = ddl::change(Arc::clone(&prepared.query), context.clone());
    let (event, followed) = match client.access.as_ref().filter(|access| access.is_checked()) {
        Some(access) => {
            let (access, before) = (Arc::clone(access), Arc::clone(&before));
            let grants = !matches!(statement, Statement::CreateView(_));
            let update = PermissionUpdate { access, options: options.clone(), before, grants };
            // boxed: by value it would make the future of every request larger
            let changed = Box::pin(coordinator.change_schema_and_permissions(change, update)).await?;
            changed.map_or((None, None), |(event, followed)| (Some(event), followed))
        }
        None => (coordinator.change_schema(change).await?, None),
    };
    let disagreement = match event {
        Some(_) => coordinator.schema_agreement().await,
        None => Vec::new(),
    };
    let after = coordinator.schema();
    // the change was not refused, so the guardrails have nothing but warnings left
    let mut warnings = ddl::guard(statement, &context, &before, &after).unwrap_or_default();
    if event.is_some() || !matches!(statement, Statement::CreateKeyspace(_)) {
        warnings.extend(ddl::warnings(statement, &context, &before, &after));
    }
    warnings.extend(followed);
    warnings.extend(disagreement);
    Ok(Answer { result: event.map_or(CqlResult::Void, CqlResult::SchemaChange), warnings })
}

/// Lets permissions follow a change of the schema: the creator of a keyspace or table gets all
/// permissions on it, and dropping it revokes every permission on it. Owns what it needs, because
/// it outlives the request of a client that goes away.
///
/// Agrees with `AlterSchemaStatement.createdResources` and `AuthSchemaChangeListener`.
#[derive(Clone, Debug)]
struct PermissionUpdate {
    access: Arc<Access>,
    options: QueryOptions,
    /// The schema before the change.
    before: Arc<Schema>,
    /// The creator gets permissions on what is created. False for views, which are read and changed
    /// with the permissions on their base: others would stay when those are revoked.
    grants: bool,
}

impl UpdatePermissions for PermissionUpdate {
    /// Where the permissions cannot be revoked, as when too few nodes are up, the drop stands and a
    /// warning is given.
    async fn update_permissions<C: Coordinator>(
        &self,
        event: &SchemaEvent,
        coordinator: &C,
    ) -> Result<Option<String>, CqlError> {
        let resources = resources_of(event, &self.before);
        match event.change {
            SchemaChangeKind::Created if self.grants => {
                grant_all(&resources, &self.access, &self.options, coordinator).await.map(|()| None)
            }
            SchemaChangeKind::Dropped => {
                let revoked = revoke_all(&resources, &self.options, coordinator).await;
                let warn = |error| format!("The permissions on what was dropped could not be revoked: {error}");
                Ok(revoked.err().map(warn))
            }
            SchemaChangeKind::Created | SchemaChangeKind::Updated => Ok(None),
        }
    }
}

/// Grants the creator of resources what can be granted on them.
async fn grant_all<C: Coordinator>(
    resources: &[Resource],
    access: &Access,
    options: &QueryOptions,
    coordinator: &C,
) -> Result<(), CqlError> {
    let roles = coordinator.roles(RolesOf::Named(&[&access.user])).await?;
    let mut changes = store::RoleBatch::new(coordinator, options, roles.settings.write_level);
    for resource in resources {
        let missing = resource.applicable().without(roles.granted(&access.user, &resource.name()));
        store::grant(&mut changes, &access.user, resource, missing)?;
    }
    changes.write().await
}

/// Revokes all permissions on resources that are gone, whoever has them.
async fn revoke_all<C: Coordinator>(
    resources: &[Resource],
    options: &QueryOptions,
    coordinator: &C,
) -> Result<(), CqlError> {
    let roles = coordinator.roles(RolesOf::Everybody).await?;
    let mut changes = store::RoleBatch::new(coordinator, options, roles.settings.write_level);
    for resource in resources {
        store::revoke_all_on(&mut changes, resource, &roles)?;
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
            let mut resources: Vec<_> = own.into_iter().chain([Resource::AllTables(keyspace.clone())]).collect();
            let left_out = before.left_out_of(keyspace);
            resources.extend(left_out.map(|(table, _)| Resource::Table(keyspace.clone(), table.to_owned())));
            if let Some(known) = before.keyspace(keyspace) {
                resources.extend(known.tables.keys().map(|table| Resource::Table(keyspace.clone(), table.clone())));
                // each of them, because a function made later may have the same name and arguments
                resources.extend(known.functions.values().map(|function| {
                    Resource::function(keyspace, &function.name, function.arguments.iter().map(|(_, ty)| ty))
                }));
                let aggregates = known.aggregates.values();
                resources.extend(aggregates.map(|of| Resource::function(keyspace, &of.name, &of.arguments)));
            }
            resources
        }
        // a change of an index is an update of its table
        SchemaTarget::Table => vec![Resource::Table(keyspace.clone(), name.clone())],
        SchemaTarget::Function | SchemaTarget::Aggregate => {
            let known = before.keyspace(keyspace);
            let find = |name: &str| known.and_then(|keyspace| keyspace.user_types.get(name).cloned());
            let types: Option<Vec<_>> =
                event.argument_types.iter().map(|text| schema::type_text::parse(text, &find)).collect();
            types.into_iter().map(|types| Resource::function(keyspace, name, &types)).collect()
        }
        SchemaTarget::Type => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use schema::function::{AggregateMetadata, FunctionMetadata, JAVA};
    use schema::{KeyspaceMetadata, LeftOutTable, Replication};
    use types::CqlType;

    use super::*;

    fn function(name: &str, arguments: &[CqlType]) -> FunctionMetadata {
        FunctionMetadata {
            keyspace: "ks".to_owned(),
            name: name.to_owned(),
            arguments: arguments.iter().map(|ty| ("x".to_owned(), ty.clone())).collect(),
            returns: CqlType::Int,
            called_on_null: true,
            language: JAVA.to_owned(),
            body: "return 1;".to_owned(),
            compiled: Arc::new(Err("nothing calls it".to_owned())),
        }
    }

    #[test]
    fn permissions_go_with_all_that_a_dropped_keyspace_has() {
        let functions =
            [function("f", &[CqlType::Int]), function("f", &[]), function("plus", &[CqlType::Int, CqlType::Int])];
        let total = AggregateMetadata {
            keyspace: "ks".to_owned(),
            name: "total".to_owned(),
            arguments: vec![CqlType::Int],
            returns: CqlType::Int,
            state_function: Arc::new(functions[2].clone()),
            state_type: CqlType::Int,
            final_function: None,
            initial: None,
        };
        let keyspace = KeyspaceMetadata {
            name: "ks".into(),
            durable_writes: true,
            replication: Replication { class: "LocalStrategy".into(), options: Default::default() },
            tables: Default::default(),
            user_types: Default::default(),
            function_rows: Vec::new(),
            functions: functions.into_iter().map(|function| (function.key(), Arc::new(function))).collect(),
            aggregates: [(total.key(), Arc::new(total))].into(),
            is_virtual: false,
        };
        let event = SchemaEvent {
            change: SchemaChangeKind::Dropped,
            target: SchemaTarget::Keyspace,
            keyspace: "ks".to_owned(),
            name: String::new(),
            argument_types: Vec::new(),
        };
        let mut before = Schema::default().with_keyspace(keyspace);
        let left_out = LeftOutTable { id: TableId([1; 16]), is_view: false, base_id: None, allow_auto_snapshot: None };
        before.left_out.insert(("ks".to_owned(), "t".to_owned()), left_out);
        let mut names: Vec<_> = resources_of(&event, &before).iter().map(Resource::name).collect();
        names.sort();
        let int = "org.apache.cassandra.db.marshal.Int32Type";
        let expected = [
            "data/ks".to_owned(),
            "data/ks/*".to_owned(),
            "data/ks/t".to_owned(),
            "functions/ks".to_owned(),
            "functions/ks/f[]".to_owned(),
            format!("functions/ks/f[{int}]"),
            format!("functions/ks/plus[{int}^{int}]"),
            format!("functions/ks/total[{int}]"),
        ];
        assert_eq!(names, expected);
    }
}
