//! A ring in which the commit log or the SSTables of one node cannot be written: what
//! `commit_failure_policy` and `disk_failure_policy` say about its clients and the other nodes.

use cluster::operations::tables::{self, Selection};
use env::sim::{Fault, Op};
use server::running::RunningNode;

use super::running_nodes::{open, settings_of};
use super::*;
use crate::starting;

/// The node whose disk fails.
const FAILING: usize = 2;

/// Starts a ring with a policy, lets the disk of one node fail, and waits until every member has
/// heard what there is to hear. Gives whether that node serves clients, and whether another node
/// takes it for a live one.
fn after_a_failure(policy: &str, fail: impl FnOnce(&World, &Observations, &RunningNode)) -> (bool, bool) {
    let world = World::new(11, RING.servers + CLIENTS);
    let start = |machine: usize| {
        let mut settings = settings_of(&world, machine, RING);
        settings.push(policy.to_owned());
        open(&world, machine, RING, &settings, &starting::drive(&world)).expect("a sound machine starts")
    };
    let nodes: Vec<RunningNode> = (0..RING.servers).map(start).collect();
    let observations = Observations::of(RING);
    workload::prepare(&world, &observations);
    let node = &nodes[FAILING];
    let address = node.services.node.identity.broadcast;
    let takes_for_live = |other: &RunningNode| {
        let ring = other.services.node.ring();
        ring.endpoints().iter().any(|endpoint| endpoint.address == address && endpoint.is_up)
    };
    assert!(node.is_serving() && takes_for_live(&nodes[0]), "{policy}: nothing has happened yet");
    fail(&world, &observations, node);
    // gossip of a member that is up goes on meanwhile
    world.run_for(SETTLE);
    (node.is_serving(), takes_for_live(&nodes[0]))
}

#[test]
fn a_failed_commit_log_ends_the_traffic_of_its_node_where_the_policy_is_stop() {
    let of_log = |world: &World, observations: &Observations, _: &RunningNode| {
        world.disk(FAILING).inject(Fault { times: u64::MAX, ..Fault::next(Op::Sync, "CommitLog-") });
        workload::start_all(world, CLIENTS, observations, world.elapsed() + Duration::from_secs(3), None);
    };
    assert_eq!(after_a_failure("commit_failure_policy=stop", of_log), (false, false));
    assert_eq!(after_a_failure("commit_failure_policy=stop_commit", of_log), (true, true));
}

#[test]
fn a_failed_flush_ends_the_traffic_of_its_node_where_the_policy_is_stop() {
    let of_flush = |world: &World, _: &Observations, node: &RunningNode| {
        world.disk(FAILING).inject(Fault { times: u64::MAX, ..Fault::next(Op::Create, "-Data.db") });
        let [keyspaces, names] = [["system".to_owned()], ["local".to_owned()]];
        let local = Selection { keyspaces: &keyspaces, tables: &names };
        world.block_on(tables::flush(&node.services.node, local)).expect_err("the disk fails");
    };
    assert_eq!(after_a_failure("disk_failure_policy=stop", of_flush), (false, false));
    assert_eq!(after_a_failure("disk_failure_policy=ignore", of_flush), (true, true));
}
