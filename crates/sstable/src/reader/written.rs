//! Whether an SSTable that is opened after its writing is the one that was written.
//!
//! Opening compares the files with each other. Here they are compared with the numbers that the
//! writer still has in memory: a file that the disk lost or swapped meanwhile is found before the
//! memtables or SSTables that it stands for are given up. Cheap: rows are not read.

use std::fmt::Debug;

use super::SSTable;
use crate::descriptor::Component;
use crate::error::Error;
use crate::writer::FinishedSSTable;

impl SSTable {
    /// Compares first and last key, the number of partitions and the length of the data.
    pub fn check_written(&self, finished: &FinishedSSTable) -> Result<(), Error> {
        let stats = &finished.statistics.stats;
        self.same("first key", &self.first_key().key, &stats.first_key)?;
        self.same("last key", &self.last_key().key, &stats.last_key)?;
        self.same("number of partitions", &self.partition_count(), &finished.partitions)?;
        self.same("length of the data", &self.data_length(), &finished.data.length)
    }

    fn same<T: PartialEq + Debug>(&self, name: &str, found: &T, written: &T) -> Result<(), Error> {
        if found == written {
            return Ok(());
        }
        let what = format!("the {name} is {found:?}, and {written:?} was written");
        Err(Error::corrupt(&self.descriptor().path(Component::Data), 0, what))
    }
}
