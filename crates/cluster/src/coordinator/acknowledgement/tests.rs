//! Writes that this node and peers, which the tests play, answer.

use std::time::Duration;

use types::{Consistency, WriteKind};

use super::*;
use crate::stripes::Held;
use crate::testing::{SimNode, WINDOW};

const TIMEOUT: Duration = Duration::from_secs(2);

fn peer(number: u8) -> SocketAddr {
    ([127, 0, 0, number], 7000).into()
}

/// What comes of a write that this node and two peers got, of which as many as QUORUM or ALL must have it. A peer answers at
/// once, or never.
fn outcome(
    block_for: u32,
    peers: [Option<Result<(), FailureReason>>; 2],
) -> (Result<(), WriteError>, Answers, Duration) {
    let machine = SimNode::new(TIMEOUT);
    let node = &machine.node;
    let answers = Answers {
        level: Consistency::Quorum,
        kind: WriteKind::Simple,
        block_for,
        received: 0,
        outstanding: 3,
        failures: Vec::new(),
    };
    let begun = machine.sim.env().now();
    let peers = (2..).zip(peers).map(|(number, answer)| {
        let answer: PeerAnswer = match answer {
            Some(answer) => Box::pin(std::future::ready(answer)),
            None => Box::pin(std::future::pending()),
        };
        (peer(number), answer)
    });
    let peers = peers.collect();
    let written = machine.sim.block_on(async {
        let position = node.replica.apply(&[machine.role(1, 1)], Held::new()).await.expect("applied");
        let log = node.replica.logged(position.expect("it is logged")).expect("a sound log").expect("not yet durable");
        Acknowledgement::new(log, peer(1), peers, answers.clone(), TIMEOUT).await
    });
    let took = machine.sim.env().elapsed(begun);
    match written {
        Ok(()) => (Ok(()), answers, took),
        Err(RequestError::Write(failed)) => (Err(failed.cause), failed.answers, took),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn peers_may_be_enough_without_the_log() {
    let (written, _, took) = outcome(2, [Some(Ok(())), Some(Ok(()))]);
    assert!(written.is_ok() && took < WINDOW, "{took:?}");
}

#[test]
fn the_log_is_one_of_those_waited_for() {
    let (written, _, took) = outcome(2, [Some(Ok(())), None]);
    assert!(written.is_ok() && took >= WINDOW && took < TIMEOUT, "{took:?}");
}

#[test]
fn a_timeout_tells_who_has_answered() {
    let (written, answers, took) = outcome(3, [Some(Ok(())), None]);
    assert!(took >= TIMEOUT, "{took:?}");
    assert_eq!(written, Err(WriteError::TimedOut));
    assert_eq!((answers.received, answers.outstanding, answers.failures.len()), (2, 1, 0));
}

/// Two of three failed: the level cannot be reached, and nobody waits for the log.
#[test]
fn a_failure_tells_who_failed_and_why() {
    let (written, answers, took) = outcome(2, [Some(Err(FailureReason::NodeDown)), Some(Err(FailureReason::Timeout))]);
    assert!(took < WINDOW, "{took:?}");
    assert_eq!(written, Err(WriteError::Peers));
    let told: Vec<_> = answers.failures.iter().map(|failure| (failure.endpoint, failure.reason)).collect();
    assert_eq!(told, [(peer(2), FailureReason::NodeDown), (peer(3), FailureReason::Timeout)]);
}
