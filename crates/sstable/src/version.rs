//! Versions and formats of SSTables: everything in which they differ, as named facts, in this one place.
//!
//! | version | format | since |
//! |---|---|---|
//! | `mc`, `md`, `me` | big | 3.0.8, 3.0.18, 3.0.25 |
//! | `nb` | big | 4.0; what 5.0 writes as shipped |
//! | `oa` | big | 5.0 |
//! | `da` | bti | 5.0 |
//!
//! Agrees with `org.apache.cassandra.io.sstable.format.{big.BigFormat,bti.BtiFormat}.*Version`.

use std::fmt;

/// What an SSTable's indexes are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Format {
    /// Index.db and Summary.db.
    Big,
    /// Partitions.db and Rows.db.
    Bti,
}

impl Format {
    /// As in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Big => "big",
            Self::Bti => "bti",
        }
    }

    /// From a file name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "big" => Some(Self::Big),
            "bti" => Some(Self::Bti),
            _ => None,
        }
    }
}

/// Two letters that say how the components are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub [u8; 2]);

impl Version {
    /// The BTI version of 5.0.
    pub const DA: Self = Self(*b"da");
    /// The big version of 5.0.
    pub const OA: Self = Self(*b"oa");
    /// The big version of 4.0 and of 5.0 in its compatible mode.
    pub const NB: Self = Self(*b"nb");
    /// What can be written.
    pub const WRITABLE: [Self; 3] = [Self::DA, Self::OA, Self::NB];

    /// From a file name.
    pub fn from_name(name: &str) -> Option<Self> {
        let letters: [u8; 2] = name.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_lowercase).then_some(Self(letters))
    }

    /// As in file names.
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("??")
    }

    /// The format it is a version of.
    pub fn format(&self) -> Format {
        // Cassandra: big versions begin with the letters up to `o`, BTI versions with `d`
        if self.0[0] == b'd' { Format::Bti } else { Format::Big }
    }

    /// This build reads it.
    pub fn is_readable(&self) -> bool {
        matches!(*self, Self::DA | Self::OA | Self::NB)
    }

    /// Local deletion times are unsigned 32-bit seconds, deletion times have their short live form, the tombstone histogram its
    /// integer form. Before: signed, twelve bytes, doubles.
    pub fn has_unsigned_deletion_times(&self) -> bool {
        *self >= Self::OA || *self == Self::DA
    }

    /// Statistics hold the covered clustering as a slice with types. Before: two lists of values.
    pub fn has_covered_slice(&self) -> bool {
        self.has_unsigned_deletion_times()
    }

    /// Statistics say whether there are partition deletions, and hold first and last key and token space coverage.
    pub fn has_key_range(&self) -> bool {
        self.has_unsigned_deletion_times()
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
