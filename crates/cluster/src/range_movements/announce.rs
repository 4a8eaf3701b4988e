//! Telling the others of a change of the ring, and waiting until their plans count on it.
//!
//! Cassandra waits for `ring_delay` (30 seconds) after each announcement. Here the wait ends
//! earlier where every live node has shown by gossip that it knows, and writes that it planned
//! before have ended or timed out: any node that knows the status has it in its plans, Helenus or
//! Cassandra. It lasts longer while this node joins and a live node has not shown that it knows: a
//! Cassandra that saw this node die while it joined ignores it for a minute, and writes meanwhile
//! to others only. A member is ignored by nobody.

use std::time::Duration;

use crate::node::Node;

/// Time between two looks at which nodes know of the change.
const LOOK: Duration = Duration::from_millis(50);

/// Time after which a node that has heard of a change by gossip has made new plans. Cassandra
/// makes them on a thread of their own.
const PLANNING: Duration = Duration::from_secs(1);

/// The longest wait for nodes that have not shown that they know: the minute for which an endpoint
/// that was removed is ignored, and some rounds.
const UNAWARE_MAX: Duration = gossip::options::QUARANTINE.saturating_add(Duration::from_secs(10));

impl Node {
    /// Changes what this node tells of itself. The own ring snapshot follows.
    pub(crate) fn announce(&self, change: impl FnOnce(&mut gossip::Local)) {
        if let Some(messenger) = self.messenger() {
            messenger.with_gossip(|gossip| {
                change(&mut gossip.local);
                self.follow(gossip);
            });
        }
    }

    /// Waits until all live nodes know what this one tells now, and writes that they planned before
    /// have ended. Both together take `ring_delay` at most. Only a node that joins waits longer
    /// for live nodes that do not show that they know it, up to [`UNAWARE_MAX`].
    pub(crate) async fn wait_until_known(&self) {
        if self.messenger().is_none() {
            return;
        }
        let limit = self.membership_state.movements.settings().ring_delay;
        let begun = self.env.now();
        self.wait_until_aware().await;
        let timeouts = self.timeouts();
        let planned_before = timeouts.write.max(timeouts.counter_write) + PLANNING;
        let known_late = self.env.elapsed(begun) > limit;
        let rest = if known_late { planned_before } else { limit.saturating_sub(self.env.elapsed(begun)) };
        self.env.sleep(rest.min(planned_before)).await;
    }

    /// Waits until all live nodes have shown that they know what this one tells now, as long as
    /// [`Self::wait_until_known`] does for that. Writes that they planned before may go on.
    pub(crate) async fn wait_until_aware(&self) {
        let Some(messenger) = self.messenger() else { return };
        let limit = self.membership_state.movements.settings().ring_delay;
        let begun = self.env.now();
        let version = messenger.with_gossip(|gossip| gossip.local.state().max_version());
        let unaware = || messenger.with_gossip(|gossip| gossip.unaware_of(version).collect::<Vec<_>>());
        let longest = if self.ring.load().local().owns_tokens() { limit } else { limit.max(UNAWARE_MAX) };
        while self.env.elapsed(begun) < longest && !unaware().is_empty() {
            self.env.sleep(LOOK).await;
        }
        tracing::info!(
            waited = ?self.env.elapsed(begun),
            unaware = ?unaware(),
            "the others have been told of the change of the ring"
        );
    }
}
