//! A link: the time for which a segment is under way, and whether it arrives.

use super::super::random::SimRandom;
use super::State;
use crate::Random;

/// One way from a machine to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The shortest time under way, microseconds.
    pub delay_min_micros: u64,
    /// The longest time under way, microseconds.
    pub delay_max_micros: u64,
    /// Percentage of the segments that are lost and have to be sent again.
    pub loss_percent: u64,
    /// Bytes a second that one connection gets; 0: no limit.
    pub bytes_per_second: u64,
}

impl Default for Link {
    /// A link on which no time passes, and nothing is lost.
    fn default() -> Self {
        Link { delay_min_micros: 0, delay_max_micros: 0, loss_percent: 0, bytes_per_second: 0 }
    }
}

impl Link {
    /// Machines beside each other: 50 to 500 microseconds.
    pub const NEAR: Link = Link { delay_min_micros: 50, delay_max_micros: 500, loss_percent: 0, bytes_per_second: 0 };

    /// Draws the time for which a segment is under way, nanoseconds.
    pub(super) fn draw_delay(&self, random: &SimRandom) -> u64 {
        let spread = self.delay_max_micros.saturating_sub(self.delay_min_micros) * 1000;
        let drawn = if spread == 0 { 0 } else { random.below(spread) };
        self.delay_min_micros * 1000 + drawn
    }

    /// Nanoseconds that it takes to put so many bytes on the link.
    pub(super) fn time_of(&self, bytes: usize) -> u64 {
        (bytes as u64 * 1_000_000_000).checked_div(self.bytes_per_second).unwrap_or(0)
    }
}

impl State {
    pub(super) fn link(&self, from: usize, to: usize) -> Link {
        let of_way = (from, to);
        self.links.get(&of_way).or_else(|| self.lasting.get(&of_way)).copied().unwrap_or(self.usual)
    }
}
