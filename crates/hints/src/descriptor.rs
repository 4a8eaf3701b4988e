//! The head of a hint file, and its name.
//!
//! ```text
//! i32 version | i64 milliseconds since 1970 | 16 bytes host id | i32 length of the parameters
//! u32 CRC-32 over: version, then the low and the high half of the milliseconds, of the host id's
//!     first and of its last eight bytes (each half big-endian), then the length
//! parameters: JSON, {} where nothing is said
//! u32 the same CRC-32 continued over the parameters
//! ```
//!
//! The name is `<host id>-<milliseconds>-<version>.hints`; the file is accompanied by `….crc32`
//! when no more is written to it: the CRC-32 of all of its bytes, as lower-case hexadecimal text.
//! `org.apache.cassandra.hints.HintsDescriptor`.

use std::fmt;

use stdx::{Cursor, put_i64, put_u32};

use crate::blocks::Compression;
use crate::error::HintError;

/// The id of the node that hints are for.
pub type HostId = [u8; 16];

/// Bytes before the parameters.
const FIXED_SIZE: usize = 4 + 8 + 16 + 4 + 4;
/// Most bytes of parameters; longer ones are taken for damage. Cassandra's name a class and some
/// numbers.
const PARAMETERS_SIZE_MAX: usize = 64 << 10;
/// Most bytes of a head: so many bytes of a file are enough to read its descriptor.
pub const HEAD_SIZE_MAX: usize = FIXED_SIZE + PARAMETERS_SIZE_MAX + 4;

/// The version of a file: which messaging version its mutations are written in. The bytes of hints
/// are the same in all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// 1: messaging version 10 (Cassandra 3). Such files are read, and not written.
    V1,
    /// 2: messaging version 12 (`storage_compatibility_mode: CASSANDRA_4`).
    V2,
    /// 3: messaging version 13.
    V3,
}

impl Version {
    /// The number in the head and in the name.
    pub fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        [Self::V1, Self::V2, Self::V3].into_iter().find(|version| version.number() == number)
    }
}

/// The head of a file, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// The node that the hints are for.
    pub host_id: HostId,
    /// When the file was begun, milliseconds since 1970. It identifies the file among those of its
    /// host.
    pub millis: i64,
    /// The version of the file.
    pub version: Version,
    /// How the content is compressed; None: it is not.
    pub compression: Option<Compression>,
}

impl Descriptor {
    /// The name without an extension.
    fn stem(&self) -> String {
        format!("{}-{}-{}", HostText(&self.host_id), self.millis, self.version.number())
    }

    /// The name of the file.
    pub fn file_name(&self) -> String {
        self.stem() + ".hints"
    }

    /// The name of the file beside it that holds its checksum.
    pub fn checksum_name(&self) -> String {
        self.stem() + ".crc32"
    }

    /// Appends the head.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let parameters = self.compression.as_ref().map_or_else(|| b"{}".to_vec(), Compression::parameters);
        let length = u32::try_from(parameters.len()).expect("a class and some numbers are short");
        let mut crc = checksum(self.version.number(), self.millis, &self.host_id, length);
        put_u32(out, self.version.number());
        put_i64(out, self.millis);
        out.extend_from_slice(&self.host_id);
        put_u32(out, length);
        put_u32(out, crc.clone().finalize());
        out.extend_from_slice(&parameters);
        crc.update(&parameters);
        put_u32(out, crc.finalize());
        let is_same = |(read, size): (Self, usize)| read == *self && size == out.len() - start;
        assert!(Self::decode(&out[start..]).is_ok_and(is_same), "the head of a file is read as it is written");
    }

    /// The descriptor at the start of a file's bytes, and the length of its head.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), HintError> {
        let mut cursor = Cursor::new(bytes);
        let (version, millis) = (cursor.u32()?, cursor.i64()?);
        let host_id = *cursor.take(16)?.first_chunk().expect("so many bytes were taken");
        let length = cursor.u32()?;
        let mut crc = checksum(version, millis, &host_id, length);
        if cursor.u32()? != crc.clone().finalize() {
            return Err(HintError::Checksum("the head"));
        }
        if length as usize > PARAMETERS_SIZE_MAX {
            return Err(HintError::Unread(format!("a file with {length} bytes of parameters")));
        }
        let parameters = cursor.take(length as usize)?;
        crc.update(parameters);
        if cursor.u32()? != crc.finalize() {
            return Err(HintError::Checksum("the parameters"));
        }
        let version = Version::from_number(version);
        let version = version.ok_or_else(|| HintError::Unread("a file of another version than 1 to 3".to_owned()))?;
        let compression = Compression::of_parameters(parameters).map_err(HintError::Unread)?;
        Ok((Self { host_id, millis, version, compression }, cursor.position()))
    }

    /// Whether a name is that of a hint file.
    pub fn is_file_name(name: &str) -> bool {
        let Some((host, rest)) = name.strip_suffix(".hints").and_then(|stem| stem.split_at_checked(36)) else {
            return false;
        };
        let is_host = host.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_host
            && rest
                .strip_prefix('-')
                .and_then(|rest| rest.split_once('-'))
                .is_some_and(|(millis, version)| is_number(millis) && is_number(version))
    }
}

/// The checksum of the head up to the parameters, to be continued over them.
fn checksum(version: u32, millis: i64, host_id: &HostId, length: u32) -> crc32fast::Hasher {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&version.to_be_bytes());
    let (first, last) = host_id.split_at(8);
    for long in [&millis.to_be_bytes()[..], first, last] {
        let (high, low) = long.split_at(4);
        crc.update(low);
        crc.update(high);
    }
    crc.update(&length.to_be_bytes());
    crc
}

/// A host id in the form of a UUID's text.
pub struct HostText<'a>(pub &'a HostId);

impl fmt::Display for HostText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if [4, 6, 8, 10].contains(&index) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
