"""EXPLAIN and EXPLAIN ANALYZE: the lines as a program reads them, prepared and not, for reads and writes; and in cqlsh."""

import pathlib
import subprocess
import sys

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.protocol import SyntaxException
from cassandra.query import SimpleStatement

from server import Server

CQLSH = pathlib.Path(sys.executable).with_name("cqlsh")
ROWS = 5000


class Lines(list):
    """The lines of an answer. A figure is found by step, name and, where there are several, object."""

    def value(self, step, figure, object=None):
        found = [line.value for line in self if (line.step, line.figure) == (step, figure) and object in (None, line.object)]
        assert len(found) == 1, (step, figure, object, found)
        return found[0]

    def figures(self, step):
        return {line.figure: line.value for line in self if line.step == step}

    def objects(self, step, figure):
        return [line.object for line in self if (line.step, line.figure) == (step, figure)]

    def details(self, step):
        return [line.detail.strip() for line in self if line.step == step]


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A server with a wide partition in an SSTable of many blocks, a second SSTable with another, and deletions in the memtable."""
    server = Server(tmp_path_factory.mktemp("explain") / "data", settings=["column_index_size=4KiB"]).start()
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE explain WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE explain.analyze (pk text, c int, v text, w int, PRIMARY KEY (pk, c)) WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': false}")
        session.execute("CREATE TABLE explain.counts (k int PRIMARY KEY, explain counter)")
        insert = session.prepare("INSERT INTO explain.analyze (pk, c, v, w) VALUES (?, ?, ?, ?)")
        execute_concurrent_with_args(session, insert, [("alice", c, "x" * 500, c % 1000) for c in range(ROWS)])
        assert server.nodetool("flush", "explain").returncode == 0
        execute_concurrent_with_args(session, insert, [("bob", c, "x", c) for c in range(20)])
        assert server.nodetool("flush", "explain").returncode == 0
        for c in range(4900, 5000):
            session.execute(f"DELETE FROM explain.analyze WHERE pk = 'alice' AND c = {c}")
        yield server, session
    assert server.stop() == 0, server.log_tail()


@pytest.fixture(scope="module")
def explain(wide):
    _, session = wide

    def run(query, values=None, **options):
        return Lines(session.execute(SimpleStatement(query, **options) if isinstance(query, str) else query, values))

    return run


ALICE = "SELECT * FROM explain.analyze WHERE pk = 'alice'"


def test_columns_are_typed(wide):
    result = wide[1].execute(f"EXPLAIN {ALICE}")
    assert result.column_names == ["step", "object", "figure", "value", "detail"]
    assert [kind.typename for kind in result.column_types] == ["varchar", "varchar", "varchar", "bigint", "varchar"]


@pytest.mark.parametrize(
    "rest, path",
    [
        ("AND c = 3", "names"),
        ("AND c IN (3, 4000)", "names"),
        ("", "slice"),
        ("AND c < 10", "slice"),
        ("AND c > 10", "indexed slice"),
        ("ORDER BY c DESC", "reversed slice"),
        ("AND c IN ()", "nothing"),
    ],
)
def test_the_way_to_the_rows(explain, rest, path):
    assert path in explain(f"EXPLAIN {ALICE} {rest}").figures("access")


def test_ranges_of_partitions(explain):
    assert "full scan" in explain("EXPLAIN SELECT * FROM explain.analyze").figures("access")
    assert "token range" in explain("EXPLAIN SELECT * FROM explain.analyze WHERE token(pk) > 5").figures("access")
    assert "full scan" in explain("EXPLAIN SELECT * FROM system_views.clients").figures("access")


def test_sources_and_why(explain):
    lines = explain(f"EXPLAIN {ALICE}")
    assert lines.objects("sstable", "read") == ["da-1-bti"] and lines.objects("sstable", "skip") == ["da-2-bti"]
    assert any("outside of its range" in detail or "Bloom filter" in detail for detail in lines.details("sstable"))
    assert lines.objects("memtable", "read") == lines.objects("memtable", "bytes")
    missing = explain("EXPLAIN SELECT * FROM explain.analyze WHERE pk = 'nobody at all'")
    assert missing.objects("sstable", "read") == []


def test_blocks_of_the_row_index(explain):
    """The page counts of the query plans: all, those that can hold an answer, those that were read."""
    whole = explain(f"EXPLAIN {ALICE}").value("sstable", "blocks")
    assert whole > 300
    part = explain(f"EXPLAIN {ALICE} AND c >= 1000 AND c < 2000")
    assert whole // 6 < part.value("sstable", "candidate blocks") < whole // 4
    spread = explain(f"EXPLAIN {ALICE} AND c IN ({', '.join(str(c) for c in range(25, ROWS, 50))})")
    assert spread.value("sstable", "candidate blocks") == 100
    read = explain(f"EXPLAIN ANALYZE {ALICE} AND c IN ({', '.join(str(c) for c in range(25, ROWS, 50))})")
    # up to seven rows behind a name are looked at before the row index is asked for the next: blocks of eight rows end there mostly
    assert read.value("sstable", "blocks") == whole and 100 <= read.value("sstable", "blocks read") < 200
    assert explain(f"EXPLAIN ANALYZE {ALICE} AND c > 2500 LIMIT 10").value("sstable", "blocks read") <= 3
    # a hundred deleted rows, eight a block, lie before the ten that are wanted
    assert 13 <= explain(f"EXPLAIN ANALYZE {ALICE} ORDER BY c DESC LIMIT 10").value("sstable", "blocks read") <= 15


@pytest.mark.parametrize("order", ["", "ORDER BY c DESC"])
def test_everything_of_a_partition_is_every_block(explain, order):
    lines = explain(f"EXPLAIN ANALYZE {ALICE} {order}", fetch_size=None)
    assert lines.value("sstable", "blocks read") == lines.value("sstable", "blocks")
    assert lines.value("sstable", "rows") == ROWS and lines.value("result", "rows") == ROWS - 100
    assert lines.value("merged", "row tombstones") == 100 and lines.value("merged", "purgeable later") == 100


def test_hints_on_tombstones(explain):
    lines = explain(f"EXPLAIN ANALYZE {ALICE} AND c >= 4895")
    assert lines.value("result", "rows") == 5
    assert "100 row tombstones for 5 rows" in lines.details("hint")
    assert any("100 may go from 2" in detail for detail in lines.details("hint"))
    assert lines.value("hint", "gc_grace_seconds") == 864000


def test_hints_on_filtering(explain):
    lines = explain("EXPLAIN ANALYZE SELECT * FROM explain.analyze WHERE w = ? ALLOW FILTERING".replace("?", "777"))
    assert lines.value("filter", "on each row", "w") == 1
    assert any("for 5:" in detail for detail in lines.details("hint"))
    assert "an index on w, or a table keyed by w" in lines.details("hint")


def test_hints_on_the_order(explain):
    hints = explain(f"EXPLAIN {ALICE} ORDER BY c DESC LIMIT 3").details("hint")
    assert "CLUSTERING ORDER BY (c DESC) reads them forwards" in hints


def test_chunks_come_from_the_cache_the_second_time(explain):
    query = f"EXPLAIN ANALYZE {ALICE} AND c = 1234"
    explain(query)
    again = explain(query).figures("sstable")
    assert again["chunks cached"] >= 1 and "chunks read" not in again


def test_limits_and_pages(explain):
    lines = explain(f"EXPLAIN ANALYZE {ALICE} PER PARTITION LIMIT 7 LIMIT 50", fetch_size=20)
    limits = lines.figures("limit")
    assert limits == {"rows a partition": 7, "rows": 50, "rows a page": 20} and lines.value("result", "rows") == 7
    assert explain(f"EXPLAIN ANALYZE {ALICE}", fetch_size=20).value("result", "rows") == 20


def test_several_partitions(explain):
    lines = explain("EXPLAIN SELECT * FROM explain.analyze WHERE pk IN ('alice', 'bob', 'zoe')")
    assert lines.objects("partition", "shard") == ["'alice'", "'bob'", "'zoe'"]
    many = ", ".join(f"'{name}'" for name in range(100))
    lines = explain(f"EXPLAIN SELECT * FROM explain.analyze WHERE pk IN ({many})")
    assert len(lines.objects("partition", "shard")) == 16 and lines.value("partition", "partitions left out") == 84


def test_consistency_is_told_and_checked(explain):
    lines = explain(f"EXPLAIN {ALICE}", consistency_level=ConsistencyLevel.QUORUM)
    assert "consistency QUORUM" in lines.details("access") and lines.value("access", "replicas") == 1


def test_prepared_with_markers(wide):
    _, session = wide
    select = session.prepare("EXPLAIN SELECT * FROM explain.analyze WHERE pk = ? AND c > ? LIMIT ?")
    assert [column.name for column in select.column_metadata] == ["pk", "c", "[limit]"]
    assert select.routing_key_indexes == [0]
    lines = Lines(session.execute(select, ("alice", 4000, 3)))
    assert lines.value("limit", "rows") == 3 and lines.objects("partition", "shard") == ["'alice'"]
    analyze = session.prepare("EXPLAIN ANALYZE SELECT v FROM explain.analyze WHERE pk = ? AND c > ?")
    assert Lines(session.execute(analyze, ("alice", 4800))).value("result", "rows") == 99


def test_explained_writes_write_nothing(wide, explain):
    _, session = wide
    explain("EXPLAIN INSERT INTO explain.analyze (pk, c, v) VALUES ('carol', 1, 'x')")
    assert session.execute("SELECT * FROM explain.analyze WHERE pk = 'carol'").one() is None
    lines = explain("EXPLAIN DELETE FROM explain.analyze WHERE pk = 'alice' AND c > 10")
    assert lines.value("update", "range tombstones") == 1 and lines.value("access", "delete") == 1
    assert session.execute(f"{ALICE} AND c = 11").one() is not None


def test_analyzed_writes_write(wide, explain):
    _, session = wide
    lines = explain("EXPLAIN ANALYZE INSERT INTO explain.analyze (pk, c, v) VALUES ('dan', 1, null)")
    assert lines.value("update", "rows") == 1 and lines.value("update", "cell tombstones") == 1
    assert lines.value("time", "micros", "write") > 0
    assert session.execute("SELECT c FROM explain.analyze WHERE pk = 'dan'").one().c == 1
    again = explain("EXPLAIN ANALYZE INSERT INTO explain.analyze (pk, c) VALUES ('dan', 1) IF NOT EXISTS")
    assert again.value("condition", "applied") == 0
    other = explain("EXPLAIN ANALYZE INSERT INTO explain.analyze (pk, c) VALUES ('dan', 2) IF NOT EXISTS")
    assert other.value("condition", "applied") == 1 and other.value("update", "rows") == 1


def test_batches(wide, explain):
    _, session = wide
    batch = "BEGIN BATCH INSERT INTO explain.analyze (pk, c) VALUES ('eve', 1) DELETE FROM explain.analyze WHERE pk = 'fay' APPLY BATCH"
    lines = explain(f"EXPLAIN {batch}")
    assert lines.value("access", "logged batch") == 2 and lines.value("batchlog", "rows") == 1
    assert lines.objects("mutation", "shard") == ["'eve'", "'fay'"]
    assert session.execute("SELECT c FROM explain.analyze WHERE pk = 'eve'").one() is None
    explain(f"EXPLAIN ANALYZE {batch}")
    assert session.execute("SELECT c FROM explain.analyze WHERE pk = 'eve'").one().c == 1


def test_counters(wide, explain):
    _, session = wide
    explain("EXPLAIN UPDATE explain.counts SET explain = explain + 5 WHERE k = 1")
    assert session.execute("SELECT explain FROM explain.counts WHERE k = 1").one() is None
    explain("EXPLAIN ANALYZE UPDATE explain.counts SET explain = explain + 5 WHERE k = 1")
    assert session.execute("SELECT explain FROM explain.counts WHERE k = 1").one().explain == 5


@pytest.mark.parametrize(
    "query, error",
    [
        ("EXPLAIN", SyntaxException),
        ("EXPLAIN EXPLAIN SELECT * FROM explain.analyze", SyntaxException),
        ("EXPLAIN TRUNCATE explain.analyze", SyntaxException),
        ("EXPLAIN DROP TABLE explain.analyze", SyntaxException),
        ("EXPLAIN SELECT nosuch FROM explain.analyze", InvalidRequest),
        ("EXPLAIN SELECT * FROM explain.nosuch", InvalidRequest),
        ("EXPLAIN SELECT * FROM explain.analyze WHERE w = 1", InvalidRequest),
        ("EXPLAIN INSERT INTO explain.analyze (pk) VALUES ('a')", InvalidRequest),
    ],
)
def test_what_is_refused(explain, query, error):
    with pytest.raises(error):
        explain(query)


def test_in_cqlsh(wide, tmp_path):
    server, _ = wide
    script = f"EXPLAIN {ALICE} AND c > 100 LIMIT 10;\nEXPLAIN ANALYZE {ALICE} AND c >= 4895;\n"
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    command = [str(CQLSH), "--no-color", server.host, str(server.port)]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.split() == ["step", "|", "object", "|", "figure", "|", "value", "|", "detail"] for line in lines) == 2
    assert any("indexed slice" in line for line in lines) and any("100 row tombstones for 5 rows" in line for line in lines)
    table = [line for line in lines if "|" in line or "-+-" in line]
    assert max(map(len, table)) <= 120


def test_an_index_shows_what_it_is_read_from(wide, explain):
    server, session = wide
    session.execute("CREATE TABLE explain.people (k int, c int, city text, PRIMARY KEY (k, c))")
    session.execute("CREATE INDEX cities ON explain.people (city)")
    insert = session.prepare("INSERT INTO explain.people (k, c, city) VALUES (?, ?, ?)")
    execute_concurrent_with_args(session, insert, [(k, c, f"city {c}") for k in range(10) for c in range(5)])
    assert server.nodetool("flush", "explain").returncode == 0
    session.execute(insert, (99, 3, "city 3"))
    planned = explain("EXPLAIN SELECT * FROM explain.people WHERE city = 'city 3'")
    assert planned.value("access", "candidate index") == 1 and planned.objects("index", "shard") == ["cities"]
    assert len(planned.objects("sstable", "read")) == 1 and len(planned.objects("memtable", "read")) == 1
    lines = explain("EXPLAIN ANALYZE SELECT * FROM explain.people WHERE city = 'city 3'")
    assert lines.value("result", "rows") == 11 and lines.objects("index", "shard") == ["cities"]
    entries = [line.value for line in lines if (line.step, line.figure) == ("sstable", "rows")]
    assert entries[0] == 10 and entries[1:] and set(entries[1:]) == {1}
    assert len(lines.objects("partition", "shard")) == 11


def test_reads_of_conditions_and_counters_are_observed(wide, explain):
    server, session = wide
    session.execute("INSERT INTO explain.analyze (pk, c, v) VALUES ('lwt', 1, 'old')")
    session.execute("UPDATE explain.counts SET explain = explain + 5 WHERE k = 101")
    session.execute("UPDATE explain.counts SET explain = explain + 5 WHERE k = 102")
    assert server.nodetool("flush", "explain").returncode == 0
    update = "UPDATE explain.analyze SET v = 'new' WHERE pk = 'lwt' AND c = 1 IF v = 'old'"
    assert [line for line in explain(f"EXPLAIN {update}") if line.figure == "blocks read"] == []
    lines = explain(f"EXPLAIN ANALYZE {update}")
    assert lines.value("condition", "applied") == 1
    assert [line.value for line in lines if (line.step, line.figure) == ("sstable", "rows")] == [1]
    planned = explain("EXPLAIN UPDATE explain.counts SET explain = explain + 1 WHERE k = 101")
    assert len(planned.objects("sstable", "read") + planned.objects("sstable", "read if needed")) == 1
    batch = "BEGIN COUNTER BATCH " + " ".join(f"UPDATE explain.counts SET explain = explain + 1 WHERE k = {k}" for k in (101, 102)) + " APPLY BATCH"
    lines = explain(f"EXPLAIN ANALYZE {batch}")
    assert [line.value for line in lines if (line.step, line.figure) == ("sstable", "rows")] == [1, 1]
    assert session.execute("SELECT explain FROM explain.counts WHERE k = 102").one().explain == 6


def test_hints_on_names_over_many_blocks(explain):
    rows = ", ".join(str(c) for c in range(0, 4800, 120))
    lines = explain(f"EXPLAIN ANALYZE {ALICE} AND c IN ({rows})")
    assert lines.value("result", "rows") == 40
    assert any("40 rows by name lie in" in detail for detail in lines.details("hint"))
    near = explain(f"EXPLAIN ANALYZE {ALICE} AND c IN (1, 2, 3, 4, 5)")
    assert not any("by name lie in" in detail for detail in near.details("hint"))


def test_hints_on_wide_scans_and_many_sstables(wide, explain):
    server, session = wide
    insert = session.prepare("INSERT INTO explain.analyze (pk, c, w) VALUES (?, ?, 1)")
    execute_concurrent_with_args(session, insert, [("wide", c) for c in range(12000)])
    count = explain("EXPLAIN ANALYZE SELECT count(*) FROM explain.analyze WHERE pk = 'wide'")
    assert "12,000 rows passed for 1 row: a slice or a LIMIT would end it" in count.details("hint")
    for c in range(4):
        session.execute(insert, ("spread", c))
        assert server.nodetool("flush", "explain").returncode == 0
    lines = explain("EXPLAIN ANALYZE SELECT * FROM explain.analyze WHERE pk = 'spread'")
    assert "the partition is spread: compaction would join them" in lines.details("hint")
