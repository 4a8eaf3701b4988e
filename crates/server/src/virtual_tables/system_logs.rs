//! `system_logs`: the last lines of the log, newest first. Agrees with `LogMessagesTable`; the
//! lines are kept by [`crate::log_lines::LogLines`]. TRUNCATE forgets the lines.

use super::row::VirtualRow;
use super::{Mutable, VirtualTable};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable {
    newest_first: true,
    mutable: Some(Mutable { delete_partition: None, truncate: |services| services.log.clear() }),
    ..VirtualTable::of_views("system_logs", rows)
}];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let mut before = None;
    let mut order = 0;
    let mut rows = Vec::new();
    services.log.for_each(|line| {
        order = if before == Some(line.at_millis) { order + 1 } else { 0 };
        before = Some(line.at_millis);
        rows.push(
            VirtualRow::default()
                .bigint("timestamp", line.at_millis)
                .int("order_in_millisecond", order)
                .text("level", line.level)
                .text("logger", line.logger)
                .text("message", &line.message),
        );
    });
    rows
}
