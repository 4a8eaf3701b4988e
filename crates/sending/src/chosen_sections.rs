//! The choice of the part of an SSTable that goes to a peer: the sections with the peer's ranges,
//! or all files of the SSTable as they are.

use std::sync::Arc;

use env::{Env, ReadFile};
use rows::ReadError;
use schema::index::attached::is_attached;
use sstable::{Component, Format, SSTable, Version};
use streaming::data::outgoing;
use streaming::{Received, Section, TokenRange};

use crate::outgoing::{OutgoingFile, context};

/// Names and open files of the components of an SSTable.
type Components = Vec<(String, Arc<dyn ReadFile>)>;

/// The part of an SSTable that goes to a peer.
pub struct ChosenSections {
    /// The parts of Data.db that are sent.
    pub sections: Vec<Section>,
    /// Names and open files of the components, if the SSTable goes whole; None: sections go.
    pub entire: Option<Components>,
}

impl ChosenSections {
    /// The part of an SSTable that lies in ranges, which are in the order of the ring
    /// ([`outgoing::normalized`]). None: the SSTable has no partition in them. With `may_go_whole`
    /// an SSTable goes as its files are if all of it is wanted. An SSTable of a table with
    /// storage-attached indexes never does: a receiver of Cassandra expects the components of
    /// these indexes, in Cassandra's form, among the files, while it makes them itself from
    /// sections (`CassandraStreamReceiver.finished`). Waits for the disk.
    ///
    /// # Errors
    /// The index of the SSTable cannot be read.
    pub fn of(
        env: &Env,
        sstable: &SSTable,
        ranges: &[TokenRange],
        may_go_whole: bool,
    ) -> Result<Option<Self>, ReadError> {
        let sections = outgoing::sections(sstable, ranges, &context())?;
        if sections.is_empty() {
            return Ok(None);
        }
        let may_go_whole = may_go_whole
            && is_taken_whole(sstable.descriptor().version)
            && !sstable.table().indexes.values().any(is_attached)
            && outgoing::are_entire(sstable, &sections)
            && !sstable.statistics().stats.has_legacy_counter_shards;
        let entire = if may_go_whole { components(env, sstable) } else { None };
        Ok(Some(Self { sections, entire }))
    }

    /// The choice as a file of a session, under its name there. `keeps_level`: the receiver's
    /// SSTable has the level of this one.
    ///
    /// # Errors
    /// CompressionInfo.db names no place for a chunk.
    pub fn named(self, id: Received, sstable: &SSTable, keeps_level: bool) -> Result<OutgoingFile, ReadError> {
        let Self { sections, entire } = self;
        let mut file = OutgoingFile { id, sstable: sstable.clone(), sections, entire, keeps_level, weight: (0, 0) };
        let content = file.content()?;
        file.weight = (content.transfer_files(), content.transfer_bytes());
        Ok(file)
    }
}

/// Whether receivers take the files of a version as they are: from 4.0 on. Those of 3.x lack parts
/// of Statistics.db that a receiver writes anew. `CassandraOutgoingFile`.
fn is_taken_whole(version: Version) -> bool {
    version.format() != Format::Big || version.name() >= "na"
}

/// The files of an SSTable that goes whole, opened; None: one of them does not exist any more,
/// because a compaction has replaced the SSTable. Its data can still be read.
fn components(env: &Env, sstable: &SSTable) -> Option<Components> {
    let (disk, descriptor) = (&env.disk, sstable.descriptor());
    let mut components = Components::new();
    for component in Component::ALL.into_iter().filter(|component| *component != Component::Toc) {
        let path = descriptor.path(component);
        match disk.open_read(&path) {
            Ok(file) => components.push((component.name().to_owned(), file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    // the table of contents goes first: with it the others were there
    let has = |wanted: Component| components.iter().any(|(name, _)| name == wanted.name());
    let is_whole = has(Component::Data) && has(Component::Statistics) && has(sstable.partitions_component());
    (is_whole && disk.exists(&descriptor.path(Component::Toc))).then_some(components)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_3_x_go_in_sections() {
        let whole = |name| is_taken_whole(Version::from_name(name).expect("a version"));
        assert!(["na", "nb", "oa", "da"].into_iter().all(whole));
        assert!(!["ma", "mc", "me"].into_iter().any(whole));
    }
}
