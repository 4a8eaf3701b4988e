//! Many connections that read and write the same rows: nothing that was acknowledged is lost, a
//! kill included.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::client::{Client, Row};
use super::{KEYSPACE, Node};

const CLIENTS: usize = 12;

fn long(row: &Row, column: usize) -> i64 {
    row[column].as_deref().map_or(0, |bytes| i64::from_be_bytes(bytes.try_into().unwrap()))
}

/// Runs `work` on as many connections at once; gives what each returned.
fn at_once<T: Send + 'static>(port: u16, work: impl Fn(usize, Client) -> T + Send + Sync + 'static) -> Vec<T> {
    let work = Arc::new(work);
    let threads: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let work = Arc::clone(&work);
            thread::spawn(move || work(client, Client::connect(port)))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn no_increment_is_lost() {
    const ROUNDS: i64 = 100;
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    client.run(KEYSPACE);
    client.run("CREATE TABLE ks.c (k int, d int, n counter, m counter, s counter static, PRIMARY KEY (k, d))");
    at_once(node.port, |client, mut connection| {
        let hot = connection.prepare("UPDATE ks.c SET n = n + ?, s = s + 1 WHERE k = 1 AND d = 1");
        let own = connection.prepare("UPDATE ks.c SET m = m - 1 WHERE k = 1 AND d = ?");
        for round in 0..ROUNDS {
            connection.execute(&hot, &[&round.to_be_bytes()]).unwrap();
            connection.execute(&own, &[&(client as i32 % 3).to_be_bytes()]).unwrap();
            if round % 10 == 0 {
                connection.run(
                    "BEGIN COUNTER BATCH UPDATE ks.c SET n = n + 1 WHERE k = 2 AND d = 2; \
                     UPDATE ks.c SET n = n + 1 WHERE k = 3 AND d = 3; UPDATE ks.c SET n = n + 1 WHERE k = 2 AND d = 2; APPLY BATCH",
                );
            }
        }
    });
    let clients = CLIENTS as i64;
    let check = |client: &mut Client| {
        let rows = client.rows("SELECT n, m, s FROM ks.c WHERE k = 1");
        let sum = |column| rows.iter().map(|row| long(row, column)).sum::<i64>();
        assert_eq!(sum(0), clients * (0..ROUNDS).sum::<i64>());
        assert_eq!(sum(1), -clients * ROUNDS);
        assert_eq!(long(&rows[0], 2), clients * ROUNDS);
        let of_batches: Vec<_> =
            client.rows("SELECT n FROM ks.c WHERE k IN (2, 3)").iter().map(|row| long(row, 0)).collect();
        assert_eq!(of_batches, [clients * ROUNDS / 10 * 2, clients * ROUNDS / 10]);
    };
    check(&mut client);
    node.kill();
    let node = Node::start(directory.path());
    check(&mut node.client());
    assert_eq!(node.terminate(), 0);
    // from SSTables now, and counted on
    let node = Node::start(directory.path());
    check(&mut node.client());
    let mut client = node.client();
    client.run("UPDATE ks.c SET n = n + 5 WHERE k = 2 AND d = 2");
    let before = clients * ROUNDS / 10 * 2;
    assert_eq!(long(&client.rows("SELECT n FROM ks.c WHERE k = 2 AND d = 2")[0], 0), before + 5);
    node.kill();
}

#[test]
fn a_killed_node_has_counted_what_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let mut known = (0, 0);
    for _ in 0..3 {
        let node = Node::start(directory.path());
        let mut client = node.client();
        let _ = client.query(KEYSPACE);
        let _ = client.query("CREATE TABLE ks.c (k int PRIMARY KEY, n counter)");
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (port, told) = (node.port, Arc::clone(&acknowledged));
        let clients = thread::spawn(move || {
            at_once(port, move |_, mut connection| {
                let add = connection.prepare("UPDATE ks.c SET n = n + 1 WHERE k = 1");
                let mut sent = 0;
                loop {
                    sent += 1;
                    match connection.execute_unless_gone(&add, &[]) {
                        Ok(answer) => drop(answer.unwrap()),
                        Err(_) => return sent,
                    }
                    told.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        while acknowledged.load(Ordering::SeqCst) < 500 {
            thread::yield_now();
        }
        node.kill();
        let sent: u64 = clients.join().unwrap().into_iter().sum();
        let node = Node::start(directory.path());
        let total = long(&node.client().rows("SELECT n FROM ks.c WHERE k = 1")[0], 0) as u64;
        known = (known.0 + acknowledged.load(Ordering::SeqCst), known.1 + sent);
        assert!((known.0..=known.1).contains(&total), "{total} is counted, {known:?} acknowledged and sent");
        known = (total, total);
        node.kill();
    }
}

/// SERIAL, as a level.
const SERIAL: u16 = 8;
const ONE: u16 = 1;

fn int(row: &Row, column: usize) -> i32 {
    row[column].as_deref().map_or(0, |bytes| i32::from_be_bytes(bytes.try_into().unwrap()))
}

fn is_applied(answer: &[Row]) -> bool {
    answer[0][0].as_deref() == Some(&[1])
}

/// Each client adds to one register by compare and set; another column of the row is written
/// without conditions meanwhile.
#[test]
fn a_register_counts_every_success() {
    const ROUNDS: i32 = 25;
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    client.run(KEYSPACE);
    client.run("CREATE TABLE ks.r (k int PRIMARY KEY, v int, w int)");
    client.run("INSERT INTO ks.r (k, v) VALUES (1, 0) IF NOT EXISTS");
    let failures: usize = at_once(node.port, |client, mut connection| {
        let set = connection.prepare("UPDATE ks.r SET v = ? WHERE k = 1 IF v = ?");
        let write = connection.prepare("UPDATE ks.r SET w = ? WHERE k = 1");
        connection.consistency = SERIAL;
        let mut known = int(&connection.rows("SELECT v FROM ks.r WHERE k = 1")[0], 0);
        connection.consistency = ONE;
        let (mut done, mut failures) = (0, 0);
        while done < ROUNDS {
            let next = known + 1;
            let answer = connection.execute(&set, &[&next.to_be_bytes(), &known.to_be_bytes()]).unwrap();
            if is_applied(&answer) {
                (done, known) = (done + 1, next);
            } else {
                assert_ne!(int(&answer[0], 1), known, "a condition that holds was refused");
                (failures, known) = (failures + 1, int(&answer[0], 1));
            }
            connection.execute(&write, &[&(client as i32).to_be_bytes()]).unwrap();
        }
        failures
    })
    .into_iter()
    .sum();
    assert!(failures > 0, "nobody ever met another");
    let wanted = CLIENTS as i32 * ROUNDS;
    assert_eq!(int(&client.rows("SELECT v FROM ks.r WHERE k = 1")[0], 0), wanted);
    node.kill();
    let node = Node::start(directory.path());
    assert_eq!(int(&node.client().rows("SELECT v FROM ks.r WHERE k = 1")[0], 0), wanted);
    node.kill();
}

#[test]
fn each_row_is_inserted_by_one() {
    const KEYS: i32 = 60;
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    client.run(KEYSPACE);
    client.run("CREATE TABLE ks.t (k int, c int, owner int, PRIMARY KEY (k, c))");
    let won = at_once(node.port, |client, mut connection| {
        let insert = connection.prepare("INSERT INTO ks.t (k, c, owner) VALUES (?, ?, ?) IF NOT EXISTS");
        let owner = (client as i32).to_be_bytes();
        let try_key = |key: &i32| {
            let (k, c) = ((key % 7).to_be_bytes(), key.to_be_bytes());
            is_applied(&connection.execute(&insert, &[&k, &c, &owner]).unwrap())
        };
        (0..KEYS).filter(try_key).collect::<Vec<_>>()
    });
    let mut all: Vec<_> = won.iter().flatten().copied().collect();
    all.sort_unstable();
    assert_eq!(all, (0..KEYS).collect::<Vec<_>>());
    for row in client.rows("SELECT c, owner FROM ks.t") {
        assert!(won[int(&row, 1) as usize].contains(&int(&row, 0)), "the row is its winner's");
    }
    node.kill();
}

/// Conditional updates that were answered as applied have happened, and those without an answer
/// have happened at most once for each request.
#[test]
fn a_killed_node_has_set_what_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    client.run(KEYSPACE);
    client.run("CREATE TABLE ks.r (k int PRIMARY KEY, v int)");
    client.run("INSERT INTO ks.r (k, v) VALUES (1, 0)");
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (port, told) = (node.port, Arc::clone(&acknowledged));
    let clients = thread::spawn(move || {
        at_once(port, move |_, mut connection| {
            let set = connection.prepare("UPDATE ks.r SET v = v + 1 WHERE k = 1 IF v = ?");
            let mut known = 0i32;
            // ends when the node is gone
            while let Ok(answer) = connection.execute_unless_gone(&set, &[&known.to_be_bytes()]) {
                let answer = answer.unwrap();
                known = if is_applied(&answer) { known + 1 } else { int(&answer[0], 1) };
                told.fetch_add(u64::from(is_applied(&answer)), Ordering::SeqCst);
            }
        })
    });
    while acknowledged.load(Ordering::SeqCst) < 200 {
        thread::yield_now();
    }
    node.kill();
    clients.join().unwrap();
    let node = Node::start(directory.path());
    let found = int(&node.client().rows("SELECT v FROM ks.r WHERE k = 1")[0], 0) as u64;
    let known = acknowledged.load(Ordering::SeqCst);
    assert!((known..=known + CLIENTS as u64).contains(&found), "{found} is set, {known} acknowledged");
    node.kill();
}
