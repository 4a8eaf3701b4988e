"""Caches as a user meets them: what was hot before a kill is hot after the restart, nodetool shows and changes them, memory keeps to its budget.

On a server of the test's own; Cassandra would not save on this schedule, nor hold rows in the same way.
"""

import time

import pytest

from conftest import Contact
from server import Server

MEMORY_MIB = 256
SETTINGS = [
    "key_cache_save_period=1s",
    "row_cache_save_period=1s",
    "row_cache_size=16MiB",
    "key_cache_size=4MiB",
    "sstable.selected_format=big",
    "storage_compatibility_mode=CASSANDRA_4",
]
PARTITIONS, HOT, VALUE_BYTES = 2000, 200, 1000


@pytest.fixture
def caching(tmp_path):
    server = Server(tmp_path / "data", settings=SETTINGS, flags=["--memory", f"{MEMORY_MIB}M"]).start()
    yield server
    if server.process.poll() is None:
        server.kill()


def fill(session, server):
    session.execute("CREATE KEYSPACE c WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for name, rows in [("plain", "NONE"), ("rows", "ALL")]:
        session.execute(f"CREATE TABLE c.{name} (k int PRIMARY KEY, v blob) WITH caching = {{'keys': 'ALL', 'rows_per_partition': '{rows}'}}")
        insert = session.prepare(f"INSERT INTO c.{name} (k, v) VALUES (?, ?)")
        for future in [session.execute_async(insert, (k, k.to_bytes(4, "big") * (VALUE_BYTES // 4))) for k in range(PARTITIONS)]:
            future.result()
    assert server.nodetool("flush", "c").returncode == 0


def read(session, names=("plain", "rows")):
    for name in names:
        select = session.prepare(f"SELECT v FROM c.{name} WHERE k = ?")
        for k in range(HOT):
            assert session.execute(select, (k,)).one()[0][:4] == k.to_bytes(4, "big")


def figures(session):
    rows = session.execute("SELECT name, capacity_bytes, size_bytes, entry_count, hit_count, request_count FROM system_views.caches")
    return {row.name: row for row in rows}


def wait_for(condition, what):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(what)


def test_what_was_hot_is_hot_after_a_kill(caching, tmp_path):
    with Contact(caching.host, caching.port).cluster() as cluster:
        session = cluster.connect()
        fill(session, caching)
        read(session)
        before = figures(session)
        assert all(before[name].entry_count > 0 for name in ("chunks", "keys", "rows")), before
        assert before["counters"].capacity_bytes == 0
    wait_for(lambda: len(list(tmp_path.rglob("helenus-*-1.db"))) == 3, "nothing was saved")
    time.sleep(2.5)
    caching.kill()
    caching.start()
    with Contact(caching.host, caching.port).cluster() as cluster:
        session = cluster.connect()
        wait_for(lambda: figures(session)["rows"].entry_count >= HOT, "rows were not read again")
        wait_for(lambda: figures(session)["chunks"].entry_count > 0, "chunks were not read again")
        time.sleep(0.5)
        warm = figures(session)
        read(session)
        after = figures(session)
        assert after["rows"].hit_count - warm["rows"].hit_count == HOT
        for name in ("chunks", "keys"):
            hits = after[name].hit_count - warm[name].hit_count
            requests = after[name].request_count - warm[name].request_count
            assert hits >= requests * 0.95, (name, hits, requests)


def test_nodetool_shows_and_changes_the_caches(caching):
    with Contact(caching.host, caching.port).cluster() as cluster:
        session = cluster.connect()
        fill(session, caching)
        read(session)
        info = caching.nodetool("info").stdout
        assert "Row Cache              : entries 200, size " in info and "capacity 16 MiB" in info, info
        assert ", 1 save period in seconds" in info
        assert caching.nodetool("invalidaterowcache").returncode == 0
        assert caching.nodetool("invalidatekeycache").returncode == 0
        assert caching.nodetool("invalidatecountercache").returncode == 0
        now = figures(session)
        assert (now["rows"].entry_count, now["keys"].entry_count) == (0, 0)
        total = sum(row.capacity_bytes for row in now.values())
        assert caching.nodetool("setcachecapacity", "8", "40", "0").returncode == 0
        now = figures(session)
        assert (now["rows"].capacity_bytes, now["keys"].capacity_bytes) == (40 << 20, 8 << 20)
        assert sum(row.capacity_bytes for row in now.values()) == total
        assert caching.nodetool("setcachecapacity", "8", "4000", "0").returncode != 0
        assert caching.nodetool("setcachekeystosave", "10", "10", "0").returncode == 0


def test_a_write_is_seen_at_once_beside_the_row_cache(caching):
    with Contact(caching.host, caching.port).cluster() as cluster:
        session = cluster.connect()
        fill(session, caching)
        read(session)
        session.execute("UPDATE c.rows SET v = 0x01 WHERE k = 1")
        session.execute("DELETE FROM c.rows WHERE k = 2")
        session.execute("INSERT INTO c.rows (k, v) VALUES (3, 0x03) USING TTL 1")
        applied = session.execute("UPDATE c.rows SET v = 0x04 WHERE k = 4 IF v != null").one()[0]
        assert applied
        time.sleep(2.1)
        value = lambda k: [row[0] for row in session.execute(f"SELECT v FROM c.rows WHERE k = {k}")]  # noqa: E731
        expected = {1: [b"\x01"], 2: [], 4: [b"\x04"]}
        assert {k: value(k) for k in expected} == expected
        assert value(3) in ([], [None])
        caching.nodetool("flush", "c")
        assert {k: value(k) for k in expected} == expected
        caching.nodetool("compact", "c")
        assert {k: value(k) for k in expected} == expected
        session.execute("TRUNCATE c.rows")
        assert all(value(k) == [] for k in range(6))
