//! Writes among several nodes.

use types::Consistency;

use crate::testing::SimRing;

#[test]
fn a_write_is_there_on_its_coordinator() {
    let ring = SimRing::new(1, &["dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    ring.write(0, &[ring.row("ks", 1, 2, 3, 10)], Consistency::One).expect("written");
    assert_eq!(ring.stored(0, "ks", 1), [(2, 3)]);
    ring.write(0, &[ring.increment("ks", 1, 5, 10)], Consistency::One).expect("written");
    assert_eq!(ring.counted(0, "ks", 1), 5);
}
