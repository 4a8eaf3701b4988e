"""Secondary indexes as a client and an operator see them: pages, building in the background, restarts, what a driver knows of them.
What each statement answers is in tests/answers/indexes_*.cql; this is what takes more than a statement."""

import pathlib
import time

import pytest
from cassandra.cluster import Cluster
from cassandra.query import SimpleStatement

ROWS = 1200


def connected(node):
    return Cluster([node.host], port=node.port)


@pytest.fixture(scope="module")
def many(session, table):
    """Rows in 40 partitions; a value has a third of them."""
    name = table("k int, c int, s int static, v int, w int, m map<text, int>, PRIMARY KEY (k, c)", "WITH CLUSTERING ORDER BY (c DESC)")
    for column in ["v", "s", "c", "entries(m)"]:
        session.execute(f"CREATE INDEX ON {name} ({column})")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v, w, m) VALUES (?, ?, ?, ?, ?)")
    for future in [session.execute_async(insert, (i % 40, i, i % 3, i % 7, {"a": i % 2, "b": i % 5})) for i in range(ROWS)]:
        future.result()
    for k in range(40):
        session.execute(f"UPDATE {name} SET s = {k % 4} WHERE k = {k}")
    # stale entries, of every sort
    session.execute(f"DELETE FROM {name} WHERE k = 3")
    session.execute(f"DELETE FROM {name} WHERE k = 4 AND c > 600")
    for i in range(0, ROWS, 31):
        session.execute(f"UPDATE {name} SET v = 1, m['a'] = 9 WHERE k = {i % 40} AND c = {i}")
    return name


@pytest.fixture(scope="module")
def all_rows(session, many):
    """The rows of that table, which no test changes."""
    return list(session.execute(f"SELECT * FROM {many}"))


CONDITIONS = [
    ("v = 1", lambda row: row.v == 1),
    ("s = 2", lambda row: row.s == 2),
    ("c = 500", lambda row: row.c == 500),
    ("m['a'] = 1", lambda row: (row.m or {}).get("a") == 1),
    ("v = 1 AND w = 3 ALLOW FILTERING", lambda row: row.v == 1 and row.w == 3),
    ("v = 1 AND m['b'] = 2 ALLOW FILTERING", lambda row: row.v == 1 and (row.m or {}).get("b") == 2),
    ("k = 7 AND v = 1", lambda row: row.k == 7 and row.v == 1),
    ("k = 7 AND c > 300 AND v = 1", lambda row: row.k == 7 and row.c > 300 and row.v == 1),
]


@pytest.mark.parametrize("fetch_size", [1, 7, 100, 5000])
@pytest.mark.parametrize("condition,holds", CONDITIONS, ids=[condition for condition, _ in CONDITIONS])
def test_pages_hold_what_a_filter_would_leave(session, many, all_rows, condition, holds, fetch_size):
    everything = [row for row in all_rows if holds(row)]
    assert list(session.execute(SimpleStatement(f"SELECT * FROM {many} WHERE {condition}", fetch_size=fetch_size))) == everything


def test_token_ranges_together_hold_everything(session, many):
    everything = list(session.execute(f"SELECT * FROM {many} WHERE v = 1"))
    bounds = [-(2**63), -(2**62), 0, 2**61, 2**63 - 1]
    found = []
    for low, high in zip(bounds, bounds[1:]):
        found += session.execute(f"SELECT * FROM {many} WHERE token(k) > {low} AND token(k) <= {high} AND v = 1")
    assert found == everything


def test_limits(session, many):
    everything = list(session.execute(f"SELECT * FROM {many} WHERE v = 1"))
    assert list(session.execute(f"SELECT * FROM {many} WHERE v = 1 LIMIT 13")) == everything[:13]
    of_partition = list(session.execute(SimpleStatement(f"SELECT k FROM {many} WHERE v = 1 PER PARTITION LIMIT 2", fetch_size=5)))
    counts = {}
    for row in everything:
        counts[row.k] = min(2, counts.get(row.k, 0) + 1)
    assert len(of_partition) == sum(counts.values())
    assert session.execute(f"SELECT count(*) FROM {many} WHERE v = 1").one()[0] == len(everything)


def wait_until_built(session, keyspace, *names):
    for _ in range(300):
        built = {row.index_name for row in session.execute(f"SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = '{keyspace}'")}
        if set(names) <= built:
            return
        time.sleep(0.1)
    raise AssertionError(f"{names} are not built: {built}")


def fill(session):
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int, c int, v int, w text, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO ks.t (k, c, v, w) VALUES (?, ?, ?, ?)")
    for future in [session.execute_async(insert, (i % 50, i, i % 4, f"w{i % 3}")) for i in range(2000)]:
        future.result()


def test_an_index_of_what_is_there_is_built_and_stays(node):
    with connected(node) as cluster:
        session = cluster.connect()
        fill(session)
        assert node.nodetool("flush").returncode == 0
        session.execute("CREATE INDEX by_v ON ks.t (v)")
        session.execute("CREATE INDEX by_w ON ks.t (w)")
        wait_until_built(session, "ks", "by_v", "by_w")
        assert len(list(session.execute("SELECT * FROM ks.t WHERE v = 2"))) == 500
        assert len(list(session.execute("SELECT * FROM ks.t WHERE w = 'w0'"))) == 667
        session.execute("UPDATE ks.t SET v = 9 WHERE k = 2 AND c = 2")
    node.kill()
    node.start()
    with connected(node) as cluster:
        session = cluster.connect()
        assert len(list(session.execute("SELECT * FROM ks.t WHERE v = 2"))) == 499
        assert [row.c for row in session.execute("SELECT c FROM ks.t WHERE v = 9")] == [2]
        [table] = (pathlib.Path(node.data_dir) / "data" / "ks").glob("t-*")
        assert list((table / ".by_v").glob("*-Data.db")), "the index has files of its own"
        assert node.nodetool("rebuild_index", "ks", "t", "by_v").returncode == 0
        assert len(list(session.execute("SELECT * FROM ks.t WHERE v = 2"))) == 499
        assert node.nodetool("compact", "ks", "t").returncode == 0
        assert [row.c for row in session.execute("SELECT c FROM ks.t WHERE v = 9")] == [2]
        assert node.nodetool("snapshot", "-t", "tag", "ks").returncode == 0
        assert list((table / "snapshots" / "tag" / ".by_v").glob("*-Data.db"))
        session.execute("TRUNCATE ks.t")
        assert list(session.execute("SELECT * FROM ks.t WHERE v = 2")) == []
        session.execute("DROP INDEX ks.by_v")
        for _ in range(100):
            if not (table / ".by_v").exists():
                break
            time.sleep(0.1)
        assert not (table / ".by_v").exists() and (table / ".by_w").exists()
        assert [row.index_name for row in session.execute("SELECT * FROM system.\"IndexInfo\"")] == ["by_w"]


def test_a_driver_knows_indexes(node):
    with connected(node) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int, m map<text, int>)")
        session.execute("CREATE INDEX ON ks.t (v)")
        session.execute("CREATE INDEX me ON ks.t (entries(m))")
        cluster.refresh_table_metadata("ks", "t")
        indexes = cluster.metadata.keyspaces["ks"].tables["t"].indexes
        assert {name: (index.kind, index.index_options) for name, index in indexes.items()} == {
            "t_v_idx": ("COMPOSITES", {"target": "v"}),
            "me": ("COMPOSITES", {"target": "entries(m)"}),
        }
        described = [row.create_statement for row in session.execute("DESCRIBE INDEX ks.me")]
        assert described == ["CREATE INDEX me ON ks.t (entries(m));"]


def test_a_value_that_is_too_long_is_refused(session, table):
    name = table("k int PRIMARY KEY, v text, b blob")
    session.execute(f"CREATE INDEX ON {name} (v)")
    with pytest.raises(Exception, match="Cannot index value of size 65535"):
        session.execute(f"INSERT INTO {name} (k, v) VALUES (1, %s)", ["x" * 65535])
    session.execute(f"INSERT INTO {name} (k, v, b) VALUES (1, %s, %s)", ["x" * 65534, b"y" * 70000])
    assert len(list(session.execute(f"SELECT k FROM {name} WHERE v = %s", ["x" * 65534]))) == 1
    with pytest.raises(Exception, match="may not be larger than 64K"):
        session.execute(f"SELECT k FROM {name} WHERE v = %s", ["x" * 65536])


def test_an_empty_number_is_not_found_whatever_is_flushed(node):
    """It has no entry in a storage-attached index. An entry of the value that it has replaced is in memory until a flush, and in
    another SSTable until a compaction."""
    with connected(node) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE ks.t (k int, c int, i int, b bigint, d double, PRIMARY KEY (k, c))")
        columns = {"i": "int", "b": "bigint", "d": "double"}
        for column in columns:
            session.execute(f"CREATE INDEX ON ks.t ({column}) USING 'sai'")

        def found():
            return {
                (column, operator): sorted(row.c for row in session.execute(f"SELECT c FROM ks.t WHERE {column} {operator}"))
                for column in columns
                for operator in ["< 30", "<= 5", "> -10", "= 5"]
            }

        def write(c, value):
            for column, kind in columns.items():
                session.execute(f"UPDATE ks.t SET {column} = {value or f'blob_as_{kind}(0x)'} WHERE k = 1 AND c = {c}")

        expected = {(column, operator): [3] for column in columns for operator in ["< 30", "<= 5", "> -10", "= 5"]}
        write(1, None)
        for c in [2, 3, 4]:
            write(c, "5")
        write(2, None)
        assert found() == {key: [3, 4] for key in expected}, "in memory"
        assert node.nodetool("flush").returncode == 0
        assert found() == {key: [3, 4] for key in expected}, "in an SSTable"
        write(4, None)
        assert found() == expected, "beside an SSTable"
        assert node.nodetool("flush").returncode == 0
        assert found() == expected, "in two SSTables"
        assert node.nodetool("compact", "ks", "t").returncode == 0
        assert found() == expected, "after a compaction"
