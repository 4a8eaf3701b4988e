//! Protection of answers that replicas have filtered.
//!
//! A replica that has the newest form of a row may leave the row out because it does not meet the
//! conditions, while another one gives an older form that does. Merged, the answers would show the
//! older form. So, where the answers to such a part differ:
//!
//! 1. The part is cut at the first place up to which all answers are known ([`Window`]); what is
//!    behind is a part of its own, that is asked for later.
//! 2. Partitions of which all answers are equal stay as they are.
//! 3. Of every other partition the rows that any answer has are read by name from all replicas,
//!    without conditions ([`Candidates`]). These reads are merged instead.
//!
//! Replicas that lack something of these rows are told by read repair as after every read. Agrees
//! in effect with `org.apache.cassandra.service.reads.ReplicaFilteringProtection`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rows::replicas::{Answers, Replay};
use rows::{
    ClusteringValues, DataLimits, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadError, Slice,
    Slices, Unfiltered,
};
use schema::TableMetadata;
use types::DecoratedKey;

/// The place up to which all answers to a part are known: a row, or the end of a partition.
pub(super) type Window = (DecoratedKey, Option<ClusteringValues>);

/// The first place at which one of the answers ends at a limit; None: no answer does.
pub(super) fn window(command: &ReadCommand, answers: &[&Answers]) -> Option<Window> {
    let ends = answers.iter().filter_map(|answers| match (&command.range, answers.end()) {
        (PartitionRange::Key(key), _) => Some((key.clone(), Some(answers.cut(key)?.clone()))),
        (PartitionRange::Range { .. }, end) => end.map(|key| (key.clone(), answers.cut(key).cloned())),
    });
    ends.min_by(|a, b| a.0.cmp(&b.0).then_with(|| compare_ends(command, a.1.as_ref(), b.1.as_ref())))
}

/// The order of two ends of one partition's rows in the direction of the read; None: all rows.
fn compare_ends(command: &ReadCommand, a: Option<&ClusteringValues>, b: Option<&ClusteringValues>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare_rows(command, a, b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

fn compare_rows(command: &ReadCommand, a: &ClusteringValues, b: &ClusteringValues) -> Ordering {
    let order = command.table.comparator.compare_values(a, b);
    if command.reversed { order.reverse() } else { order }
}

/// One partition of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
struct HeldPartition {
    head: PartitionHead,
    items: Vec<Unfiltered>,
}

impl HeldPartition {
    /// Reads the rest of the partition with this head.
    fn read(head: PartitionHead, stream: &mut dyn PartitionStream) -> Result<Self, ReadError> {
        let mut items = Vec::new();
        while let Some(item) = stream.next_unfiltered()? {
            items.push(item);
        }
        Ok(Self { head, items })
    }

    fn rows(&self) -> impl Iterator<Item = &ClusteringValues> {
        self.items.iter().filter_map(|item| match item {
            Unfiltered::Row(row) => Some(&row.clustering),
            Unfiltered::Marker(_) => None,
        })
    }
}

/// The content of answers up to a window, and what has to be read again of it.
pub(super) struct Candidates {
    command: ReadCommand,
    /// Each partition, with what each replica has given of it.
    partitions: BTreeMap<DecoratedKey, Vec<Option<HeldPartition>>>,
    /// The rows that have to be read again.
    open: Vec<(DecoratedKey, Vec<ClusteringValues>)>,
    /// The number of rows held of the partition that has the most of them. A row counts once for
    /// each replica.
    pub rows: u32,
}

impl Candidates {
    /// The content of the answers to `command` up to `window`.
    pub fn of(command: &ReadCommand, answers: &[&Answers], window: Option<&Window>) -> Result<Self, ReadError> {
        let mut partitions: BTreeMap<DecoratedKey, Vec<Option<HeldPartition>>> = BTreeMap::new();
        let nothing = vec![None; answers.len()];
        for (replica, answers) in answers.iter().enumerate() {
            let mut stream = answers.stream();
            while let Some(head) = stream.next_partition()? {
                if window.is_some_and(|(key, _)| head.key > *key) {
                    break;
                }
                let key = head.key.clone();
                let held = HeldPartition::read(head, &mut *stream)?;
                partitions.entry(key).or_insert_with(|| nothing.clone())[replica] = Some(held);
            }
        }
        let mut candidates = Self { command: command.clone(), partitions, open: Vec::new(), rows: 0 };
        candidates.compare(window);
        Ok(candidates)
    }

    /// Finds the partitions whose answers differ, or are not known to their end.
    fn compare(&mut self, window: Option<&Window>) {
        for (key, held) in &self.partitions {
            let end = window.filter(|(last, _)| last == key).and_then(|(_, row)| row.as_ref());
            let command = &self.command;
            let is_known = |row: &&ClusteringValues| end.is_none_or(|end| compare_rows(command, row, end).is_le());
            let mut rows: Vec<ClusteringValues> =
                held.iter().flatten().flat_map(HeldPartition::rows).filter(is_known).cloned().collect();
            rows.sort_by(|a, b| command.table.comparator.compare_values(a, b));
            rows.dedup();
            // Cassandra holds one partition at a time. Here a portion bounds the rows of all that
            // are held together.
            let count = rows.len().saturating_mul(held.len());
            self.rows = self.rows.max(u32::try_from(count).unwrap_or(u32::MAX));
            let agree = end.is_none() && held.windows(2).all(|pair| pair[0].is_some() && pair[0] == pair[1]);
            if !agree {
                self.open.push((key.clone(), rows));
            }
        }
    }

    /// The reads of the rows whose answers differ: each is to be asked of every replica.
    pub fn commands(&self) -> Vec<ReadCommand> {
        let command = |(key, rows): &(DecoratedKey, Vec<ClusteringValues>)| ReadCommand {
            range: PartitionRange::Key(key.clone()),
            slices: named(&self.command.table, rows),
            limits: DataLimits::NONE,
            indexes: Vec::new(),
            ..self.command.clone()
        };
        self.open.iter().map(command).collect()
    }

    /// Takes the answers of a replica to [`Self::commands`], in that order.
    pub fn complete(&mut self, replica: usize, answers: Vec<Box<dyn PartitionStream>>) -> Result<(), ReadError> {
        for ((key, _), mut stream) in self.open.iter().zip(answers) {
            let head = stream.next_partition()?;
            let held = head.map(|head| HeldPartition::read(head, &mut *stream)).transpose()?;
            let place = self.partitions.get_mut(key).and_then(|held| held.get_mut(replica));
            *place.expect("a partition that is read again has a place for each replica") = held;
        }
        Ok(())
    }

    /// The completed answer of each replica.
    pub fn into_answers(self, replicas: usize) -> Result<Vec<Answers>, ReadError> {
        let partitions: Vec<Vec<Option<HeldPartition>>> = self.partitions.into_values().collect();
        let of_replica = |replica: usize| {
            let held: Arc<[HeldPartition]> = partitions.iter().filter_map(|held| held[replica].clone()).collect();
            let replay: Replay = Arc::new(move || Box::new(HeldStream { held: Arc::clone(&held), next: 0, item: 0 }));
            let mut answers = Answers::new(&self.command.table, self.command.now);
            answers.add_partitions(replay, &self.command.range, DataLimits::NONE)?;
            Ok(answers)
        };
        (0..replicas).map(of_replica).collect()
    }
}

/// Slices of rows by their names.
fn named(table: &TableMetadata, rows: &[ClusteringValues]) -> Slices {
    if table.clustering.is_empty() {
        return Slices::all();
    }
    Slices::normalized(rows.iter().cloned().map(Slice::of_prefix).collect(), &table.comparator)
}

/// Partitions that are held, as a stream.
struct HeldStream {
    held: Arc<[HeldPartition]>,
    /// Position of the next partition.
    next: usize,
    /// Position of the next item in the partition that was given last.
    item: usize,
}

impl PartitionStream for HeldStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.held.get(self.next).map(|held| held.head.clone());
        self.next += usize::from(head.is_some());
        self.item = 0;
        Ok(head)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let current = self.next.checked_sub(1).and_then(|place| self.held.get(place));
        let item = current.and_then(|held| held.items.get(self.item)).cloned();
        self.item += 1;
        Ok(item)
    }
}

#[cfg(test)]
mod tests;
