//! SSTables that were replaced and are still read take room on the disk.

use std::sync::Arc;

use super::tombstones::Node;

#[test]
fn a_replaced_sstable_takes_room_while_it_is_read() {
    let node = Node::new(&[]);
    for at in [10, 20] {
        (0..50).for_each(|k| node.insert(k, 1, at));
        node.flush();
    }
    let read = Arc::clone(&node.store.view().sstables[0]);
    assert_eq!(node.store.obsolete_bytes(), 0);
    node.compact();
    assert_eq!(node.store.view().sstables.len(), 1);
    let while_read = node.store.obsolete_bytes();
    assert!(while_read >= read.disk_size() && read.disk_size() > 0);
    // strategies hold this lock while they look at files
    let changes = node.store.changes();
    assert_eq!(node.store.obsolete_bytes(), while_read, "who asks does not wait for a strategy");
    drop(changes);
    let size = read.disk_size();
    drop(read);
    assert_eq!(node.store.obsolete_bytes(), while_read - size);
}
