//! The id of a table: a UUID that names its directory and marks its records in the commit log.

use std::fmt;

use md5::{Digest, Md5};

/// The UUID of a table. It is written as 32 hex digits in directory names, with dashes elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub [u8; 16]);

impl TableId {
    /// The id of a built-in table: a version-3 UUID of keyspace and table name, as
    /// `TableId.unsafeDeterministic` of Cassandra computes it.
    pub fn of_system_table(keyspace: &str, table: &str) -> Self {
        let mut hash = Md5::new();
        hash.update(keyspace.as_bytes());
        hash.update(table.as_bytes());
        let mut bytes: [u8; 16] = hash.finalize().into();
        bytes[6] = (bytes[6] & 0x0f) | 0x30;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }

    /// 32 hex digits without dashes: the form in directory names.
    pub fn to_hex(self) -> String {
        let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        debug_assert!(Self::from_hex(&hex) == Some(self), "an id is read as it was written");
        hex
    }

    /// Reads 32 hex digits. None: the text has another form.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        // a number may have a sign, an id may not
        if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut bytes = [0u8; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.to_hex();
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_tables_have_the_ids_of_cassandra() {
        let cases = [
            ("system", "local", "7ad54392bcdd35a684174e047860b377"),
            ("system_schema", "tables", "afddfb9dbc1e30688056eed6c302ba09"),
        ];
        for (keyspace, table, id) in cases {
            assert_eq!(TableId::of_system_table(keyspace, table).to_hex(), id);
            assert_eq!(TableId::from_hex(id), Some(TableId::of_system_table(keyspace, table)));
        }
    }

    #[test]
    fn what_is_not_32_digits_is_no_id() {
        let id = "7ad54392bcdd35a684174e047860b377";
        for wrong in [&id[1..], &id.replace("7a", "+a"), &id.replace("7a", "-0"), &id.replace("7a", "gg"), ""] {
            assert_eq!(TableId::from_hex(wrong), None, "{wrong}");
        }
    }
}
