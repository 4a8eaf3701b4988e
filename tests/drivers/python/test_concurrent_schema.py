"""Many connections change the schema at once while others read and write; then the server is killed in the middle of it.

Each worker changes objects of its own, of which it knows what there must be, and objects that all of them make and drop. What was
acknowledged is there, during the changes and after the crash; what was under way when the server was killed is there whole or not at all.
"""

import random
import threading
import time

import pytest
from cassandra import AlreadyExists, InvalidRequest, OperationTimedOut, ReadFailure
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import ConfigurationException, TruncateError

from conftest import Contact

WORKERS, USERS, STEPS, SECONDS_TO_KILL = 6, 3, 25, 1.5
REPLICATION = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
GONE = (NoHostAvailable, ConnectionException, OperationTimedOut)
INDEX_NOT_AVAILABLE = 6
# What a statement about a shared object may meet: it is there already, it is gone, it is used.
EXPECTED = (AlreadyExists, InvalidRequest, ConfigurationException)
SHARED = [
    f"CREATE KEYSPACE IF NOT EXISTS crowd {REPLICATION}",
    f"CREATE KEYSPACE crowd {REPLICATION}",
    "ALTER KEYSPACE crowd WITH durable_writes = true",
    "DROP KEYSPACE IF EXISTS crowd",
    "CREATE TYPE crowd.pair (a int, b int)",
    "ALTER TYPE crowd.pair ADD c int",
    "DROP TYPE crowd.pair",
    "CREATE TABLE crowd.t (k int PRIMARY KEY, v int, p frozen<pair>)",
    "CREATE TABLE IF NOT EXISTS crowd.t (k int PRIMARY KEY, v int)",
    "DROP TABLE crowd.t",
    "TRUNCATE crowd.t",
    "ALTER TABLE crowd.t ADD w int",
    "ALTER TABLE crowd.t DROP w",
    "CREATE INDEX IF NOT EXISTS crowd_v ON crowd.t (v)",
    "DROP INDEX IF EXISTS crowd.crowd_v",
    "ALTER TABLE steady.t ADD w int",
    "ALTER TABLE steady.t DROP w",
    "CREATE INDEX IF NOT EXISTS steady_v ON steady.t (v)",
    "DROP INDEX IF EXISTS steady.steady_v",
]


def change(dice, me, facts):
    """A statement that is right where these facts hold, and the facts after it."""
    table, kind, space = f"{me}_t{dice.randrange(3)}", f"{me}_p", f"own_{me}"
    column, field = f"c{dice.randrange(4)}", f"f{dice.randrange(1000)}"
    own = {fact for fact in facts if fact[1] == table}
    options = [[
        ((("keyspace", space),), f"CREATE KEYSPACE {space} {REPLICATION}", f"DROP KEYSPACE {space}"),
        ((("type", kind),), f"CREATE TYPE work.{kind} (a int)", f"DROP TYPE work.{kind}"),
        ((("table", table),), f"CREATE TABLE work.{table} (k int PRIMARY KEY, v int)", f"DROP TABLE work.{table}"),
    ]]  # fmt: skip
    if ("table", table) in facts:
        index = f"{table}_v"
        options.append([
            ((("column", table, column),), f"ALTER TABLE work.{table} ADD {column} int", f"ALTER TABLE work.{table} DROP {column}"),
            ((("index", table, index),), f"CREATE INDEX {index} ON work.{table} (v)", f"DROP INDEX work.{index}"),
        ])  # fmt: skip
    if ("type", kind) in facts and ("field", kind, field) not in facts:
        options.append([((("field", kind, field),), f"ALTER TYPE work.{kind} ADD {field} int", None)])
    (fact,), make, unmake = dice.choice(dice.choice(options))
    if fact not in facts:
        return make, facts | {fact}
    if fact[0] == "table":
        return unmake, facts - own
    return unmake, {known for known in facts if known != fact and not (fact[0] == "type" and known[1] == kind)}


def observed(session, me):
    """The facts about a worker's objects as the schema tables tell them."""
    mine = lambda name: name.startswith(f"{me}_")  # noqa: E731
    facts = {("keyspace", row[0]) for row in session.execute("SELECT keyspace_name FROM system_schema.keyspaces") if row[0] == f"own_{me}"}
    facts |= {("table", row[0]) for row in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'work'") if mine(row[0])}
    columns = session.execute("SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = 'work'")
    facts |= {("column", *row) for row in columns if mine(row[0]) and row[1] not in "kv"}
    indexes = session.execute("SELECT table_name, index_name FROM system_schema.indexes WHERE keyspace_name = 'work'")
    facts |= {("index", *row) for row in indexes if mine(row[0])}
    for name, fields in session.execute("SELECT type_name, field_names FROM system_schema.types WHERE keyspace_name = 'work'"):
        if mine(name):
            facts |= {("type", name)} | {("field", name, field) for field in fields if field != "a"}
    return facts


class Worker(threading.Thread):
    """Changes the schema, a number of times or until the server is gone."""

    def __init__(self, number, session):
        super().__init__()
        self.me, self.session, self.dice = f"w{number}", session, random.Random(number)
        self.facts, self.in_doubt, self.steps, self.wrong = set(), None, None, None

    def again(self, steps):
        threading.Thread.__init__(self)
        self.steps = steps
        self.start()

    def run(self):
        try:
            while self.steps is None or self.steps > 0:
                self.steps = self.steps and self.steps - 1
                self.step()
        except GONE as error:
            self.wrong = error if self.steps is not None else None
        except Exception as error:  # told by the test
            self.wrong = error

    def step(self):
        if self.dice.random() < 0.4:
            try:
                self.session.execute(self.dice.choice(SHARED))
            except EXPECTED:
                pass
            except TruncateError:  # of a table that is dropped meanwhile
                pass
            return
        statement, self.in_doubt = change(self.dice, self.me, self.facts)
        self.session.execute(statement)
        self.facts, self.in_doubt = self.in_doubt, None


class User(threading.Thread):
    """Writes rows and reads them back, prepared and not, until it is told to stop or the server is gone."""

    def __init__(self, number, session, done):
        super().__init__()
        self.number, self.session, self.done = number, session, done
        self.written, self.wrong = 0, None

    def run(self):
        try:
            insert = self.session.prepare("INSERT INTO steady.t (k, c, v) VALUES (?, ?, ?)")
            select = self.session.prepare("SELECT * FROM steady.t WHERE k = ? AND c = ?")
            while not self.done.is_set():
                row = (self.number, self.written + 1)
                self.session.execute(insert, (*row, 7))
                self.written += 1
                found = self.session.execute(select, row).one()
                assert (found.k, found.c, found.v) == (*row, 7), found
                for statement in ("INSERT INTO crowd.t (k, v) VALUES (1, 1)", "SELECT * FROM crowd.t", "SELECT k FROM crowd.t WHERE v = 1"):
                    try:
                        self.session.execute(statement)
                    except EXPECTED:
                        pass
                    except ReadFailure as error:  # of an index that is being built
                        assert set(error.error_code_map.values()) == {INDEX_NOT_AVAILABLE}, error
        except GONE as error:
            self.wrong = None if self.done.is_set() else error
        except Exception as error:  # told by the test
            self.wrong = error


@pytest.fixture
def connect(node):
    """A session on a connection of its own, that does not follow the schema."""
    clusters = []

    def make():
        contact = Contact(node.host, node.port)
        clusters.append(contact.cluster(schema_metadata_enabled=False, token_metadata_enabled=False, max_schema_agreement_wait=0))
        return clusters[-1].connect()

    yield make
    for cluster in clusters:
        cluster.shutdown()


def version(session):
    return session.execute("SELECT schema_version FROM system.local").one()[0]


def test_the_schema_under_many_changes_at_once(node, connect):
    session = connect()
    for statement in (f"CREATE KEYSPACE work {REPLICATION}", f"CREATE KEYSPACE steady {REPLICATION}", "CREATE TABLE steady.t (k int, c int, v int, PRIMARY KEY (k, c))"):
        session.execute(statement)
    done = threading.Event()
    workers = [Worker(number, connect()) for number in range(WORKERS)]
    users = [User(number, connect(), done) for number in range(USERS)]
    for user in users:
        user.start()
    for worker in workers:
        worker.again(STEPS)
    for worker in workers:
        worker.join()
    assert [worker.wrong for worker in workers] == [None] * WORKERS
    assert all(observed(session, worker.me) == worker.facts for worker in workers)
    assert len({version(one.session) for one in (*workers, *users)}) == 1

    for worker in workers:
        worker.again(None)
    done.wait(SECONDS_TO_KILL)
    done.set()
    node.kill()
    for one in (*workers, *users):
        one.join()
    assert [one.wrong for one in (*workers, *users)] == [None] * (WORKERS + USERS)

    node.start()
    session = connect()
    for worker in workers:
        assert observed(session, worker.me) in (worker.facts, worker.in_doubt), (worker.facts, worker.in_doubt)
    for user in users:
        count = session.execute(f"SELECT count(*) FROM steady.t WHERE k = {user.number}").one()[0]
        assert user.written <= count <= user.written + 1
    before = version(session)
    node.kill()
    node.start()
    assert version(connect()) == before


def test_an_index_dropped_and_made_again(node, connect):
    """Under the same name, in the same directory: what is left of the old one is not taken for the new one's, nor away with it."""
    session = connect()
    session.execute(f"CREATE KEYSPACE work {REPLICATION}")
    session.execute("CREATE TABLE work.t (k int PRIMARY KEY, v int)")
    for key in range(50):
        session.execute(f"INSERT INTO work.t (k, v) VALUES ({key}, {key % 2})")
    other = connect()
    for _ in range(6):
        session.execute("CREATE INDEX t_v ON work.t (v)")
        node.nodetool("flush", "work", "t")
        dropped = session.execute_async("DROP INDEX work.t_v")
        made = other.execute_async("CREATE INDEX IF NOT EXISTS t_v ON work.t (v)")
        dropped.result()
        made.result()
        session.execute("DROP INDEX IF EXISTS work.t_v")
    session.execute("CREATE INDEX t_v ON work.t (v)")

    def found():
        return len(list(connect().execute("SELECT k FROM work.t WHERE v = 1")))

    for _ in range(100):
        try:
            assert found() == 25
            break
        except ReadFailure:
            time.sleep(0.05)
    assert found() == 25
    node.kill()
    node.start()
    assert found() == 25
    assert "cannot be" not in node.log.read_text()
