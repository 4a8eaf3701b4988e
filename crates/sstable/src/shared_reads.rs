//! One read of the disk for everybody who misses the same chunk: the first one reads and
//! decompresses, the others wait for it.
//!
//! For reads that may wait. Whoever waits holds nothing; who reads holds no lock while it does.
//! When the first one fails the others try by themselves: an error is of the read that met it. Kept
//! for each open file, so that files do not meet.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use env::sync::{Condvar, Mutex, MutexGuard};
use rows::ReadError;

/// The reads of one file that are under way; few, as there are threads that may wait.
#[derive(Debug, Default)]
pub(crate) struct SharedReads(Mutex<Vec<Arc<SharedRead>>>);

#[derive(Debug)]
struct SharedRead {
    chunk: u64,
    state: Mutex<ReadState>,
    changed: Condvar,
}

#[derive(Debug)]
enum ReadState {
    Pending,
    Failed,
    Done(Bytes),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a chunk came from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// This call has read it.
    Own(Bytes),
    /// Another call has, meanwhile.
    Shared(Bytes),
}

impl SharedReads {
    /// The chunk by `read`, or by the call that is reading it.
    pub fn fetch(&self, chunk: u64, read: impl FnOnce() -> Result<Bytes, ReadError>) -> Result<Fetched, ReadError> {
        let (shared_read, is_first) = self.join(chunk);
        if is_first {
            // ends as failed if the read panics
            let mut end = ReadEnd { shared_reads: self, shared_read, bytes: None };
            let bytes = read()?;
            end.bytes = Some(bytes.clone());
            return Ok(Fetched::Own(bytes));
        }
        match shared_read.wait() {
            Some(bytes) => Ok(Fetched::Shared(bytes)),
            None => read().map(Fetched::Own),
        }
    }

    fn join(&self, chunk: u64) -> (Arc<SharedRead>, bool) {
        let mut shared_reads = lock(&self.0);
        if let Some(shared_read) = shared_reads.iter().find(|shared_read| shared_read.chunk == chunk) {
            return (Arc::clone(shared_read), false);
        }
        let shared_read =
            Arc::new(SharedRead { chunk, state: Mutex::new(ReadState::Pending), changed: Condvar::new() });
        shared_reads.push(Arc::clone(&shared_read));
        (shared_read, true)
    }
}

impl SharedRead {
    /// None: it failed.
    fn wait(&self) -> Option<Bytes> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                ReadState::Pending => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                ReadState::Failed => return None,
                ReadState::Done(bytes) => return Some(bytes.clone()),
            }
        }
    }
}

/// The end of a shared read, however it ends.
struct ReadEnd<'a> {
    shared_reads: &'a SharedReads,
    shared_read: Arc<SharedRead>,
    bytes: Option<Bytes>,
}

impl Drop for ReadEnd<'_> {
    fn drop(&mut self) {
        lock(&self.shared_reads.0).retain(|shared_read| !Arc::ptr_eq(shared_read, &self.shared_read));
        *lock(&self.shared_read.state) = self.bytes.take().map_or(ReadState::Failed, ReadState::Done);
        self.shared_read.changed.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // threads that meet
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const THREADS: usize = 8;

    /// The first reader does not come back before all others wait for it.
    fn meet(read: impl Fn(usize) -> Result<Bytes, ReadError> + Sync) -> (usize, Vec<Result<Fetched, ReadError>>) {
        let (shared_reads, reads, barrier) = (SharedReads::default(), AtomicUsize::new(0), Barrier::new(THREADS));
        let waiting = || shared_reads.0.lock().expect("no panic").first().map_or(0, Arc::strong_count);
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        shared_reads.fetch(7, || {
                            let number = reads.fetch_add(1, Ordering::SeqCst);
                            while number == 0 && waiting() < THREADS + 1 {
                                std::thread::yield_now();
                            }
                            read(number)
                        })
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(shared_reads.0.lock().expect("no panic").is_empty());
        (reads.into_inner(), results)
    }

    #[test]
    fn one_reads_for_all() {
        let bytes = Bytes::from_static(b"chunk");
        let (reads, results) = meet(|_| Ok(bytes.clone()));
        assert_eq!(reads, 1);
        let own = results.iter().filter(|result| **result == Ok(Fetched::Own(bytes.clone()))).count();
        let shared = results.iter().filter(|result| **result == Ok(Fetched::Shared(bytes.clone()))).count();
        assert_eq!((own, shared), (1, THREADS - 1));
    }

    #[test]
    fn a_failure_is_the_first_ones_only() {
        let bytes = Bytes::from_static(b"chunk");
        let (reads, results) = meet(|number| if number == 0 { Err(ReadError::TimedOut) } else { Ok(bytes.clone()) });
        assert_eq!(reads, THREADS);
        assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1);
    }

    #[test]
    fn other_chunks_do_not_wait() {
        let shared_reads = SharedReads::default();
        let inner = shared_reads.fetch(1, || {
            let other = shared_reads.fetch(2, || Ok(Bytes::from_static(b"two")))?;
            assert_eq!(other, Fetched::Own(Bytes::from_static(b"two")));
            Ok(Bytes::from_static(b"one"))
        });
        assert_eq!(inner, Ok(Fetched::Own(Bytes::from_static(b"one"))));
    }
}
