//! Opens the components of an SSTable as far as they can be; what is missing or damaged is done
//! without, or made anew.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::{Disk, Env};
use rows::codec::{EncodingStats, Header};
use schema::TableMetadata;
use stdx::put_u32;

use super::report::SalvageReport;
use crate::chunk_reader::DataFile;
use crate::compression_info::CompressionInfo;
use crate::descriptor::{Component, Descriptor, parse_toc};
use crate::error::Error;
use crate::file_cache::NoCache;
use crate::reader::SMALL_FILE_MAX;
use crate::statistics::Statistics;
use crate::version::Version;

/// Length of the chunks of uncompressed data whose CRC.db is lost.
const PLAIN_CHUNK: usize = 64 * 1024;

/// The parts that reading rows needs.
pub struct SalvageFiles {
    pub version: Version,
    pub table: Arc<TableMetadata>,
    pub header: Header,
    pub statistics: Option<Statistics>,
    pub data: DataFile,
}

impl SalvageFiles {
    pub fn open(
        env: &Env,
        descriptor: &Descriptor,
        table: Option<&Arc<TableMetadata>>,
        report: &mut SalvageReport,
    ) -> Result<Self, Error> {
        let version = descriptor.version;
        let path = descriptor.path(Component::Statistics);
        let bytes = env.disk.read_all(&path, SMALL_FILE_MAX).map_err(|error| Error::io(&path, error));
        let statistics = bytes.and_then(|bytes| {
            Statistics::read(&bytes.into(), version).map_err(|error| Error::from(error.of(&path, 0)))
        });
        let (table, header, statistics) = match (statistics, table) {
            (Ok(statistics), table) => {
                let table = match table {
                    Some(table) => Arc::clone(table),
                    None => {
                        let table = statistics.header.table("keyspace", "table");
                        Arc::new(table.map_err(|error| Error::from(error.of(&path, 0)))?)
                    }
                };
                let header = statistics.header.resolve(&table).map_err(|error| Error::from(error.of(&path, 0)))?;
                // rows with cells of dropped columns only are counted there, and come out empty
                report.rows_expected = header.gives_all().then_some(statistics.stats.total_rows);
                (table, header, Some(statistics))
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(table)) => {
                report.notes.push(format!(
                    "{error}; columns are those of the schema, and write times, TTLs and deletion times are counted from \
                     2015-09-22 instead of from the least of this SSTable: they are too small, by one amount each"
                ));
                let mut header = Header::for_table(table, EncodingStats::default());
                header.deletion_times = version.deletion_times();
                (Arc::clone(table), header, None)
            }
        };
        let data = open_data(&*env.disk, descriptor, report)?;
        Ok(Self { version, table, header, statistics, data })
    }
}

fn open_data(disk: &dyn Disk, descriptor: &Descriptor, report: &mut SalvageReport) -> Result<DataFile, Error> {
    let path = descriptor.path(Component::Data);
    let file = disk.open_read(&path).map_err(|error| Error::io(&path, error))?;
    let info_path = descriptor.path(Component::CompressionInfo);
    let info = match disk.read_all(&info_path, SMALL_FILE_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read.map_err(|error| Error::io(&info_path, error))?),
    };
    if let Some(bytes) = info {
        let info = CompressionInfo::open(&bytes.into(), descriptor.version)
            .map_err(|error| Error::from(error.of(&info_path, 0)))?;
        return Ok(DataFile::compressed(path, file, info, Arc::new(NoCache)));
    }
    let toc_path = descriptor.path(Component::Toc);
    let toc = disk.read_all(&toc_path, SMALL_FILE_MAX).unwrap_or_default();
    if parse_toc(&String::from_utf8_lossy(&toc)).contains(&Component::CompressionInfo) {
        return Err(Error::corrupt(&info_path, 0, "not there, and the data is compressed"));
    }
    let crc_path = descriptor.path(Component::Crc);
    let stored = disk.read_all(&crc_path, SMALL_FILE_MAX).map_err(|error| Error::io(&crc_path, error));
    let opened = stored.and_then(|crc| {
        let opened = DataFile::plain(path.clone(), Arc::clone(&file), &crc.into(), Arc::new(NoCache));
        opened.map_err(|error| Error::from(error.of(&crc_path, 0)))
    });
    if let Err(error) = &opened {
        report.notes.push(format!("{error}; damage that still decodes is not noticed"));
        let crc = compute_crc(&*file, &path)?;
        return DataFile::plain(path, file, &crc, Arc::new(NoCache)).map_err(|error| error.of(&crc_path, 0).into());
    }
    opened
}

/// A CRC.db of the data as it is.
fn compute_crc(file: &dyn env::ReadFile, path: &Path) -> Result<Bytes, Error> {
    let mut crc = Vec::new();
    put_u32(&mut crc, PLAIN_CHUNK as u32);
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < file.len() {
        buffer.resize((file.len() - offset).min(PLAIN_CHUNK as u64) as usize, 0);
        // what the disk does not give fails again, with its place, when it is wanted
        let checksum = match file.read_at(&mut buffer, offset) {
            Ok(()) => crc32fast::hash(&buffer),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Err(Error::io(path, error)),
            Err(_) => 0,
        };
        put_u32(&mut crc, checksum);
        offset += buffer.len() as u64;
    }
    Ok(crc.into())
}
