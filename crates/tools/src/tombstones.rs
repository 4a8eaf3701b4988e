//! `helenus sstable tombstones`: where the tombstones of SSTables are, when they may go, and why
//! not yet (`rows::tombstone_map`).
//!
//! Only the other given SSTables are asked whether they hold older data, so give a whole table.
//! Memtables of a running node are not seen; `nodetool tombstones` sees them.

use clap::Args;
use rows::dead::GracePeriod;
use rows::tombstone_map::{OtherSources, TombstoneMap};
use rows::{PartitionRange, ReadCommand, ReadContext, ReadMode};
use sstable::{Descriptor, KeyHash, SSTable};
use types::DecoratedKey;

use crate::context::Context;
use crate::failure::{DONE, FAILED, Failure};
use crate::open;
use crate::target::Targets;

/// Show where tombstones are, when they may go, and why not yet.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    targets: Targets,
    /// Seconds that tombstones are kept.
    #[arg(short = 'g', long = "gc_grace_seconds", value_name = "SECONDS", default_value_t = 864_000)]
    gc_grace_seconds: u32,
    /// Partitions with most tombstones that are named of each SSTable.
    #[arg(short = 'n', long, default_value_t = 10)]
    top: usize,
}

/// Asks the other given SSTables whether they hold older data.
struct SourcesBeside<'a> {
    all: &'a [SSTable],
    but: usize,
}

impl OtherSources for SourcesBeside<'_> {
    fn names(&self) -> Vec<String> {
        self.all.iter().map(|sstable| format!("SSTable {}", sstable.descriptor().prefix())).collect()
    }

    fn oldest(&self, key: &DecoratedKey) -> Vec<(i64, usize)> {
        let hash = KeyHash::of(&key.key);
        let mine = &self.all[self.but].descriptor().directory;
        let others = self.all.iter().enumerate().filter(|(number, other)| {
            *number != self.but && other.descriptor().directory == *mine && other.may_contain(key, hash)
        });
        others.map(|(number, other)| (other.statistics().stats.min_timestamp, number)).collect()
    }
}

/// Prints the map of tombstones of each SSTable.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    let descriptors = arguments.targets.sstables(context.env)?;
    let (mut code, mut sstables) = (DONE, Vec::with_capacity(descriptors.len()));
    for descriptor in &descriptors {
        match opened(descriptor, context) {
            Ok(sstable) => sstables.push(sstable),
            Err(failure) => {
                code = FAILED;
                writeln!(context.err, "helenus sstable: {failure}")?;
            }
        }
    }
    let grace = GracePeriod { now: context.env.clock.now_seconds(), seconds: arguments.gc_grace_seconds };
    for (number, sstable) in sstables.iter().enumerate() {
        let others = SourcesBeside { all: &sstables, but: number };
        let name = sstable.descriptor().path(sstable::Component::Data);
        let command = ReadCommand::whole(sstable.table(), PartitionRange::all());
        let read = sstable
            .read(&command, &ReadContext::new(ReadMode::Background))
            .and_then(|mut stream| TombstoneMap::read(&mut stream, grace, arguments.top, &others, false));
        match read {
            Ok(map) => write!(context.out, "{}", map.text(&name.display().to_string(), sstable.table()))?,
            Err(error) => {
                code = FAILED;
                writeln!(context.err, "helenus sstable: {error}")?;
            }
        }
    }
    context.out.flush()?;
    Ok(code)
}

fn opened(descriptor: &Descriptor, context: &Context<'_>) -> Result<SSTable, Failure> {
    let statistics = open::statistics(context.env, descriptor)?;
    let table = open::table_of_header(descriptor, &statistics)?;
    open::open(context.env, descriptor, &table)
}
