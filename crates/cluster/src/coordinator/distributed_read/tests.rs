//! Reads among several nodes.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use env::Random;
use internode::payload::read_answer::AnswerKind;
use internode::payload::read_request::ReadRequest as Question;
use ring::InsufficientReplicas;
use rows::command::RingBound;
use rows::{
    DataLimits, DeletionTime, IndexSearch, Mutation, PartitionRange, PartitionStream, ReadCommand, ReadError,
    SearchOperator,
};
use types::{Consistency, Token};

use crate::coordinator::contacts::{Contact, Contacts};
use crate::coordinator::distributed_read::DistributedRead;
use crate::coordinator::distributed_read::replies::Reply;
use crate::coordinator::error::{FailedAnswers, FailedRead, RequestError};
use crate::coordinator::part_read::{PartRead, ReadRepair};
use crate::coordinator::parts::Part;
use crate::replica::read::{ReadFigures, ReadOutcome, ReadRequest, Warnings};
use crate::result_room::ResultRoom;
use crate::testing::{SimRing, count_unfiltereds, table};
use crate::thresholds::{Finding, Measure, ReadSizes, SizeThresholds};

const SIMPLE: &str = "SimpleStrategy";

/// Three nodes, a keyspace of three copies and one of a single copy.
fn three(seed: u64) -> SimRing {
    let ring = SimRing::new(seed, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace("ks", SIMPLE, &[("replication_factor", "3")]);
    ring.create_keyspace("one", SIMPLE, &[("replication_factor", "1")]);
    ring
}

fn limited(command: ReadCommand, rows: u32) -> ReadCommand {
    ReadCommand { limits: DataLimits { rows, ..DataLimits::NONE }, ..command }
}

/// The deletion of a row of `t`.
fn deletion(ring: &SimRing, k: i32, c: i32, timestamp: i64) -> Mutation {
    let mut mutation = ring.row("ks", k, c, 0, timestamp);
    let row = mutation.updates[0].rows.first_mut().expect("one row");
    row.deletion = DeletionTime::new(timestamp, ring.world.env(0).clock.now_seconds());
    row.liveness = rows::Liveness::EMPTY;
    row.columns.clear();
    mutation
}

/// A read of the first node at QUORUM, which may take five seconds.
fn quorum_read<'n>(ring: &'n SimRing, warnings: &'n Warnings) -> DistributedRead<'n> {
    let node = ring.node(0);
    let messenger = node.messenger().expect("joined");
    DistributedRead::new(node, messenger, Consistency::Quorum, Duration::from_secs(5), warnings, None)
}

fn unanswered(result: Result<Vec<(i32, i32, i32)>, FailedRead<ReadError>>) -> FailedAnswers {
    match result {
        Err(FailedRead::Unanswered(answers)) => *answers,
        other => panic!("too few answers were expected, not {other:?}"),
    }
}

/// A coordinator that is no replica of a partition asks the one that is.
#[test]
fn a_node_reads_what_others_have() {
    let ring = three(1);
    for k in 0..9 {
        ring.write(k as usize % 3, vec![ring.row("one", k, 1, k, 10)], Consistency::One).expect("written");
    }
    for through in 0..3 {
        for k in 0..9 {
            let read = ring.read(through, vec![ring.select_key("one", k)], Consistency::One);
            assert_eq!(read.expect("answered"), [(k, 1, k)], "through {through}");
        }
        // several partitions at once are given in the order in which they are named
        let keys = [7, 3, 5].map(|k| ring.select_key("one", k)).into();
        let read = ring.read(through, keys, Consistency::Quorum).expect("answered");
        assert_eq!(read, [(7, 1, 7), (3, 1, 3), (5, 1, 5)]);
    }
}

/// Partitions that have little are asked for in rounds that grow, each of which builds the answer
/// again from the beginning.
#[test]
fn many_small_partitions_are_read_in_few_rounds() {
    let ring = three(23);
    let rows: Vec<Mutation> = (0..200).map(|k| ring.row("ks", k, 1, k, 10)).collect();
    (0..3).for_each(|machine| ring.apply_alone(machine, &rows));
    let rounds = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rounds);
    let build = move |stream: &mut dyn PartitionStream| {
        counted.fetch_add(1, Ordering::Relaxed);
        count_unfiltereds(stream)
    };
    let request = ReadRequest::of((0..200).map(|k| ring.select_key("ks", k)).collect());
    let figures = ReadFigures::default();
    let read = ring.world.block_on(ring.node(0).read(request, Consistency::Quorum, &figures, build));
    // 16 partitions, 16, 32, 64, 64 and the rest
    assert_eq!((read.expect("answered"), rounds.load(Ordering::Relaxed)), (200, 6));
}

/// The parts of a range have replicas of their own; the rows come in the order of their tokens.
#[test]
fn a_range_is_read_from_all_its_replicas() {
    let ring = three(2);
    for k in 0..40 {
        for keyspace in ["one", "ks"] {
            ring.write(0, vec![ring.row(keyspace, k, 1, k, 10)], Consistency::All).expect("written");
        }
    }
    let mut expected: Vec<(i32, i32, i32)> = (0..40).map(|k| (k, 1, k)).collect();
    expected.sort_by_key(|(k, ..)| types::Token::of_key(&k.to_be_bytes()));
    for (keyspace, level) in [("one", Consistency::One), ("ks", Consistency::Quorum), ("ks", Consistency::All)] {
        for through in 0..3 {
            let all = ring.select(keyspace, PartitionRange::all());
            let read = ring.read(through, vec![all.clone()], level).expect("answered");
            assert_eq!(read, expected, "{keyspace} at {level} through {through}");
            let first = ring.read(through, vec![limited(all, 7)], level).expect("answered");
            assert_eq!(first, expected[..7]);
        }
    }
    // of the four ranges of the ring the first round needs those up to the first of others
    for through in 0..3 {
        let all = [ring.select("one", PartitionRange::all())];
        let parts = ring.node(through).plan_parts_if_distributed(&all, Consistency::One).expect("all are up");
        assert!(parts.is_some_and(|parts| parts.iter().any(|part| !part.contacts.is_planned)), "through {through}");
    }
}

/// A row that one replica has and others lack is seen, and the others have it before the client
/// does.
#[test]
fn a_read_tells_replicas_what_they_lack() {
    let ring = three(3);
    ring.apply_alone(2, &[ring.row("ks", 1, 1, 5, 10)]);
    let mismatches = || {
        let table = ring.select_key("ks", 1).table.id;
        ring.node(0).engine.table(table).expect("it is open").metrics.digest_mismatches.get()
    };
    // the second read finds the replicas equal
    for _ in 0..2 {
        let read = ring.read(0, vec![ring.select_key("ks", 1)], Consistency::All);
        assert_eq!(read.expect("answered"), [(1, 1, 5)]);
        assert_eq!(mismatches(), 1);
        let figures = &ring.node(0).read_repairs;
        assert_eq!((figures.repaired_blocking.get(), figures.reconcile_read.get()), (1, 0));
    }
    (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", 1), [(1, 5)], "machine {machine}"));
    // the same of a range
    ring.apply_alone(1, &[ring.row("ks", 2, 1, 6, 10)]);
    let read = ring.read(0, vec![ring.select("ks", PartitionRange::all())], Consistency::All);
    assert_eq!(read.expect("answered").len(), 2);
    (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", 2), [(1, 6)], "machine {machine}"));
    // with `read_repair = 'NONE'` the read sees the row, and tells nobody
    ring.apply_alone(1, &[ring.row("ks", 3, 1, 7, 10)]);
    let mut command = ring.select_key("ks", 3);
    std::sync::Arc::make_mut(&mut command.table).params.read_repair = "NONE".to_owned();
    assert_eq!(ring.read(0, vec![command], Consistency::All).expect("answered"), [(3, 1, 7)]);
    assert!(ring.stored(0, "ks", 3).is_empty());
    let figures = &ring.node(0).read_repairs;
    assert_eq!((figures.repaired_blocking.get(), figures.reconcile_read.get()), (1, 1));
}

/// A replica that was read and does not take what it lacks is replaced by one that was not read.
#[test]
fn a_repair_that_a_replica_does_not_take_goes_to_another_one() {
    let ring = three(20);
    let row = ring.row("ks", 1, 1, 5, 10);
    ring.world.network().partition(&[1]);
    let warnings = Warnings::default();
    let distributed_read = quorum_read(&ring, &warnings);
    let contact = |machine: usize| Contact { address: ring.address(machine), is_local: machine == 0 };
    let repair = |others: Vec<Contact>| {
        let of_replicas = vec![(contact(0), Vec::new()), (contact(1), row.updates.clone())];
        ring.world.block_on(distributed_read.repair::<ReadError>(vec![ReadRepair { of_replicas, others }]))
    };
    assert!(matches!(repair(Vec::new()), Err(FailedRead::Unanswered(_))), "nobody else can be told");
    repair(vec![contact(2)]).expect("another one is told");
    assert_eq!([0, 2].map(|machine| ring.stored(machine, "ks", 1)), [vec![], vec![(1, 5)]]);
}

/// Rows within the limit that another replica has deleted do not make the answer short.
#[test]
fn a_limit_is_met_although_rows_were_deleted_elsewhere() {
    let ring = three(4);
    for c in 0..20 {
        ring.write(0, vec![ring.row("ks", 1, c, c, 10)], Consistency::All).expect("written");
        ring.write(0, vec![ring.row("ks", 2 + c, 1, c, 10)], Consistency::All).expect("written");
    }
    // the nearest replica alone does not know of the deletions
    for c in 0..15 {
        ring.apply_alone(1, &[deletion(&ring, 1, c, 20)]);
        ring.apply_alone(2, &[deletion(&ring, 1, c, 20)]);
    }
    let read = ring.read(0, vec![limited(ring.select_key("ks", 1), 3)], Consistency::Quorum);
    assert_eq!(read.expect("answered"), [(1, 15, 15), (1, 16, 16), (1, 17, 17)]);
    // and across partitions
    let all = ring.select("ks", PartitionRange::all());
    let rows = ring.read(0, vec![all.clone()], Consistency::Quorum).expect("answered");
    let gone: Vec<i32> = rows.iter().map(|(k, ..)| *k).filter(|k| *k != 1).take(8).collect();
    for k in &gone {
        ring.apply_alone(1, &[deletion(&ring, *k, 1, 20)]);
        ring.apply_alone(2, &[deletion(&ring, *k, 1, 20)]);
    }
    let expected: Vec<_> = rows.into_iter().filter(|(k, ..)| !gone.contains(k)).take(4).collect();
    assert_eq!(ring.read(0, vec![limited(all, 4)], Consistency::Quorum).expect("answered"), expected);
}

/// More rows than one portion has: digests agree, and the rest is asked of all.
#[test]
fn a_partition_of_several_portions_is_read_whole() {
    let ring = three(5);
    let mut mutation = ring.row("ks", 1, 0, 0, 10);
    for c in 1..12_000 {
        let mut other = ring.row("ks", 1, c, c, 10);
        mutation.updates[0].rows.append(&mut other.updates[0].rows);
    }
    (0..3).for_each(|machine| ring.apply_alone(machine, std::slice::from_ref(&mutation)));
    ring.apply_alone(1, &[deletion(&ring, 1, 11_000, 20)]);
    let read = ring.read(0, vec![ring.select_key("ks", 1)], Consistency::All).expect("answered");
    assert_eq!(read.len(), 11_999);
    assert!(read.windows(2).all(|pair| pair[0].1 < pair[1].1), "rows ascend");
    assert_eq!(ring.stored(0, "ks", 1).len(), 11_999);
}

/// A read begins with small portions while results use up their share of memory. A search for the
/// nearest rows asks its replicas once, and gets all that it wants of them.
#[test]
fn a_search_for_the_nearest_keeps_its_portion() {
    let whole = ReadCommand::whole(&table("ks", "t"), PartitionRange::all());
    let search = |operator| IndexSearch { name: "by_v".into(), operator, value: Bytes::new() };
    for (operator, expected) in [(SearchOperator::Eq, 100), (SearchOperator::Ann, 500)] {
        let command = ReadCommand { indexes: vec![search(operator)], ..limited(whole.clone(), 500) };
        let contacts = Contacts { asked: Vec::new(), spare: Vec::new(), shortage: None, is_planned: true };
        let mut asked = PartRead::new(Part { command, contacts }, None);
        asked.begin_small();
        assert_eq!(asked.first().limits.rows, expected, "{operator:?}");
    }
}

/// While results use up their share of memory a small read goes on, and a large one waits until
/// there is memory again, or its time is over.
#[test]
fn a_large_read_waits_for_the_memory_of_results() {
    let ring = three(8);
    let mut large = ring.row("ks", 1, 0, 0, 10);
    for c in 1..9_000 {
        large.updates[0].rows.append(&mut ring.row("ks", 1, c, c, 10).updates[0].rows);
    }
    let small = ring.row("ks", 2, 0, 0, 10);
    (0..3).for_each(|machine| ring.apply_alone(machine, &[large.clone(), small.clone()]));
    let room = Arc::new(ResultRoom::new(1 << 20));
    let count = async |k: i32| {
        let request =
            ReadRequest { results: Some(Arc::clone(&room)), ..ReadRequest::of(vec![ring.select_key("ks", k)]) };
        ring.node(0).read(request, Consistency::Quorum, &ReadFigures::default(), count_unfiltereds).await
    };
    let others = room.budget.take(1 << 20);
    assert_eq!(ring.world.block_on(count(2)).expect("it is small"), 1);
    let late = ring.world.block_on(count(1));
    let Err(FailedRead::Failed { outcome: ReadOutcome::TimedOut, received, block_for, .. }) = late else {
        panic!("there is no memory, and not {late:?}")
    };
    assert_eq!((received, block_for), (0, 2), "a driver does not try again what nobody has answered");
    assert_eq!(room.budget.used(), 1 << 20, "who waits has nothing that counts");
    let (read, ()) = ring.world.block_on(async {
        let free = async {
            ring.node(0).env.sleep(Duration::from_secs(1)).await;
            drop(others);
        };
        futures_util::future::join(count(1), free).await
    });
    assert_eq!(read.expect("there is memory again"), 9_000);
    assert_eq!(room.budget.used(), 0);
}

/// A replica that is cut off and not known to be down is replaced by another one if there is one;
/// if not, the client is told who has answered.
#[test]
fn a_replica_that_does_not_answer() {
    let ring = three(6);
    for k in 1..12 {
        ring.write(0, vec![ring.row("ks", k, 1, k, 10)], Consistency::All).expect("written");
    }
    ring.world.network().partition(&[1]);
    let of_all = unanswered(ring.read(0, vec![ring.select_key("ks", 1)], Consistency::All));
    let told = (of_all.block_for, of_all.received, of_all.data_present, of_all.timed_out);
    assert_eq!((told, of_all.failures.len()), ((3, 2, true, true), 0));
    let speculated = || {
        let table = ring.select_key("ks", 1).table.id;
        let retries = [0, 2].map(|machine| {
            ring.node(machine).engine.table(table).expect("it is open").metrics.speculative_retries.get()
        });
        retries.iter().sum::<u64>()
    };
    assert_eq!(speculated(), 0, "at ALL there is no other replica");
    for through in [0, 2] {
        let read = ring.read(through, vec![ring.select_key("ks", 1)], Consistency::Quorum);
        assert_eq!(read.expect("two replicas answer"), [(1, 1, 1)]);
    }
    // Of some of ten partitions the replica that is cut off comes before the other one in the ring.
    // Node 2 does not know yet that it is slow.
    for k in 2..12 {
        let read = ring.read(2, vec![ring.select_key("ks", k)], Consistency::Quorum);
        assert_eq!(read.expect("two replicas answer"), [(k, 1, k)]);
    }
    assert!(speculated() > 0, "another replica was asked");
}

/// A replica that has given a digest and does not give its data is replaced, too.
#[test]
fn a_replica_that_gives_a_digest_and_no_data() {
    let ring = three(22);
    (0..3).for_each(|machine| ring.apply_alone(machine, &[ring.row("ks", 1, 1, 5, 10)]));
    ring.world.network().partition(&[1]);
    let warnings = Warnings::default();
    let distributed_read = quorum_read(&ring, &warnings);
    let contact = |machine: usize| Contact { address: ring.address(machine), is_local: machine == 0 };
    let read = |spare: Vec<Contact>| {
        let contacts = Contacts { asked: vec![contact(0), contact(1)], spare, shortage: None, is_planned: true };
        let asked = PartRead::new(Part { command: ring.select_key("ks", 1), contacts }, None);
        let question = asked.question(&asked.first());
        let mut answers = [0, 1].map(|machine| (contact(machine), Reply { data: None, digest: None }));
        let given = ring.world.block_on(distributed_read.ask_for_data(&asked, &mut answers, &question));
        given.map(|()| answers.map(|(contact, reply)| (contact, reply.data.is_some())))
    };
    assert_eq!(read(vec![contact(2)]), Ok([(contact(0), true), (contact(2), true)]));
    let late = read(Vec::new()).expect_err("nobody else can be asked");
    assert_eq!((late.block_for, late.received, late.data_present, late.timed_out), (2, 1, true, true));
}

/// This node's own answer counts for the dynamic snitch although it was given up: others were
/// faster.
#[test]
fn an_own_answer_that_is_given_up_is_measured() {
    let ring = three(24);
    let mut large = ring.row("ks", 1, 0, 0, 10);
    for c in 1..2_000 {
        large.updates[0].rows.append(&mut ring.row("ks", 1, c, c, 10).updates[0].rows);
    }
    ring.apply_alone(0, &[large]);
    let warnings = Warnings::default();
    let distributed_read = quorum_read(&ring, &warnings);
    let question = Arc::new(Question::of(&ring.select_key("ks", 1)));
    let own = Contact { address: ring.address(0), is_local: true };
    let mut asking = distributed_read.ask(own, &question, AnswerKind::Data);
    ring.world.block_on(poll_fn(|context| {
        assert!(asking.as_mut().poll(context).is_pending(), "so many rows are read in the background");
        Poll::Ready(())
    }));
    ring.world.run_for(Duration::from_millis(20));
    drop(asking);
    ring.world.run_for(Duration::from_millis(200));
    let snitch = ring.node(0).membership_state.dynamic_snitch.get().expect("it is on");
    assert!(snitch.scores().of(own.address) > 0.0);
}

/// Reads that this node has answered alone, and too late, let the next ones ask others.
#[test]
fn own_reads_that_take_too_long_are_measured() {
    let ring = three(25);
    let node = ring.node(0);
    let room = Arc::new(ResultRoom::new(1 << 20));
    let _others = room.budget.take(1 << 20);
    let commands: Vec<ReadCommand> = (0..65).map(|k| ring.select_key("ks", k)).collect();
    let asks_others = || node.plan_parts_if_distributed(&commands, Consistency::One).expect("all are up").is_some();
    assert!(!asks_others());
    let request = ReadRequest { results: Some(Arc::clone(&room)), ..ReadRequest::of(commands.clone()) };
    let figures = ReadFigures::default();
    let late = ring.world.block_on(node.read(request, Consistency::One, &figures, count_unfiltereds));
    assert!(matches!(late, Err(FailedRead::Failed { outcome: ReadOutcome::TimedOut, .. })), "{late:?}");
    ring.world.run_for(Duration::from_millis(200));
    assert!(asks_others(), "the others may be faster");
}

/// Where too few are known to be up nobody is asked.
#[test]
fn too_few_are_refused() {
    let mut ring = three(7);
    ring.kill(1);
    ring.kill(2);
    ring.agree();
    let level = Consistency::Quorum;
    for range in [ring.select("ks", PartitionRange::all()), ring.select_key("ks", 1)] {
        let Err(FailedRead::Refused(refused)) = ring.read(0, vec![range], level) else { panic!("one of three is up") };
        assert_eq!(
            refused,
            RequestError::Unavailable { level, shortage: InsufficientReplicas { required: 2, alive: 1 } }
        );
    }
}

/// A range needs no replicas of tokens beyond its ends, as every program asks that reads the ring
/// range by range.
#[test]
fn a_range_needs_its_own_replicas_alone() {
    let mut ring = three(8);
    let tokens: Vec<i64> = (0..3).flat_map(|machine| ring.options(machine).0.initial_tokens).collect();
    for k in 0..40 {
        ring.write(0, vec![ring.row("one", k, 1, k, 10)], Consistency::One).expect("written");
    }
    ring.kill(0);
    ring.agree();
    let rows = |after: i64, upto: i64| {
        let token_of = |k: &i32| Token::of_key(&k.to_be_bytes());
        let mut inside: Vec<i32> = (0..40).filter(|k| (after + 1..=upto).contains(&token_of(k).0)).collect();
        inside.sort_by_key(token_of);
        inside.into_iter().map(|k| (k, 1, k)).collect::<Vec<_>>()
    };
    let bound = |token: i64, inclusive: bool| RingBound::Token { token: Token(token), inclusive };
    let level = Consistency::One;
    let unavailable = RequestError::Unavailable { level, shortage: InsufficientReplicas { required: 1, alive: 0 } };
    // the ranges up to the second and to the third token are of machines that are up
    let cases = [
        (bound(tokens[0], false), bound(tokens[1], true), Ok(rows(tokens[0], tokens[1]))),
        (bound(tokens[0] + 1, true), bound(tokens[2] + 1, false), Ok(rows(tokens[0], tokens[2]))),
        (bound(tokens[0], false), bound(tokens[0], true), Ok(Vec::new())),
        (bound(tokens[0], true), bound(tokens[1], true), Err(&unavailable)),
        (bound(tokens[1], false), bound(tokens[2] + 1, true), Err(&unavailable)),
    ];
    for ((start, end, expected), through) in cases.into_iter().zip([2, 1].into_iter().cycle()) {
        let command = ring.select("one", PartitionRange::Range { start: start.clone(), end: end.clone() });
        match (ring.read(through, vec![command], level), expected) {
            (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{start:?} to {end:?}"),
            (Err(FailedRead::Refused(refused)), Err(expected)) => assert_eq!(&refused, expected),
            (other, expected) => panic!("{start:?} to {end:?}: {other:?}, not {expected:?}"),
        }
    }
}

/// Replicas are missed where a read comes to their stretch of the ring, and no sooner.
#[test]
fn a_range_is_read_up_to_the_stretch_that_lacks_replicas() {
    let mut ring = three(10);
    for k in 0..40 {
        ring.write(0, vec![ring.row("one", k, 1, k, 10)], Consistency::One).expect("written");
    }
    let (identity, _) = ring.options(1);
    let upto = Token(identity.initial_tokens[0]);
    let token_of = |k: &i32| Token::of_key(&k.to_be_bytes());
    let mut there: Vec<i32> = (0..40).filter(|k| token_of(k) <= upto).collect();
    there.sort_by_key(token_of);
    let there: Vec<(i32, i32, i32)> = there.into_iter().map(|k| (k, 1, k)).collect();
    let (last, _) = ring.options(2);
    let lacking = PartitionRange::Range {
        start: RingBound::Token { token: upto, inclusive: false },
        end: RingBound::Token { token: Token(last.initial_tokens[0]), inclusive: true },
    };
    ring.kill(2);
    ring.agree();
    let level = Consistency::One;
    for through in 0..2 {
        let all = ring.select("one", PartitionRange::all());
        for count in [1, there.len() - 1] {
            let command = limited(all.clone(), u32::try_from(count).expect("few rows"));
            assert_eq!(ring.read(through, vec![command], level).expect("it comes to no gap"), there[..count]);
        }
        let explain = |command| ring.world.block_on(ring.node(through).explain(vec![command], level));
        explain(limited(all.clone(), 1)).expect("it is planned as it is read");
        assert!(matches!(explain(ring.select("one", lacking.clone())), Err(FailedRead::Refused(_))));
        let Err(FailedRead::Refused(refused)) = ring.read(through, vec![all], level) else { panic!("a gap") };
        assert_eq!(
            refused,
            RequestError::Unavailable { level, shortage: InsufficientReplicas { required: 1, alive: 0 } }
        );
    }
}

/// A read at QUORUM sees what was written at QUORUM, and nothing that was seen is unseen later,
/// whatever messages are lost, nodes cut off or killed.
#[test]
fn quorums_see_each_other() {
    for seed in 21..23 {
        let mut ring = three(seed);
        let dice = ring.world.dice();
        // by partition: the greatest version that must be seen
        let mut least = [0; 4];
        for version in 1..60 {
            let k = dice.below(4) as usize;
            let through = dice.below(3) as usize;
            match dice.below(12) {
                0 => ring.world.network().partition(&[dice.below(3) as usize]),
                1 | 2 => ring.world.network().heal(),
                3 => {
                    let machine = dice.below(3) as usize;
                    ring.kill(machine);
                    ring.world.run_for(Duration::from_millis(dice.below(3_000)));
                    ring.world.network().heal();
                    ring.start(machine);
                }
                _ => {}
            }
            let row = ring.row("ks", k as i32, 1, version, i64::from(version));
            if ring.write(through, vec![row], Consistency::Quorum).is_ok() {
                least[k] = version;
            }
            let k = dice.below(4) as usize;
            let read = ring.read(dice.below(3) as usize, vec![ring.select_key("ks", k as i32)], Consistency::Quorum);
            if let Ok(rows) = read {
                let seen = rows.first().map_or(0, |(_, _, v)| *v);
                assert!(seen >= least[k], "seed {seed}, version {version}: {seen} of {k} is seen after {}", least[k]);
                least[k] = seen;
            }
        }
        ring.world.network().heal();
        // a node that has just started again goes down and up once more at the others
        ring.world.run_for(Duration::from_secs(20));
        ring.agree();
        for k in 0..4 {
            let read = ring.read(0, vec![ring.select_key("ks", k)], Consistency::All).expect("answered");
            let stored: Vec<_> = (0..3).map(|machine| ring.stored(machine, "ks", k)).collect();
            assert!(stored.iter().all(|rows| *rows == stored[0]), "seed {seed}: replicas are equal after repair");
            assert_eq!(stored[0].len(), read.len());
        }
    }
}

/// A coordinator that asks for it hears how many tombstones each replica has passed, itself among
/// them.
#[test]
fn replicas_tell_of_tombstones() {
    let ring = three(17);
    let mut many = deletion(&ring, 1, 0, 10);
    for c in 1..1_100 {
        many.updates[0].rows.extend(deletion(&ring, 1, c, 10).updates.remove(0).rows);
    }
    (0..3).for_each(|machine| ring.apply_alone(machine, std::slice::from_ref(&many)));
    assert_eq!(findings(&ring, false).0, []);
    let found = Finding { measure: Measure::Tombstones, is_failure: false, nodes: 3, most: 1_100 };
    assert_eq!(findings(&ring, true), (vec![found], true));
}

/// A coordinator hears how much each replica has loaded, itself among them, and where a replica has
/// ended its read for it the read fails.
#[test]
fn replicas_tell_of_sizes() {
    let ring = three(18);
    for c in 0..10 {
        ring.write(0, vec![ring.row("ks", 1, c, c, 10)], Consistency::All).expect("written");
    }
    // a row is 40 bytes, its clustering 72, its liveness 24, the tree of its column 24, the cell 64
    let size = 56 + 24 + 10 * (40 + 72 + 24 + 24 + 64);
    let set = |machine: usize, warn, fail| {
        let local = SizeThresholds { warn: Some(warn), fail };
        ring.node(machine).set_read_sizes(ReadSizes { local, ..ReadSizes::default() });
    };
    set(0, size, None);
    set(1, 1_000, None);
    set(2, size + 1, None);
    assert_eq!(findings(&ring, false), (Vec::new(), true));
    let found = Finding { measure: Measure::LocalReadSize, is_failure: false, nodes: 2, most: size };
    assert_eq!(findings(&ring, true), (vec![found], true));
    let ring = three(19);
    ring.write(0, vec![ring.row("ks", 1, 1, 1, 10)], Consistency::All).expect("written");
    ring.node(1).set_read_sizes(ReadSizes {
        local: SizeThresholds { warn: Some(100), fail: Some(200) },
        ..ReadSizes::default()
    });
    let (found, is_answered) = findings(&ring, true);
    let wanted = Finding { measure: Measure::LocalReadSize, is_failure: true, nodes: 1, most: 304 };
    assert_eq!((found, is_answered), (vec![wanted], false));
}

/// The findings of a read of partition 1 at ALL, and whether it is answered.
fn findings(ring: &SimRing, tracks: bool) -> (Vec<Finding>, bool) {
    let node = ring.node(0);
    node.set_tracks_thresholds(tracks);
    let commands = vec![ring.select_key("ks", 1)];
    let request = ReadRequest::of(commands);
    let pass = |stream: &mut dyn PartitionStream| {
        while stream.next_partition()?.is_some() {
            while stream.next_unfiltered()?.is_some() {}
        }
        Ok::<_, ReadError>(())
    };
    let figures = ReadFigures::default();
    let read = node.read(request, Consistency::All, &figures, pass);
    let is_answered = ring.world.block_on(read).is_ok();
    (figures.warnings.findings.take(), is_answered)
}
