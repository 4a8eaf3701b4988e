//! Rounds of three replicas of which two are a majority, promise by promise.

use internode::payload::paxos::BallotFlag;

use super::*;
use crate::testing::SimNode;

/// The content of a replica's answer. Ballots are named by their seconds, 0 for none.
#[derive(Clone, Copy)]
struct Told {
    low_bound: i64,
    accepted: i64,
    /// The accepted proposal is one of nothing.
    accepts_nothing: bool,
    committed: i64,
    /// The ballot that first proposed the changes; 0: the one beside them.
    origin: i64,
    reads: bool,
    is_stable: bool,
    superseded_by: i64,
}

const NOTHING: Told = Told {
    low_bound: 0,
    accepted: 0,
    accepts_nothing: false,
    committed: 0,
    origin: 0,
    reads: true,
    is_stable: true,
    superseded_by: 0,
};

enum Event {
    Promise(Told),
    Refreshed(i64),
    Failed,
}

fn ballot(seconds: i64) -> Ballot {
    match seconds {
        0 => Ballot::NONE,
        seconds => Ballot::new(seconds * 1_000_000, BallotFlag::Global, 7),
    }
}

/// The end of a round, as text, and the replicas that were refreshed meanwhile.
fn round(machine: &SimNode, takes_permission: bool, events: &[Event]) -> (String, Vec<u32>) {
    let update = machine.role(1, 8).updates.remove(0);
    let commit = |seconds: i64, origin: i64| match seconds {
        0 => Commit::none(update.table.clone(), update.key.clone()),
        seconds => {
            let origin = if origin == 0 { seconds } else { origin };
            Commit { ballot: ballot(seconds), update: update.clone().with_timestamp(origin * 1_000_000) }
        }
    };
    let numbers = RoundSize { asked: 3, required: 2, takes_permission };
    let mut tally = PromiseTally::new(numbers, commit(0, 0));
    let mut refreshed = Vec::new();
    for (replica, event) in (0..).zip(events) {
        let replica = EndpointId(replica);
        let outcome = match event {
            Event::Failed => tally.fail(),
            Event::Refreshed(by) => tally.refreshed(replica, (*by != 0).then(|| ballot(*by))),
            Event::Promise(told) => {
                let accepted = match told.accepts_nothing {
                    true => Commit::empty(ballot(told.accepted), update.table.clone(), update.key.clone()),
                    false => commit(told.accepted, told.origin),
                };
                let promise = Promise {
                    low_bound: ballot(told.low_bound).ticks().cast_unsigned(),
                    accepted: (told.accepted != 0).then_some(accepted),
                    committed: commit(told.committed, told.origin),
                    data: told.reads.then(Bytes::new),
                    is_stable: told.is_stable,
                    superseded_by: (told.superseded_by != 0).then(|| ballot(told.superseded_by)),
                };
                tally.add_promise(replica, promise)
            }
        };
        if let Some((replica, commit)) = tally.violation {
            return (format!("{} violates by {}", replica.0, commit.micros() / 1_000_000), refreshed);
        }
        refreshed.extend(tally.take_lacking().into_iter().map(|id| id.0));
        let seconds = |ballot: Ballot| ballot.micros() / 1_000_000;
        let text = match outcome {
            None => continue,
            Some(Outcome::Ready { is_promised, is_linearizable }) => match (is_promised, is_linearizable) {
                (true, true) => "promised, linearizable".to_owned(),
                (true, false) => "promised".to_owned(),
                (false, true) => "read permitted".to_owned(),
                (false, false) => "neither".to_owned(),
            },
            Some(Outcome::Superseded(by)) => format!("superseded by {}", seconds(by)),
            Some(Outcome::Unfinished(accepted)) => format!("unfinished {}", seconds(accepted.ballot)),
            Some(Outcome::Uncommitted(commit)) => format!("uncommitted {}", seconds(commit.ballot)),
            Some(Outcome::Failed) => "failed".to_owned(),
        };
        return (text, refreshed);
    }
    ("open".to_owned(), refreshed)
}

#[test]
fn rounds() {
    use Event::{Failed, Promise, Refreshed};
    let machine = SimNode::new(std::time::Duration::ZERO);
    let committed = |committed| Promise(Told { committed, ..NOTHING });
    let accepted = |accepted, committed| Promise(Told { accepted, committed, ..NOTHING });
    let permits = |superseded_by| Promise(Told { superseded_by, ..NOTHING });
    let unread = |committed| Promise(Told { committed, reads: false, ..NOTHING });
    let unstable = Told { is_stable: false, committed: 20, ..NOTHING };
    let bounded = Told { low_bound: 25, ..NOTHING };
    let later = Told { superseded_by: 40, committed: 30, ..NOTHING };
    let repaired = Told { low_bound: 35, committed: 30, ..NOTHING };
    // proposed at 10 first
    let again = |committed| Promise(Told { committed, origin: 10, ..NOTHING });
    let cases: Vec<(&str, Vec<Event>, &str, &[u32])> = vec![
        ("one is no majority", vec![committed(0)], "open", &[]),
        ("two are", vec![committed(0), committed(0)], "promised, linearizable", &[]),
        ("the same commit", vec![committed(20), committed(20)], "promised, linearizable", &[]),
        ("a promise to a write is open", vec![Promise(unstable), committed(20)], "promised", &[]),
        ("one lacks the commit", vec![committed(20), committed(0)], "open", &[1]),
        ("it takes it", vec![committed(20), committed(0), Refreshed(0)], "promised, linearizable", &[1]),
        ("it is overtaken", vec![committed(0), committed(20), Refreshed(30)], "read permitted", &[0]),
        ("the third has it", vec![committed(20), committed(0), committed(20)], "promised, linearizable", &[1]),
        ("the third lacks it", vec![committed(20), committed(0), committed(0)], "open", &[1, 2]),
        ("nobody that has it was read", vec![unread(20), committed(0)], "uncommitted 20", &[]),
        ("proposed again", vec![again(10), again(20)], "promised, linearizable", &[]),
        ("accepted", vec![accepted(30, 20), committed(20)], "unfinished 30", &[]),
        ("committed elsewhere", vec![accepted(30, 20), committed(30)], "open", &[0]),
        (
            "accepted again, committed before",
            vec![Promise(Told { accepted: 30, origin: 10, ..NOTHING }), again(20)],
            "open",
            &[0],
        ),
        (
            "of nothing",
            vec![Promise(Told { accepted: 30, accepts_nothing: true, ..NOTHING }), committed(0)],
            "promised, linearizable",
            &[],
        ),
        ("permitted", vec![permits(40), committed(0)], "read permitted", &[]),
        ("permitted behind a proposal", vec![permits(40), accepted(30, 0)], "superseded by 40", &[]),
        (
            "permitted and open",
            vec![Promise(Told { superseded_by: 40, is_stable: false, ..NOTHING }), committed(0)],
            "superseded by 40",
            &[],
        ),
        ("forgotten", vec![committed(20), Promise(bounded)], "promised, linearizable", &[]),
        (
            "a forgotten proposal",
            vec![Promise(Told { accepted: 20, ..bounded }), committed(0)],
            "promised, linearizable",
            &[],
        ),
        // the third replica knows what the majority does not
        ("a later commit", vec![committed(20), committed(0), committed(30)], "2 violates by 30", &[1]),
        ("the same again", vec![again(20), committed(0), again(30)], "promised, linearizable", &[1]),
        ("it was accepted", vec![accepted(30, 30), committed(0), committed(30)], "promised, linearizable", &[1]),
        ("it permits only", vec![committed(20), committed(0), Promise(later)], "open", &[1, 2]),
        ("it was repaired", vec![committed(20), committed(0), Promise(repaired)], "promised, linearizable", &[1]),
        ("one may fail", vec![Failed, committed(0), committed(0)], "promised, linearizable", &[]),
        ("two may not", vec![Failed, committed(0), Failed], "failed", &[]),
    ];
    for (name, events, wanted, refreshed) in cases {
        assert_eq!(round(&machine, false, &events), (wanted.to_owned(), refreshed.to_vec()), "{name}");
    }
    // a read that is content with the permission does not wait for whoever lacks the commit
    let early = [committed(20), committed(0)];
    assert_eq!(round(&machine, true, &early), ("read permitted".to_owned(), vec![1]));
}
