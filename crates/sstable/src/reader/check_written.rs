//! Whether an SSTable that is opened after its writing is the one that was written.
//!
//! Opening compares the files with each other. Here they are compared with the numbers that the
//! writer still has in memory: a file that the disk lost or swapped meanwhile is found before the
//! memtables or SSTables that it stands for are given up. Cheap: two searches in the index, and
//! rows are not read.

use std::fmt::Debug;

use rows::ReadMode;
use types::DecoratedKey;

use super::SSTable;
use crate::descriptor::Component;
use crate::error::Error;
use crate::filter::KeyHash;
use crate::index_file::Access;
use crate::writer::FinishedSSTable;

impl SSTable {
    /// Compares first and last key, the number of partitions and the length of the data; and looks
    /// both keys up as reads do.
    pub fn check_written(&self, finished: &FinishedSSTable) -> Result<(), Error> {
        let stats = &finished.statistics.stats;
        self.check_equal("first key", &self.first_key().key, &stats.first_key)?;
        self.check_equal("last key", &self.last_key().key, &stats.last_key)?;
        self.check_equal("number of partitions", &self.partition_count(), &finished.partitions)?;
        self.check_equal("length of the data", &self.data_length(), &finished.data.length)?;
        self.check_found(self.first_key())?;
        self.check_found(self.last_key())
    }

    /// A read of the key comes to its partition: the filter lets the key pass, and the index leads
    /// to a place in the data.
    fn check_found(&self, key: &DecoratedKey) -> Result<(), Error> {
        let hash = KeyHash::of(&key.key);
        let lost = |component, why: &str| {
            let what = format!("the key {:?}, which was written, is not found: {why}", key.key);
            Error::corrupt(&self.descriptor().path(component), 0, what)
        };
        if !self.may_contain(key, hash) {
            return Err(lost(Component::Filter, "the filter has it not"));
        }
        let access = Access { mode: ReadMode::Background, keeps: false };
        match self.shared.index.find(key, hash, access) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(lost(self.partitions_component(), "the index has it not")),
            Err(error) => Err(lost(self.partitions_component(), &self.partitions_error(error).to_string())),
        }
    }

    fn check_equal<T: PartialEq + Debug>(&self, name: &str, found: &T, written: &T) -> Result<(), Error> {
        if found == written {
            return Ok(());
        }
        let what = format!("the {name} is {found:?}, and {written:?} was written");
        Err(Error::corrupt(&self.descriptor().path(Component::Data), 0, what))
    }
}
