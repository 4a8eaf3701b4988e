//! A read among several nodes that is too large to be kept: a sum over a table, a search that looks
//! at every row.
//!
//! What builds the answer runs on a thread for long jobs and waits there for portions, which
//! [`super::distributed_read`] asks for and hands over ([`run`]). The portion of this node is read
//! on such a thread, too, and so are those that this node gives to the scans of others. So only
//! [`SCANS_MAX`] scans have a thread at one time, and the others wait for their turn: if scans
//! held all the threads, no portion could be read, and no scan would go on.
//!
//! A scan drops each portion that it has read. Where a replica's portion has come to its end, the
//! scan asks for the next portion behind the last row that it has given, as if a new page began
//! there. So a scan holds one portion of each replica, and no row is read twice.
//!
//! A scan gives the rows and deletions of the merge. It gives a range tombstone that is open where
//! it goes on as two, of which the first is not closed: whoever reads a scan looks at live rows.

use std::sync::Arc;
use std::time::Duration;

use env::{Env, LONG_THREADS_MAX};
use futures_util::future::{Either, select};
use rows::{Build, BuildResult, ClusteringValues, PartitionHead, PartitionStream, ReadError, Unfiltered};
use tokio::sync::{Semaphore, mpsc, oneshot};
use types::DecoratedKey;

use super::part_read::{Missing, PartRead, ReadRepair, ReadingStream};
use crate::replica::apply::within;

/// Scans of one node that have a thread for long jobs at one time. The other half of these threads
/// reads the portions that scans wait for.
pub(crate) const SCANS_MAX: usize = LONG_THREADS_MAX / 2;

/// A request for the portions that a scan needs before it can go on.
pub(super) struct FetchRequest {
    /// The parts that are left to read.
    pub parts: Vec<PartRead>,
    /// The answers that are missing of these parts.
    pub missing: Missing,
    /// Data that replicas lack of what was read.
    pub repairs: Vec<ReadRepair>,
}

/// A scan that has ended.
pub(super) struct ScanOutcome<B: Build> {
    /// The result that was built.
    pub result: BuildResult<B>,
    /// Data that replicas lack of what was read last.
    pub repairs: Vec<ReadRepair>,
    /// Live rows and tombstones that were read.
    pub counts: [u64; 2],
}

/// Why a scan was stopped before its end.
#[derive(Debug)]
pub(super) enum ScanError<E> {
    /// The time of the read was over.
    TimedOut,
    /// There was no thread for the scan.
    Overloaded,
    /// The portions could not be fetched.
    Fetch(E),
}

/// Builds something from a scan of these parts on a thread for long jobs. `turns` has one permit
/// for each scan that may have such a thread, `rest` gives the time that the read still has, and
/// `fetch_portions` carries out a request and gives the parts with what was missing.
pub(super) async fn run<B: Build, E>(
    env: &Env,
    turns: &Arc<Semaphore>,
    rest: impl Fn() -> Duration,
    parts: Arc<Vec<PartRead>>,
    build: Arc<B>,
    mut fetch_portions: impl AsyncFnMut(FetchRequest) -> Result<Vec<PartRead>, E>,
) -> Result<ScanOutcome<B>, ScanError<E>> {
    let turn = within(env, rest(), Arc::clone(turns).acquire_owned()).await.ok_or(ScanError::<E>::TimedOut)?;
    let turn = turn.map_err(|_| ScanError::<E>::Overloaded)?;
    let (requests, mut requested) = mpsc::channel::<(FetchRequest, oneshot::Sender<Vec<PartRead>>)>(1);
    let job = move || {
        // held until the thread is free again, also where nobody waits for the scan any more
        let _turn = turn;
        let fetch = |request| {
            let (tell, told) = oneshot::channel();
            requests.blocking_send((request, tell)).map_err(|_| ReadError::Stopped)?;
            told.blocking_recv().map_err(|_| ReadError::Stopped)
        };
        let mut stream = ScanStream::new(parts, fetch);
        let result = build.build(&mut stream);
        let counts = stream.counts();
        ScanOutcome { result, repairs: stream.finish(), counts }
    };
    let mut job = Box::pin(env.blocking_long("scan of replicas", job));
    let ended = loop {
        let next = select(&mut job, Box::pin(requested.recv()));
        match within(env, rest(), next).await.ok_or(ScanError::<E>::TimedOut)? {
            Either::Left((ended, _)) => break ended,
            Either::Right((Some((request, tell)), _)) => {
                let parts = fetch_portions(request).await.map_err(ScanError::Fetch)?;
                // a scan that was stopped does not take them
                let _ = tell.send(parts);
            }
            // the scan makes no more requests and is about to end
            Either::Right((None, _)) => break within(env, rest(), &mut job).await.ok_or(ScanError::<E>::TimedOut)?,
        }
    };
    ended.map_err(|_| ScanError::<E>::Overloaded)
}

/// The stream of a scan. `F` carries out a request, and gives the parts with what was missing.
pub(super) struct ScanStream<F> {
    fetch: F,
    parts: Arc<Vec<PartRead>>,
    reading: ReadingStream,
    /// The current partition, and the last row of it that was given.
    at: Option<(DecoratedKey, Option<ClusteringValues>)>,
    /// The value of `at` when `reading` began.
    began: Option<(DecoratedKey, Option<ClusteringValues>)>,
    /// The next partition, if it was met in search of more rows of the current one.
    held: Option<PartitionHead>,
    /// All rows of the current partition were given.
    is_ended: bool,
    /// Live rows and tombstones that readings before this one have given.
    counts: [u64; 2],
}

impl<F: FnMut(FetchRequest) -> Result<Vec<PartRead>, ReadError>> ScanStream<F> {
    /// A scan of these parts.
    pub fn new(parts: Arc<Vec<PartRead>>, fetch: F) -> Self {
        let reading = ReadingStream::new(&parts);
        Self { fetch, parts, reading, at: None, began: None, held: None, is_ended: true, counts: [0; 2] }
    }

    /// Live rows and tombstones that were given.
    pub fn counts(&self) -> [u64; 2] {
        let [rows, tombstones] = self.reading.counts();
        [self.counts[0] + rows, self.counts[1] + tombstones]
    }

    /// Ends the scan: what replicas lack of what was read last.
    pub fn finish(self) -> Vec<ReadRepair> {
        self.reading.end().1
    }

    /// Asks for what is missing. `leaves`: no further rows of the current partition are wanted.
    fn go_on(&mut self, leaves: bool) -> Result<(), ReadError> {
        self.counts = self.counts();
        let ended = std::mem::replace(&mut self.reading, ReadingStream::new(&Arc::default()));
        let (missing, mut repairs) = ended.end();
        let missing = missing.ok_or(ReadError::WouldBlock)?;
        let parts = Arc::unwrap_or_clone(std::mem::take(&mut self.parts));
        let (parts, missing) = match (missing, &self.at) {
            (Missing::Part(next), _) => (parts[next..].to_vec(), Missing::Part(0)),
            (Missing::Further(part, _), Some((key, row))) if self.at != self.began && parts[part].has(key) => {
                let mut left = parts[part].behind(key, row.as_ref(), leaves);
                left.extend_from_slice(&parts[part + 1..]);
                (left, Missing::Part(0))
            }
            (Missing::Further(part, lacks), _) => {
                // nothing was given of this part: it is read again, with more
                repairs.clear();
                (parts[part..].to_vec(), Missing::Further(0, lacks))
            }
        };
        self.began.clone_from(&self.at);
        if !parts.is_empty() {
            self.parts = Arc::new((self.fetch)(FetchRequest { parts, missing, repairs })?);
        }
        self.reading = ReadingStream::new(&self.parts);
        Ok(())
    }

    /// The next partition behind the current one.
    fn following(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        loop {
            match self.reading.next_partition() {
                Err(ReadError::WouldBlock) => self.go_on(true)?,
                Ok(Some(head)) if self.at.as_ref().is_some_and(|(key, _)| head.key == *key) => {}
                next => return next,
            }
        }
    }

    /// Finds the current partition again in a new reading; false: nothing more of it is there.
    fn find_again(&mut self) -> Result<bool, ReadError> {
        let next = match self.reading.next_partition() {
            // nobody has been asked for what is behind the partition
            Err(ReadError::WouldBlock) => return Ok(false),
            next => next?,
        };
        match (next, &self.at) {
            (Some(head), Some((key, _))) if head.key == *key => Ok(true),
            (next, _) => {
                self.held = next;
                Ok(false)
            }
        }
    }
}

impl<F: FnMut(FetchRequest) -> Result<Vec<PartRead>, ReadError> + Send> PartitionStream for ScanStream<F> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let next = match self.held.take() {
            None => self.following()?,
            held => held,
        };
        self.at = next.as_ref().map(|head| (head.key.clone(), None)).or(self.at.take());
        self.is_ended = next.is_none();
        Ok(next)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        while !self.is_ended {
            match self.reading.next_unfiltered() {
                Err(ReadError::WouldBlock) => {
                    self.go_on(false)?;
                    self.is_ended = !self.find_again()?;
                }
                Ok(Some(item)) => {
                    if let (Unfiltered::Row(row), Some((_, last))) = (&item, &mut self.at) {
                        *last = Some(row.clustering.clone());
                    }
                    return Ok(Some(item));
                }
                ended => {
                    self.is_ended = true;
                    return ended;
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
