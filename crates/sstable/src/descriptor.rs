//! Names of SSTable files: `<version>-<id>-<format>-<Component>`, e.g.
//! `da-3h5p_0mqw_15d741y94v06x3ppet-bti-Data.db`.
//!
//! An id is a sequence number of its table, or a time-UUID in base 36: days since 1582-10-15,
//! second of the day, 100 ns of the second, low 64 bits, as `dddd_ssss_nnnnnnnnnnnnnnnnnn`. Order:
//! sequence ids by number, before UUIDs by time. Agrees with
//! `org.apache.cassandra.io.sstable.{Descriptor,Component}` and
//! `…{SequenceBasedSSTableId,UUIDBasedSSTableId}`.

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::version::{Format, Version};

const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// Names an SSTable among those of its table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SSTableId {
    /// `uuid_sstable_identifiers_enabled: false`.
    Sequence(u64),
    /// A version-1 UUID.
    Uuid([u8; 16]),
}

impl SSTableId {
    fn uuid_parts(uuid: &[u8; 16]) -> (u64, u64) {
        let high = u64::from_be_bytes([uuid[6] & 0x0f, uuid[7], uuid[4], uuid[5], uuid[0], uuid[1], uuid[2], uuid[3]]);
        let mut low = [0; 8];
        low.copy_from_slice(&uuid[8..]);
        (high, u64::from_be_bytes(low))
    }

    fn from_parts(ticks: u64, low: u64) -> Self {
        let time = ticks.to_be_bytes();
        let mut uuid =
            [time[4], time[5], time[6], time[7], time[2], time[3], time[0] | 0x10, time[1], 0, 0, 0, 0, 0, 0, 0, 0];
        uuid[8..].copy_from_slice(&low.to_be_bytes());
        Self::Uuid(uuid)
    }
}

impl PartialOrd for SSTableId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SSTableId {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Sequence(a), Self::Sequence(b)) => a.cmp(b),
            (Self::Sequence(_), Self::Uuid(_)) => Ordering::Less,
            (Self::Uuid(_), Self::Sequence(_)) => Ordering::Greater,
            (Self::Uuid(a), Self::Uuid(b)) => Self::uuid_parts(a).cmp(&Self::uuid_parts(b)),
        }
    }
}

/// `width` digits of base 36, which the number fits.
fn base36(mut value: u64, width: usize) -> String {
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
        value /= 36;
    }
    debug_assert_eq!(value, 0, "a part of an id has room in its digits");
    digits.into_iter().map(char::from).collect()
}

impl fmt::Display for SSTableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequence(number) => write!(f, "{number}"),
            Self::Uuid(uuid) => {
                let (ticks, low) = Self::uuid_parts(uuid);
                let seconds = ticks / TICKS_PER_SECOND;
                write!(
                    f,
                    "{}_{}_{}{}",
                    base36(seconds / SECONDS_PER_DAY, 4),
                    base36(seconds % SECONDS_PER_DAY, 4),
                    base36(ticks % TICKS_PER_SECOND, 5),
                    base36(low, 13)
                )
            }
        }
    }
}

/// A name that is not that of an SSTable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAnSSTable;

impl FromStr for SSTableId {
    type Err = NotAnSSTable;

    fn from_str(text: &str) -> Result<Self, NotAnSSTable> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Self::Sequence).map_err(|_| NotAnSSTable);
        }
        let bytes = text.as_bytes();
        if bytes.len() != 28 || !text.is_ascii() || bytes[4] != b'_' || bytes[9] != b'_' {
            return Err(NotAnSSTable);
        }
        if !bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'_')) {
            return Err(NotAnSSTable);
        }
        let number = |from: usize, to: usize| u64::from_str_radix(&text[from..to], 36).map_err(|_| NotAnSSTable);
        let (days, second, ticks, low) = (number(0, 4)?, number(5, 9)?, number(10, 15)?, number(15, 28)?);
        if second >= SECONDS_PER_DAY || ticks >= TICKS_PER_SECOND {
            return Err(NotAnSSTable);
        }
        let ticks = (days * SECONDS_PER_DAY + second) * TICKS_PER_SECOND + ticks;
        if ticks >> 60 != 0 { Err(NotAnSSTable) } else { Ok(Self::from_parts(ticks, low)) }
    }
}

/// A file of an SSTable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Component {
    /// Checksums of uncompressed data.
    Crc,
    /// Where the chunks of compressed data are.
    CompressionInfo,
    /// The rows.
    Data,
    /// Checksum of the whole Data.db.
    Digest,
    /// The Bloom filter.
    Filter,
    /// Big: the partition index.
    Index,
    /// BTI: the partition index.
    Partitions,
    /// BTI: the row index.
    Rows,
    /// Statistics of the content.
    Statistics,
    /// Big: samples of Index.db.
    Summary,
    /// The list of components.
    Toc,
}

impl Component {
    /// All there are, in the order of their names.
    pub const ALL: [Self; 11] = [
        Self::Crc,
        Self::CompressionInfo,
        Self::Data,
        Self::Digest,
        Self::Filter,
        Self::Index,
        Self::Partitions,
        Self::Rows,
        Self::Statistics,
        Self::Summary,
        Self::Toc,
    ];

    /// As in file names and TOC.txt.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc => "CRC.db",
            Self::CompressionInfo => "CompressionInfo.db",
            Self::Data => "Data.db",
            Self::Digest => "Digest.crc32",
            Self::Filter => "Filter.db",
            Self::Index => "Index.db",
            Self::Partitions => "Partitions.db",
            Self::Rows => "Rows.db",
            Self::Statistics => "Statistics.db",
            Self::Summary => "Summary.db",
            Self::Toc => "TOC.txt",
        }
    }

    /// From a file name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.name() == name)
    }
}

// the components are listed in their order
const _: () = {
    let mut at = 0;
    while at < Component::ALL.len() {
        assert!(Component::ALL[at] as usize == at);
        at += 1;
    }
};

/// An SSTable by its place and name. The id alone does not identify an SSTable: a table with
/// several data directories may have files of one id in two of them, for instance after files were
/// copied. The id stands first because it decides nearly every comparison; the order is by id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Descriptor {
    /// Id.
    pub id: SSTableId,
    /// The table's directory.
    pub directory: PathBuf,
    /// Version.
    pub version: Version,
    /// Format.
    pub format: Format,
}

impl Descriptor {
    /// The descriptor of an SSTable of a version.
    pub fn new(directory: &Path, version: Version, id: SSTableId) -> Self {
        Self { directory: directory.to_owned(), version, id, format: version.format() }
    }

    /// The common beginning of the SSTable's file names, without the dash before the component.
    pub fn prefix(&self) -> String {
        format!("{}-{}-{}", self.version.name(), self.id, self.format.name())
    }

    /// The name of a component's file.
    pub fn file_name(&self, component: Component) -> String {
        format!("{}-{}", self.prefix(), component.name())
    }

    /// The path of a component's file.
    pub fn path(&self, component: Component) -> PathBuf {
        self.directory.join(self.file_name(component))
    }

    /// Reads a file name. The component is None for those not known (SAI and other indexes).
    pub fn parse(directory: &Path, file_name: &str) -> Option<(Self, Option<Component>)> {
        let mut parts = file_name.splitn(4, '-');
        let version = Version::from_name(parts.next()?)?;
        let id = parts.next()?.parse().ok()?;
        let format = Format::from_name(parts.next()?)?;
        let component = Component::from_name(parts.next()?);
        Some((Self { directory: directory.to_owned(), version, id, format }, component))
    }
}

/// The content of TOC.txt.
pub fn print_toc(components: &[Component]) -> String {
    let mut names: Vec<_> = components.iter().map(|component| component.name()).collect();
    names.sort_unstable();
    names.into_iter().flat_map(|name| [name, "\n"]).collect()
}

/// Reads TOC.txt; names that are not known are left out.
pub fn parse_toc(text: &str) -> Vec<Component> {
    text.lines().filter_map(|line| Component::from_name(line.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        let directory = Path::new("data/ks/table-1");
        for name in [
            "da-1-bti-Data.db",
            "nb-123456-big-Summary.db",
            "da-3h5p_0mqw_15d741y94v06x3ppet-bti-Rows.db",
            "oa-3h5p_0mqw_15d741y94v06x3ppet-big-TOC.txt",
        ] {
            let (descriptor, component) = Descriptor::parse(directory, name).unwrap();
            assert_eq!(descriptor.file_name(component.unwrap()), name);
        }
        for name in ["da-1-bti", "da-x-bti-Data.db", "da-1-btx-Data.db", "D-1-big-Data.db", "lost+found", ""] {
            assert!(Descriptor::parse(directory, name).is_none(), "{name}");
        }
        let (_, component) = Descriptor::parse(directory, "da-1-bti-SAI+aa+Meta.db").unwrap();
        assert_eq!(component, None);
    }

    #[test]
    fn uuid_ids_are_time_uuids() {
        let id: SSTableId = "3h5p_0mqw_15d741y94v06x3ppet".parse().unwrap();
        let SSTableId::Uuid(uuid) = id else { panic!("not a UUID") };
        assert_eq!(uuid[6] >> 4, 1);
        assert_eq!(uuid[8] >> 6, 2);
        // 2026-11-21T08:11Z, counted from 1582-10-15
        let (ticks, _) = SSTableId::uuid_parts(&uuid);
        let unix = ticks / TICKS_PER_SECOND - 12_219_292_800;
        assert_eq!((unix - 1_795_219_200) / 60, 8 * 60 + 11, "{unix}");
    }

    #[test]
    fn sequence_ids_come_first() {
        let uuid: SSTableId = "3h5p_0mqw_15d741y94v06x3ppet".parse().unwrap();
        let later: SSTableId = "3h5p_0mqx_15d741y94v06x3ppet".parse().unwrap();
        let mut ids = [later, SSTableId::Sequence(10), uuid, SSTableId::Sequence(9)];
        ids.sort();
        assert_eq!(ids, [SSTableId::Sequence(9), SSTableId::Sequence(10), uuid, later]);
    }

    #[test]
    fn tables_of_contents_read_back() {
        let text = print_toc(&[Component::Toc, Component::Data, Component::CompressionInfo]);
        assert_eq!(text, "CompressionInfo.db\nData.db\nTOC.txt\n");
        assert_eq!(parse_toc(&text).len(), 3);
    }
}
