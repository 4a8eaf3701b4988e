//! The targets of the log that a name of `nodetool setlogginglevel` stands for.
//!
//! Targets are paths of modules (`storage::compaction::run`), and a filter names the beginnings of
//! targets. Operators name Cassandra's components (`compaction`), its packages and classes
//! (`org.apache.cassandra.db.compaction.CompactionManager`), or the beginning of a target. A class
//! stands for what the longest known package before it stands for. Agrees with
//! `org.apache.cassandra.tools.nodetool.SetLoggingLevel`.

/// A name with the beginnings of the targets for which it stands.
type Known = (&'static str, &'static [&'static str]);

const COMPACTION: &[&str] = &["storage::compaction", "storage::compactor"];
const CQL: &[&str] = &["cluster::coordinator", "native", "server"];
const REPAIR: &[&str] = &["cluster::repair", "cluster::repair_state", "cluster::serve::repair"];
const RING: &[&str] = &["cluster::membership", "cluster::peers", "cluster::topology", "membership"];
const STREAMING: &[&str] = &["cluster::streaming", "storage::received"];

/// Cassandra's components.
const COMPONENTS: &[Known] = &[
    ("bootstrap", &["cluster::range_movement_state", "cluster::range_movements", "membership", "server::joining"]),
    ("compaction", COMPACTION),
    ("cql", CQL),
    ("repair", REPAIR),
    ("ring", RING),
    ("streaming", STREAMING),
];

/// The packages below [`CASSANDRA`].
const PACKAGES: &[Known] = &[
    ("auth", &["server::auth"]),
    ("batchlog", &["cluster::batchlog"]),
    ("cql3", CQL),
    ("db", &["storage"]),
    ("db.commitlog", &["storage::commitlog"]),
    ("db.compaction", COMPACTION),
    ("db.view", &["cluster::view_builds", "storage::base_views"]),
    ("dht", &["cluster::allocation", "cluster::range_movements"]),
    ("gms", RING),
    ("hints", &["cluster::hints", "hints"]),
    ("index", &["storage::index"]),
    ("io", &["sstable", "storage"]),
    ("locator", &["cluster::topology", "server::topology_file"]),
    ("net", &["links"]),
    ("repair", REPAIR),
    ("schema", &["cluster::schema_agreement", "storage::schema_tables"]),
    ("service", &["cluster", "server"]),
    ("service.paxos", &["cluster::coordinator::cas", "cluster::serve::paxos"]),
    ("streaming", STREAMING),
    ("tracing", &["cluster::traces"]),
    ("transport", &["native", "transport"]),
];

const CASSANDRA: &str = "org.apache.cassandra.";

/// The first names of all targets: crates that write a log, and the slow statements.
const FIRST_NAMES: [&str; 13] = [
    "admin",
    "cluster",
    "env",
    "helenus",
    "hints",
    "links",
    "membership",
    "native",
    "server",
    "slow_query",
    "sstable",
    "storage",
    "transport",
];

/// The beginnings of the targets that a name stands for. Err: it stands for none.
pub(super) fn targets(logger: &str) -> Result<Vec<&str>, String> {
    let known = match logger.strip_prefix(CASSANDRA) {
        Some(class) => {
            let is_of = |package: &str| {
                class.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            PACKAGES.iter().filter(|(package, _)| is_of(package)).max_by_key(|(package, _)| package.len())
        }
        None => COMPONENTS.iter().find(|(name, _)| *name == logger),
    };
    if let Some((_, targets)) = known {
        return Ok(targets.to_vec());
    }
    let first = logger.split("::").next().unwrap_or(logger);
    if FIRST_NAMES.contains(&first) {
        return Ok(vec![logger]);
    }
    let components: Vec<&str> = COMPONENTS.iter().map(|(name, _)| *name).collect();
    Err(format!(
        "'{logger}' stands for no part of the log: name one of {}, a package of Cassandra, or a module as \
         storage::commitlog",
        components.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_of_cassandra_stand_for_modules_and_others_are_refused() {
        assert_eq!(targets("compaction"), Ok(COMPACTION.to_vec()));
        assert_eq!(targets("org.apache.cassandra.db.compaction.CompactionManager"), Ok(COMPACTION.to_vec()));
        assert_eq!(targets("org.apache.cassandra.db.ColumnFamilyStore"), Ok(vec!["storage"]));
        assert_eq!(targets("storage::commitlog"), Ok(vec!["storage::commitlog"]));
        for none in ["org.apache.cassandra.dbx", "com.datastax", "compactions", ""] {
            assert!(targets(none).is_err(), "{none}");
        }
    }

    /// A name that is given to a module must be that of a file, otherwise it filters nothing.
    #[test]
    fn each_target_is_a_module() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let disk = env::real::env().disk;
        for target in COMPONENTS.iter().chain(PACKAGES).flat_map(|(_, targets)| *targets).copied() {
            let (of_crate, module) = target.split_once("::").unwrap_or((target, "lib"));
            assert!(FIRST_NAMES.contains(&of_crate), "{target}");
            let file = crates.join(of_crate).join("src").join(module.replace("::", "/")).with_extension("rs");
            assert!(disk.exists(&file), "{target}: {}", file.display());
        }
    }
}
