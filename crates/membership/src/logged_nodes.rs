//! Nodes of other rings that speak to this one: when the log names each of them.
//!
//! A stranger that has this node among its seeds comes back with every round of gossip. The log
//! names it once in [`LOG_REPEAT_INTERVAL`]; otherwise a second cluster would fill the log.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Time after which the log names the same stranger again.
const LOG_REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// Most strangers that are remembered. Beyond this number all are forgotten, and may be named
/// again.
const LOGGED_MAX: usize = 256;

/// When the log named each stranger last, in monotonic time.
#[derive(Default)]
pub(crate) struct LoggedNodes(HashMap<SocketAddr, Duration>);

impl LoggedNodes {
    /// Whether the log has to name a stranger now.
    pub(crate) fn is_to_be_logged(&mut self, stranger: SocketAddr, now: Duration) -> bool {
        if self.0.get(&stranger).is_some_and(|told| now.saturating_sub(*told) < LOG_REPEAT_INTERVAL) {
            return false;
        }
        if self.0.len() >= LOGGED_MAX {
            self.0.clear();
        }
        self.0.insert(stranger, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_is_told_of_once_a_minute() {
        let mut logged_nodes = LoggedNodes::default();
        let stranger = |number: u16| SocketAddr::from(([10, 0, 0, 1], number));
        let told: Vec<_> =
            (0..130).filter(|second| logged_nodes.is_to_be_logged(stranger(1), Duration::from_secs(*second))).collect();
        assert_eq!(told, [0, 60, 120]);
        assert!((2..2_000).all(|number| logged_nodes.is_to_be_logged(stranger(number), Duration::from_secs(130))));
        assert!(logged_nodes.0.len() <= LOGGED_MAX);
    }
}
