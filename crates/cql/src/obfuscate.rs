//! Statements without their passwords: what may be kept of a statement's text in logs, traces and
//! samples.
//!
//! Passwords stand in CREATE and ALTER of roles and users only. A statement that parses keeps
//! everything but the strings behind PASSWORD; of a text that does not parse, everything behind the
//! first `password` goes, as nobody knows where the password stands. Agrees with
//! `org.apache.cassandra.cql3.PasswordObfuscator`, `QueryEvents.maybeObfuscatePassword` and
//! `AuditLogManager.obfuscatePasswordInformation`; beyond these, a role's statement that does not
//! parse loses everything behind ROLE or USER.

use std::borrow::Cow;

use crate::ast::Statement;
use crate::lexer::{Keyword, Kind, Lexer};
use crate::parse::parse;

/// The text that replaces a password.
const HIDDEN: &str = "*******";
const PASSWORD: &str = "password";

/// The text of a statement without passwords.
///
/// Parses the text, but only if it has the word `password` or begins a role's statement; meant for
/// texts that are kept, not for each request.
pub fn obfuscate(statement: &str) -> Cow<'_, str> {
    let role_statement_end = role_statement_end(statement);
    let password_end = find_password(statement).map(|start| start + PASSWORD.len());
    if role_statement_end.is_none() && password_end.is_none() {
        return Cow::Borrowed(statement);
    }
    match parse(statement).map(|parsed| parsed.statement) {
        Ok(Statement::CreateRole(_) | Statement::AlterRole(_)) => Cow::Owned(without_passwords(statement)),
        Ok(_) => Cow::Borrowed(statement),
        Err(_) => {
            let end = role_statement_end.or(password_end).unwrap_or(0);
            Cow::Owned(format!("{} {HIDDEN}", &statement[..end]))
        }
    }
}

/// The text of a syntax error, which quotes the statement. An error of a statement with a password
/// is not shown at all.
pub fn obfuscate_syntax_error<'e>(statement: &str, message: &'e str) -> &'e str {
    match obfuscate(statement) {
        Cow::Borrowed(_) => message,
        Cow::Owned(_) => "syntax error in a statement with a password",
    }
}

/// Where `password` begins, in any case of letters.
fn find_password(text: &str) -> Option<usize> {
    text.as_bytes().windows(PASSWORD.len()).position(|window| window.eq_ignore_ascii_case(PASSWORD.as_bytes()))
}

/// Where ROLE or USER ends in `CREATE ROLE`, `CREATE USER`, `ALTER ROLE`, `ALTER USER` at the
/// beginning of a text.
fn role_statement_end(text: &str) -> Option<usize> {
    let mut lexer = Lexer::new(text);
    let (first, second) = (lexer.next_token().ok()?, lexer.next_token().ok()?);
    let verb = matches!(first.kind, Kind::Keyword(Keyword::Create | Keyword::Alter));
    let object = matches!(second.kind, Kind::Keyword(Keyword::Role | Keyword::User));
    (verb && object).then_some(second.end as usize)
}

/// A role's statement with the string behind each PASSWORD replaced.
fn without_passwords(statement: &str) -> String {
    let mut lexer = Lexer::new(statement);
    let (mut out, mut copied, mut is_behind_password) = (String::with_capacity(statement.len()), 0, false);
    while let Ok(token) = lexer.next_token() {
        match token.kind {
            Kind::End => break,
            Kind::Keyword(Keyword::Password) => is_behind_password = true,
            Kind::Eq => {}
            Kind::String | Kind::DollarString if is_behind_password => {
                out.push_str(&statement[copied..token.start as usize]);
                out.push_str("'*******'");
                copied = token.end as usize;
                is_behind_password = false;
            }
            _ => is_behind_password = false,
        }
    }
    out.push_str(&statement[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_replaced() {
        for (statement, shown) in [
            (
                "CREATE ROLE a WITH PASSWORD = 'se''cret' AND LOGIN = true",
                "CREATE ROLE a WITH PASSWORD = '*******' AND LOGIN = true",
            ),
            (
                "alter role a with login = true and hashed password = '$2a$10$x';",
                "alter role a with login = true and hashed password = '*******';",
            ),
            ("CREATE USER a WITH PASSWORD $$secret$$ SUPERUSER", "CREATE USER a WITH PASSWORD '*******' SUPERUSER"),
            (
                "ALTER USER 'password' WITH /* it */ PASSWORD 'secret'",
                "ALTER USER 'password' WITH /* it */ PASSWORD '*******'",
            ),
            (
                "CREATE ROLE a WITH OPTIONS = {'password': 'shown'}",
                "CREATE ROLE a WITH OPTIONS = {'password': 'shown'}",
            ),
        ] {
            assert_eq!(obfuscate(statement), shown);
        }
    }

    /// Nobody knows where the password of a text stands that is no CQL.
    #[test]
    fn what_does_not_parse_is_cut() {
        for (statement, shown) in [
            ("CREATE ROLE a WITH PASSWORD 'secret'", "CREATE ROLE *******"),
            ("CREATE ROLE a WITH PASWORD = 'secret'", "CREATE ROLE *******"),
            ("CREATE ROLE a WITH PASSWORD = 'secret", "CREATE ROLE *******"),
            ("creat role a with Password = 'secret'", "creat role a with Password *******"),
            ("EXPLAIN CREATE ROLE a WITH PASSWORD = 'secret'", "EXPLAIN CREATE ROLE a WITH PASSWORD *******"),
            ("SELECT 1; ALTER ROLE ä WITH PASSWORD = 'ß'", "SELECT 1; ALTER ROLE ä WITH PASSWORD *******"),
        ] {
            assert_eq!(obfuscate(statement), shown);
            assert!(!obfuscate_syntax_error(statement, "near 'secret'").contains("'secret'"));
        }
    }

    #[test]
    fn other_statements_stay_as_they_are() {
        for statement in ["SELECT password FROM users WHERE name = 'a'", "SELECT 1 FROM", "CREATE ROLE a", ""] {
            let shown = obfuscate(statement);
            assert_eq!(shown, statement);
        }
        assert_eq!(obfuscate_syntax_error("SELECT 1 FROM", "near FROM"), "near FROM");
    }
}
