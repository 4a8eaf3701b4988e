//! Versions and formats of SSTables: everything in which they differ, as named facts, in this one
//! place.
//!
//! | version | format | since |
//! |---|---|---|
//! | `ma`, `mb`, `mc`, `md`, `me` | big | 3.0.0, 3.0.7, 3.0.8, 3.0.18, 3.0.25 |
//! | `na`, `nb` | big | 4.0; `nb` is what 5.0 writes as shipped |
//! | `oa` | big | 5.0 |
//! | `da` | bti | 5.0 |
//!
//! Agrees with `org.apache.cassandra.io.sstable.format.{big.BigFormat,bti.BtiFormat}.*Version`.

use std::fmt;

use rows::codec::DeletionTimeForm;

/// The kind of an SSTable's indexes.
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
    const NA: Self = Self(*b"na");
    const ME: Self = Self(*b"me");
    const MD: Self = Self(*b"md");
    const MC: Self = Self(*b"mc");
    const MB: Self = Self(*b"mb");
    /// The first big version that is read: that of 3.0.
    pub const MA: Self = Self(*b"ma");
    /// The versions that can be written.
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

    /// This build reads it. Letters beyond those known are those of a later release of the same
    /// format.
    pub fn is_readable(&self) -> bool {
        *self == Self::DA || (Self::MA..=Self::OA).contains(self)
    }

    /// This build writes it.
    pub fn is_writable(&self) -> bool {
        Self::WRITABLE.contains(self)
    }

    /// Bytes of rows that make a row index block, where cassandra.yaml says nothing else: measured,
    /// docs/notes/0010. Cassandra's is 16 KiB for BTI; for big it is this, and stays so because
    /// Cassandra holds the list in memory.
    pub fn row_index_block_default(&self) -> usize {
        match self.format() {
            Format::Big => 64 * 1024,
            Format::Bti => 4 * 1024,
        }
    }

    fn since(&self, big: Self) -> bool {
        self.format() == Format::Bti || *self >= big
    }

    /// Local deletion times are unsigned 32-bit seconds, deletion times have their short live form,
    /// the tombstone histogram its integer form. Before: signed, twelve bytes, doubles.
    pub fn has_unsigned_deletion_times(&self) -> bool {
        self.since(Self::OA)
    }

    /// How deletion times of partitions and open ranges are written.
    pub fn deletion_times(&self) -> DeletionTimeForm {
        if self.has_unsigned_deletion_times() { DeletionTimeForm::Unsigned } else { DeletionTimeForm::Signed }
    }

    /// Statistics hold the covered clustering as a slice with types. Before: two lists of values.
    pub fn has_covered_slice(&self) -> bool {
        self.since(Self::OA)
    }

    /// The two lists are right. Before `md` they could leave out what range tombstones cover: they
    /// say nothing.
    pub fn has_accurate_covered_values(&self) -> bool {
        self.since(Self::MD)
    }

    /// Statistics say whether there are partition deletions, and hold first and last key and token
    /// space coverage.
    pub fn has_key_range(&self) -> bool {
        self.since(Self::OA)
    }

    /// Statistics.db carries checksums, and says of repair sessions and transient replication.
    pub fn has_repair_sessions_and_checksums(&self) -> bool {
        self.since(Self::NA)
    }

    /// Statistics name the host that flushed. Not in `na`, which is older than `me`.
    pub fn has_originating_host(&self) -> bool {
        self.since(Self::NB) || *self == Self::ME
    }

    /// Statistics hold the lower commit log position.
    pub fn has_commit_log_lower_bound(&self) -> bool {
        self.since(Self::MB)
    }

    /// Statistics hold commit log intervals. Before: one, from the lower position to the upper.
    pub fn has_commit_log_intervals(&self) -> bool {
        self.since(Self::MC)
    }

    /// CompressionInfo.db says from which length on chunks are stored as they are. Before: never.
    pub fn has_compressed_length_max(&self) -> bool {
        self.since(Self::NA)
    }

    /// The words of Filter.db are written as big-endian numbers. Since `na`: as bytes in the order
    /// of their bits.
    pub fn has_swapped_filter_words(&self) -> bool {
        !self.since(Self::NA)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_with_their_version() {
        let version = |name: &str| Version::from_name(name).unwrap();
        for (name, readable) in [
            ("la", false),
            ("ma", true),
            ("md", true),
            ("na", true),
            ("nb", true),
            ("oa", true),
            ("ob", false),
            ("da", true),
            ("db", false),
        ] {
            assert_eq!(version(name).is_readable(), readable, "{name}");
        }
        let hosts: Vec<_> = ["mc", "md", "me", "na", "nb", "oa", "da"]
            .into_iter()
            .filter(|name| version(name).has_originating_host())
            .collect();
        assert_eq!(hosts, ["me", "nb", "oa", "da"]);
        assert!(version("me").has_swapped_filter_words() && !version("da").has_swapped_filter_words());
        assert_eq!(Version::DA.deletion_times(), DeletionTimeForm::Unsigned);
        assert_eq!(Version::NB.deletion_times(), DeletionTimeForm::Signed);
    }
}
