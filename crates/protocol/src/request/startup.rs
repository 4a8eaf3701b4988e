//! STARTUP: the options of a client and its connection.
//!
//! Keys are compared in upper case. Unknown options are kept for `system_views.clients` and
//! otherwise ignored.

use crate::decode_error::DecodeError;
use crate::wire::{Reader, Text};

/// A STARTUP.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Startup {
    /// The options in the order of the wire: key in upper case, value.
    pub options: Vec<(String, Text)>,
}

impl Startup {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let map = reader.string_map("the options of STARTUP")?;
        Ok(Self { options: map.into_iter().map(|(key, value)| (key.to_uppercase(), value)).collect() })
    }

    /// The value of an option; if it is repeated, the last one.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Checks `CQL_VERSION`, which is mandatory: it is refused if missing or below 3.0.0. The texts
    /// are Cassandra's.
    pub fn check_cql_version(&self) -> Result<(), String> {
        let Some(version) = self.option("CQL_VERSION") else {
            return Err("Missing value CQL_VERSION in STARTUP message".to_owned());
        };
        let mut parts = version.split(['.', '-']);
        let major = parts.next().and_then(|part| part.parse::<u32>().ok());
        match major {
            Some(major) if major >= 3 => Ok(()),
            Some(_) => Err(format!(
                "CQL version {version} is not supported by the binary protocol (supported version are >= 3.0.0)"
            )),
            None => Err(format!("Invalid version value: {version}")),
        }
    }
}
