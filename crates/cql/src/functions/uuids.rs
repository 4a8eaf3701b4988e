//! `uuid()`. Agrees with `org.apache.cassandra.cql3.functions.UuidFcts`.

use types::CqlType;

use super::registry::FunctionRegistry;
use super::{Body, Function};

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    let body = Body::Source(|sources, out| out.extend_from_slice(&sources.uuid()));
    registry.add(Function::new("uuid", &[], CqlType::Uuid, body));
}
