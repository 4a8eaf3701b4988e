//! The file of places is looked at while it changes.

use cluster::Timeouts;
use env::sim::{DATA, Sim};
use storage::EngineOptions;

use super::*;
use crate::machine;

/// Each change is looked at once, and what cannot be used changes nothing.
#[test]
fn a_change_of_the_file_is_told_of_once() {
    let sim = Sim::new(1);
    let env = sim.env();
    let services = machine::start(&env, EngineOptions::with_small_budgets(Path::new(DATA)), 1, Timeouts::default());
    let path = Path::new(DATA).join("cassandra-topology.properties");
    let write = |text: &str| env.disk.replace_file(&path, text.as_bytes()).expect("a sound disk");
    write("127.0.0.1=dc1:r1\n127.0.0.2=dc1:r1\n");
    let mut file = TopologyFile::new(&env, path.clone());
    let mut look = || file.look(&services.node);
    assert_eq!(look(), None);
    write("127.0.0.2=dc1:r1\n");
    let error = "the file does not define a location for this node's broadcast address 127.0.0.1, nor does it \
                 provide a default";
    assert_eq!(look(), Some(Err(error.to_owned())));
    assert_eq!(look(), None);
    env.disk.remove_file(&path).expect("it is there");
    assert!(matches!(look(), Some(Err(_))), "it cannot be read");
    assert_eq!(look(), None);
    write("127.0.0.1=dc1:r1\n127.0.0.2=dc2:r7\n");
    assert!(look().is_some(), "it is looked at again");
    assert_eq!(look(), None);
}
