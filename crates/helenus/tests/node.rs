//! The program as a whole, as its users have it: started, spoken to in raw frames of protocol
//! version 4, killed, started again.

// A client of these tests stands outside the house.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used, missing_docs)]

#[path = "node/client.rs"]
mod client;
#[path = "node/concurrent.rs"]
mod concurrent;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use client::{Client, Values};

/// A running node.
struct Node {
    process: Child,
    port: u16,
}

fn command(data: &Path, extra: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
    command.args(["serve", "--port", "0", "--admin-port", "0", "--memory", "128M", "--data-dir"]).arg(data).args(extra);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Node {
    fn start(data: &Path) -> Self {
        let mut process = command(data, &[]).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse();
        assert!(line.starts_with("helenus ready: CQL on 127.0.0.1:"), "{line}");
        Self { process, port: port.unwrap() }
    }

    fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// As kill -9 does.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn terminate(mut self) -> i32 {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.process.wait().unwrap().code().unwrap()
    }
}

/// A start that is refused: its exit code and what it says.
fn refused(data: &Path, extra: &[&str]) -> (i32, String) {
    let mut process = command(data, extra).spawn().unwrap();
    let code = process.wait().unwrap().code().unwrap();
    let mut said = String::new();
    process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (code, said)
}

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

#[test]
fn acknowledged_rows_outlive_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let node = Node::start(&data);
    let mut client = node.client();
    client.run(KEYSPACE);
    client.run("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))");
    let insert = client.prepare("INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?)");
    for c in 0..300i32 {
        let value = format!("v{c}");
        client.execute(&insert, &[&(c % 7).to_be_bytes(), &c.to_be_bytes(), value.as_bytes()]).unwrap();
    }
    client.run("DELETE FROM ks.t WHERE k = 3");
    let identity = client.rows("SELECT host_id, tokens, schema_version FROM system.local");
    node.kill();

    let node = Node::start(&data);
    let mut client = node.client();
    assert_eq!(client.rows("SELECT host_id, tokens, schema_version FROM system.local"), identity);
    let rows = client.rows("SELECT k, c, v FROM ks.t");
    assert_eq!(rows.len(), 300 - 43);
    for row in &rows {
        let number = i32::from_be_bytes(row[1].as_deref().unwrap().try_into().unwrap());
        assert_eq!(row[2].as_deref().unwrap(), format!("v{number}").as_bytes());
    }
    assert_eq!(node.terminate(), 0);

    let node = Node::start(&data);
    assert_eq!(node.client().rows("SELECT k, c, v FROM ks.t"), rows);
    node.kill();
}

#[test]
fn logged_batches_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    client.run(KEYSPACE);
    client.run("CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
    let inserts: String = (0..5).map(|k| format!("INSERT INTO ks.t (k, v) VALUES ({k}, {k}); ")).collect();
    client.run(&format!("BEGIN BATCH {inserts} APPLY BATCH"));
    assert_eq!(client.rows("SELECT * FROM ks.t").len(), 5);
    assert_eq!(client.rows("SELECT * FROM system.batches").len(), 0);
    node.kill();
    let node = Node::start(directory.path());
    assert_eq!(node.client().rows("SELECT * FROM ks.t").len(), 5);
    node.kill();
}

#[test]
fn what_was_truncated_stays_away_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    client.run(KEYSPACE);
    client.run("CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
    (0..20).for_each(|k| client.run(&format!("INSERT INTO ks.t (k, v) VALUES ({k}, 1)")));
    client.run("TRUNCATE ks.t");
    assert_eq!(client.rows("SELECT k FROM ks.t").len(), 0);
    client.run("INSERT INTO ks.t (k, v) VALUES (100, 2)");
    node.kill();
    let node = Node::start(directory.path());
    assert_eq!(node.client().rows("SELECT k FROM ks.t").len(), 1);
    node.kill();
}

#[test]
fn prepared_statements_follow_the_schema() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    let (code, _) = client.execute(&[7; 16], &[]).unwrap_err();
    assert_eq!(code, 0x2500);
    client.run(KEYSPACE);
    client.run("CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
    client.run("INSERT INTO ks.t (k, v) VALUES (1, 2)");
    let select = client.prepare("SELECT * FROM ks.t WHERE k = ?");
    let key: Values<'_> = &[&1i32.to_be_bytes()];
    assert_eq!(client.execute(&select, key).unwrap()[0].len(), 2);
    client.run("ALTER TABLE ks.t ADD w int");
    client.run("INSERT INTO ks.t (k, w) VALUES (1, 9)");
    // the statement is forgotten with the former shape of its table; prepared again it has the same
    // id
    assert_eq!(client.execute(&select, key).unwrap_err().0, 0x2500);
    assert_eq!(client.prepare("SELECT * FROM ks.t WHERE k = ?"), select);
    let rows = client.execute(&select, key).unwrap();
    assert_eq!(rows[0][2].as_deref(), Some(&9i32.to_be_bytes()[..]));
    let (code, message) = client.execute(&select, &[]).unwrap_err();
    assert_eq!((code, message.as_str()), (0x2200, "there were 1 markers(?) in CQL but 0 bound variables"));
    client.run("DROP TABLE ks.t");
    assert_eq!(client.execute(&select, key).unwrap_err().0, 0x2500);
    node.kill();
}

#[test]
fn levels_need_replicas() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    client.run("CREATE KEYSPACE three WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    client.run("CREATE TABLE three.t (k int PRIMARY KEY)");
    client.run("INSERT INTO three.t (k) VALUES (1)");
    client.consistency = 4;
    let (code, message) = client.query("INSERT INTO three.t (k) VALUES (1)").unwrap_err();
    assert_eq!((code, message.as_str()), (0x1000, "Cannot achieve consistency level QUORUM"));
    assert_eq!(client.query("SELECT * FROM three.t").unwrap_err().0, 0x1000);
    assert_eq!(client.rows("SELECT key FROM system.local").len(), 1);
    node.kill();
}

#[test]
fn traces_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut client = node.client();
    let id = client.traced("SELECT * FROM system.local");
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let uuid = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    let sessions =
        client.rows(&format!("SELECT duration, request FROM system_traces.sessions WHERE session_id = {uuid}"));
    assert_eq!(sessions[0][1].as_deref(), Some(&b"Execute CQL3 query"[..]));
    let events = client.rows(&format!("SELECT activity FROM system_traces.events WHERE session_id = {uuid}"));
    assert!(events.len() >= 4, "{events:?}");
    node.kill();
}

#[test]
fn what_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let (code, said) = refused(directory.path(), &[]);
    assert_eq!(code, 1);
    assert!(said.contains("is in use by another process"), "{said}");
    let other = tempfile::tempdir().unwrap();
    let (code, said) = refused(other.path(), &["--port", &node.port.to_string()]);
    assert_eq!(code, 1);
    assert!(said.contains("is in use"), "{said}");
    assert_eq!(node.terminate(), 0);
    let (code, said) = refused(directory.path(), &["--set", "cluster_name=Other"]);
    assert_eq!(code, 1);
    assert!(said.contains("Saved cluster name Test Cluster != configured name Other"), "{said}");
    let (code, said) = refused(other.path(), &["--set", "no_such_key=1"]);
    assert_eq!(code, 1);
    assert!(said.contains("no_such_key"), "{said}");
    let (code, said) = refused(other.path(), &["--set", "max_value_size=1MiB"]);
    assert_eq!(code, 1);
    assert!(said.contains("max_value_size: exists in Cassandra, but is not honoured yet"), "{said}");
}
