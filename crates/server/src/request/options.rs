//! Parameters of a request as statements take them.
//!
//! Agrees with `org.apache.cassandra.cql3.QueryOptions`.

use std::sync::Arc;

use cql::guardrails::Guardrails;
use cql::{BoundValue, CqlError, Limits, PreparedStatement, QueryOptions};
use protocol::ProtocolVersion;
use protocol::request::{QueryParameters, Value, Values};
use protocol::response::ColumnSpec;
use types::Consistency;

/// Refuses pages without rows.
pub(super) fn check_page_size(parameters: &QueryParameters) -> Result<(), CqlError> {
    match parameters.page_size {
        Some(0) => Err(CqlError::Protocol("The page size cannot be 0".to_owned())),
        _ => Ok(()),
    }
}

/// The options of a request.
pub(super) fn of(
    parameters: &QueryParameters,
    version: ProtocolVersion,
    limits: Limits,
    guardrails: Option<Arc<Guardrails>>,
) -> Result<QueryOptions, CqlError> {
    Ok(QueryOptions {
        consistency: parameters.consistency,
        serial_consistency: parameters.serial_consistency,
        page_size: parameters.page_size.and_then(|size| u32::try_from(size).ok()).filter(|size| *size > 0),
        paging_state: parameters.paging_state.clone(),
        timestamp: parameters.timestamp,
        now_in_seconds: parameters.now_in_seconds,
        protocol_version: version as u8,
        limits,
        guardrails,
    })
}

/// A value of the wire.
pub(super) fn bound(value: Value) -> BoundValue {
    match value {
        Value::Bytes(bytes) => BoundValue::Bytes(bytes),
        Value::Null => BoundValue::Null,
        Value::Unset => BoundValue::Unset,
    }
}

/// Values by position: as many as the statement has markers.
pub(super) fn by_position(values: &Values, prepared: &PreparedStatement) -> Result<Vec<BoundValue>, CqlError> {
    let markers = prepared.bind_variables.len();
    if values.len() != markers {
        let given = values.len();
        return Err(CqlError::invalid(format!("there were {markers} markers(?) in CQL but {given} bound variables")));
    }
    Ok(values.iter().map(bound).collect())
}

/// Adds a request's parameters to the parameters of its trace.
pub(super) fn describe(parameters: &QueryParameters, out: &mut Vec<(String, String)>) {
    out.push(("consistency_level".to_owned(), parameters.consistency.name().to_owned()));
    if let Some(size) = parameters.page_size {
        out.push(("page_size".to_owned(), size.to_string()));
    }
    let serial = parameters.serial_consistency.unwrap_or(Consistency::Serial);
    out.push(("serial_consistency_level".to_owned(), serial.name().to_owned()));
}

/// Bytes of a bound value that a trace shows.
const SHOWN_SIZE_MAX: usize = 100;

/// Adds bound values to the parameters of a trace: `bound_var_0_name`.
pub(super) fn describe_values(markers: &[ColumnSpec], values: &Values, out: &mut Vec<(String, String)>) {
    for (number, (marker, value)) in markers.iter().zip(values.iter()).enumerate() {
        let text = match value {
            Value::Bytes(bytes) if types::validate::validate(&marker.cql_type, &bytes).is_ok() => {
                types::json::to_json(&marker.cql_type, &bytes)
            }
            Value::Bytes(_) => "(not of its type)".to_owned(),
            Value::Null => "null".to_owned(),
            Value::Unset => "UNSET".to_owned(),
        };
        let end = (0..=SHOWN_SIZE_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let cut = if end < text.len() { "..." } else { "" };
        out.push((format!("bound_var_{number}_{}", marker.name), format!("{}{cut}", &text[..end])));
    }
}
