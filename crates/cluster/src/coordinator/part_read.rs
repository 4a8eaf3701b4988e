//! A read of several replicas: its parts, what their replicas have answered so far, and the stream
//! of all of it.
//!
//! Pure. The stream ends with [`ReadError::WouldBlock`] where something has to be asked for, and
//! notes what ([`Missing`]); `super::distributed_read` asks and reads again from the beginning.
//! The memory of a read is bounded by [`READING_SIZE_MAX`].

use std::sync::Arc;

use bytes::Bytes;
use env::rare::{Rare, happens};
use internode::payload::buffered_rows::BufferedRows;
use internode::payload::read_request::ReadRequest;
use internode::payload::read_response::data_stream;
use rows::command::RingBound;
use rows::live::counted;
use rows::replicas::{Answers, FurtherRead, Replay, ReplicaMerge};
use rows::{
    ClusteringValues, DataLimits, PartitionHead, PartitionRange, PartitionStream, PartitionUpdate, ReadCommand,
    ReadError, SearchOperator, Unfiltered, WantedRows,
};
use types::DecoratedKey;

use super::contacts::Contact;
use super::filtering::Filtering;
use super::parts::Part;
use super::read_repair::is_blocking;

/// Most bytes of answers that one read holds. A read that needs more at once fails.
pub(super) const READING_SIZE_MAX: usize = 256 << 20;

/// Rows that are asked for at first where the read itself has no limit or a larger one.
const PORTION_FIRST: u32 = 5_000;

/// Rows that are asked for at first while there is no memory for large results.
const PORTION_SMALL: u32 = 100;

/// Rows of the largest portion. Each further portion of a replica is twice as large as the last.
const PORTION_MAX: u32 = 80_000;

/// Bytes of a portion behind which the next one is smaller.
const PORTION_SIZE: usize = 8 << 20;

/// The limits at which an answer counts as cut off, so that more is asked for behind its last row.
/// The nearest rows of a replica are all that is wanted of it, however many they are.
fn counted_limits(command: &ReadCommand) -> DataLimits {
    if is_nearest(command) { DataLimits::NONE } else { command.limits }
}

/// Whether the rows nearest to a vector are asked for: all that are wanted of a replica come at
/// once.
fn is_nearest(command: &ReadCommand) -> bool {
    command.indexes.iter().any(|search| search.operator == SearchOperator::Ann)
}

/// A part and what its replicas have answered.
#[derive(Clone)]
pub(super) struct PartRead {
    pub part: Part,
    /// The conditions that its replicas check; None: they give every row.
    filtering: Option<Arc<Filtering>>,
    /// Rows that the next portion is to have at most.
    portion: u32,
    /// Bytes of the answers.
    pub size: usize,
    /// Bytes of the largest portion that came last.
    last_size: usize,
    /// The replicas that were asked, each with its answers; empty: no replica was asked.
    pub replicas: Vec<(Contact, Answers)>,
    /// Replicas whose digest was equal to that of the only answer in `replicas`.
    pub confirmed: Vec<Contact>,
}

impl PartRead {
    /// A part of which no replica has been asked. `wanted_rows`: the rows that are looked for.
    pub fn new(mut part: Part, wanted_rows: Option<&WantedRows>) -> Self {
        if !part.contacts.is_planned {
            // how many replicas check the conditions is not known yet
            return Self::of(part, None);
        }
        let filtering =
            wanted_rows.and_then(|wanted_rows| Filtering::of(&part.command, wanted_rows, part.contacts.asked.len()));
        if let Some(filtering) = &filtering {
            let limits = &mut part.command.limits;
            // rows that do not meet the conditions are not counted by anybody
            *limits = DataLimits { rows: limits.rows.min(filtering.rows), per_partition: u32::MAX };
        }
        Self::of(part, filtering)
    }

    fn of(part: Part, filtering: Option<Arc<Filtering>>) -> Self {
        let may_be_small = part.contacts.is_planned && !is_nearest(&part.command);
        let first = if may_be_small && happens(Rare::PortionOfOne) { 1 } else { PORTION_FIRST };
        let portion = part.command.limits.rows.min(first);
        Self { part, filtering, portion, size: 0, last_size: 0, replicas: Vec::new(), confirmed: Vec::new() }
    }

    /// The parts that this one, the rest of a range, was planned as. Their first portions are no
    /// larger than its own.
    pub fn planned_as(&self, parts: Vec<Part>, wanted_rows: Option<&WantedRows>) -> Vec<Self> {
        let asked = |part| {
            let asked = Self::new(part, wanted_rows);
            Self { portion: asked.portion.min(self.portion), ..asked }
        };
        parts.into_iter().map(asked).collect()
    }

    /// Whether the answers of its replicas have to be protected.
    pub fn is_protected(&self) -> bool {
        self.filtering.as_ref().is_some_and(|filtering| filtering.needs_protection)
    }

    /// The question that a command of this part is to a replica.
    pub fn question(&self, command: &ReadCommand) -> Arc<ReadRequest> {
        let mut question = ReadRequest::of(command);
        self.filtering.iter().for_each(|filtering| filtering.add_to(&mut question));
        Arc::new(question)
    }

    /// The same part with a first portion of so many rows.
    #[cfg(test)]
    pub fn in_portions_of(self, rows: u32) -> Self {
        Self { portion: rows, ..self }
    }

    /// The limits of the next portion.
    fn limits(&self) -> DataLimits {
        DataLimits { rows: self.portion, ..self.part.command.limits }
    }

    /// The command that begins the part.
    pub fn first(&self) -> ReadCommand {
        ReadCommand { limits: self.limits(), ..self.part.command.clone() }
    }

    /// The command that asks a replica for what it lacks; None: there can be nothing more.
    pub fn further(&self, further: &FurtherRead) -> Option<ReadCommand> {
        let command = &self.part.command;
        let limits = self.limits();
        match further {
            FurtherRead::Rows { key, after, .. } => {
                let slices = command.slices.behind(after, command.reversed, &command.table.comparator);
                let range = PartitionRange::Key(key.clone());
                (!slices.0.is_empty()).then(|| ReadCommand { range, slices, limits, ..command.clone() })
            }
            FurtherRead::Partitions { after, .. } => {
                let PartitionRange::Range { end, .. } = &command.range else { return None };
                let start = RingBound::Key { key: after.clone(), inclusive: false };
                let range = PartitionRange::Range { start, end: end.clone() };
                Some(ReadCommand { range, limits, ..command.clone() })
            }
        }
    }

    /// Takes the first answer of a replica.
    pub fn add_first(&mut self, contact: Contact, command: &ReadCommand, portion: Portion) -> Result<(), ReadError> {
        self.weigh(&portion);
        let mut answers = Answers::new(&command.table, command.now);
        answers.add_partitions(portion.replay, &command.range, counted_limits(command))?;
        self.replicas.push((contact, answers));
        Ok(())
    }

    /// Takes what a replica has answered to [`Self::further`].
    pub fn add_further(
        &mut self,
        further: &FurtherRead,
        command: &ReadCommand,
        portion: Portion,
    ) -> Result<(), ReadError> {
        self.weigh(&portion);
        let Some((_, answers)) = self.replicas.get_mut(further.replica()) else { return Ok(()) };
        match further {
            FurtherRead::Rows { key, .. } => answers.add_rows(portion.replay, key, counted_limits(command)),
            FurtherRead::Partitions { .. } => {
                answers.add_partitions(portion.replay, &command.range, counted_limits(command))
            }
        }
    }

    /// Notes that a replica has nothing more of what it lacks.
    pub fn add_nothing(&mut self, further: &FurtherRead) {
        let Some((_, answers)) = self.replicas.get_mut(further.replica()) else { return };
        match further {
            FurtherRead::Rows { key, .. } => answers.has_all_rows(key),
            FurtherRead::Partitions { .. } => answers.has_all_partitions(),
        }
    }

    /// Each replica whose digest was the same gets that answer as its own, because from now on they
    /// are asked for data. Gives whether there were such replicas.
    pub fn spread(&mut self) -> bool {
        let Some((_, answers)) = self.replicas.first().cloned() else { return false };
        let confirmed = std::mem::take(&mut self.confirmed);
        let had_any = !confirmed.is_empty();
        self.replicas.extend(confirmed.into_iter().map(|contact| (contact, answers.clone())));
        had_any
    }

    fn weigh(&mut self, portion: &Portion) {
        self.size += portion.size;
        self.last_size = self.last_size.max(portion.size);
    }

    /// Whether a partition belongs to the part.
    pub fn has(&self, key: &DecoratedKey) -> bool {
        self.part.command.range.contains(key)
    }

    /// The first portion is a small one, except of a search for the nearest, whose replicas are
    /// asked once. A read of several replicas that needs more than its first portion asks all of
    /// them for data.
    pub fn begin_small(&mut self) {
        if !is_nearest(&self.part.command) {
            self.portion = self.portion.min(PORTION_SMALL);
        }
    }

    /// The first portion is smaller where more than `usual` parts are asked for at once: all of
    /// them together have no more rows than `usual` portions.
    pub fn limit_first_portion(&mut self, parts: usize, usual: usize) {
        if parts > usual && !is_nearest(&self.part.command) {
            let share = PORTION_FIRST as usize * usual / parts;
            self.portion = self.portion.min(u32::try_from(share).unwrap_or(PORTION_FIRST));
        }
    }

    /// A part that has not been asked for begins with a portion of the usual size; the next further
    /// portion of another is twice that.
    pub fn grow_large(&mut self) {
        self.portion = self.portion.max(PORTION_FIRST.min(self.part.command.limits.rows));
    }

    /// The next portion is twice as large, or smaller if the last one was large. Portions of
    /// answers that are protected do not grow: all rows of such a portion are held and may be read
    /// again, and a read that holds too many is refused.
    pub fn grow(&mut self) {
        let most = if self.is_protected() { PORTION_FIRST } else { PORTION_MAX };
        let is_large = std::mem::take(&mut self.last_size) > PORTION_SIZE;
        let portion = if is_large { self.portion / 2 } else { self.portion.saturating_mul(2) };
        self.portion = portion.clamp(1, most).min(self.part.command.limits.rows);
    }

    /// The parts that are left behind a partition, or behind a row of it; None: from the
    /// partition's first row on. `leaves`: nothing more of the partition itself is wanted.
    pub fn behind(&self, key: &DecoratedKey, row: Option<&ClusteringValues>, leaves: bool) -> Vec<PartRead> {
        let command = &self.part.command;
        let mut parts = Vec::with_capacity(2);
        let slices = match row {
            Some(row) => command.slices.behind(row, command.reversed, &command.table.comparator),
            None => command.slices.clone(),
        };
        if !leaves && (row.is_none() || !slices.0.is_empty()) {
            let range = PartitionRange::Key(key.clone());
            parts.push(ReadCommand { range, slices, ..command.clone() });
        }
        if let PartitionRange::Range { end, .. } = &command.range {
            let start = RingBound::Key { key: key.clone(), inclusive: false };
            let range = PartitionRange::Range { start, end: end.clone() };
            parts.push(ReadCommand { range, ..command.clone() });
        }
        let asked = |command| {
            let part = Part { command, contacts: self.part.contacts.clone() };
            let mut asked =
                Self { portion: self.portion, last_size: self.last_size, ..Self::of(part, self.filtering.clone()) };
            asked.grow();
            asked
        };
        parts.into_iter().map(asked).collect()
    }
}

/// The partitions of an answer.
#[derive(Clone)]
pub(super) enum Data {
    /// The data as it came from another node.
    Encoded(Bytes),
    /// The rows as this node has read them for itself.
    Buffered(BufferedRows),
}

impl Default for Data {
    /// Empty bytes, which are no valid answer.
    fn default() -> Self {
        Self::Encoded(Bytes::new())
    }
}

impl Data {
    /// Bytes of the data.
    pub fn size(&self) -> usize {
        match self {
            Self::Encoded(bytes) => bytes.len(),
            Self::Buffered(rows) => rows.size(),
        }
    }

    /// The partitions, which answer a request.
    pub fn stream(&self, request: &ReadRequest) -> Box<dyn PartitionStream> {
        match self {
            Self::Encoded(bytes) => Box::new(data_stream(bytes.clone(), request)),
            Self::Buffered(rows) => Box::new(rows.stream()),
        }
    }
}

/// The data of one answer.
pub(super) struct Portion {
    replay: Replay,
    /// Bytes of the data.
    pub size: usize,
}

impl Portion {
    /// The data of an answer to a request.
    pub fn new(data: Data, request: &Arc<ReadRequest>) -> Self {
        let (size, request) = (data.size(), Arc::clone(request));
        Self { replay: Arc::new(move || data.stream(&request)), size }
    }
}

/// Answers that have to be asked for before a read can go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Missing {
    /// No replica of the part at this position has been asked.
    Part(usize),
    /// Further portions of the part at this position.
    Further(usize, Vec<FurtherRead>),
}

/// Data that replicas of a part lack of what was read of it.
pub(super) struct ReadRepair {
    /// Each replica that was read with what it lacks.
    pub of_replicas: Vec<(Contact, Vec<PartitionUpdate>)>,
    /// Replicas whose answers were not read, those first that were not asked.
    pub others: Vec<Contact>,
}

/// The stream of all parts. A partition whose rest is the next part is given as one.
pub(super) struct ReadingStream {
    parts: Arc<Vec<PartRead>>,
    next: usize,
    current: Option<ReplicaMerge>,
    /// The partition that was given last; None: none was given yet.
    at: Option<DecoratedKey>,
    /// The next partition, if it was met in search of more rows of the last one.
    held: Option<PartitionHead>,
    missing: Option<Missing>,
    repairs: Vec<ReadRepair>,
    /// Live rows and tombstones that were given.
    counts: [u64; 2],
}

impl ReadingStream {
    pub fn new(parts: &Arc<Vec<PartRead>>) -> Self {
        let parts = Arc::clone(parts);
        Self { parts, next: 0, current: None, at: None, held: None, missing: None, repairs: Vec::new(), counts: [0; 2] }
    }

    /// Live rows and tombstones that were given.
    pub fn counts(&self) -> [u64; 2] {
        self.counts
    }

    fn count(&mut self, item: &Unfiltered) {
        let (is_live, tombstones) = match item {
            Unfiltered::Row(row) => {
                let command = &self.parts[self.next - 1].part.command;
                counted(row, &command.table, command.now)
            }
            Unfiltered::Marker(_) => (false, 1),
        };
        self.counts[0] += u64::from(is_live);
        self.counts[1] += tombstones;
    }

    fn end_part(&mut self) {
        let Some(merge) = self.current.take() else { return };
        let asked = &self.parts[self.next - 1];
        let lacking = merge.differences();
        if is_blocking(&asked.part.command.table) && lacking.iter().any(|updates| !updates.is_empty()) {
            let contacts = asked.replicas.iter().map(|(contact, _)| *contact);
            let is_read = |other: &&Contact| asked.replicas.iter().any(|(contact, _)| contact == *other);
            let all = asked.part.contacts.spare.iter().chain(&asked.part.contacts.asked);
            let others = all.filter(|other| !is_read(other)).copied().collect();
            self.repairs.push(ReadRepair { of_replicas: contacts.zip(lacking).collect(), others });
        }
    }

    /// Ends the stream: what was missing if it ended early, and what replicas lack of what was
    /// read.
    pub fn end(mut self) -> (Option<Missing>, Vec<ReadRepair>) {
        self.end_part();
        (self.missing, self.repairs)
    }

    /// Goes to the next part; false: there is none.
    fn open(&mut self) -> Result<bool, ReadError> {
        let Some(asked) = self.parts.get(self.next) else { return Ok(false) };
        if asked.replicas.is_empty() {
            self.missing = Some(Missing::Part(self.next));
            return Err(ReadError::WouldBlock);
        }
        let command = &asked.part.command;
        let answers: Vec<Answers> = asked.replicas.iter().map(|(_, answers)| answers.clone()).collect();
        self.current = Some(ReplicaMerge::new(&command.table, &answers, command.reversed, &command.columns));
        self.next += 1;
        Ok(true)
    }

    /// Whether the next part is the rest of the last partition.
    fn rest_is_next(&self) -> bool {
        let next = self.parts.get(self.next).map(|asked| &asked.part.command.range);
        matches!((next, &self.at), (Some(PartitionRange::Key(key)), Some(at)) if key == at)
    }

    /// Goes to the rest of the last partition; false: nothing more of it is there.
    fn find_rest(&mut self) -> Result<bool, ReadError> {
        while self.held.is_none() && self.rest_is_next() {
            if let Some(current) = &mut self.current {
                let next = current.next_partition();
                self.held = self.noted(next)?;
                if self.held.is_some() {
                    return Ok(false);
                }
                self.end_part();
            }
            if !self.open()? {
                return Ok(false);
            }
            let Some(current) = &mut self.current else { return Ok(false) };
            let next = current.next_partition();
            if let Some(head) = self.noted(next)? {
                let is_rest = self.at.as_ref() == Some(&head.key);
                self.held = Some(head).filter(|_| !is_rest);
                return Ok(is_rest);
            }
        }
        Ok(false)
    }

    /// Notes what the merge lacks where it has ended early.
    fn noted<T>(&mut self, result: Result<T, ReadError>) -> Result<T, ReadError> {
        if let (Err(ReadError::WouldBlock), Some(merge)) = (&result, &self.current) {
            self.missing = Some(Missing::Further(self.next - 1, merge.further_reads().to_vec()));
        }
        result
    }
}

impl PartitionStream for ReadingStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if let Some(head) = self.held.take() {
            self.at = Some(head.key.clone());
            return Ok(Some(head));
        }
        loop {
            if let Some(current) = &mut self.current {
                let next = current.next_partition();
                if let Some(head) = self.noted(next)? {
                    self.at = Some(head.key.clone());
                    return Ok(Some(head));
                }
                self.end_part();
            }
            // who leaves a partition early wants no rest of it, so nobody is asked for that
            while self.rest_is_next() {
                self.next += 1;
            }
            if !self.open()? {
                return Ok(None);
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        while let Some(current) = self.current.as_mut().filter(|_| self.held.is_none()) {
            let next = current.next_unfiltered();
            if let Some(item) = self.noted(next)? {
                self.count(&item);
                return Ok(Some(item));
            }
            if !self.find_rest()? {
                break;
            }
        }
        Ok(None)
    }
}
