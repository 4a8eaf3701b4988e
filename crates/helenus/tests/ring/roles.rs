//! Roles in a ring: made, granted and listed through one node, in force on each, with nodes down.

use std::time::{Duration, Instant};

use super::{Driver, NODES, PATIENCE, Ring};

/// Names and passwords of those who log in here.
const ADMIN: (&str, &str) = ("cassandra", "cassandra");
const ALICE: (&str, &str) = ("alice", "wonderland");

/// The answer of a session: the bytes of the result, or the words of the error.
type Answer = Result<Vec<u8>, String>;

/// A driver that has logged in.
struct Session(Driver);

impl Session {
    fn open(ring: &Ring, number: usize, (user, password): (&str, &str)) -> Result<Self, String> {
        // the node answers STARTUP with AUTHENTICATE
        let mut driver = Driver::connect(ring, number);
        let token = [b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat();
        let mut body = u32::try_from(token.len()).unwrap().to_be_bytes().to_vec();
        body.extend(token);
        driver.send(15, &body);
        match driver.receive() {
            (16, _) => Ok(Self(driver)),
            (_, body) => Err(words(&body)),
        }
    }

    fn ask(&mut self, query: &str, level: u16) -> Answer {
        let mut body = u32::try_from(query.len()).unwrap().to_be_bytes().to_vec();
        body.extend(query.as_bytes());
        body.extend(level.to_be_bytes());
        body.push(0);
        self.0.send(7, &body);
        match self.0.receive() {
            (8, body) => Ok(body),
            (_, body) => Err(words(&body)),
        }
    }

    /// Carries a statement out at ONE.
    fn run(&mut self, query: &str) -> Result<(), String> {
        self.ask(query, 1).map(drop)
    }

    /// Whether a result has these bytes in it.
    fn shows(&mut self, query: &str, text: &str) -> bool {
        let found = self.ask(query, 1).unwrap();
        found.windows(text.len()).any(|part| part == text.as_bytes())
    }
}

/// The words of an ERROR message.
fn words(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[6..]).into_owned()
}

/// Tries until it succeeds.
fn until<T, E: std::fmt::Debug>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error:?}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Ok: a statement is refused in these words.
fn refused(words: &str, found: Result<(), String>) -> Result<(), Result<(), String>> {
    if found.as_ref().is_err_and(|found| found == words) { Ok(()) } else { Err(found) }
}

/// `system_auth` gets three copies. Reading at ALL copies what is there, while it is still known
/// that the administrator may.
fn replicate_roles(ring: &Ring) {
    until(|| -> Answer {
        for number in 0..NODES {
            let Ok(mut admin) = Session::open(ring, number, ADMIN) else { continue };
            let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
            admin.run(&format!("ALTER KEYSPACE system_auth WITH replication = {replication}"))?;
            return admin.ask("SELECT * FROM system_auth.roles", 5);
        }
        Err("nobody lets the administrator in".to_owned())
    });
}

#[test]
fn roles_are_those_of_the_ring() {
    let directory = tempfile::tempdir().unwrap();
    let mut ring =
        Ring::start(directory.path(), &["authenticator=PasswordAuthenticator", "authorizer=CassandraAuthorizer"]);
    ring.await_letters(&[0, 1, 2], ["UN", "UN", "UN"]);
    replicate_roles(&ring);

    // made through one node, in force on each
    let mut admin = until(|| Session::open(&ring, 0, ADMIN));
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    until(|| admin.run(&format!("CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {replication}")));
    for statement in [
        "CREATE TABLE ks.t (k int PRIMARY KEY)",
        "CREATE ROLE alice WITH LOGIN = true AND PASSWORD = 'wonderland'",
        "GRANT SELECT ON ks.t TO alice",
    ] {
        assert_eq!(admin.run(statement), Ok(()), "{statement}");
    }
    let (insert, select) = ("INSERT INTO ks.t (k) VALUES (1)", "SELECT * FROM ks.t");
    let no_modify = "User alice has no MODIFY permission on <table ks.t> or any of its parents";
    let mut alices: Vec<_> = (0..NODES).map(|number| Session::open(&ring, number, ALICE).ok().unwrap()).collect();
    for alice in &mut alices {
        assert_eq!(alice.run(select), Ok(()));
        assert_eq!(alice.run(insert), Err(no_modify.to_owned()));
        assert!(alice.shows("LIST ALL PERMISSIONS OF alice", "SELECT"));
    }
    let wrong = Session::open(&ring, 2, ("alice", "underground")).err().unwrap();
    assert_eq!(wrong, "Provided username alice and/or password are incorrect");

    // changed through another node: at once there, elsewhere when the caches have been read again
    let mut other = until(|| Session::open(&ring, 1, ADMIN));
    assert_eq!(other.run("GRANT MODIFY ON ks.t TO alice"), Ok(()));
    assert_eq!(alices[1].run(insert), Ok(()));
    until(|| alices[2].run(insert));
    // what an operator has emptied is read at once
    assert_eq!(other.run("REVOKE MODIFY ON ks.t FROM alice"), Ok(()));
    ring.nodetool(2, "invalidatepermissionscache");
    assert_eq!(alices[2].run(insert), Err(no_modify.to_owned()));
    assert!(admin.shows("LIST ROLES", "alice") && other.shows("LIST ROLES", "cassandra"));

    // two of three nodes are enough to read and to write roles
    ring.stop(2);
    assert_eq!(other.run("GRANT MODIFY ON ks.t TO alice"), Ok(()));
    assert_eq!(other.run("CREATE ROLE bob"), Ok(()));
    until(|| alices[0].run(insert));
    assert!(admin.shows("LIST ROLES OF bob", "bob"));

    // one of three is not: nobody new comes in, and what everybody may do is all that is left
    drop(other);
    ring.stop(1);
    let unknown = "Unable to perform authorization of permissions: Unable to perform authorization of super-user \
                   permission: Cannot achieve consistency level LOCAL_QUORUM";
    until(|| refused(unknown, alices[0].run(select)));
    assert_eq!(alices[0].run("SELECT * FROM system.local"), Ok(()));
    let shut = "Unable to perform authentication: Cannot achieve consistency level LOCAL_QUORUM";
    until(|| refused(shut, Session::open(&ring, 0, ALICE).map(drop)));
}
