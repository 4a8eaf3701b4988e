//! The check of permissions before a statement is executed.
//!
//! Must agree with: `CQLStatement.authorize` of every statement.

use schema::{AggregateMetadata, FunctionKey, FunctionMetadata, Schema};

use crate::ast::{self, Permission, QualifiedName, Statement, TypeName};
use crate::auth::{Access, Resource, check_changeable};
use crate::context::NO_KEYSPACE;
use crate::coordinator::Coordinator;
use crate::ddl::function::key_of;
use crate::error::CqlError;
use crate::options::ClientState;
use crate::prepare::{Plan, PreparedStatement};
use crate::statements::modification::ModificationPlan;
use crate::statements::select::SelectPlan;

/// Refuses a statement on data that the client may not execute. Statements on schema and roles are
/// checked where they are executed.
pub(super) fn check_statement<C: Coordinator>(
    prepared: &PreparedStatement,
    client: &ClientState,
    coordinator: &C,
) -> Result<(), CqlError> {
    let Some(access) = &client.access else { return Ok(()) };
    check_plan(&prepared.plan, access, coordinator)?;
    functions(prepared, access)
}

/// Refuses a statement of a BATCH message that the client may not execute.
pub(super) fn check_batch_statement(
    prepared: &PreparedStatement,
    plan: &ModificationPlan,
    access: &Access,
) -> Result<(), CqlError> {
    modification(plan, access)?;
    functions(prepared, access)
}

/// Refuses calls of user-defined functions that the client may not execute. The functions that an
/// aggregate is made of are asked for, too.
fn functions(prepared: &PreparedStatement, access: &Access) -> Result<(), CqlError> {
    let execute = |resource: Resource| access.check(Permission::Execute, &resource);
    for function in &prepared.functions {
        execute(Resource::function(function.keyspace(), function.name(), &function.arguments))?;
        if let Some(aggregate) = function.user_aggregate() {
            aggregate.functions().try_for_each(|part| execute(of_function(part)))?;
        }
    }
    Ok(())
}

fn of_function(function: &FunctionMetadata) -> Resource {
    Resource::function(&function.keyspace, &function.name, function.arguments.iter().map(|(_, ty)| ty))
}

fn of_aggregate(aggregate: &AggregateMetadata) -> Resource {
    Resource::function(&aggregate.keyspace, &aggregate.name, &aggregate.arguments)
}

fn check_plan<C: Coordinator>(plan: &Plan, access: &Access, coordinator: &C) -> Result<(), CqlError> {
    match plan {
        Plan::Select(plan) => select(plan, access, coordinator),
        Plan::Modification(plan) => modification(plan, access),
        Plan::Batch(plan) => plan.statements.iter().try_for_each(|plan| modification(plan, access)),
        Plan::Use(_) => access.check_login(),
        Plan::Truncate(table) => access.check_table(Permission::Modify, table),
        // EXPLAIN takes the permissions of the statement that it explains
        Plan::Explain(plan) => check_plan(&plan.plan, access, coordinator),
        Plan::Other => Ok(()),
    }
}

fn select<C: Coordinator>(plan: &SelectPlan, access: &Access, coordinator: &C) -> Result<(), CqlError> {
    // reading a view takes the permission to read its base table
    match &plan.table.view {
        None => access.check_table(Permission::Select, &plan.table)?,
        Some(view) => {
            let schema = coordinator.schema();
            let base = schema.table_by_id(view.base_id).unwrap_or(&plan.table);
            access.check_table(Permission::Select, base)?;
        }
    }
    if plan.masked_in_where.is_empty() { Ok(()) } else { masked_in_where(plan, access) }
}

/// Refuses WHERE on masked columns to users who may not see them, because the values could be
/// guessed from which rows are found.
fn masked_in_where(plan: &SelectPlan, access: &Access) -> Result<(), CqlError> {
    let table = &plan.table;
    let may = |permission| access.has_on_table(permission, table);
    if may(Permission::Unmask) || may(Permission::SelectMasked) {
        return Ok(());
    }
    Err(CqlError::Unauthorized(format!(
        "User {} has no UNMASK nor SELECT_MASKED permission on table {}.{}, cannot query masked columns [{}]",
        access.user,
        table.keyspace,
        table.name,
        plan.masked_in_where.join(", ")
    )))
}

/// Refuses an INSERT, UPDATE or DELETE that the client may not execute. With conditions it takes
/// SELECT too, because its answer tells what is stored. A statement on a table with views takes
/// SELECT too, because what the views get is read from the table, and MODIFY of each view.
fn modification(plan: &ModificationPlan, access: &Access) -> Result<(), CqlError> {
    let table = &plan.table;
    access.check_table(Permission::Modify, table)?;
    if !plan.conditions.is_none() {
        access.check_table(Permission::Select, table)?;
    }
    for view in &plan.views {
        access.check_table(Permission::Select, table)?;
        access.check_table(Permission::Modify, view)?;
    }
    Ok(())
}

/// Refuses a change of the schema that the client may not make. `keyspace` is that of the
/// connection.
pub(super) fn check_schema_change(
    statement: &Statement<'_>,
    keyspace: Option<&str>,
    access: &Access,
    schema: &Schema,
) -> Result<(), CqlError> {
    let here = Authorizer { keyspace, access };
    match statement {
        Statement::CreateKeyspace(_) => {
            access.check_login()?;
            access.check(Permission::Create, &Resource::AllKeyspaces)
        }
        Statement::AlterKeyspace(alter) => here.keyspace(Permission::Alter, alter.name.as_str()),
        Statement::DropKeyspace(drop) => here.keyspace(Permission::Drop, drop.name.as_str()),
        Statement::CreateTable(create) => here.all_tables(Permission::Create, &create.name),
        Statement::AlterTable(alter) => here.table(Permission::Alter, &alter.name),
        Statement::DropTable(drop) => here.table(Permission::Drop, &drop.name),
        Statement::CreateType(create) => here.all_tables(Permission::Create, &create.name),
        Statement::AlterType(alter) => here.all_tables(Permission::Alter, &alter.name),
        Statement::DropType(drop) => here.all_tables(Permission::Drop, &drop.name),
        Statement::CreateFunction(create) => {
            here.create_function(&create.name, create.arguments.iter().map(|(_, ty)| ty), create.or_replace, schema)
        }
        Statement::CreateAggregate(create) => {
            here.create_function(&create.name, create.arguments.iter(), create.or_replace, schema)?;
            let keyspace = here.keyspace_of(&create.name)?;
            let state: Vec<_> = std::iter::once(&create.state_type).chain(&create.arguments).collect();
            here.execute(keyspace, create.state_function.as_str(), &state, schema)?;
            match &create.final_function {
                Some(last) => here.execute(keyspace, last.as_str(), &[&create.state_type], schema),
                None => Ok(()),
            }
        }
        Statement::DropFunction(drop) | Statement::DropAggregate(drop) => here.drop_function(drop, schema),
        Statement::CreateIndex(create) => here.table(Permission::Alter, &create.table),
        Statement::DropIndex(drop) => here.index(&drop.name, schema),
        Statement::CreateView(create) => here.table(Permission::Alter, &create.base),
        Statement::AlterView(alter) => here.view(&alter.name, schema),
        Statement::DropView(drop) => here.view(&drop.name, schema),
        Statement::CreateTrigger(_) => {
            superusers(access, "Only superusers are allowed to perform CREATE TRIGGER queries")
        }
        // the misspelling is Cassandra's
        Statement::DropTrigger(_) => superusers(access, "Only superusers are allowed to perfrom DROP TRIGGER queries"),
        // the statement is not supported and is refused for every user
        _ => Ok(()),
    }
}

fn superusers(access: &Access, message: &str) -> Result<(), CqlError> {
    if access.is_super { Ok(()) } else { Err(CqlError::Unauthorized(message.to_owned())) }
}

struct Authorizer<'a> {
    keyspace: Option<&'a str>,
    access: &'a Access,
}

impl Authorizer<'_> {
    fn keyspace(&self, permission: Permission, keyspace: &str) -> Result<(), CqlError> {
        self.check(permission, Resource::Keyspace(keyspace.to_owned()))
    }

    fn all_tables(&self, permission: Permission, name: &QualifiedName<'_>) -> Result<(), CqlError> {
        self.check(permission, Resource::AllTables(self.keyspace_of(name)?.to_owned()))
    }

    fn table(&self, permission: Permission, name: &QualifiedName<'_>) -> Result<(), CqlError> {
        let table = Resource::Table(self.keyspace_of(name)?.to_owned(), name.name.as_str().to_owned());
        self.check(permission, table)
    }

    fn index(&self, name: &QualifiedName<'_>, schema: &Schema) -> Result<(), CqlError> {
        let keyspace = self.keyspace_of(name)?;
        let mut tables = schema.keyspace(keyspace).into_iter().flat_map(|keyspace| keyspace.tables.values());
        match tables.find(|table| table.indexes.contains_key(name.name.as_str())) {
            Some(table) => self.check(Permission::Alter, Resource::Table(keyspace.to_owned(), table.name.clone())),
            None => Ok(()),
        }
    }

    /// A view is changed by whoever may change its base.
    fn view(&self, name: &QualifiedName<'_>, schema: &Schema) -> Result<(), CqlError> {
        let keyspace = self.keyspace_of(name)?;
        match schema.table(keyspace, name.name.as_str()).and_then(|table| table.view.as_ref()) {
            Some(view) => self.check(Permission::Alter, Resource::Table(keyspace.to_owned(), view.base_name.clone())),
            // of a view that is left out the base may not be known
            None if schema.left_out_table(keyspace, name.name.as_str()).is_some() => {
                self.all_tables(Permission::Alter, name)
            }
            None => Ok(()),
        }
    }

    /// The function or aggregate with arguments of these types; None: the schema has none.
    fn function(
        &self,
        keyspace: &str,
        name: &str,
        types: &[&TypeName<'_>],
        schema: &Schema,
    ) -> Result<Option<Resource>, CqlError> {
        let Some(found) = schema.keyspace(keyspace) else { return Ok(None) };
        let key = key_of(name, types.iter().copied(), found)?;
        let function = found.functions.get(&key).map(|function| of_function(function));
        Ok(function.or_else(|| found.aggregates.get(&key).map(|aggregate| of_aggregate(aggregate))))
    }

    fn create_function<'t>(
        &self,
        name: &QualifiedName<'_>,
        types: impl Iterator<Item = &'t TypeName<'t>>,
        or_replace: bool,
        schema: &Schema,
    ) -> Result<(), CqlError> {
        let keyspace = self.keyspace_of(name)?;
        let types: Vec<_> = types.collect();
        match self.function(keyspace, name.name.as_str(), &types, schema)?.filter(|_| or_replace) {
            Some(function) => self.check(Permission::Alter, function),
            None => self.check(Permission::Create, Resource::KeyspaceFunctions(keyspace.to_owned())),
        }
    }

    fn execute(&self, keyspace: &str, name: &str, types: &[&TypeName<'_>], schema: &Schema) -> Result<(), CqlError> {
        match self.function(keyspace, name, types, schema)? {
            Some(function) => self.check(Permission::Execute, function),
            None => Ok(()),
        }
    }

    fn drop_function(&self, drop: &ast::DropFunction<'_>, schema: &Schema) -> Result<(), CqlError> {
        let (keyspace, name) = (self.keyspace_of(&drop.name)?, drop.name.name.as_str());
        let Some(found) = schema.keyspace(keyspace) else { return Ok(()) };
        let wanted = drop.arguments.as_ref().map(|types| key_of(name, types, found)).transpose()?;
        let matches = |key: &FunctionKey| key.0 == name && wanted.as_ref().is_none_or(|wanted| wanted == key);
        for (_, function) in found.functions.iter().filter(|(key, _)| matches(key)) {
            self.check(Permission::Drop, of_function(function))?;
        }
        for (_, aggregate) in found.aggregates.iter().filter(|(key, _)| matches(key)) {
            self.check(Permission::Drop, of_aggregate(aggregate))?;
        }
        Ok(())
    }

    fn keyspace_of<'n>(&'n self, name: &'n ast::QualifiedName<'_>) -> Result<&'n str, CqlError> {
        name.keyspace().or(self.keyspace).ok_or_else(|| CqlError::invalid(NO_KEYSPACE))
    }

    fn check(&self, permission: Permission, resource: Resource) -> Result<(), CqlError> {
        self.access.check_login()?;
        check_changeable(permission, &resource)?;
        self.access.check(permission, &resource)
    }
}
