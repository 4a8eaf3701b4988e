//! Everything that is not about data: what this program executes of it, and what it answers to the rest.

use crate::ast::Statement;
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::execute::ClientState;
use crate::parse::parse;
use crate::prepare::Prepared;
use crate::result::Answer;

/// Executes a statement that is neither on data nor a session's.
pub(crate) async fn execute<C: Coordinator>(
    prepared: &Prepared,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let _ = (client, coordinator);
    let parsed = parse(&prepared.query).map_err(|error| CqlError::Syntax(error.to_string()))?;
    Err(CqlError::unsupported(feature(&parsed.statement)))
}

/// What a statement is about, for the error that says that it is not executed.
fn feature(statement: &Statement<'_>) -> &'static str {
    match statement {
        Statement::CreateIndex(_) | Statement::DropIndex(_) => "Secondary indexes are",
        Statement::CreateView(_) | Statement::AlterView(_) | Statement::DropView(_) => "Materialized views are",
        Statement::CreateFunction(_) | Statement::DropFunction(_) => "User-defined functions are",
        Statement::CreateAggregate(_) | Statement::DropAggregate(_) => "User-defined aggregates are",
        Statement::CreateTrigger(_) | Statement::DropTrigger(_) => "Triggers are",
        Statement::CreateRole(_)
        | Statement::AlterRole(_)
        | Statement::DropRole(_)
        | Statement::ListRoles(_)
        | Statement::AddIdentity(_)
        | Statement::DropIdentity(_)
        | Statement::ChangePermissions(_)
        | Statement::ChangeRole(_)
        | Statement::ListPermissions(_) => "Roles and permissions are",
        Statement::Describe(_) => "DESCRIBE is",
        _ => "This statement is",
    }
}
