//! `system_logs`: the last lines of the log, newest first. Agrees with `LogMessagesTable`; the
//! lines are kept by [`crate::log_lines::LogLines`]. TRUNCATE forgets the lines.

use std::collections::BTreeMap;

use super::row::VirtualRow;
use super::{Mutable, VirtualTable};
use crate::log_lines::LogLines;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable {
    newest_first: true,
    mutable: Some(Mutable { delete_partition: None, truncate: |services| services.log.clear() }),
    ..VirtualTable::of_views("system_logs", |services| rows(&services.log))
}];

fn rows(log: &LogLines) -> Vec<VirtualRow> {
    // lines of one millisecond need not stand side by side: threads take the time before they have
    // their turn to write, and a clock may be set back
    let mut orders: BTreeMap<i64, i32> = BTreeMap::new();
    let mut rows = Vec::new();
    log.for_each(|line| {
        let order = orders.entry(line.at_millis).and_modify(|order| *order += 1).or_default();
        rows.push(
            VirtualRow::default()
                .bigint("timestamp", line.at_millis)
                .int("order_in_millisecond", *order)
                .text("level", line.level)
                .text("logger", line.logger)
                .text("message", &line.message),
        );
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_lines::LogLine;

    /// Three threads write, and the second has its turn before the first.
    #[test]
    fn each_line_is_a_row() {
        let log = LogLines::default();
        for (at_millis, message) in [(6, "second"), (5, "first"), (6, "third")] {
            log.push(LogLine { at_millis, level: "INFO", logger: "test", message: message.to_owned() });
        }
        let key = |row: &VirtualRow| ["timestamp", "order_in_millisecond"].map(|column| row.get(column).cloned());
        let rows = rows(&log);
        assert_eq!((rows.len(), key(&rows[0])[0].clone()), (3, key(&rows[2])[0].clone()));
        assert_ne!(key(&rows[0]), key(&rows[2]));
    }
}
