//! Writes that this node and peers, which the tests play, answer.

use std::sync::{Arc, Weak};

use internode::{Envelope, Header, Verb};
use membership::{RequestCallback, RequestFailure};
use ring::{Endpoint, EndpointId, Ring, State};
use types::{Consistency, WriteKind};

use super::*;
use crate::coordinator::pending_write::PendingWrite;
use crate::coordinator::write_answers::AnswerScope;
use crate::stripes::StripeGuards;
use crate::testing::{SimNode, WINDOW};

const TIMEOUT: Duration = Duration::from_secs(2);

fn peer(number: u8) -> SocketAddr {
    ([127, 0, 0, number], 7000).into()
}

/// A ring of this node and two peers.
fn ring() -> Arc<Ring> {
    let endpoint = |number: u8| Endpoint {
        address: peer(number),
        native: peer(number),
        host_id: [number; 16],
        data_center: "dc1".to_owned(),
        rack: "rack1".to_owned(),
        tokens: Vec::new(),
        is_up: true,
        state: State::Normal,
    };
    Arc::new(Ring::new((1..=3).map(endpoint).collect(), EndpointId(0)))
}

/// The answer of a peer.
fn told(answer: Result<(), FailureReason>) -> Result<Envelope, RequestFailure> {
    let message = Envelope { header: Header::new(Verb::MutationRsp, 1, 0, 1), payload: bytes::Bytes::new() };
    answer.map(|()| message).map_err(RequestFailure::Failed)
}

/// The outcome of a write that this node and two peers got, of which as many as QUORUM or ALL must
/// have it. A peer answers at once, or never.
fn outcome(
    block_for: u32,
    peers: [Option<Result<(), FailureReason>>; 2],
) -> (Result<(), WriteError>, WriteAnswers, Duration) {
    let machine = SimNode::new(TIMEOUT);
    let node = &machine.node;
    let answers =
        WriteAnswers { block_for, outstanding: 3, ..WriteAnswers::of_one(Consistency::Quorum, WriteKind::Simple) };
    let env = machine.sim.env();
    let begun = env.now();
    let replicas = (0..3).map(|id| (EndpointId(id), AnswerScope::All)).collect();
    let mutations = [machine.role(1, 1)];
    let sent = Arc::new(PendingWrite::new(Weak::new(), ring(), replicas, None, answers.clone()));
    let written = machine.sim.block_on(async {
        let position = node.replica.apply(&mutations, StripeGuards::new()).await.expect("applied");
        let log = node.replica.logged(position.expect("it is logged")).expect("a sound log");
        for (number, answer) in (2..).zip(peers) {
            answer.into_iter().for_each(|answer| sent.on_outcome(peer(number), told(answer)));
        }
        Acknowledgement::of_replicas(ReplicaWait::new(&env, vec![sent], Ok(log), begun, TIMEOUT)).await
    });
    let took = env.elapsed(begun);
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

/// The replicas that failed were only late: the client is told of a timeout, and before its time is
/// over.
#[test]
fn peers_that_are_late_make_a_timeout() {
    let late = || Some(Err(FailureReason::Timeout));
    let (written, answers, took) = outcome(2, [late(), late()]);
    assert!(took < WINDOW, "{took:?}");
    assert_eq!(written, Err(WriteError::TimedOut));
    assert_eq!((answers.received, answers.failures.len()), (0, 2));
}
