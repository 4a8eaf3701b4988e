//! Snapshots that were taken before a time: cleared. Agrees with `StorageService.clearSnapshot`
//! with the options `older_than` and `older_than_timestamp`.

use super::tables::{self, Selection};
use super::{Result, snapshots};
use crate::node::Node;

/// Removes the snapshots that were taken before a time, in milliseconds since 1970, from the tables
/// of some keyspaces; without keyspaces from all tables. A snapshot whose manifest does not say
/// when it was taken is as old as its directory; it stays if that is not known either.
pub fn clear(node: &Node, before_millis: i64, keyspaces: &[String]) -> Result<()> {
    let disk = &node.env.disk;
    for store in tables::selected(node, Selection { keyspaces, tables: &[] })? {
        for snapshot in snapshots::of_table(node, &store)? {
            let of_directory = || match disk.modified_millis(&snapshot.directory) {
                Ok(millis @ 1..) => i64::try_from(millis).ok(),
                _ => None,
            };
            if snapshot.created_at.or_else(of_directory).is_some_and(|taken| taken < before_millis) {
                snapshots::clear_of(node, &store, &snapshot.tag)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
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
}
