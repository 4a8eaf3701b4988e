"""The schema: making, altering, dropping; what the driver parses of it; events; errors with their codes."""

import threading
import time

import pytest
from cassandra import AlreadyExists, InvalidRequest
from cassandra.protocol import ConfigurationException, SyntaxException


def metadata(session, keyspace):
    session.cluster.refresh_schema_metadata()
    return session.cluster.metadata.keyspaces[keyspace]


def test_keyspaces(session):
    session.execute("DROP KEYSPACE IF EXISTS made")
    session.execute("CREATE KEYSPACE made WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} AND durable_writes = false")
    assert metadata(session, "made").durable_writes is False
    session.execute("CREATE KEYSPACE IF NOT EXISTS made WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    assert metadata(session, "made").replication_strategy.replication_factor == 1
    session.execute("ALTER KEYSPACE made WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1} AND durable_writes = true")
    made = metadata(session, "made")
    assert made.durable_writes and type(made.replication_strategy).__name__ == "NetworkTopologyStrategy"
    with pytest.raises(AlreadyExists) as exists:
        session.execute("CREATE KEYSPACE made WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    assert exists.value.keyspace == "made" and not exists.value.table
    session.execute("DROP KEYSPACE made")
    session.execute("DROP KEYSPACE IF EXISTS made")
    with pytest.raises(InvalidRequest, match="made"):
        session.execute("DROP KEYSPACE made")
    session.cluster.refresh_schema_metadata()
    assert "made" not in session.cluster.metadata.keyspaces


REFUSED_KEYSPACES = [
    ("CREATE KEYSPACE x WITH replication = {'class': 'NoSuchStrategy'}", ConfigurationException),
    ("CREATE KEYSPACE x WITH replication = {'replication_factor': 1}", ConfigurationException),
    ("CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'nosuch': 1}", ConfigurationException),
    ("CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 'many'}", ConfigurationException),
    ("CREATE KEYSPACE x WITH durable_writes = true", InvalidRequest),
    ("CREATE KEYSPACE x WITH nosuch = 1", SyntaxException),
    ("CREATE KEYSPACE x", SyntaxException),
    ("CREATE KEYSPACE system WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", Exception),
    ("ALTER KEYSPACE nosuch WITH durable_writes = false", InvalidRequest),
    ("USE nosuch", InvalidRequest),
    ("DROP KEYSPACE system", Exception),
]


@pytest.mark.parametrize("statement,error", REFUSED_KEYSPACES)
def test_refused_keyspaces(session, statement, error):
    with pytest.raises(error):
        session.execute(statement)


def test_table_metadata(session, keyspace):
    session.execute(f"CREATE TYPE {keyspace}.place (name text, at frozen<tuple<double, double>>)")
    session.execute(
        f"CREATE TABLE {keyspace}.whole (a int, b text, c timeuuid, d bigint, s map<text, int> static, p frozen<place>, v vector<float, 3>,"
        f" PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC) AND comment = 'it''s full' AND gc_grace_seconds = 100"
        f" AND default_time_to_live = 7 AND compression = {{'class': 'ZstdCompressor'}} AND compaction = {{'class': 'LeveledCompactionStrategy'}}"
    )
    full = metadata(session, keyspace).tables["whole"]
    assert [column.name for column in full.partition_key] == ["a", "b"]
    assert [column.name for column in full.clustering_key] == ["c", "d"]
    assert [column.is_reversed for column in full.clustering_key] == [True, False]
    assert list(full.columns) == ["a", "b", "c", "d", "p", "s", "v"]
    assert {name: column.cql_type for name, column in full.columns.items()} == {
        "a": "int", "b": "text", "c": "timeuuid", "d": "bigint", "s": "map<text, int>", "p": "frozen<place>", "v": "vector<float, 3>",
    }  # fmt: skip
    assert full.columns["s"].is_static and not full.columns["v"].is_static
    assert full.options["comment"] == "it's full" and full.options["gc_grace_seconds"] == 100
    assert full.options["default_time_to_live"] == 7
    assert full.options["compression"] == {"class": "org.apache.cassandra.io.compress.ZstdCompressor", "chunk_length_in_kb": "16"}
    assert full.options["compaction"]["class"] == "org.apache.cassandra.db.compaction.LeveledCompactionStrategy"
    assert not full.is_compact_storage
    place = metadata(session, keyspace).user_types["place"]
    assert place.field_names == ["name", "at"] and place.field_types == ["text", "frozen<tuple<double, double>>"]
    text = full.export_as_string()
    session.execute(f"DROP TABLE {keyspace}.whole")
    session.execute(text)
    assert metadata(session, keyspace).tables["whole"].export_as_string() == text


def test_default_options(session, table, keyspace):
    name = table("k int PRIMARY KEY").split(".")[1]
    options = metadata(session, keyspace).tables[name].options
    assert options["compression"] == {"chunk_length_in_kb": "16", "class": "org.apache.cassandra.io.compress.LZ4Compressor"}
    assert options["compaction"]["class"] == "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"
    assert options["caching"] == {"keys": "ALL", "rows_per_partition": "NONE"}
    assert (options["gc_grace_seconds"], options["bloom_filter_fp_chance"], options["speculative_retry"]) == (864000, 0.01, "99p")


def test_alter_table(session, table, rows):
    name = table("k int, c int, v text, PRIMARY KEY (k, c)")
    session.execute(f"INSERT INTO {name} (k, c, v) VALUES (1, 1, 'old')")
    session.execute(f"ALTER TABLE {name} ADD (w int, x list<int>)")
    session.execute(f"UPDATE {name} SET w = 5, x = [1] WHERE k = 1 AND c = 1")
    assert rows(f"SELECT * FROM {name}") == [(1, 1, "old", 5, [1])]
    session.execute(f"ALTER TABLE {name} DROP v")
    assert rows(f"SELECT * FROM {name}") == [(1, 1, 5, [1])]
    session.execute(f"ALTER TABLE {name} ADD v text")
    assert rows(f"SELECT v FROM {name}") == [(None,)], "what was dropped does not come back"
    session.execute(f"UPDATE {name} SET v = 'again' WHERE k = 1 AND c = 1")
    assert rows(f"SELECT v FROM {name}") == [("again",)]
    session.execute(f"ALTER TABLE {name} RENAME c TO seq")
    assert rows(f"SELECT seq FROM {name} WHERE k = 1 AND seq = 1") == [(1,)]
    session.execute(f"ALTER TABLE {name} WITH comment = 'altered' AND gc_grace_seconds = 5")
    session.execute(f"ALTER TABLE {name} ADD IF NOT EXISTS w int")
    session.execute(f"ALTER TABLE {name} DROP IF EXISTS nosuch")
    for wrong in ("ADD w int", "DROP nosuch", "DROP k", "RENAME w TO y", "ADD v int", "WITH nosuch = 1", "RENAME k TO w"):
        with pytest.raises((InvalidRequest, SyntaxException, ConfigurationException)):
            session.execute(f"ALTER TABLE {name} {wrong}")


def test_a_dropped_column_cannot_come_back_with_another_type(session, table):
    name = table("k int PRIMARY KEY, v text")
    session.execute(f"ALTER TABLE {name} DROP v")
    with pytest.raises(InvalidRequest):
        session.execute(f"ALTER TABLE {name} ADD v int")


def test_already_exists(session, table, keyspace):
    name = table("k int PRIMARY KEY")
    with pytest.raises(AlreadyExists) as exists:
        session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
    assert (exists.value.keyspace, f"{keyspace}.{exists.value.table}") == (keyspace, name)
    session.execute(f"CREATE TABLE IF NOT EXISTS {name} (k int PRIMARY KEY)")
    session.execute(f"DROP TABLE {name}")
    session.execute(f"DROP TABLE IF EXISTS {name}")
    with pytest.raises(InvalidRequest):
        session.execute(f"DROP TABLE {name}")


REFUSED_TABLES = [
    "CREATE TABLE {k}.x (k int)",
    "CREATE TABLE {k}.x (k int PRIMARY KEY, k text)",
    "CREATE TABLE {k}.x (k nosuch PRIMARY KEY)",
    "CREATE TABLE {k}.x (k list<int> PRIMARY KEY)",
    "CREATE TABLE {k}.x (k int, c int, PRIMARY KEY (k, d))",
    "CREATE TABLE {k}.x (k int PRIMARY KEY, s int static)",
    "CREATE TABLE {k}.x (k int PRIMARY KEY, v list<list<int>>)",
    "CREATE TABLE {k}.x (k int, c int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (k ASC)",
    "CREATE TABLE {k}.x (k int PRIMARY KEY) WITH compression = {{'class': 'NoSuchCompressor'}}",
    "CREATE TABLE {k}.x (k int PRIMARY KEY) WITH compaction = {{'class': 'NoSuchStrategy'}}",
    "CREATE TABLE {k}.x (k int PRIMARY KEY) WITH bloom_filter_fp_chance = 2",
    "CREATE TABLE {k}.x (k int PRIMARY KEY) WITH gc_grace_seconds = -1",
    "CREATE TABLE {k}.x (k int PRIMARY KEY, v vector<float, 0>)",
    "CREATE TABLE nosuch.x (k int PRIMARY KEY)",
    "CREATE TABLE system.x (k int PRIMARY KEY)",
    "CREATE TYPE {k}.y (a nosuch)",
    "DROP TYPE {k}.nosuch",
]


@pytest.mark.parametrize("statement", REFUSED_TABLES)
def test_refused_tables(session, keyspace, statement):
    with pytest.raises((InvalidRequest, SyntaxException, ConfigurationException, Exception)):
        session.execute(statement.format(k=keyspace))
    assert "x" not in metadata(session, keyspace).tables


def test_a_type_in_use_is_not_dropped(session, keyspace):
    session.execute(f"CREATE TYPE {keyspace}.used (a int)")
    session.execute(f"CREATE TABLE {keyspace}.uses (k int PRIMARY KEY, u frozen<list<frozen<used>>>)")
    with pytest.raises(InvalidRequest):
        session.execute(f"DROP TYPE {keyspace}.used")
    session.execute(f"DROP TABLE {keyspace}.uses")
    session.execute(f"DROP TYPE {keyspace}.used")


def test_quoted_names(session, keyspace, rows):
    session.execute(f'CREATE TABLE {keyspace}."Mixed" ("Key" int, "select" int, "white space" text, PRIMARY KEY ("Key", "select"))')
    session.execute(f'INSERT INTO {keyspace}."Mixed" ("Key", "select", "white space") VALUES (1, 2, \'x\')')
    assert rows(f'SELECT "white space", "select" FROM {keyspace}."Mixed" WHERE "Key" = 1') == [("x", 2)]
    assert "Mixed" in metadata(session, keyspace).tables
    with pytest.raises(InvalidRequest):
        session.execute(f"SELECT * FROM {keyspace}.Mixed")


def test_events(contact, session, keyspace):
    """Another connection's driver sees each change without asking."""
    with contact.cluster(schema_event_refresh_window=0) as watcher:
        watcher.connect()

        def wait(what):
            until = time.monotonic() + 10
            while time.monotonic() < until:
                if what(watcher.metadata.keyspaces.get("eventful")):
                    return True
                time.sleep(0.05)
            return False

        session.execute("DROP KEYSPACE IF EXISTS eventful")
        session.execute("CREATE KEYSPACE eventful WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        assert wait(lambda found: found)
        session.execute("CREATE TABLE eventful.t (k int PRIMARY KEY)")
        assert wait(lambda found: "t" in found.tables)
        session.execute("ALTER TABLE eventful.t ADD v int")
        assert wait(lambda found: "v" in found.tables["t"].columns)
        session.execute("CREATE TYPE eventful.u (a int)")
        assert wait(lambda found: "u" in found.user_types)
        session.execute("ALTER TYPE eventful.u ADD b int")
        assert wait(lambda found: found.user_types["u"].field_names == ["a", "b"])
        session.execute("DROP TYPE eventful.u")
        assert wait(lambda found: "u" not in found.user_types)
        session.execute("DROP TABLE eventful.t")
        assert wait(lambda found: "t" not in found.tables)
        session.execute("DROP KEYSPACE eventful")
        assert wait(lambda found: found is None)


def test_register_by_hand(contact, session, keyspace):
    """The pushed message itself: change, target, keyspace, name."""
    heard, arrived = [], threading.Event()
    with contact.cluster() as cluster:
        cluster.connect()
        connection = cluster.control_connection._connection

        def hear(event):
            if event.get("table") == "heard":
                heard.append((event["change_type"], event["target_type"], event["keyspace"]))
                arrived.set()

        connection.register_watcher("SCHEMA_CHANGE", hear, register_timeout=10)
        session.execute(f"CREATE TABLE {keyspace}.heard (k int PRIMARY KEY)")
        assert arrived.wait(10)
    assert heard[0] == ("CREATED", "TABLE", keyspace)


def test_schema_version_changes_and_agrees(session, keyspace, rows):
    before = rows("SELECT schema_version FROM system.local")
    session.execute(f"CREATE TABLE {keyspace}.versioned (k int PRIMARY KEY)")
    after = rows("SELECT schema_version FROM system.local")
    assert before != after
    assert session.cluster.control_connection.wait_for_schema_agreement()


def test_system_tables_are_as_in_cassandra(session, rows):
    assert ("system",) in rows("SELECT keyspace_name FROM system_schema.keyspaces")
    assert len(rows("SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'system' AND table_name = 'local'")) == 20
    assert ("clients",) in rows("SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = 'system_views'")
    assert rows("SELECT native_protocol_version, partitioner FROM system.local") == [("5", "org.apache.cassandra.dht.Murmur3Partitioner")]
    assert dict(rows("SELECT name, value FROM system_views.settings"))["num_tokens"] == "16"
    [tokens] = rows("SELECT tokens FROM system.local")
    assert len(tokens[0]) == 16
    clients = session.execute("SELECT * FROM system_views.clients").all()
    assert any(client.driver_name == "DataStax Python Driver" and client.protocol_version == 5 for client in clients)
