//! Snapshots that were taken before a time: cleared. Agrees with `StorageService.clearSnapshot`
//! with the options `older_than` and `older_than_timestamp`.

use storage::snapshot::{self, Snapshot, TableDirectories};

use super::tables::{self, Selection};
use super::{Result, failed};
use crate::node::Node;

/// Removes the snapshots that were taken before a time, in milliseconds since 1970, from the tables
/// of some keyspaces, dropped tables too; without keyspaces from all. A keyspace that neither the
/// schema nor a data directory has is refused. A snapshot whose manifest does not say when it was
/// taken is as old as its directory; it stays if that is not known either.
pub fn clear(node: &Node, before_millis: i64, keyspaces: &[String]) -> Result<()> {
    let places = snapshot::places(&node.engine).map_err(failed)?;
    let is_on_disk = |keyspace: &&String| places.iter().any(|place| place.keyspace == **keyspace);
    let others: Vec<String> = keyspaces.iter().filter(|keyspace| !is_on_disk(keyspace)).cloned().collect();
    if !others.is_empty() {
        tables::selected(node, Selection { keyspaces: &others, tables: &[] })?;
    }
    let is_meant = |place: &&TableDirectories| keyspaces.is_empty() || keyspaces.contains(&place.keyspace);
    let is_old = |one: &Snapshot| taken_at(node, one).is_some_and(|taken| taken < before_millis);
    for place in places.iter().filter(is_meant) {
        snapshot::clear_where(&node.engine, place, is_old).map_err(failed)?;
    }
    Ok(())
}

/// When a snapshot was taken, in milliseconds since 1970; None: not known.
fn taken_at(node: &Node, snapshot: &Snapshot) -> Option<i64> {
    snapshot.created_at.or_else(|| match node.env.disk.modified_millis(&snapshot.directory) {
        Ok(millis @ 1..) => i64::try_from(millis).ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::operations::snapshots;
    use crate::testing::SimRing;

    #[test]
    fn what_was_taken_since_stays() {
        let ring = SimRing::new(9, &["dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "1")]);
        ring.apply_alone(0, &[ring.row("ks", 1, 1, 10, 1_000)]);
        for name in ["monday", "tuesday"] {
            let node = Arc::clone(ring.node(0));
            let take = async move {
                let stores = tables::selected(&node, Selection { keyspaces: &["ks".to_owned()], tables: &[] })?;
                snapshots::take(&node, name, &stores, false).await
            };
            ring.world.block_on(take).expect("taken");
            ring.world.run_for(Duration::from_secs(60));
        }
        let left = || {
            let listed = snapshots::list(ring.node(0)).expect("the disk is sound").into_iter();
            let listed = listed.filter(|one| (one.keyspace.as_str(), one.table.as_str()) == ("ks", "t"));
            listed.map(|one| (one.tag, one.created_at.expect("the manifest says so"))).collect::<Vec<_>>()
        };
        let both = left();
        let (_, second) = both.iter().find(|(tag, _)| tag == "tuesday").cloned().expect("the second one");
        clear(ring.node(0), second, &["other".to_owned()]).expect_err("no such keyspace");
        clear(ring.node(0), second, &["ks".to_owned()]).expect("cleared");
        assert_eq!((both.len(), left()), (2, vec![("tuesday".to_owned(), second)]));
        clear(ring.node(0), second + 1, &[]).expect("cleared");
        assert!(left().is_empty());
    }

    /// A table that was dropped leaves its directory with the snapshot that the drop has taken.
    #[test]
    fn snapshots_of_dropped_tables_are_cleared() {
        let ring = SimRing::new(10, &["dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "1")]);
        let node = ring.node(0);
        let of_t = node.engine.table_by_name("ks", "t").expect("the table").directory.clone();
        let gone = of_t.with_file_name(format!("gone-{}", "0a".repeat(16)));
        let snapshot = gone.join("snapshots").join("dropped");
        node.env.disk.create_dir_all(&snapshot).expect("a sound disk");
        let manifest = br#"{"created_at": "2026-11-21T08:11:02.123Z", "expires_at": null, "files": []}"#;
        node.env.disk.replace_file(&snapshot.join("manifest.json"), manifest).expect("a sound disk");
        let taken = snapshots::list(node).expect("listed").into_iter().find(|one| one.table == "gone");
        let taken = taken.and_then(|one| one.created_at).expect("the manifest says so");
        clear(node, taken, &["ks".to_owned()]).expect("cleared");
        assert!(node.env.disk.exists(&snapshot), "it is not older than itself");
        clear(node, taken + 1, &["ks".to_owned()]).expect("cleared");
        assert!(!node.env.disk.exists(&gone), "nothing is left of the table");
    }
}
