//! Samples of requests: which partitions are read and written most, which reads are the longest.
//! Samples are taken only while an operator asks for them (`nodetool profileload`,
//! `toppartitions`): otherwise each place that could take a sample only looks at one number.
//!
//! A [`Session`] samples some tables for some time; several may run side by side. The items of a
//! session are bounded by its capacity for each table and sampler. Agrees with
//! `org.apache.cassandra.metrics.{Sampler,SamplingManager}`.

mod read_samples;
mod write_samples;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use metrics::top::{Counted, Frequent, Greatest};
use schema::{TableId, TableMetadata};

pub(crate) use read_samples::ReadSamples;
pub(crate) use write_samples::sample_write;

/// The kinds of samples that can be taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sampler {
    /// Partitions by how often they are read.
    Reads,
    /// Partitions by how often they are written.
    Writes,
    /// Statements by how long they read, microseconds.
    LocalReadTime,
    /// Partitions by the live rows of one read.
    ReadRowCount,
    /// Partitions by the tombstones of one read.
    ReadTombstoneCount,
    /// Partitions by the SSTables of one read.
    ReadSSTableCount,
    /// Partitions by the bytes of one write.
    WriteSize,
    /// Partitions by how often a conditional statement waited for another.
    CasContentions,
}

impl Sampler {
    /// All samplers, in Cassandra's order.
    pub const ALL: [Self; 8] = [
        Self::Reads,
        Self::Writes,
        Self::LocalReadTime,
        Self::ReadRowCount,
        Self::ReadTombstoneCount,
        Self::ReadSSTableCount,
        Self::WriteSize,
        Self::CasContentions,
    ];

    /// The name of the sampler for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reads => "READS",
            Self::Writes => "WRITES",
            Self::LocalReadTime => "LOCAL_READ_TIME",
            Self::ReadRowCount => "READ_ROW_COUNT",
            Self::ReadTombstoneCount => "READ_TOMBSTONE_COUNT",
            Self::ReadSSTableCount => "READ_SSTABLE_COUNT",
            Self::WriteSize => "WRITE_SIZE",
            Self::CasContentions => "CAS_CONTENTIONS",
        }
    }

    /// The sampler of a name; None: there is no such sampler.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sampler| sampler.name() == name)
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }

    fn counts(self) -> bool {
        matches!(self, Self::Reads | Self::Writes | Self::CasContentions)
    }
}

/// The tables, samplers and capacity of one session of sampling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// The tables that are sampled; None: all.
    pub tables: Option<Vec<TableId>>,
    /// The samplers that are wanted.
    pub samplers: Vec<Sampler>,
    /// Items kept for each table and sampler.
    pub capacity: usize,
}

/// The items that a session kept of a table: partition keys, or the text of statements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sampled {
    /// The table.
    pub table: TableId,
    /// The sampler.
    pub sampler: Sampler,
    /// The items with the highest counts or values.
    pub top: Vec<Counted<Bytes>>,
}

/// The number of a session that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionId(u64);

#[derive(Debug)]
enum Sketch {
    Frequent(Frequent<Bytes>),
    Greatest(Greatest<Bytes>),
}

struct Running {
    id: u64,
    session: Session,
    sketches: BTreeMap<(TableId, Sampler), Sketch>,
}

/// The node's sessions.
#[derive(Default)]
pub struct Sampling {
    /// A bit for each sampler that some session wants; 0: there is no session.
    wanted: AtomicU32,
    running: Mutex<(u64, Vec<Running>)>,
}

impl Sampling {
    /// Whether anything is sampled.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Whether any session wants this sampler.
    #[inline]
    pub fn wants(&self, sampler: Sampler) -> bool {
        self.wanted.load(Ordering::Relaxed) & sampler.bit() != 0
    }

    /// Begins a session. The caller must end it by [`Sampling::end`].
    pub fn begin(&self, session: Session) -> SessionId {
        let mut running = self.enter();
        running.0 += 1;
        let id = running.0;
        running.1.push(Running { id, session, sketches: BTreeMap::new() });
        self.note(&running.1);
        SessionId(id)
    }

    /// Ends a session and gives up to `count` of each table and sampler.
    pub fn end(&self, id: SessionId, count: usize) -> Vec<Sampled> {
        let mut running = self.enter();
        let Some(place) = running.1.iter().position(|session| session.id == id.0) else { return Vec::new() };
        let ended = running.1.swap_remove(place);
        self.note(&running.1);
        drop(running);
        let sampled = |((table, sampler), sketch): (&(TableId, Sampler), &Sketch)| Sampled {
            table: *table,
            sampler: *sampler,
            top: match sketch {
                Sketch::Frequent(frequent) => frequent.top(count),
                Sketch::Greatest(greatest) => greatest.top(count),
            },
        };
        ended.sketches.iter().map(sampled).collect()
    }

    /// A sample: of a partition's key, or of a statement's text.
    pub fn add(&self, sampler: Sampler, table: &TableMetadata, item: &Bytes, value: u64) {
        if value == 0 || !self.wants(sampler) {
            return;
        }
        for running in &mut self.enter().1 {
            let session = &running.session;
            let of_table = session.tables.as_ref().is_none_or(|tables| tables.contains(&table.id));
            if !of_table || !session.samplers.contains(&sampler) {
                continue;
            }
            let capacity = session.capacity;
            let sketch = running.sketches.entry((table.id, sampler)).or_insert_with(|| match sampler.counts() {
                true => Sketch::Frequent(Frequent::new(capacity)),
                false => Sketch::Greatest(Greatest::new(capacity)),
            });
            match sketch {
                Sketch::Frequent(frequent) => frequent.add(&owned(item), value),
                Sketch::Greatest(greatest) if greatest.takes(value) => greatest.add(&owned(item), value),
                Sketch::Greatest(_) => {}
            }
        }
    }

    fn note(&self, running: &[Running]) {
        let samplers = running.iter().flat_map(|running| &running.session.samplers);
        self.wanted.store(samplers.fold(0, |bits, sampler| bits | sampler.bit()), Ordering::Relaxed);
    }

    fn enter(&self) -> MutexGuard<'_, (u64, Vec<Running>)> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy of a key. The key is a slice of something larger, a frame or a block, which a sample
/// must not keep alive.
fn owned(item: &Bytes) -> Bytes {
    Bytes::copy_from_slice(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Vec<std::sync::Arc<TableMetadata>> {
        let schema = schema::system::schema();
        ["local", "peers"].iter().filter_map(|name| schema.table("system", name).cloned()).collect()
    }

    fn session(samplers: &[Sampler], tables: Option<Vec<TableId>>) -> Session {
        Session { tables, samplers: samplers.to_vec(), capacity: 4 }
    }

    #[test]
    fn sessions_take_what_they_asked_for_and_nothing_is_taken_without() {
        let sampling = Sampling::default();
        let tables = tables();
        let (one, other) = (&tables[0], &tables[1]);
        let key = |text: &'static str| Bytes::from_static(text.as_bytes());
        sampling.add(Sampler::Reads, one, &key("before"), 1);
        assert!(!sampling.is_on());
        let all = sampling.begin(session(&[Sampler::Reads, Sampler::WriteSize], None));
        let of_one = sampling.begin(session(&[Sampler::Reads], Some(vec![one.id])));
        assert!(sampling.wants(Sampler::Reads) && !sampling.wants(Sampler::Writes));
        for (table, text) in [(one, "a"), (one, "b"), (other, "a"), (one, "a")] {
            sampling.add(Sampler::Reads, table, &key(text), 1);
        }
        sampling.add(Sampler::WriteSize, one, &key("a"), 0);
        sampling.add(Sampler::WriteSize, other, &key("c"), 900);
        let told = |sampled: Vec<Sampled>| -> Vec<_> {
            let one = |sampled: Sampled| {
                let top = sampled.top.into_iter().map(|top| (top.item, top.count)).collect::<Vec<_>>();
                (sampled.table, sampled.sampler, top)
            };
            sampled.into_iter().map(one).collect()
        };
        assert_eq!(told(sampling.end(of_one, 1)), [(one.id, Sampler::Reads, vec![(key("a"), 2)])]);
        assert!(sampling.is_on());
        let mut expected = vec![
            (one.id, Sampler::Reads, vec![(key("a"), 2), (key("b"), 1)]),
            (other.id, Sampler::Reads, vec![(key("a"), 1)]),
            (other.id, Sampler::WriteSize, vec![(key("c"), 900)]),
        ];
        expected.sort_by_key(|(table, sampler, _)| (*table, *sampler));
        assert_eq!(told(sampling.end(all, 10)), expected);
        assert!(!sampling.is_on());
    }
}
