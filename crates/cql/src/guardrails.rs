//! Guardrails: limits that the operator sets for ordinary users. They do not apply to superusers,
//! nor on a node where nobody logs in.
//!
//! A check passes, adds a warning for the client, or refuses the request. Each group has a file:
//! changes of the schema, reads, writes. A client without guardrails costs one look at an `Option`.
//!
//! Must agree with: `org.apache.cassandra.db.guardrails.Guardrails` and the places that ask it,
//! texts included.

mod query;
mod schema;
mod terms;
mod threshold;
mod values;
mod write;

pub(crate) use query::Query;
pub use query::QueryGuards;
pub use schema::SchemaGuards;
pub use threshold::Threshold;
pub use values::Values;
pub(crate) use write::Write;
pub use write::WriteGuards;

use threshold::Guard;

use crate::error::CqlError;

/// The guardrails of a node's configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Guardrails {
    /// Guardrails of changes of the schema.
    pub schema: SchemaGuards,
    /// Guardrails of reads.
    pub query: QueryGuards,
    /// Guardrails of writes.
    pub write: WriteGuards,
}

/// The text of a guardrail's warning or refusal, as clients get it.
fn violation_text(guard: &str, message: &str, reason: &str) -> String {
    let gap = match (reason.is_empty(), message.ends_with('.')) {
        (true, _) => "",
        (false, true) => " ",
        (false, false) => ". ",
    };
    format!("Guardrail {guard} violated: {message}{gap}{reason}")
}

/// Whether a warning, or the text of an error, is that of a guardrail.
pub fn is_violation(text: &str) -> bool {
    text.starts_with("Guardrail ") && text.contains(" violated: ")
}

/// Refuses a feature that is switched off.
fn ensure(enabled: bool, guard: Guard, feature: &str) -> Result<(), CqlError> {
    if enabled {
        return Ok(());
    }
    Err(CqlError::Invalid(violation_text(guard.name, &format!("{feature} is not allowed"), guard.reason)))
}
