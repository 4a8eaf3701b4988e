//! Texts for the console: slow statements, lines of the log, CREATE statements.

use std::collections::VecDeque;

use admin::verbs::{GetLog, GetSchema, GetSlowStatements, LogEntry, SchemaObject, SlowStatements};
use admin::{Functions, Result};
use schema::describe;

use super::{NodeAdmin, invalid};

/// Most lines of the log in one answer. A caller that asks for more gets the newest of them.
const LINES_MAX: usize = 2_000;
/// The levels of the log, the gravest first.
const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(slow_statements).add(log).add(schema);
}

fn slow_statements(admin: &NodeAdmin, _: &GetSlowStatements) -> Result<SlowStatements> {
    let threshold = admin.services.config.timeouts.slow_query_log;
    Ok(SlowStatements {
        threshold_millis: threshold.map(|one| u64::try_from(one.as_millis()).unwrap_or(u64::MAX)),
        statements: admin.services.slow.reported(),
    })
}

fn log(admin: &NodeAdmin, request: &GetLog) -> Result<Vec<LogEntry>> {
    let rank = |level: &str| LEVELS.iter().position(|known| known.eq_ignore_ascii_case(level));
    let least = match request.level.as_deref().filter(|level| !level.is_empty()) {
        None => LEVELS.len(),
        Some(level) => match rank(level) {
            Some(rank) => rank,
            None => return invalid(format!("'{level}' is no level")),
        },
    };
    let wanted = request.text.as_deref().unwrap_or_default().to_lowercase();
    let count = usize::try_from(request.count).unwrap_or(usize::MAX).min(LINES_MAX);
    let mut lines = VecDeque::new();
    admin.services.log.for_each(|line| {
        let is_wanted = rank(line.level).is_none_or(|rank| rank <= least)
            && (wanted.is_empty() || line.message.to_lowercase().contains(&wanted));
        if is_wanted && count > 0 {
            if lines.len() == count {
                lines.pop_front();
            }
            lines.push_back(LogEntry {
                at_millis: line.at_millis,
                level: line.level.to_owned(),
                logger: line.logger.to_owned(),
                message: line.message.clone(),
            });
        }
    });
    Ok(lines.into())
}

fn schema(admin: &NodeAdmin, request: &GetSchema) -> Result<Vec<SchemaObject>> {
    let schema = admin.services.node.schema();
    let Some(keyspace) = schema.keyspace(&request.keyspace) else {
        return invalid(format!("Keyspace [{}] does not exist.", request.keyspace));
    };
    let object =
        |kind: &str, name: &str, create: String| SchemaObject { kind: kind.to_owned(), name: name.to_owned(), create };
    let mut objects = vec![object("keyspace", &keyspace.name, describe::keyspace(keyspace))];
    let types = describe::types_by_dependency(keyspace);
    objects.extend(types.iter().map(|one| object("type", &one.name, describe::user_type(one))));
    for table in keyspace.tables.values() {
        match &table.view {
            Some(view) => objects.push(object("view", &table.name, describe::view(table, view, false))),
            None => {
                let indexes = table.indexes.values().map(|index| describe::index(table, index));
                let create = std::iter::once(describe::table(table, false)).chain(indexes).collect::<Vec<_>>();
                objects.push(object("table", &table.name, create.join("\n\n")));
            }
        }
    }
    Ok(objects)
}
