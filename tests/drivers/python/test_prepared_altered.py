"""Prepared statements under changes of the schema: forgotten by the server, prepared again by the driver, with new columns.

Cassandra forgets a prepared statement when its table is dropped or altered in columns, indexes, `default_time_to_live` or
`gc_grace_seconds`. EXECUTE is then answered UNPREPARED, and the driver prepares the statement again, which renews the columns of
the result that it knows and, in protocol version 5, their id. Requests are counted, and answers that say that columns have changed:
the values alone would be right too if each answer said so, as the driver does not keep what such an answer tells.
"""

import pytest
from cassandra import InvalidRequest
from cassandra.connection import Connection
from cassandra.protocol import ExecuteMessage, PrepareMessage, ResultMessage
from cassandra.query import BatchStatement

METADATA_CHANGED_FLAG = 0x0008
ROWS = 2


class Traffic:
    """What went over the connections since the last `take`."""

    def __init__(self):
        self.prepared, self.executed, self.changed = 0, 0, 0

    def take(self):
        """Requests PREPARE, requests EXECUTE, and answers with rows that say that their columns have changed."""
        taken = (self.prepared, self.executed, self.changed)
        self.__init__()
        return taken


@pytest.fixture
def traffic(monkeypatch):
    traffic = Traffic()
    send, metadata = Connection.send_msg, ResultMessage.recv_results_metadata

    def counted_send(self, msg, *arguments, **options):
        traffic.prepared += isinstance(msg, PrepareMessage)
        traffic.executed += isinstance(msg, ExecuteMessage)
        return send(self, msg, *arguments, **options)

    def seen_metadata(self, f, user_type_map):
        place = f.tell()
        flags = int.from_bytes(f.read(4), "big")
        f.seek(place)
        traffic.changed += self.kind == ROWS and bool(flags & METADATA_CHANGED_FLAG)
        return metadata(self, f, user_type_map)

    monkeypatch.setattr(Connection, "send_msg", counted_send)
    monkeypatch.setattr(ResultMessage, "recv_results_metadata", seen_metadata)
    return traffic


@pytest.fixture(params=[4, 5])
def connect(contact, request):
    """A function that makes a session of its own, with the same protocol version for all of a test."""
    clusters = []

    def make():
        clusters.append(contact.cluster(protocol_version=request.param, schema_metadata_enabled=False))
        return clusters[-1].connect()

    make.version = request.param
    yield make
    for cluster in clusters:
        cluster.shutdown()


def of(session, statement, *values):
    return [row._asdict() for row in session.execute(statement, values)]


def test_prepared_again_once(connect, session, table, traffic):
    name = table("k int PRIMARY KEY, v int")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 1)")
    client = connect()
    select = client.prepare(f"SELECT * FROM {name} WHERE k = ?")
    traffic.take()
    assert of(client, select, 1) == [{"k": 1, "v": 1}]
    assert traffic.take() == (0, 1, 0)
    session.execute(f"ALTER TABLE {name} ADD a text")
    traffic.take()
    assert of(client, select, 1) == [{"k": 1, "a": None, "v": 1}]
    # version 5: the driver sends its second EXECUTE with the id of before
    assert traffic.take() == (1, 2, connect.version == 5)
    for _ in range(3):
        assert of(client, select, 1) == [{"k": 1, "a": None, "v": 1}]
    assert traffic.take() == (0, 3, 0)
    session.execute(f"ALTER TABLE {name} DROP v")
    session.execute(f"ALTER TABLE {name} RENAME k TO key")
    traffic.take()
    with pytest.raises(InvalidRequest, match="k"):
        client.execute(select, (1,))
    assert traffic.take()[:2] == (1, 1)


@pytest.mark.parametrize(
    "change, prepared",
    [
        ("ADD a int", 1),
        ("DROP v", 1),
        ("WITH default_time_to_live = 1000", 1),
        ("WITH gc_grace_seconds = 1000", 1),
        ("WITH comment = 'another'", 0),
        ("WITH compaction = {'class': 'LeveledCompactionStrategy'}", 0),
    ],
)
def test_what_is_forgotten(connect, session, table, traffic, change, prepared):
    name, other = table("k int PRIMARY KEY, v int, w int"), table("k int PRIMARY KEY, v int, w int")
    client = connect()
    statements = [client.prepare(f"SELECT k FROM {name}"), client.prepare(f"DELETE w FROM {name} WHERE k = 0")]
    untouched = client.prepare(f"SELECT * FROM {other}")
    session.execute(f"ALTER TABLE {name} {change}")
    traffic.take()
    for statement in statements:
        client.execute(statement)
        assert traffic.take()[:2] == (prepared, 1 + prepared)
    client.execute(untouched)
    assert traffic.take()[:2] == (0, 1)


def test_an_index_and_a_user_type(connect, session, table, keyspace, traffic):
    session.execute(f"CREATE TYPE {keyspace}.pair{connect.version} (a int)")
    name = table(f"k int PRIMARY KEY, v int, p frozen<pair{connect.version}>")
    session.execute(f"INSERT INTO {name} (k, v, p) VALUES (1, 2, {{a: 3}})")
    client = connect()
    select, delete = client.prepare(f"SELECT p FROM {name} WHERE k = ?"), client.prepare(f"DELETE v FROM {name} WHERE k = 0")
    assert client.execute(select, (1,)).one().p == (3,)
    session.execute(f"CREATE INDEX ON {name} (v)")
    traffic.take()
    client.execute(delete)
    client.execute(select, (1,))
    assert traffic.take()[:2] == (2, 4)
    session.execute(f"ALTER TYPE {keyspace}.pair{connect.version} ADD b text")
    traffic.take()
    assert client.execute(select, (1,)).one().p == (3, None)
    assert traffic.take()[:2] == (1, 2)


def test_between_two_pages(connect, session, table, traffic):
    name = table("k int, c int, v int, PRIMARY KEY (k, c)")
    for c in range(6):
        session.execute(f"INSERT INTO {name} (k, c, v) VALUES (1, {c}, {c})")
    client = connect()
    select = client.prepare(f"SELECT * FROM {name} WHERE k = ?")
    select.fetch_size = 2
    result = client.execute(select, (1,))
    first = [row._asdict() for row in result.current_rows]
    assert first == [{"k": 1, "c": 0, "v": 0}, {"k": 1, "c": 1, "v": 1}]
    session.execute(f"ALTER TABLE {name} ADD a int")
    session.execute(f"UPDATE {name} SET a = 7 WHERE k = 1 AND c = 2")
    traffic.take()
    result.fetch_next_page()
    second = [row._asdict() for row in result.current_rows]
    assert second == [{"k": 1, "c": 2, "a": 7, "v": 2}, {"k": 1, "c": 3, "a": None, "v": 3}]
    assert traffic.take()[:2] == (1, 2)
    result.fetch_next_page()
    assert [row.c for row in result.current_rows] == [4, 5]
    assert traffic.take()[0] == 0


def test_across_two_sessions(connect, session, table, traffic):
    name = table("k int PRIMARY KEY, v int")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 1)")
    one, other = connect(), connect()
    query = f"SELECT * FROM {name} WHERE k = ?"
    first, second = one.prepare(query), other.prepare(query)
    assert of(one, first, 1) == of(other, second, 1) == [{"k": 1, "v": 1}]
    session.execute(f"ALTER TABLE {name} ADD a int")
    session.execute(f"UPDATE {name} SET a = 7 WHERE k = 1")
    traffic.take()
    assert of(one, first, 1) == [{"k": 1, "a": 7, "v": 1}]
    assert traffic.take()[:2] == (1, 2)
    # the server knows the statement again, the other session still has the old columns
    for _ in range(3):
        assert of(other, second, 1) == [{"k": 1, "a": 7, "v": 1}]
    # in version 5 each answer tells the new columns to a driver that was never told to prepare again
    assert traffic.take() == (0, 3, 3 if connect.version == 5 else 0)


def test_in_a_batch(connect, session, table, traffic, rows):
    name = table("k int PRIMARY KEY, v int")
    client = connect()
    insert = client.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    session.execute(f"ALTER TABLE {name} ADD a int")
    traffic.take()
    batch = BatchStatement()
    for k in range(3):
        batch.add(insert, (k, k))
    client.execute(batch)
    assert traffic.take()[0] == 1
    assert sorted(rows(f"SELECT k, v, a FROM {name}")) == [(0, 0, None), (1, 1, None), (2, 2, None)]


def test_dropped_and_made_again_with_other_columns(connect, session, table, traffic):
    name = table("k int PRIMARY KEY, v int")
    client = connect()
    select = client.prepare(f"SELECT * FROM {name}")
    session.execute(f"DROP TABLE {name}")
    with pytest.raises(InvalidRequest):
        client.execute(select)
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, w text)")
    session.execute(f"INSERT INTO {name} (k, w) VALUES (1, 'w')")
    traffic.take()
    assert of(client, select) == [{"k": 1, "w": "w"}]
    assert traffic.take()[:2] == (1, 2)
    assert of(client, select) == [{"k": 1, "w": "w"}]
    assert traffic.take() == (0, 1, 0)
