"""Writing: timestamps, TTLs, deletions of every kind, batches, and which of two writes wins."""

import time

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.query import BatchStatement, BatchType, SimpleStatement


def test_the_later_timestamp_wins_in_any_order(session, table, rows):
    name = table("k int PRIMARY KEY, v int")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 1) USING TIMESTAMP 200")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 2) USING TIMESTAMP 100")
    assert rows(f"SELECT v, writetime(v) FROM {name}") == [(1, 200)]
    session.execute(f"UPDATE {name} USING TIMESTAMP 300 SET v = 3 WHERE k = 1")
    assert rows(f"SELECT v FROM {name}") == [(3,)]


def test_ties_go_to_the_tombstone_then_to_the_greater_value(session, table, rows):
    name = table("k int PRIMARY KEY, v int, t text")
    for v, t in ((5, "b"), (7, "a"), (6, "c")):
        session.execute(f"INSERT INTO {name} (k, v, t) VALUES (1, {v}, '{t}') USING TIMESTAMP 100")
    assert rows(f"SELECT v, t FROM {name}") == [(7, "c")]
    session.execute(f"DELETE v FROM {name} USING TIMESTAMP 100 WHERE k = 1")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 9) USING TIMESTAMP 100")
    assert rows(f"SELECT v, t FROM {name}") == [(None, "c")]


def test_an_inserted_row_stays_an_updated_one_goes_with_its_cells(session, table, rows):
    name = table("k int, c int, v int, PRIMARY KEY (k, c)")
    session.execute(f"INSERT INTO {name} (k, c, v) VALUES (1, 1, 1)")
    session.execute(f"UPDATE {name} SET v = 1 WHERE k = 1 AND c = 2")
    session.execute(f"DELETE v FROM {name} WHERE k = 1 AND c IN (1, 2)")
    assert rows(f"SELECT c, v FROM {name} WHERE k = 1") == [(1, None)]


def fill(session, name, partitions=2, c=4, d=3, timestamp=1000):
    insert = session.prepare(f"INSERT INTO {name} (k, c, d, v) VALUES (?, ?, ?, ?) USING TIMESTAMP {timestamp}")
    for k in range(partitions):
        for i in range(c):
            for j in range(d):
                session.execute(insert, (k, i, j, 10 * i + j))


DELETES = [
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1", lambda c, d: True),
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c = 2", lambda c, d: c == 2),
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c = 2 AND d = 1", lambda c, d: (c, d) == (2, 1)),
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c > 1", lambda c, d: c > 1),
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c >= 1 AND c < 3", lambda c, d: 1 <= c < 3),
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c = 1 AND d <= 1", lambda c, d: c == 1 and d <= 1),
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND (c, d) > (1, 1)", lambda c, d: (c, d) > (1, 1)),
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c IN (0, 3)", lambda c, d: c in (0, 3)),
    ("DELETE FROM {t} USING TIMESTAMP {ts} WHERE k IN (1, 5) AND c IN (0, 3) AND d IN (0, 2)", lambda c, d: c in (0, 3) and d in (0, 2)),
]


@pytest.mark.parametrize("order", ["ASC", "DESC"])
@pytest.mark.parametrize("statement,gone", DELETES)
def test_deletions(session, table, rows, statement, gone, order):
    name = table("k int, c int, d int, v int, PRIMARY KEY (k, c, d)", f"WITH CLUSTERING ORDER BY (c {order}, d {order})")
    fill(session, name)
    everything = [(c, d) for c in range(4) for d in range(3)]
    left = [pair for pair in everything if not gone(*pair)]
    if order == "DESC":
        everything, left = everything[::-1], left[::-1]
    session.execute(statement.format(t=name, ts=999))
    assert rows(f"SELECT c, d FROM {name} WHERE k = 1") == everything, "an older deletion does nothing"
    session.execute(statement.format(t=name, ts=1000))
    assert rows(f"SELECT c, d FROM {name} WHERE k = 1") == left
    assert rows(f"SELECT c, d FROM {name} WHERE k = 1 ORDER BY c {'DESC' if order == 'ASC' else 'ASC'}") == left[::-1]
    assert len(rows(f"SELECT c, d FROM {name} WHERE k = 0")) == 12
    for c, d in everything:
        assert bool(rows(f"SELECT v FROM {name} WHERE k = 1 AND c = {c} AND d = {d}")) == ((c, d) in left)
    fill(session, name, timestamp=1001)
    assert rows(f"SELECT c, d FROM {name} WHERE k = 1") == everything, "newer writes are seen"


def test_overlapping_range_deletions(session, table, rows):
    """[0,10]@3, [5,8]@1, [8,15]@4: what is deleted is each point's latest."""
    name = table("k int, c int, v int, PRIMARY KEY (k, c)")
    for low, high, stamp in ((0, 10, 3), (5, 8, 1), (8, 15, 4)):
        session.execute(f"DELETE FROM {name} USING TIMESTAMP {stamp} WHERE k = 1 AND c >= {low} AND c <= {high}")
    for stamp in (2, 3, 4, 5):
        for c in range(18):
            session.execute(f"INSERT INTO {name} (k, c, v) VALUES (1, {c}, {stamp}) USING TIMESTAMP {stamp}")
        deleted_at = lambda c: 4 if 8 <= c <= 15 else 3 if c <= 10 else 0
        want = [(c,) for c in range(18) if stamp > deleted_at(c)]
        assert rows(f"SELECT c FROM {name} WHERE k = 1") == want
        assert rows(f"SELECT c FROM {name} WHERE k = 1 ORDER BY c DESC") == want[::-1]


def test_many_single_deletes_then_reads(session, table, rows):
    """Rows of one partition, each deleted by its own DELETE; the partition read forwards and reversed."""
    name = table("k int, c int, v int, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (1, ?, 0)")
    delete = session.prepare(f"DELETE FROM {name} WHERE k = 1 AND c >= ? AND c < ?")
    for c in range(500):
        session.execute(insert, (c,))
    for c in range(0, 500):
        if c % 100:
            session.execute(delete, (c, c + 1))
    assert rows(f"SELECT c FROM {name} WHERE k = 1") == [(0,), (100,), (200,), (300,), (400,)]
    assert rows(f"SELECT c FROM {name} WHERE k = 1 ORDER BY c DESC LIMIT 2") == [(400,), (300,)]


def test_ttl(session, table, rows):
    name = table("k int PRIMARY KEY, v int, w int")
    session.execute(f"INSERT INTO {name} (k, v, w) VALUES (1, 1, 1) USING TTL 1")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (2, 2)")
    session.execute(f"UPDATE {name} USING TTL 1 SET w = 2 WHERE k = 2")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (3, 3) USING TTL 100 AND TIMESTAMP 5")
    assert rows(f"SELECT ttl(v) FROM {name} WHERE k = 1") in ([(1,)], [(0,)], [])
    time.sleep(1.1)
    assert sorted(rows(f"SELECT * FROM {name}")) == [(2, 2, None), (3, 3, None)]
    session.execute(f"UPDATE {name} USING TTL 0 SET v = 4 WHERE k = 3")
    assert rows(f"SELECT v, ttl(v) FROM {name} WHERE k = 3") == [(4, None)]
    for wrong in (-1, 630720001):
        with pytest.raises(InvalidRequest, match="(?i)ttl"):
            session.execute(f"INSERT INTO {name} (k) VALUES (1) USING TTL {wrong}")


def test_default_ttl(session, table, rows):
    name = table("k int PRIMARY KEY, v int", "WITH default_time_to_live = 500")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 1)")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (2, 2) USING TTL 0")
    [(ttl,)] = rows(f"SELECT ttl(v) FROM {name} WHERE k = 1")
    assert 490 < ttl <= 500
    assert rows(f"SELECT ttl(v) FROM {name} WHERE k = 2") == [(None,)]


def test_update_wants_the_whole_key(session, table):
    name = table("k int, c int, v int, PRIMARY KEY (k, c)")
    for wrong in (
        f"UPDATE {name} SET v = 1 WHERE k = 1",
        f"UPDATE {name} SET v = 1 WHERE c = 1",
        f"UPDATE {name} SET k = 2 WHERE k = 1 AND c = 1",
        f"UPDATE {name} SET v = 1 WHERE k = 1 AND c > 1",
        f"INSERT INTO {name} (k, v) VALUES (1, 1)",
        f"INSERT INTO {name} (k, c, v) VALUES (1, 1)",
        f"INSERT INTO {name} (k, c, v, v) VALUES (1, 1, 1, 1)",
        f"DELETE FROM {name} WHERE c = 1",
        f"DELETE v FROM {name} WHERE k = 1 AND c > 1",
        f"DELETE c FROM {name} WHERE k = 1 AND c = 1",
    ):
        with pytest.raises(InvalidRequest):
            session.execute(wrong)


@pytest.mark.parametrize("kind", ["", "UNLOGGED"])
def test_batches_as_text(session, table, rows, kind):
    name = table("k int, c int, v int, s int static, PRIMARY KEY (k, c)")
    session.execute(
        f"BEGIN {kind} BATCH USING TIMESTAMP 500"
        f" INSERT INTO {name} (k, c, v) VALUES (1, 1, 1); INSERT INTO {name} (k, c, v) VALUES (1, 2, 2);"
        f" UPDATE {name} SET v = 3, s = 9 WHERE k = 2 AND c = 1; DELETE FROM {name} WHERE k = 1 AND c = 1; APPLY BATCH"
    )
    assert sorted(rows(f"SELECT k, c, s, v, writetime(v) FROM {name}")) == [(1, 2, None, 2, 500), (2, 1, 9, 3, 500)]


@pytest.mark.parametrize("kind", [BatchType.LOGGED, BatchType.UNLOGGED])
def test_batches_by_protocol(session, table, rows, kind):
    name = table("k int, c int, v text, PRIMARY KEY (k, c)")
    other = table("k int PRIMARY KEY")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, ?)")
    batch = BatchStatement(kind, consistency_level=ConsistencyLevel.ONE)
    for c in range(50):
        batch.add(insert, (1, c, f"v{c}"))
    batch.add(SimpleStatement(f"INSERT INTO {other} (k) VALUES (%s)"), (7,))
    batch.add(f"DELETE FROM {other} WHERE k = 8")
    session.execute(batch)
    assert rows(f"SELECT c FROM {name} WHERE k = 1") == [(c,) for c in range(50)]
    assert rows(f"SELECT k FROM {other}") == [(7,)]
    session.execute(BatchStatement(kind))


def test_a_batch_refuses_selects_and_is_all_or_nothing(session, table, rows):
    name = table("k int PRIMARY KEY")
    with pytest.raises(Exception):
        session.execute(f"BEGIN BATCH INSERT INTO {name} (k) VALUES (1); SELECT * FROM {name}; APPLY BATCH")
    with pytest.raises(InvalidRequest):
        session.execute(f"BEGIN BATCH INSERT INTO {name} (k) VALUES (1); INSERT INTO {name} (k) VALUES ('x'); APPLY BATCH")
    assert rows(f"SELECT * FROM {name}") == []


def test_large_batch_is_refused_with_its_size(session, table):
    name = table("k int, c int, v blob, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, 1, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for k in range(60):
        batch.add(insert, (k, b"x" * 1024))
    with pytest.raises(InvalidRequest, match="(?i)batch too large"):
        session.execute(batch)


def test_warning_on_a_batch_over_the_warning_size(session, table):
    name = table("k int, c int, v blob, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for c in range(10):
        batch.add(insert, (c, c, b"x" * 1024))
    future = session.execute_async(batch)
    future.result()
    assert any("Batch" in warning for warning in future.warnings)


def test_truncate(session, table, rows):
    name = table("k int PRIMARY KEY, v int")
    for k in range(10):
        session.execute(f"INSERT INTO {name} (k, v) VALUES ({k}, {k})")
    session.execute(f"TRUNCATE {name}")
    assert rows(f"SELECT * FROM {name}") == []
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 2)")
    session.execute(f"TRUNCATE TABLE {name}")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (3, 3)")
    assert rows(f"SELECT * FROM {name}") == [(3, 3)]


def test_large_values(session, table, rows):
    name = table("k int PRIMARY KEY, v blob, t text")
    insert = session.prepare(f"INSERT INTO {name} (k, v, t) VALUES (?, ?, ?)")
    sizes = (0, 1, 65_535, 65_536, 1 << 20, 5 << 20)
    for k, size in enumerate(sizes):
        session.execute(insert, (k, bytes([k]) * size, "t" * (size // 4)))
    for k, size in enumerate(sizes):
        assert rows(f"SELECT v, t FROM {name} WHERE k = {k}") == [(bytes([k]) * size, "t" * (size // 4))]


def test_concurrent_writes_and_reads(session, table):
    from cassandra.concurrent import execute_concurrent_with_args

    name = table("k int, c int, v text, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, ?)")
    pairs = [(k % 20, k, f"value {k}") for k in range(4000)]
    assert all(ok for ok, _ in execute_concurrent_with_args(session, insert, pairs, concurrency=200))
    select = session.prepare(f"SELECT v FROM {name} WHERE k = ? AND c = ?")
    results = execute_concurrent_with_args(session, select, [pair[:2] for pair in pairs], concurrency=200)
    assert [result.one().v for _, result in results] == [pair[2] for pair in pairs]
    assert session.execute(f"SELECT count(*) FROM {name}").one()[0] == 4000


def test_a_batch_of_one_partition_has_no_size_limit_of_its_own(session, table, rows):
    name = table("k int, c int, v blob, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (1, ?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for c in range(200):
        batch.add(insert, (c, b"x" * 1024))
    session.execute(batch)
    assert rows(f"SELECT count(*) FROM {name}") == [(200,)]
