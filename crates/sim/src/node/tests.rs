//! A ring in which the commit log of one node cannot be written: what `commit_failure_policy` says
//! about its clients and about the other nodes.

use env::sim::{Fault, Op};
use server::running::RunningNode;

use super::stage::{open, settings_of};
use super::*;
use crate::starting;

/// The node whose disk fails.
const FAILING: usize = 2;

/// Starts a ring with a policy, lets the commit log of one node fail under writes, and waits until
/// every member has heard what there is to hear. Gives whether that node serves clients, and
/// whether another node takes it for a live one.
fn after_a_failed_log(policy: &str) -> (bool, bool) {
    let world = World::new(11, RING.servers + CLIENTS);
    let start = |machine: usize| {
        let mut settings = settings_of(&world, machine, RING);
        settings.push(format!("commit_failure_policy={policy}"));
        open(&world, machine, RING, &settings, &starting::drive(&world)).expect("a sound machine starts")
    };
    let nodes: Vec<RunningNode> = (0..RING.servers).map(start).collect();
    let seen = Seen::of(RING);
    workload::prepare(&world, &seen);
    let node = &nodes[FAILING];
    let address = node.services.node.identity.broadcast;
    let takes_for_live = |other: &RunningNode| {
        let ring = other.services.node.ring();
        ring.endpoints().iter().any(|endpoint| endpoint.address == address && endpoint.is_up)
    };
    assert!(node.is_serving() && takes_for_live(&nodes[0]), "{policy}: nothing has happened yet");
    world.disk(FAILING).inject(Fault { times: u64::MAX, ..Fault::next(Op::Sync, "CommitLog-") });
    let end = world.elapsed() + Duration::from_secs(3);
    workload::start_all(&world, CLIENTS, &seen, end, None);
    // gossip of a member that is up goes on meanwhile
    world.run_for(SETTLE);
    (node.is_serving(), takes_for_live(&nodes[0]))
}

#[test]
fn a_failed_commit_log_ends_the_traffic_of_its_node_where_the_policy_is_stop() {
    assert_eq!(after_a_failed_log("stop"), (false, false));
    assert_eq!(after_a_failed_log("stop_commit"), (true, true));
}
