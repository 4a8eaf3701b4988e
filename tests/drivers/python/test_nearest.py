"""ORDER BY … ANN OF over memtables and SSTables: the nearest rows that there are, whatever was changed, flushed, compacted or restarted;
nine in ten of the nearest of drawn clusters; the warnings of Cassandra."""

import os
import random
import struct

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster
from cassandra.query import SimpleStatement

if os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
    pytest.skip("flushes through the admin API", allow_module_level=True)

from server import Server

ROWS, DIMENSION, CENTERS = 1200, 16, 20


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def single(values):
    """As a float of four bytes has them."""
    return list(struct.unpack(f"{len(values)}f", struct.pack(f"{len(values)}f", *values)))


def test_nearest_rows(tmp_path):
    dice = random.Random(5)
    centers = [[dice.uniform(-1, 1) for _ in range(DIMENSION)] for _ in range(CENTERS)]
    vector = lambda: single([x + dice.uniform(-0.3, 0.3) for x in dice.choice(centers)])  # noqa: E731
    rows = {}

    def check(session, queries):
        found = 0
        for _ in range(queries):
            query = vector()
            nearest = sorted(rows, key=lambda k: distance(rows[k][0], query))[:10]
            answer = [row.k for row in session.execute(select, [query])]
            assert len(answer) == 10
            scores = [distance(rows[k][0], query) for k in answer]
            assert all(a <= b + 1e-4 for a, b in zip(scores, scores[1:])), "the nearest comes first"
            found += len(set(answer) & set(nearest))
            part = dice.randrange(4)
            wanted = sorted((k for k in rows if rows[k][1] == part), key=lambda k: distance(rows[k][0], query))[:5]
            answer = [row.k for row in session.execute(select_of, [part, query])]
            assert all(rows[k][1] == part for k in answer)
            assert len(set(answer) & set(wanted)) >= 4, (answer, wanted)
        assert found >= queries * 10 * 0.95

    server = Server(tmp_path / "data").start()
    try:
        with Cluster([server.host], port=server.port) as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            session.execute(f"CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, {DIMENSION}>, part int)")
            options = "{'similarity_function': 'euclidean'}"
            made = session.execute_async(f"CREATE INDEX by_v ON ks.t (v) USING 'sai' WITH OPTIONS = {options}")
            made.result()
            assert "SAI ANN indexes on vector columns are experimental" in made.warnings[0]
            session.execute("CREATE INDEX by_part ON ks.t (part) USING 'sai'")
            insert = session.prepare("INSERT INTO ks.t (k, v, part) VALUES (?, ?, ?)")
            select = session.prepare("SELECT k FROM ks.t ORDER BY v ANN OF ? LIMIT 10")
            select_of = session.prepare("SELECT k FROM ks.t WHERE part = ? ORDER BY v ANN OF ? LIMIT 5")

            def write(k):
                rows[k] = (vector(), dice.randrange(4))
                session.execute(insert, [k, *rows[k]])

            for k in range(ROWS):
                write(k)
            check(session, 5)
            assert server.nodetool("flush", "ks", "t").returncode == 0
            check(session, 10)
            for k in dice.sample(range(ROWS), 300):
                write(k)
            for k in dice.sample(range(ROWS), 100):
                session.execute(f"DELETE FROM ks.t WHERE k = {k}")
                rows.pop(k)
            check(session, 5)
            assert server.nodetool("flush", "ks", "t").returncode == 0
            check(session, 10)
            assert server.nodetool("compact", "ks", "t").returncode == 0
            check(session, 5)
            statement = "SELECT k FROM ks.t ORDER BY v ANN OF [" + ", ".join(["0.5"] * DIMENSION) + "] LIMIT 20"
            read = session.execute_async(SimpleStatement(statement, consistency_level=ConsistencyLevel.QUORUM, fetch_size=5))
            assert len(read.result().all()) == 20
            assert len(read.warnings) == 2
            assert "Downgrading the consistency level to ONE" in read.warnings[0]
            assert "The page size has been set to 20 to match the LIMIT" in read.warnings[1]
        server.stop()
        server.start()
        with Cluster([server.host], port=server.port) as cluster:
            session = cluster.connect()
            select = session.prepare("SELECT k FROM ks.t ORDER BY v ANN OF ? LIMIT 10")
            select_of = session.prepare("SELECT k FROM ks.t WHERE part = ? ORDER BY v ANN OF ? LIMIT 5")
            check(session, 5)
    finally:
        server.stop()
