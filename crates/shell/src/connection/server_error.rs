//! Errors of the server, in the words that cqlsh shows them with.
//!
//! Native protocol specification v5 §8. The names are those of the classes of the Python driver,
//! because scripts look for them in cqlsh's output.

use std::fmt;

use stdx::{Cursor, CursorError};
use types::Consistency;

/// A refusal or failure that the server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// The code of the protocol.
    pub code: i32,
    /// The server's message.
    pub message: String,
    /// Numbers that the protocol gives beside the message, as cqlsh shows them; empty: none.
    pub info: String,
}

/// How an error is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The class and the server's message.
    Plain,
    /// The class, the code with its name, the message.
    Full,
}

const UNAVAILABLE: i32 = 0x1000;
const WRITE_TIMEOUT: i32 = 0x1100;
const READ_TIMEOUT: i32 = 0x1200;
/// The login was refused.
pub const BAD_CREDENTIALS: i32 = 0x0100;
/// A message that the server does not understand, or a version that it does not speak.
pub const PROTOCOL: i32 = 0x000A;
const TIMED_OUT: &str = "Coordinator node timed out waiting for replica nodes' responses";

const KINDS: &[(i32, &str, &str, Form)] = &[
    (0x0000, "ServerError", "Server error", Form::Plain),
    (PROTOCOL, "ProtocolException", "Protocol error", Form::Plain),
    (BAD_CREDENTIALS, "AuthenticationFailed", "Bad credentials", Form::Full),
    (UNAVAILABLE, "Unavailable", "Unavailable exception", Form::Full),
    (0x1001, "OverloadedErrorMessage", "Coordinator node overloaded", Form::Plain),
    (0x1002, "IsBootstrappingErrorMessage", "Coordinator node is bootstrapping", Form::Plain),
    (0x1003, "TruncateError", "Error during truncate", Form::Plain),
    (WRITE_TIMEOUT, "WriteTimeout", TIMED_OUT, Form::Full),
    (READ_TIMEOUT, "ReadTimeout", TIMED_OUT, Form::Full),
    (0x1300, "ReadFailure", "Replica(s) failed to execute read", Form::Full),
    (0x1400, "FunctionFailure", "User Defined Function failure", Form::Full),
    (0x1500, "WriteFailure", "Replica(s) failed to execute write", Form::Full),
    (0x1600, "CDCWriteFailure", "Failed to write to CDC", Form::Full),
    (0x1700, "CASWriteUnknown", "Unknown result of a conditional write", Form::Full),
    (0x2000, "SyntaxException", "Syntax error in CQL query", Form::Plain),
    (0x2100, "Unauthorized", "Unauthorized", Form::Full),
    (0x2200, "InvalidRequest", "Invalid query", Form::Full),
    (0x2300, "ConfigurationException", "Query invalid because of configuration issue", Form::Plain),
    (0x2400, "AlreadyExists", "Item already exists", Form::Full),
    (0x2500, "PreparedQueryNotFound", "Matching prepared statement not found on this node", Form::Plain),
];

impl ServerError {
    /// Reads the body of an ERROR.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self, CursorError> {
        let code = cursor.i32()?;
        let message = String::from_utf8_lossy(cursor.short_bytes()?).into_owned();
        // the message stands even where the numbers behind it cannot be read
        let info = info(code, cursor).unwrap_or_default();
        match (code, info.split_once('\n')) {
            (0x2400, Some((keyspace, ""))) => {
                Ok(Self { code, message: format!("Keyspace '{keyspace}' already exists"), info: String::new() })
            }
            (0x2400, Some((keyspace, table))) => {
                Ok(Self { code, message: format!("Table '{keyspace}.{table}' already exists"), info: String::new() })
            }
            _ => Ok(Self { code, message, info }),
        }
    }

    /// Whether a later attempt may succeed: the replicas were late, too few or busy.
    pub fn is_passing(&self) -> bool {
        matches!(self.code, UNAVAILABLE | 0x1001 | 0x1002 | WRITE_TIMEOUT | READ_TIMEOUT | 0x1300 | 0x1500)
    }
}

fn info(code: i32, cursor: &mut Cursor<'_>) -> Result<String, CursorError> {
    let level = |cursor: &mut Cursor<'_>| {
        Ok(Consistency::from_code(cursor.u16()?).map_or("UNKNOWN", Consistency::name).to_owned())
    };
    Ok(match code {
        UNAVAILABLE => {
            let (level, required, alive) = (level(cursor)?, cursor.i32()?, cursor.i32()?);
            format!("{{'consistency': '{level}', 'required_replicas': {required}, 'alive_replicas': {alive}}}")
        }
        WRITE_TIMEOUT | READ_TIMEOUT | 0x1300 | 0x1500 => {
            let (level, received, required) = (level(cursor)?, cursor.i32()?, cursor.i32()?);
            format!("{{'consistency': '{level}', 'required_responses': {required}, 'received_responses': {received}}}")
        }
        0x2400 => {
            let keyspace = String::from_utf8_lossy(cursor.short_bytes()?).into_owned();
            format!("{keyspace}\n{}", String::from_utf8_lossy(cursor.short_bytes()?))
        }
        _ => String::new(),
    })
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = KINDS.iter().find(|kind| kind.0 == self.code);
        match kind {
            Some((_, "AlreadyExists", _, _)) => write!(f, "AlreadyExists: {}", self.message),
            Some((_, class, _, Form::Plain)) => write!(f, "{class}: {}", self.message),
            Some((code, class, name, Form::Full)) => {
                write!(f, "{class}: Error from server: code={code:04x} [{name}] message=\"{}\"", self.message)?;
                if self.info.is_empty() { Ok(()) } else { write!(f, " info={}", self.info) }
            }
            None => write!(f, "ErrorMessage: Error from server: code={:04x} message=\"{}\"", self.code, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_cqlsh() {
        let read = |bytes: &[u8]| ServerError::read(&mut Cursor::new(bytes)).unwrap().to_string();
        assert_eq!(
            read(b"\0\0\x22\0\0\x02no"),
            "InvalidRequest: Error from server: code=2200 [Invalid query] message=\"no\""
        );
        assert_eq!(read(b"\0\0\x24\0\0\x02no\0\x02ks\0\x01t"), "AlreadyExists: Table 'ks.t' already exists");
        assert_eq!(read(b"\0\0\x24\0\0\x02no\0\x02ks\0\0"), "AlreadyExists: Keyspace 'ks' already exists");
        let text = read(b"\0\0\x10\0\0\x02no\0\x04\0\0\0\x02\0\0\0\x01");
        assert!(
            text.ends_with("info={'consistency': 'QUORUM', 'required_replicas': 2, 'alive_replicas': 1}"),
            "{text}"
        );
        // the numbers are cut off: the message is shown all the same
        assert!(read(b"\0\0\x10\0\0\x02no\0").ends_with("message=\"no\""));
    }
}
