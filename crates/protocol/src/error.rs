//! ERROR: the codes with their texts and bodies, and the form that older versions get.
//!
//! An [`ErrorMessage`] is made without knowledge of the client's version. [`ErrorMessage::encode`]
//! turns a code that a version does not know into its nearest older form, as Cassandra does. Native
//! protocol specification §9; `ErrorMessage.java`, `ExceptionCode.java`.

use bytes::{BufMut, Bytes, BytesMut};
use types::{Consistency, ReplicaFailure, WriteKind};

use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::{put_inet_address, put_short_bytes, put_string, put_string_list};

/// An error as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// The text.
    pub message: String,
    /// The code and the values that belong to it. In a box, so that results that may be an error
    /// stay small.
    pub kind: Box<ErrorKind>,
}

/// The code of an error with the content of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // fields are named as in the specification
pub enum ErrorKind {
    Server,
    Protocol,
    BadCredentials,
    Unavailable {
        consistency: Consistency,
        required: i32,
        alive: i32,
    },
    Overloaded,
    IsBootstrapping,
    Truncate,
    WriteTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_type: WriteKind,
        /// Number of contentions on the ballot; Some for [`WriteKind::Cas`] only.
        contentions: Option<u16>,
    },
    ReadTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        data_present: bool,
    },
    ReadFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<ReplicaFailure>,
        data_present: bool,
    },
    FunctionFailure {
        keyspace: String,
        function: String,
        argument_types: Vec<String>,
    },
    WriteFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<ReplicaFailure>,
        write_type: WriteKind,
    },
    CdcWriteFailure,
    CasWriteUnknown {
        consistency: Consistency,
        received: i32,
        block_for: i32,
    },
    Syntax,
    Unauthorized,
    Invalid,
    Config,
    /// `table` is empty if it is the keyspace that exists.
    AlreadyExists {
        keyspace: String,
        table: String,
    },
    Unprepared {
        id: Bytes,
    },
}

impl ErrorKind {
    /// The code on the wire.
    pub fn code(&self) -> i32 {
        match self {
            Self::Server => 0x0000,
            Self::Protocol => 0x000A,
            Self::BadCredentials => 0x0100,
            Self::Unavailable { .. } => 0x1000,
            Self::Overloaded => 0x1001,
            Self::IsBootstrapping => 0x1002,
            Self::Truncate => 0x1003,
            Self::WriteTimeout { .. } => 0x1100,
            Self::ReadTimeout { .. } => 0x1200,
            Self::ReadFailure { .. } => 0x1300,
            Self::FunctionFailure { .. } => 0x1400,
            Self::WriteFailure { .. } => 0x1500,
            Self::CdcWriteFailure => 0x1600,
            Self::CasWriteUnknown { .. } => 0x1700,
            Self::Syntax => 0x2000,
            Self::Unauthorized => 0x2100,
            Self::Invalid => 0x2200,
            Self::Config => 0x2300,
            Self::AlreadyExists { .. } => 0x2400,
            Self::Unprepared { .. } => 0x2500,
        }
    }
}

impl ErrorMessage {
    /// An error of this kind with its text.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: Box::new(kind) }
    }

    /// The error for a request that makes no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The error for a statement that is not CQL.
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Syntax, message)
    }

    /// The error for a violation of the protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    /// The error for a failure of the server itself.
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Server, message)
    }

    /// The error for a request that the server is too busy for.
    pub fn overloaded(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Overloaded, message)
    }

    /// The error for a prepared statement that is not known here; drivers then prepare it again.
    /// The text is Cassandra's.
    pub fn unprepared(id: Bytes) -> Self {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let message = format!(
            "Prepared query with ID {hex} not found (either the query was not prepared on this host (maybe the host has been restarted?) \
             or you have prepared too many queries and it has been evicted from the internal cache)"
        );
        Self::new(ErrorKind::Unprepared { id }, message)
    }

    /// Appends the body of ERROR in the form of this version.
    pub fn encode(&self, out: &mut BytesMut, version: ProtocolVersion) {
        match self.older_form(version) {
            Some(older) => older.encode_exactly(out, version),
            None => self.encode_exactly(out, version),
        }
    }

    fn encode_exactly(&self, out: &mut BytesMut, version: ProtocolVersion) {
        out.put_i32(self.kind.code());
        put_string(out, &self.message);
        self.kind.encode_body(out, version);
    }

    /// The replacement for a version that does not know the code. None: it knows the code.
    fn older_form(&self, version: ProtocolVersion) -> Option<Self> {
        let v3 = version < ProtocolVersion::V4;
        let below_v5 = version < ProtocolVersion::V5;
        let timed_out = |received: i32| format!("Operation timed out - received only {received} responses.");
        match &*self.kind {
            ErrorKind::ReadFailure { consistency, received, block_for, data_present, .. } if v3 => {
                let (consistency, received, block_for, data_present) =
                    (*consistency, *received, *block_for, *data_present);
                let kind = ErrorKind::ReadTimeout { consistency, received, block_for, data_present };
                Some(Self::new(kind, timed_out(received)))
            }
            ErrorKind::WriteFailure { consistency, received, block_for, write_type, .. } if v3 => {
                Some(write_timeout(*consistency, *received, *block_for, *write_type, timed_out(*received)))
            }
            ErrorKind::WriteTimeout { consistency, received, block_for, contentions: Some(_), .. }
            | ErrorKind::CasWriteUnknown { consistency, received, block_for }
                if below_v5 =>
            {
                Some(write_timeout(*consistency, *received, *block_for, WriteKind::Cas, timed_out(*received)))
            }
            ErrorKind::FunctionFailure { .. } if v3 => Some(self.as_invalid("FUNCTION_FAILURE")),
            ErrorKind::CdcWriteFailure if v3 => Some(self.as_invalid("CDC_WRITE_FAILURE")),
            _ => None,
        }
    }

    /// The error as an invalid request, whose text has the name of the code that it had.
    fn as_invalid(&self, code: &str) -> Self {
        Self::invalid(format!("ERROR {code}: {}", self.message))
    }
}

fn write_timeout(
    consistency: Consistency,
    received: i32,
    block_for: i32,
    write_type: WriteKind,
    message: String,
) -> ErrorMessage {
    let kind = ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions: None };
    ErrorMessage::new(kind, message)
}

impl From<DecodeError> for ErrorMessage {
    fn from(error: DecodeError) -> Self {
        Self::protocol(error.to_string())
    }
}

impl std::fmt::Display for ErrorMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#06x}: {}", self.kind.code(), self.message)
    }
}

impl std::error::Error for ErrorMessage {}

impl ErrorKind {
    fn encode_body(&self, out: &mut BytesMut, version: ProtocolVersion) {
        match self {
            Self::Unavailable { consistency, required, alive } => put_counts(out, *consistency, *required, *alive),
            Self::WriteTimeout { consistency, received, block_for, write_type, contentions } => {
                put_counts(out, *consistency, *received, *block_for);
                put_string(out, write_type.name());
                if version >= ProtocolVersion::V5 && *write_type == WriteKind::Cas {
                    out.put_u16(contentions.unwrap_or(0));
                }
            }
            Self::ReadTimeout { consistency, received, block_for, data_present } => {
                put_counts(out, *consistency, *received, *block_for);
                out.put_u8(u8::from(*data_present));
            }
            Self::ReadFailure { consistency, received, block_for, failures, data_present } => {
                put_counts(out, *consistency, *received, *block_for);
                put_failures(out, failures, version);
                out.put_u8(u8::from(*data_present));
            }
            Self::WriteFailure { consistency, received, block_for, failures, write_type } => {
                put_counts(out, *consistency, *received, *block_for);
                put_failures(out, failures, version);
                put_string(out, write_type.name());
            }
            Self::FunctionFailure { keyspace, function, argument_types } => {
                put_string(out, keyspace);
                put_string(out, function);
                put_string_list(out, argument_types);
            }
            Self::CasWriteUnknown { consistency, received, block_for } => {
                put_counts(out, *consistency, *received, *block_for);
            }
            Self::AlreadyExists { keyspace, table } => {
                put_string(out, keyspace);
                put_string(out, table);
            }
            Self::Unprepared { id } => put_short_bytes(out, id),
            Self::Server
            | Self::Protocol
            | Self::BadCredentials
            | Self::Overloaded
            | Self::IsBootstrapping
            | Self::Truncate
            | Self::CdcWriteFailure
            | Self::Syntax
            | Self::Unauthorized
            | Self::Invalid
            | Self::Config => {}
        }
    }
}

fn put_counts(out: &mut BytesMut, consistency: Consistency, first: i32, second: i32) {
    out.put_u16(consistency.code());
    out.put_i32(first);
    out.put_i32(second);
}

/// Appends the number of failures and, from version 5 on, each of them with its reason.
fn put_failures(out: &mut BytesMut, failures: &[ReplicaFailure], version: ProtocolVersion) {
    out.put_i32(i32::try_from(failures.len()).expect("fewer replicas than that"));
    if version >= ProtocolVersion::V5 {
        for failure in failures {
            put_inet_address(out, failure.endpoint.ip());
            out.put_u16(failure.reason.code());
        }
    }
}

#[cfg(test)]
mod tests;
