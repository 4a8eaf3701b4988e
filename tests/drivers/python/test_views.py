"""Materialized views on one node: base and views hold the same after concurrent writes, kills and builds that are cut off."""

import os
import random
import threading

import pytest
from cassandra.cluster import Cluster

from server import Server

if os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
    pytest.skip("views of Cassandra drift", allow_module_level=True)

VIEWS = {
    "by_v": "SELECT * FROM ks.b WHERE k IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, c, k)",
    "by_c": "SELECT k, c, w FROM ks.b WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)",
}
STATEMENTS = [
    "INSERT INTO ks.b (k, c, v, w) VALUES ({k}, {c}, {v}, {w})",
    "UPDATE ks.b SET v = {v} WHERE k = {k} AND c = {c}",
    "UPDATE ks.b SET x = {w} WHERE k = {k} AND c = {c}",
    "DELETE x FROM ks.b WHERE k = {k} AND c = {c}",
    "DELETE v FROM ks.b WHERE k = {k} AND c = {c}",
    "DELETE FROM ks.b WHERE k = {k} AND c = {c}",
    "DELETE FROM ks.b WHERE k = {k} AND c > {c}",
    "DELETE FROM ks.b WHERE k = {k}",
    "BEGIN BATCH UPDATE ks.b SET v = {v} WHERE k = {k} AND c = {c}; UPDATE ks.b SET w = {w} WHERE k = {v} AND c = {c}; APPLY BATCH",
]


def assert_same(session):
    base = [tuple(row) for row in session.execute("SELECT v, c, k, w, x, writetime(w) FROM ks.b")]
    by_v = [tuple(row) for row in session.execute("SELECT v, c, k, w, x, writetime(w) FROM ks.by_v")]
    order = lambda row: [(value is not None, value or 0) for value in row]  # noqa: E731
    assert sorted(by_v, key=order) == sorted((row for row in base if row[0] is not None), key=order)
    by_c = [tuple(row) for row in session.execute("SELECT c, k, w, writetime(w) FROM ks.by_c")]
    assert sorted(by_c, key=order) == sorted(((row[1], row[2], row[3], row[5]) for row in base), key=order)


def write(server, seed, stop):
    dice = random.Random(seed)
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        while not stop.is_set():
            statement = dice.choices(STATEMENTS, weights=[8, 4, 4, 2, 2, 2, 1, 0.3, 3])[0]
            try:
                session.execute(
                    statement.format(k=dice.randrange(4), c=dice.randrange(8), v=dice.randrange(4), w=dice.randrange(100)), timeout=5
                )
            except Exception:  # the node was killed
                return


def test_views_equal_their_base_after_kills(tmp_path):
    server = Server(tmp_path / "data").start()
    try:
        with Cluster([server.host], port=server.port) as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            session.execute("CREATE TABLE ks.b (k int, c int, v int, w int, x int, PRIMARY KEY (k, c))")
            for number in range(200):
                session.execute(f"INSERT INTO ks.b (k, c, v, w) VALUES ({number % 4}, {number}, {number % 5}, {number})")
            for name, select in VIEWS.items():
                session.execute(f"CREATE MATERIALIZED VIEW ks.{name} AS {select}")
        for seed in range(4):
            stop = threading.Event()
            writers = [threading.Thread(target=write, args=(server, seed * 10 + number, stop)) for number in range(3)]
            for writer in writers:
                writer.start()
            stop.wait(1.5)
            server.kill()
            stop.set()
            for writer in writers:
                writer.join()
            server.start()
            with Cluster([server.host], port=server.port) as cluster:
                session = cluster.connect()
                for _ in range(100):
                    if len(list(session.execute("SELECT * FROM system.built_views WHERE keyspace_name = 'ks'"))) == len(VIEWS):
                        break
                    stop.clear()
                    stop.wait(0.2)
                assert len(list(session.execute("SELECT * FROM system.view_builds_in_progress"))) == 0
                assert_same(session)
    finally:
        assert server.stop() == 0, server.log_tail()
