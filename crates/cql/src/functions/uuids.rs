//! `uuid()`. Agrees with `org.apache.cassandra.cql3.functions.UuidFcts`.

use types::CqlType;

use super::table::Table;
use super::{Body, Function};

/// Declares them.
pub(super) fn declare(table: &mut Table) {
    let body = Body::Source(|sources, out| out.extend_from_slice(&sources.uuid()));
    table.add(Function::new("uuid", &[], CqlType::Uuid, body));
}
