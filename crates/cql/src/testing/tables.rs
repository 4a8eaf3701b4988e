//! CREATE TABLE and CREATE TYPE for tests, without any check.

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, Replication, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, UserType};

use super::KEYSPACE;
use super::memory::Memory;
use crate::ast::{PropertyValue, Statement, TypeName};
use crate::context::Preparing;
use crate::error::CqlError;
use crate::result::{Answer, CqlResult};

fn keyspace(node: &Memory) -> KeyspaceMetadata {
    let schema = node.schema.borrow();
    schema.keyspace(KEYSPACE).map_or_else(
        || KeyspaceMetadata {
            name: KEYSPACE.into(),
            durable_writes: true,
            replication: Replication { class: "SimpleStrategy".into(), options: BTreeMap::new() },
            tables: BTreeMap::new(),
            user_types: BTreeMap::new(),
            is_virtual: false,
        },
        |found| (**found).clone(),
    )
}

/// Creates what the statement says; None: it is another statement.
pub(super) fn create(node: &Memory, text: &str) -> Option<Result<Answer, CqlError>> {
    let parsed = crate::parse(text).ok()?;
    let mut keyspace = keyspace(node);
    let schema = Arc::clone(&node.schema.borrow());
    let mut preparing = Preparing::new(&schema, &[]);
    preparing.keyspace = Arc::from(KEYSPACE);
    let resolve = |name: &TypeName<'_>| crate::terms::resolve_type(&preparing, name);
    match &parsed.statement {
        Statement::CreateType(create) => {
            let fields = create.fields.iter().map(|(name, ty)| Ok((name.as_str().to_owned(), frozen(resolve(ty)?))));
            let fields: Result<Vec<_>, CqlError> = fields.collect();
            let fields = match fields {
                Ok(fields) => fields,
                Err(error) => return Some(Err(error)),
            };
            let udt = UserType { keyspace: KEYSPACE.into(), name: create.name.name.as_str().into(), fields };
            keyspace.user_types.insert(udt.name.clone(), Arc::new(udt));
        }
        Statement::CreateTable(create) => {
            let table = match table(create, &resolve) {
                Ok(table) => table,
                Err(error) => return Some(Err(error)),
            };
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
        }
        _ => return None,
    }
    let next = node.schema.borrow().with_keyspace(keyspace);
    *node.schema.borrow_mut() = Arc::new(next);
    Some(Ok(CqlResult::Void.into()))
}

fn frozen(ty: CqlType) -> CqlType {
    if ty.is_multi_cell() { ty.freeze() } else { ty }
}

fn table(
    create: &crate::ast::CreateTable<'_>,
    resolve: &dyn Fn(&TypeName<'_>) -> Result<CqlType, CqlError>,
) -> Result<TableMetadata, CqlError> {
    let key = create.primary_keys.first().expect("there is a primary key");
    let mut specs = Vec::new();
    for column in &create.columns {
        let name = column.name.as_str();
        let at = |list: &[crate::ast::Ident<'_>]| list.iter().position(|key| key.as_str() == name);
        let (kind, position) = match (at(&key.partition), at(&key.clustering)) {
            (Some(position), _) => (ColumnKind::PartitionKey, position),
            (_, Some(position)) => (ColumnKind::Clustering, position),
            _ if column.is_static => (ColumnKind::Static, 0),
            _ => (ColumnKind::Regular, 0),
        };
        let reversed = create.clustering_order.iter().any(|order| order.column.as_str() == name && order.descending);
        let ty = resolve(&column.type_name)?;
        specs.push(ColumnSpec { name: name.into(), kind, position, ty, reversed });
    }
    let counter = specs.iter().any(|spec| spec.ty.is_counter());
    let mut params = TableParams::default();
    for property in &create.properties {
        if let ("default_time_to_live", PropertyValue::Simple(value)) = (property.name.as_str(), &property.value) {
            params.default_time_to_live = value.parse().expect("a number");
        }
    }
    let name = create.name.name.as_str();
    let id = TableId::of_system_table(KEYSPACE, name);
    let flags = TableFlags { counter, ..TableFlags::COMPOUND };
    let kind = TableKind::Regular;
    Ok(TableMetadata::new(id, KEYSPACE, name, kind, flags, params, specs, BTreeMap::new(), None))
}
