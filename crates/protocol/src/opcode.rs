//! The opcodes, and which of them a client may send.
//!
//! Native protocol specification §2.4; `org.apache.cassandra.transport.Message.Type`.

use std::fmt;

use crate::decode_error::DecodeError;

/// The opcode: the kind of message that a body holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the specification's
pub enum Opcode {
    Error = 0x00,
    Startup = 0x01,
    Ready = 0x02,
    Authenticate = 0x03,
    Options = 0x05,
    Supported = 0x06,
    Query = 0x07,
    Result = 0x08,
    Prepare = 0x09,
    Execute = 0x0A,
    Register = 0x0B,
    Event = 0x0C,
    Batch = 0x0D,
    AuthChallenge = 0x0E,
    AuthResponse = 0x0F,
    AuthSuccess = 0x10,
}

const ALL: [(Opcode, &str); 16] = [
    (Opcode::Error, "ERROR"),
    (Opcode::Startup, "STARTUP"),
    (Opcode::Ready, "READY"),
    (Opcode::Authenticate, "AUTHENTICATE"),
    (Opcode::Options, "OPTIONS"),
    (Opcode::Supported, "SUPPORTED"),
    (Opcode::Query, "QUERY"),
    (Opcode::Result, "RESULT"),
    (Opcode::Prepare, "PREPARE"),
    (Opcode::Execute, "EXECUTE"),
    (Opcode::Register, "REGISTER"),
    (Opcode::Event, "EVENT"),
    (Opcode::Batch, "BATCH"),
    (Opcode::AuthChallenge, "AUTH_CHALLENGE"),
    (Opcode::AuthResponse, "AUTH_RESPONSE"),
    (Opcode::AuthSuccess, "AUTH_SUCCESS"),
];

impl Opcode {
    /// Reads the opcode of a request; opcodes of responses and unknown ones are refused.
    pub fn request(code: u8) -> Result<Self, DecodeError> {
        match ALL.iter().find(|(opcode, _)| *opcode as u8 == code) {
            Some((opcode, _)) if opcode.is_request() => Ok(*opcode),
            Some(_) => Err(DecodeError::Direction(code)),
            None => Err(DecodeError::Opcode(code)),
        }
    }

    fn is_request(self) -> bool {
        matches!(
            self,
            Self::Startup
                | Self::Options
                | Self::Query
                | Self::Prepare
                | Self::Execute
                | Self::Register
                | Self::Batch
                | Self::AuthResponse
        )
    }

    /// The name that error texts use.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(opcode, _)| *opcode == self).expect("every opcode is listed").1
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_are_accepted() {
        let accepted: Vec<u8> = (0..=255).filter(|code| Opcode::request(*code).is_ok()).collect();
        assert_eq!(accepted, [0x01, 0x05, 0x07, 0x09, 0x0A, 0x0B, 0x0D, 0x0F]);
        assert_eq!(Opcode::request(4), Err(DecodeError::Opcode(4)));
        assert_eq!(Opcode::request(8), Err(DecodeError::Direction(8)));
    }
}
