//! Messages between clients and replicas: requests and answers of 25 bytes.

/// A value with a stamp; of two values the one with the greater stamp is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamped {
    /// A number that grows with each write; its last byte is the number of the writer.
    pub stamp: u64,
    /// The value; None: deleted, or never written.
    pub value: Option<u64>,
}

/// Bytes of a request or an answer.
pub(super) const SIZE: usize = 25;

/// A request; an answer has the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// True: store `stamped` if it is newer. False: only tell the stored value.
    pub is_store: bool,
    pub key: u64,
    pub stamped: Stamped,
}

/// The number on the wire that means no value.
const NOTHING: u64 = u64::MAX;

impl Message {
    pub fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0] = u8::from(self.is_store);
        bytes[1..9].copy_from_slice(&self.key.to_be_bytes());
        bytes[9..17].copy_from_slice(&self.stamped.stamp.to_be_bytes());
        bytes[17..25].copy_from_slice(&self.stamped.value.unwrap_or(NOTHING).to_be_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; SIZE]) -> Self {
        let number = |from: usize| {
            let eight = bytes.get(from..from + 8).and_then(|eight| eight.try_into().ok());
            u64::from_be_bytes(eight.expect("eight bytes within the message"))
        };
        let value = Some(number(17)).filter(|value| *value != NOTHING);
        Message { is_store: bytes[0] == 1, key: number(1), stamped: Stamped { stamp: number(9), value } }
    }
}
