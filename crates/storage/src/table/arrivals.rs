//! SSTables that are about to be added to a table, while the table's indexes have the entries of
//! their rows already.
//!
//! An entry without its row looks stale. A reader that finds such an entry must not remove it,
//! because the row comes a moment later. It remembers the count of arrivals from before it read
//! the entries ([`Arrivals::settled`]), and removes nothing if an arrival was under way then or
//! has begun since.

use std::sync::Arc;

use super::TableStore;
use env::sync::atomic::{AtomicU64, Ordering};

/// Counts of arrivals since the start of the process. Both only grow.
#[derive(Default)]
pub(crate) struct Arrivals {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Arrivals {
    /// The number of arrivals so far; None: one is under way.
    pub(crate) fn settled(&self) -> Option<u64> {
        // `ended` is read first: an arrival that ends in between counts as under way
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }
}

/// An arrival under way: from before the first entry until the SSTables can be read or are given
/// up.
pub(crate) struct Arrival(Arc<TableStore>);

impl Arrival {
    /// Begins an arrival; dropping it ends it.
    pub(crate) fn begin(store: &Arc<TableStore>) -> Self {
        store.arrivals.begun.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(store))
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let arrivals = &self.0.arrivals;
        let ended = arrivals.ended.fetch_add(1, Ordering::SeqCst);
        let had_begun = ended < arrivals.begun.load(Ordering::SeqCst);
        // where a panic drops the arrival, another panic would abort the process
        assert!(had_begun || std::thread::panicking(), "an arrival ends once");
    }
}

#[cfg(test)]
mod tests {
    use super::Arrivals;
    use std::sync::atomic::Ordering;

    #[test]
    fn an_arrival_under_way_is_not_settled_and_one_that_has_ended_counts() {
        let arrivals = Arrivals::default();
        assert_eq!(arrivals.settled(), Some(0));
        arrivals.begun.fetch_add(2, Ordering::SeqCst);
        arrivals.ended.fetch_add(1, Ordering::SeqCst);
        assert_eq!(arrivals.settled(), None);
        arrivals.ended.fetch_add(1, Ordering::SeqCst);
        assert_eq!(arrivals.settled(), Some(2));
    }
}
