"""Prepared statements: markers by position and by name, metadata, forgetting and preparing again, schema changes under them."""

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, Unavailable
from cassandra.query import SimpleStatement


def test_positional_and_named(session, table, rows):
    name = table("k int, c int, v text, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, ?)")
    session.execute(insert, (1, 1, "one"))
    session.execute(insert, {"v": "two", "k": 1, "c": 2})
    named = session.prepare(f"SELECT v FROM {name} WHERE k = :part AND c = :clust")
    assert [column.name for column in named.column_metadata] == ["part", "clust"]
    assert session.execute(named, {"clust": 2, "part": 1}).one().v == "two"
    assert rows(named, (1, 1)) == [("one",)]


def test_markers_everywhere(session, table, rows):
    name = table("k int, c int, v text, l list<int>, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v, l) VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?")
    for c in range(10):
        session.execute(insert, (1, c, f"v{c}", [c], 1000 + c, 5000))
    [(stamp, ttl)] = rows(f"SELECT writetime(v), ttl(v) FROM {name} WHERE k = 1 AND c = 3")
    assert stamp == 1003 and 4900 < ttl <= 5000
    run = lambda query, *values: [row[0] for row in session.execute(session.prepare(query), values)]
    assert run(f"SELECT c FROM {name} WHERE k = ? LIMIT ?", 1, 3) == [0, 1, 2]
    assert run(f"SELECT c FROM {name} WHERE k = ? PER PARTITION LIMIT ?", 1, 2) == [0, 1]
    assert run(f"SELECT c FROM {name} WHERE k = ? AND c IN ?", 1, [5, 2]) == [2, 5]
    assert run(f"SELECT c FROM {name} WHERE k IN ? AND c IN (?, ?)", [1, 2], 5, 2) == [2, 5]
    assert run(f"SELECT c FROM {name} WHERE k = ? AND (c) > ?", 1, (7,)) == [8, 9]
    assert run(f"SELECT c FROM {name} WHERE k = ? AND (c) IN ?", 1, [(4,), (6,)]) == [4, 6]
    assert run(f"SELECT c FROM {name} WHERE k = ? AND c >= ? AND c < ? ORDER BY c DESC", 1, 2, 5) == [4, 3, 2]
    assert len(run(f"SELECT k FROM {name} WHERE token(k) > ? AND token(k) <= ?", -(2**63), 2**63 - 1)) == 10
    session.execute(session.prepare(f"UPDATE {name} USING TTL ? SET l[?] = ?, v = ? WHERE k = ? AND c = ?"), (0, 0, 77, "new", 1, 1))
    assert rows(f"SELECT l, v, ttl(v) FROM {name} WHERE k = 1 AND c = 1") == [([77], "new", None)]
    session.execute(session.prepare(f"DELETE FROM {name} USING TIMESTAMP ? WHERE k = ? AND c > ?"), (2**52, 1, 2))
    assert [c for (c,) in rows(f"SELECT c FROM {name} WHERE k = 1")] == [0, 1, 2]


def test_metadata_of_markers_and_results(session, table):
    name = table("a int, b text, c timeuuid, v frozen<map<int, text>>, PRIMARY KEY ((a, b), c)")
    insert = session.prepare(f"INSERT INTO {name} (v, c, b, a) VALUES (?, ?, ?, ?)")
    assert [column.name for column in insert.column_metadata] == ["v", "c", "b", "a"]
    assert insert.routing_key_indexes == [3, 2]
    select = session.prepare(f"SELECT * FROM {name} WHERE a = ? AND b = ?")
    assert [column[2] for column in select.result_metadata] == ["a", "b", "c", "v"]
    assert select.routing_key_indexes == [0, 1]
    assert insert.query_id == session.prepare(insert.query_string).query_id


def test_a_statement_from_another_connection_is_known_or_prepared_again(contact, session, table):
    name = table("k int PRIMARY KEY")
    insert = session.prepare(f"INSERT INTO {name} (k) VALUES (?)")
    with contact.cluster() as cluster:
        cluster.connect().execute(insert, (3,))
    assert session.execute(f"SELECT k FROM {name}").one().k == 3


def test_unprepared_is_answered_with_the_id(contact, session, table):
    """An id that the server does not know: the driver prepares and sends again, by itself."""
    name = table("k int PRIMARY KEY, v int")
    insert = session.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    good = insert.query_id
    insert.query_id = b"\0" * 16
    session.cluster._prepared_statements[insert.query_id] = insert
    try:
        session.execute(insert, (1, 2))
    except Exception as error:
        assert "ID" in str(error) or "id" in str(error)  # the driver noticed that preparing gave another id
    finally:
        session.cluster._prepared_statements.pop(b"\0" * 16, None)
        insert.query_id = good
    session.execute(insert, (1, 3))
    assert session.execute(f"SELECT v FROM {name}").one().v == 3


def test_dropped_and_made_again(session, table, rows):
    name = table("k int PRIMARY KEY, v int")
    insert = session.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    select = session.prepare(f"SELECT * FROM {name}")
    session.execute(insert, (1, 1))
    session.execute(f"DROP TABLE {name}")
    with pytest.raises(InvalidRequest):
        session.execute(insert, (1, 1))
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int)")
    session.execute(insert, (2, 2))
    assert rows(select) == [(2, 2)]


@pytest.mark.parametrize("version", [4, 5])
def test_altered_table(contact, table, version):
    """v5 hands new result metadata to whoever comes with the old id; in v4 the driver decodes by what it had."""
    name = table("k int PRIMARY KEY, v int")
    with contact.cluster(protocol_version=version) as cluster:
        session = cluster.connect()
        session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 1)")
        select = session.prepare(f"SELECT * FROM {name} WHERE k = ?")
        assert tuple(session.execute(select, (1,)).one()) == (1, 1)
        session.execute(f"ALTER TABLE {name} ADD a text")
        session.execute(f"UPDATE {name} SET a = 'new' WHERE k = 1")
        if version == 5:
            assert session.execute(select, (1,)).one()._asdict() == {"k": 1, "a": "new", "v": 1}
            assert session.execute(select, (1,)).one()._asdict() == {"k": 1, "a": "new", "v": 1}
        session.execute(f"ALTER TABLE {name} DROP v")
        if version == 5:
            assert session.execute(select, (1,)).one()._asdict() == {"k": 1, "a": "new"}
        again = session.prepare(f"SELECT * FROM {name} WHERE k = ? ")
        assert session.execute(again, (1,)).one()._asdict() == {"k": 1, "a": "new"}
        with pytest.raises(InvalidRequest):
            session.prepare(f"SELECT v FROM {name}")


def test_wrong_values_are_refused(session, table):
    name = table("k int PRIMARY KEY, v bigint")
    insert = session.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    bound = insert.bind((1, 2))
    bound.values[1] = b"\0\0\0"
    with pytest.raises(InvalidRequest):
        session.execute(bound)
    with pytest.raises(InvalidRequest, match="(?i)unconfigured|table|exist"):
        session.prepare("SELECT * FROM system.nosuch")


def test_keyspace_of_the_statement(contact, keyspace, session):
    session.execute(f"CREATE TABLE {keyspace}.here (k int PRIMARY KEY)")
    with contact.cluster() as cluster:
        other = cluster.connect("system")
        prepared = other.prepare("INSERT INTO here (k) VALUES (?)", keyspace=keyspace)
        other.execute(prepared, (5,))
        statement = SimpleStatement("SELECT k FROM here", keyspace=keyspace)
        assert other.execute(statement).one().k == 5


def test_consistency_levels(session, table):
    name = table("k int PRIMARY KEY, v int")
    insert = session.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    select = session.prepare(f"SELECT v FROM {name} WHERE k = ?")
    for level in ("ANY", "ONE", "QUORUM", "ALL", "LOCAL_QUORUM", "LOCAL_ONE", "EACH_QUORUM"):
        insert.consistency_level = getattr(ConsistencyLevel, level)
        session.execute(insert, (1, 7))
    for level in ("ONE", "QUORUM", "ALL", "LOCAL_QUORUM", "LOCAL_ONE", "SERIAL"):
        select.consistency_level = getattr(ConsistencyLevel, level)
        if level != "SERIAL":
            assert session.execute(select, (1,)).one().v == 7
    select.consistency_level = ConsistencyLevel.ANY
    with pytest.raises(InvalidRequest, match="ANY"):
        session.execute(select, (1,))
    insert.consistency_level = ConsistencyLevel.TWO
    with pytest.raises(Unavailable) as unavailable:
        session.execute(insert, (1, 7))
    assert unavailable.value.required_replicas == 2 and unavailable.value.alive_replicas == 1
