//! The last lines of the log, for `system_views.system_logs`. Agrees with `VirtualTableAppender`.
//!
//! The program's log fills the lines; the table reads and clears them. Their number and the length
//! of each are bounded: at [`LINES_MAX`] the oldest line goes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines that are kept.
const LINES_MAX: usize = 10_000;
/// Bytes of a message; longer messages are cut.
const MESSAGE_SIZE_MAX: usize = 2 << 10;

/// A line of the log.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// When it was written, milliseconds since 1970.
    pub at_millis: i64,
    /// Its level: `INFO`, `WARN` …
    pub level: &'static str,
    /// The part of the program that wrote it.
    pub logger: &'static str,
    /// Its text.
    pub message: String,
}

/// The last lines of the log.
#[derive(Debug, Default)]
pub struct LogLines {
    lines: Mutex<VecDeque<LogLine>>,
}

impl LogLines {
    /// Adds a line.
    pub fn push(&self, mut line: LogLine) {
        if line.message.len() > MESSAGE_SIZE_MAX {
            let end = (0..=MESSAGE_SIZE_MAX).rev().find(|end| line.message.is_char_boundary(*end)).unwrap_or(0);
            line.message.truncate(end);
            line.message.push('…');
        }
        let mut lines = self.lock();
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Calls a function with each line, the oldest first.
    pub fn for_each(&self, visit: impl FnMut(&LogLine)) {
        self.lock().iter().for_each(visit);
    }

    /// Forgets all lines.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<LogLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: String) -> LogLine {
        LogLine { at_millis: 1, level: "INFO", logger: "test", message }
    }

    #[test]
    fn the_oldest_line_goes_and_long_ones_are_cut() {
        let lines = LogLines::default();
        (0..=LINES_MAX).for_each(|number| lines.push(line(number.to_string())));
        lines.push(line("ä".repeat(MESSAGE_SIZE_MAX)));
        let mut found = Vec::new();
        lines.for_each(|line| found.push(line.message.clone()));
        assert_eq!((found.len(), found[0].as_str()), (LINES_MAX, "2"));
        assert_eq!(found[LINES_MAX - 1].chars().count(), MESSAGE_SIZE_MAX / 2 + 1);
        lines.clear();
        lines.for_each(|_| unreachable!("there is none"));
    }
}
