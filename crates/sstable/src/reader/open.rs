//! Opens the files of an SSTable.
//!
//! What must be there: Data.db, Statistics.db, the index (Partitions.db and Rows.db, or Index.db),
//! and CompressionInfo.db where TOC.txt or the statistics say that the data is compressed. What can
//! be done without, with a note: Filter.db (every key may be here), CRC.db (uncompressed data goes
//! unchecked), Summary.db (made again; see `SSTable::keep_made_summary`). Digest.crc32 is not
//! looked at, TOC.txt only for the above. Agrees with
//! `org.apache.cassandra.io.sstable.format.{StatsComponent,CompressionInfoComponent}` and
//! `…format.{big.BigSSTableReaderLoadingBuilder,bti.BtiTableReaderLoadingBuilder}`, which
//! also write anew what was missing.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::{Disk, Env};
use schema::TableMetadata;

use super::{SMALL_FILE_MAX, SSTable, Shared};
use crate::attached::Attachments;
use crate::chunk_reader::DataFile;
use crate::compression_info::CompressionInfo;
use crate::descriptor::{Component, Descriptor, parse_toc};
use crate::error::{Error, Malformed};
use crate::file_cache::FileCache;
use crate::filter::Filter;
use crate::index::Index;
use crate::index::big_index::{BigIndex, KeyOrder};
use crate::index::partition_index::PartitionIndex;
use crate::index_file::IndexFile;
use crate::read_schema::ReadSchema;
use crate::statistics::{LOCAL_PARTITIONER, MURMUR3_PARTITIONER, Statistics, parse_type};
use crate::version::Format;

/// Longest component that is read whole. The largest is a filter; of 10 bits a key this has a
/// thousand million keys.
const WHOLE_FILE_MAX: u64 = 4 << 30;

struct Opening<'a> {
    disk: &'a dyn Disk,
    descriptor: &'a Descriptor,
    notes: Vec<String>,
}

pub(super) fn open(
    env: &Env,
    descriptor: Descriptor,
    table: &Arc<TableMetadata>,
    cache: Arc<dyn FileCache>,
) -> Result<SSTable, Error> {
    let statistics_path = descriptor.path(Component::Statistics);
    if !descriptor.version.is_readable() || descriptor.format != descriptor.version.format() {
        let what = format!("SSTables of version {} are not read", descriptor.prefix());
        return Err(Error::Unsupported { path: statistics_path, what });
    }
    let mut opening = Opening { disk: &*env.disk, descriptor: &descriptor, notes: Vec::new() };
    let statistics = opening
        .disk
        .read_all(&statistics_path, SMALL_FILE_MAX)
        .map_err(|error| Error::open(&statistics_path, error))?;
    let statistics =
        Statistics::read(&statistics.into(), descriptor.version).map_err(|error| error.of(&statistics_path, 0))?;
    let read_schema = ReadSchema::new(&statistics, table).map_err(|error| error.of(&statistics_path, 0))?;
    let order = key_order(&statistics, table, &statistics_path)?;
    let index = match descriptor.format {
        Format::Bti => opening.bti_index(&cache)?,
        Format::Big => opening.big_index(
            order.clone(),
            u32::try_from(table.params.min_index_interval).unwrap_or(1),
            &statistics,
            &cache,
        )?,
    };
    check_keys(&statistics, &index).map_err(|error| error.of(&descriptor.path(index.partitions_component()), 0))?;
    let filter = opening.filter()?;
    let data = opening.data(&statistics, cache)?;
    let notes = opening.notes;
    let (first, last) = index.ends();
    let shared = Shared {
        first: order.decorate(Bytes::copy_from_slice(first)),
        last: order.decorate(Bytes::copy_from_slice(last)),
        order,
        disk_size: disk_size(&*env.disk, &descriptor),
        data,
        index,
        filter,
        statistics,
        notes,
        attached: Attachments::default(),
        descriptor,
    };
    Ok(SSTable { shared: Arc::new(shared), schema: Arc::new(read_schema) })
}

/// The keys at the ends of the index, and how many there are, have no checksum; in the statistics
/// they have. Fewer would hide partitions.
fn check_keys(statistics: &Statistics, index: &Index) -> Result<(), Malformed> {
    let (stats, (first, last)) = (&statistics.stats, index.ends());
    for (name, known, found) in [("first", &stats.first_key, first), ("last", &stats.last_key, last)] {
        if !known.is_empty() && known != found {
            let what = format!("the {name} key is {:02x?}, in Statistics.db {:02x?}", &found[..], &known[..]);
            return Err(Malformed::at(0, what));
        }
    }
    let (known, found) = (stats.partition_sizes.count(), index.count());
    if found < known {
        return Err(Malformed::at(0, format!("{found} partitions, in Statistics.db {known}")));
    }
    Ok(())
}

/// The key's type in the header does not say by what keys of collections are ordered; the schema
/// does, where it is known.
fn key_order(statistics: &Statistics, table: &TableMetadata, path: &Path) -> Result<KeyOrder, Error> {
    match (statistics.partitioner.as_str(), &table.local_order) {
        (MURMUR3_PARTITIONER, None) => Ok(KeyOrder::Murmur3),
        (LOCAL_PARTITIONER, Some(ty)) => Ok(KeyOrder::Local(ty.clone())),
        (MURMUR3_PARTITIONER, Some(_)) => {
            let what = "keys of an index ordered by tokens are not read".to_owned();
            Err(Error::Unsupported { path: path.to_owned(), what })
        }
        (LOCAL_PARTITIONER, None) => {
            let ty = parse_type(&statistics.header.key_type).map_err(|error| error.of(path, 0))?;
            Ok(KeyOrder::Local(ty))
        }
        (other, _) => {
            let what = format!("keys ordered by {other} are not read");
            Err(Error::Unsupported { path: path.to_owned(), what })
        }
    }
}

impl Opening<'_> {
    fn note(&mut self, component: Component, what: &str) {
        self.notes.push(format!("{}: {what}", self.descriptor.path(component).display()));
    }

    /// The whole component, which stays in memory: filter, chunk offsets and checksums are asked
    /// for with each read. None: there is no such component. What cannot be looked at is an error
    /// and not missing: without its chunk offsets, compressed data would be read as it lies.
    fn whole(&self, component: Component) -> Result<Option<Bytes>, Error> {
        let path = self.descriptor.path(component);
        let file = match self.disk.open_read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| Error::open(&path, error))?,
        };
        let length = usize::try_from(file.len()).ok().filter(|_| file.len() <= WHOLE_FILE_MAX);
        let length = length.ok_or_else(|| Error::corrupt(&path, 0, format!("a file of {} bytes", file.len())))?;
        let mut bytes = vec![0; length];
        file.read_at(&mut bytes, 0).map_err(|error| Error::io(&path, error))?;
        Ok(Some(bytes.into()))
    }

    /// An index component, of which pages are read when they are needed.
    fn paged(&self, component: Component, cache: &Arc<dyn FileCache>) -> Result<IndexFile, Error> {
        let path = self.descriptor.path(component);
        let file = self.disk.open_read(&path).map_err(|error| Error::open(&path, error))?;
        Ok(IndexFile::on_disk(path, file, Arc::clone(cache)))
    }

    fn bti_index(&self, cache: &Arc<dyn FileCache>) -> Result<Index, Error> {
        let path = self.descriptor.path(Component::Partitions);
        let partitions = PartitionIndex::open(&self.paged(Component::Partitions, cache)?);
        let partitions = partitions.map_err(|error| error.of(&path))?;
        Ok(Index::Bti { partitions, rows: self.paged(Component::Rows, cache)? })
    }

    /// A summary that gives another number of partitions than the statistics have is not used.
    fn big_index(
        &mut self,
        order: KeyOrder,
        interval: u32,
        statistics: &Statistics,
        cache: &Arc<dyn FileCache>,
    ) -> Result<Index, Error> {
        let path = self.descriptor.path(Component::Index);
        let file = self.paged(Component::Index, cache)?;
        let summary = self.whole(Component::Summary)?;
        let form = self.descriptor.version.deletion_times();
        let open =
            |summary| BigIndex::open(&file, summary, order.clone(), form, interval).map_err(|error| error.of(&path));
        let (mut index, mut note) = open(summary.as_ref())?;
        if note.is_none() && index.count != statistics.stats.partition_sizes.count() {
            note = Some(format!("made again from Index.db, it was one of {} partitions", index.count));
            (index, _) = open(None)?;
        }
        if let Some(note) = note {
            self.note(Component::Summary, &note);
        }
        Ok(Index::Big(Box::new(index)))
    }

    /// None: every key may be here. So an empty file is meant, too.
    fn filter(&mut self) -> Result<Option<Filter>, Error> {
        let Some(file) = self.whole(Component::Filter)?.filter(|file| !file.is_empty()) else {
            return Ok(None);
        };
        match Filter::open(&file, self.descriptor.version) {
            Ok(filter) => Ok(Some(filter)),
            Err(error) => {
                self.note(Component::Filter, &format!("not used: {}", error.what));
                Ok(None)
            }
        }
    }

    fn data(&mut self, statistics: &Statistics, cache: Arc<dyn FileCache>) -> Result<DataFile, Error> {
        let path = self.descriptor.path(Component::Data);
        let file = self.disk.open_read(&path).map_err(|error| Error::open(&path, error))?;
        if let Some(info) = self.whole(Component::CompressionInfo)? {
            let info_path = self.descriptor.path(Component::CompressionInfo);
            let info = CompressionInfo::open(&info, self.descriptor.version);
            let info = info.map_err(|error| error.of(&info_path, 0))?;
            return Ok(DataFile::compressed(path, file, info, cache));
        }
        self.check_not_compressed(statistics)?;
        let Some(crc) = self.whole(Component::Crc)? else {
            self.note(Component::Crc, "missing: the data is read unchecked");
            return Ok(DataFile::unchecked(path, file, cache));
        };
        DataFile::plain(path, file, &crc, cache)
            .map_err(|error| error.of(&self.descriptor.path(Component::Crc), 0).into())
    }

    fn check_not_compressed(&self, statistics: &Statistics) -> Result<(), Error> {
        let toc_path = self.descriptor.path(Component::Toc);
        let toc = match self.disk.read_all(&toc_path, SMALL_FILE_MAX) {
            Err(error) if env::lacks_descriptors(&error) => return Err(Error::io(&toc_path, error)),
            // the statistics say whether the data is compressed, too
            toc => toc.unwrap_or_default(),
        };
        let in_toc = parse_toc(&String::from_utf8_lossy(&toc)).contains(&Component::CompressionInfo);
        if in_toc || statistics.stats.compression_ratio > 0.0 {
            let path = self.descriptor.path(Component::CompressionInfo);
            let by = if in_toc { "TOC.txt names it" } else { "Statistics.db has a compression ratio" };
            return Err(Error::corrupt(&path, 0, format!("the file is missing, and {by}")));
        }
        Ok(())
    }
}

/// Components that are not there count nothing.
fn disk_size(disk: &dyn Disk, descriptor: &Descriptor) -> u64 {
    Component::ALL.into_iter().filter_map(|component| disk.file_len(&descriptor.path(component)).ok()).sum()
}
