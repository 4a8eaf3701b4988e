//! `check_data_resurrection`: a node that was down for longer than the gc_grace_seconds of a table
//! is refused. Others have dropped the tombstones of what was deleted meanwhile, and the node would
//! give it back to them.
//!
//! While the node runs it writes the time into a file (`{"last_heartbeat":"2026-01-02T03:04:05Z"}`)
//! each minute. Agrees with `org.apache.cassandra.service.DataResurrectionCheck`, down to the file,
//! so that the check holds across a change from one program to the other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use config::DataResurrection;
use env::{Env, Next, Wake};
use jiff::Timestamp;
use schema::Schema;
use schema::system::is_system_keyspace;
use storage::Engine;

use crate::start_error::StartError;

/// Time between two heartbeats.
const PERIOD: Duration = Duration::from_secs(60);

/// The longest file that is read.
const SIZE_MAX: u64 = 64 << 10;

/// The file of the heartbeat.
fn file(engine: &Engine, check: &DataResurrection) -> PathBuf {
    let options = &engine.options;
    let directory = options.system_directory.as_ref().or(options.data_directories.first());
    match &check.heartbeat_file {
        Some(file) => PathBuf::from(file),
        None => directory.cloned().unwrap_or_default().join("cassandra-heartbeat"),
    }
}

/// Refuses the start of a node that was away for too long. Without a file nothing is known.
pub(crate) fn check(engine: &Engine, check: &DataResurrection) -> Result<(), StartError> {
    let (env, path) = (&engine.env, file(engine, check));
    if !env.disk.exists(&path) {
        return Ok(());
    }
    let last = last_heartbeat(env, &path)?;
    let tables = violations(&engine.schema(), check, last.as_second(), i64::from(env.clock.now_seconds()));
    if tables.is_empty() {
        return Ok(());
    }
    Err(StartError::Directory(format!(
        "There are tables for which gc_grace_seconds is older than the lastly known time the node was up based on its \
         heartbeat {} with timestamp {last}. The node will not start as it would likely introduce data consistency issues \
         (zombies etc). Please resolve these issues manually, then remove the heartbeat and start the node again. Invalid \
         tables: {}",
        path.display(),
        tables.join(",")
    )))
}

/// The time in the file; of a file that cannot be understood the time at which it was changed.
fn last_heartbeat(env: &Env, path: &Path) -> Result<Timestamp, StartError> {
    let failed = |error: std::io::Error| StartError::Directory(format!("{}: {error}", path.display()));
    let bytes = env.disk.read_all(path, SIZE_MAX).map_err(failed)?;
    if let Some(time) = parse(&bytes) {
        return Ok(time);
    }
    tracing::warn!(file = %path.display(), "the heartbeat cannot be read; the time of its last change counts");
    let millis = env.disk.modified_millis(path).map_err(failed)?;
    Ok(Timestamp::from_millisecond(i64::try_from(millis).unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX))
}

fn parse(bytes: &[u8]) -> Option<Timestamp> {
    let json: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    json.get("last_heartbeat")?.as_str()?.parse().ok()
}

/// Tables of users whose tombstones others may have dropped. Times in seconds since 1970.
fn violations(schema: &Schema, check: &DataResurrection, last: i64, now: i64) -> Vec<String> {
    let is_checked = |keyspace: &str| {
        !is_system_keyspace(keyspace) && !check.excluded_keyspaces.iter().any(|excluded| excluded == keyspace)
    };
    let keyspaces = schema.keyspaces.values().filter(|keyspace| is_checked(&keyspace.name));
    let tables = keyspaces.flat_map(|keyspace| keyspace.tables.values()).filter(|table| {
        let grace = i64::from(table.params.gc_grace_seconds);
        grace > 0 && last.saturating_add(grace) < now
    });
    let names = tables.map(|table| format!("{}.{}", table.keyspace, table.name));
    names.filter(|name| !check.excluded_tables.contains(name)).collect()
}

/// Writes the heartbeat now and each minute. Ends when the [`Wake`] is dropped.
pub(crate) fn keep_heartbeat(engine: &Engine, check: &DataResurrection) -> Wake {
    let (env, path) = (engine.env.clone(), file(engine, check));
    let step = move || {
        let now = Timestamp::from_second(i64::from(env.clock.now_seconds())).unwrap_or(Timestamp::MAX);
        let text = format!("{{\"last_heartbeat\":\"{now}\"}}");
        if let Err(error) = env.disk.replace_file(&path, text.as_bytes()) {
            tracing::error!(file = %path.display(), %error, "the heartbeat cannot be written");
        }
        Next::After(PERIOD)
    };
    let wake = engine.env.tasks.background("heartbeat", Box::new(step));
    wake.wake();
    wake
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use env::sim::{DATA, Sim};
    use schema::{KeyspaceMetadata, TableMetadata};
    use storage::EngineOptions;

    use super::*;

    /// A schema with the tables ks.a (gc_grace of 100 s), ks.b (none) and other.a (200 s).
    fn schema() -> Schema {
        let schema = schema::system::schema();
        let like = KeyspaceMetadata::clone(&schema.keyspaces["system_traces"]);
        let with = |schema: Schema, name: &str, tables: &[(&str, i32)]| {
            let mut keyspace = KeyspaceMetadata { name: name.to_owned(), ..like.clone() };
            keyspace.tables.clear();
            for (number, (table, grace)) in tables.iter().enumerate() {
                let mut made = TableMetadata::clone(&like.tables["events"]);
                (made.keyspace, made.name) = (name.to_owned(), (*table).to_owned());
                made.id.0[0] ^= number as u8 + name.len() as u8;
                made.params.gc_grace_seconds = *grace;
                keyspace.tables.insert((*table).to_owned(), Arc::new(made));
            }
            schema.with_keyspace(keyspace)
        };
        with(with(schema, "ks", &[("a", 100), ("b", 0)]), "other", &[("a", 200)])
    }

    #[test]
    fn tables_whose_tombstones_may_be_gone() {
        let schema = schema();
        let found = |check: &DataResurrection, away: i64| violations(&schema, check, 1_000, 1_000 + away);
        let all = DataResurrection::default();
        assert_eq!(found(&all, 100), [""; 0]);
        assert_eq!(found(&all, 101), ["ks.a"]);
        assert_eq!(found(&all, 201), ["ks.a", "other.a"]);
        let excluded_keyspaces = vec!["other".to_owned()];
        assert_eq!(found(&DataResurrection { excluded_keyspaces, ..all.clone() }, 201), ["ks.a"]);
        let excluded_tables = vec!["ks.a".to_owned()];
        assert_eq!(found(&DataResurrection { excluded_tables, ..all }, 201), ["other.a"]);
    }

    /// The heartbeat is what Cassandra writes, and what it writes is understood.
    #[test]
    fn the_heartbeat_is_written_and_read() {
        assert_eq!(
            parse(br#"{"last_heartbeat":"2023-02-03T04:05:06.789Z"}"#).map(|time| time.as_second()),
            Some(1_675_397_106)
        );
        assert_eq!(parse(b"{}"), None);
        let sim = Sim::new(1);
        let engine = storage::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).expect("a disk").0;
        let options = DataResurrection::default();
        check(&engine, &options).expect("nothing is known");
        let wake = keep_heartbeat(&engine, &options);
        sim.run_until_idle();
        let last = last_heartbeat(&sim.env(), &file(&engine, &options)).expect("written");
        assert_eq!(last.as_second(), i64::from(sim.env().clock.now_seconds()));
        sim.advance(PERIOD);
        sim.run_until_idle();
        assert!(last_heartbeat(&sim.env(), &file(&engine, &options)).expect("written") > last);
        check(&engine, &options).expect("no tables of users");
        drop(wake);
    }

    /// A node that comes back after longer than the gc_grace of a table does not start; it does
    /// after a shorter absence.
    #[test]
    fn a_node_that_was_away_for_too_long_does_not_start() {
        let sim = Sim::new(2);
        let engine = storage::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).expect("a disk").0;
        let keyspaces = schema();
        let add = |present: &Schema| -> Result<Schema, ()> {
            let added = ["ks", "other"].map(|name| KeyspaceMetadata::clone(&keyspaces.keyspaces[name]));
            Ok(added.into_iter().fold(present.clone(), |schema, keyspace| schema.with_keyspace(keyspace)))
        };
        storage::schema_change::change(&engine, add).expect("stored").expect("not refused");
        let options = DataResurrection::default();
        let wake = keep_heartbeat(&engine, &options);
        sim.run_until_idle();
        drop(wake);
        sim.advance(Duration::from_secs(100));
        check(&engine, &options).expect("the tombstones of all tables are still there");
        sim.advance(Duration::from_secs(1));
        let refused = check(&engine, &options).expect_err("those of ks.a may be gone").to_string();
        assert!(refused.contains("gc_grace_seconds is older than the lastly known time the node was up"), "{refused}");
        assert!(refused.ends_with("Invalid tables: ks.a"), "{refused}");
    }
}
