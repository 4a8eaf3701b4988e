//! SSTables that are about to be added to a table, while the table's indexes have the entries of
//! their rows already.
//!
//! An entry without its row looks stale. A reader that finds such an entry must not remove it,
//! because the row comes a moment later. It remembers the count of prefills from before it read
//! the entries ([`PrefillCounts::settled`]), and removes nothing if a prefill was under way
//! then or has begun since.

use std::sync::Arc;

use super::TableStore;
use env::sync::atomic::{AtomicU64, Ordering};

/// Counts of prefills since the start of the process. Both only grow.
#[derive(Default)]
pub(crate) struct PrefillCounts {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl PrefillCounts {
    /// The number of prefills so far; None: one is under way.
    pub(crate) fn settled(&self) -> Option<u64> {
        // `ended` is read first: a prefill that ends in between counts as under way
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }
}

/// A prefill under way: from before the first entry until the SSTables can be read or are given
/// up.
pub(crate) struct PrefillGuard(Arc<TableStore>);

impl PrefillGuard {
    /// Begins a prefill; dropping it ends it.
    pub(crate) fn begin(store: &Arc<TableStore>) -> Self {
        store.prefills.begun.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(store))
    }
}

impl Drop for PrefillGuard {
    fn drop(&mut self) {
        let prefills = &self.0.prefills;
        let ended = prefills.ended.fetch_add(1, Ordering::SeqCst);
        let had_begun = ended < prefills.begun.load(Ordering::SeqCst);
        // where a panic drops the prefill, another panic would abort the process
        assert!(had_begun || std::thread::panicking(), "an arrival ends once");
    }
}

#[cfg(test)]
mod tests {
    use super::PrefillCounts;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_prefill_under_way_is_not_settled_and_one_that_has_ended_counts() {
        let prefills = PrefillCounts::default();
        assert_eq!(prefills.settled(), Some(0));
        prefills.begun.fetch_add(2, Ordering::SeqCst);
        prefills.ended.fetch_add(1, Ordering::SeqCst);
        assert_eq!(prefills.settled(), None);
        prefills.ended.fetch_add(1, Ordering::SeqCst);
        assert_eq!(prefills.settled(), Some(2));
    }
}
