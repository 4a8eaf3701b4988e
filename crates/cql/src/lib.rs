//! CQL 3.4.7: lexer, parser, planning and execution of statements.
//!
//! A text becomes a syntax tree ([`mod@parse`], [`ast`]), a tree becomes a plan ([`mod@prepare`]),
//! and a plan with its bound values is carried out ([`mod@execute`]). Rows are read and written
//! through the trait [`Coordinator`], which does not say where they are. A change of the schema is
//! a pure function from a schema to the next one ([`ddl`]). What a user may do is decided in
//! [`auth`], limits of operators in [`guardrails`].
//!
//! Knows no socket, clock, thread, file or random number.

#![forbid(unsafe_code)]

pub mod ast;
pub mod auth;
pub mod coordinator;
pub mod ddl;
pub mod describe;
pub mod error;
pub mod execute;
mod lexer;
mod obfuscate;
pub mod parse;
pub mod prepare;
pub mod result;

mod compatible;
mod context;
mod explain;
mod fit;
mod functions;
#[doc(hidden)]
pub mod fuzzing;
pub mod guardrails;
mod keys;
mod options;
mod paging;
mod restrictions;
mod roles;
mod scalar;
mod selection;
mod sources;
mod statements;
mod terms;
#[cfg(test)]
mod tests;
mod values;

pub use crate::functions::UserFunctionLimits;
pub use coordinator::{
    CasPartition, CasRequest, ClusterInfo, Coordinator, ReadOptions, ReplicaFindings, SchemaChange, UpdatePermissions,
    WriteOptions,
};
pub use error::CqlError;
pub use execute::{bind_by_name, execute, execute_batch};
pub use explain::ExplainCoordinator;
pub use obfuscate::{obfuscate, obfuscate_syntax_error};
pub use options::{ClientState, Limits, QueryOptions};
pub use parse::{SyntaxError, parse};
pub use prepare::{BatchRoom, PreparedStatement, prepare};
pub use restrictions::view_filter;
pub use result::{
    Answer, ColumnSpec, CqlResult, ResultMetadata, ResultSet, SchemaChangeKind, SchemaEvent, SchemaTarget,
};
pub use statements::select::group_values;
pub use values::BoundValue;
