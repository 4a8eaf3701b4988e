"""Reading: every restriction of the primary key, order, limits, aggregates, filtering, functions of cells."""

import pytest
from cassandra import InvalidRequest
from cassandra.protocol import SyntaxException

P, C, D = 3, 5, 4  # partitions, values of the first and of the second clustering column


@pytest.fixture(scope="module")
def grid(session, table):
    """k 0..2, c 0..4 ascending, d 0..3 descending, v = 100k + 10c + d, static s = 'sK'."""
    name = table("k int, c int, d int, v int, s text static, PRIMARY KEY (k, c, d)", "WITH CLUSTERING ORDER BY (c ASC, d DESC)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, d, v) VALUES (?, ?, ?, ?)")
    for k in range(P):
        session.execute(f"INSERT INTO {name} (k, s) VALUES ({k}, 's{k}')")
        for c in range(C):
            for d in range(D):
                session.execute(insert, (k, c, d, 100 * k + 10 * c + d))
    return name


ALL = [(c, d) for c in range(C) for d in reversed(range(D))]

WHERE = [
    ("k = 1", lambda c, d: True),
    ("k = 1 AND c = 2", lambda c, d: c == 2),
    ("k = 1 AND c = 2 AND d = 3", lambda c, d: (c, d) == (2, 3)),
    ("k = 1 AND c = 9", lambda c, d: False),
    ("k = 1 AND c > 1", lambda c, d: c > 1),
    ("k = 1 AND c >= 1 AND c < 3", lambda c, d: 1 <= c < 3),
    ("k = 1 AND c > 3 AND c < 2", lambda c, d: False),
    ("k = 1 AND c = 2 AND d > 1", lambda c, d: c == 2 and d > 1),
    ("k = 1 AND c = 2 AND d <= 2 AND d > 0", lambda c, d: c == 2 and 0 < d <= 2),
    ("k = 1 AND c IN (3, 0, 3)", lambda c, d: c in (0, 3)),
    ("k = 1 AND c IN (0, 3) AND d IN (1, 2)", lambda c, d: c in (0, 3) and d in (1, 2)),
    ("k = 1 AND c IN (0, 3) AND d > 1", lambda c, d: c in (0, 3) and d > 1),
    ("k = 1 AND c IN ()", lambda c, d: False),
    ("k = 1 AND (c, d) = (2, 1)", lambda c, d: (c, d) == (2, 1)),
    ("k = 1 AND (c, d) > (2, 1)", lambda c, d: (c, d) > (2, 1)),
    ("k = 1 AND (c, d) >= (2, 1) AND (c, d) < (4, 2)", lambda c, d: (2, 1) <= (c, d) < (4, 2)),
    ("k = 1 AND (c, d) > (1, 0) AND (c) <= (3)", lambda c, d: (c, d) > (1, 0) and c <= 3),
    ("k = 1 AND (c) > (2)", lambda c, d: c > 2),
    ("k = 1 AND (c, d) IN ((0, 1), (4, 3), (9, 9))", lambda c, d: (c, d) in ((0, 1), (4, 3))),
]


@pytest.mark.parametrize("where,expected", WHERE)
def test_restrictions_forward_and_reversed(rows, grid, where, expected):
    want = [pair for pair in ALL if expected(*pair)]
    assert rows(f"SELECT c, d FROM {grid} WHERE {where}") == want
    assert rows(f"SELECT c, d FROM {grid} WHERE {where} ORDER BY c DESC") == want[::-1]
    assert rows(f"SELECT c, d FROM {grid} WHERE {where} ORDER BY c DESC, d ASC") == want[::-1]
    assert rows(f"SELECT c, d FROM {grid} WHERE {where} LIMIT 3") == want[:3]
    assert rows(f"SELECT c, d FROM {grid} WHERE {where} ORDER BY c DESC LIMIT 3") == want[::-1][:3]


def test_in_on_partition_keys(rows, grid):
    assert rows(f"SELECT k, v FROM {grid} WHERE k IN (2, 0, 2, 7) AND c = 1 AND d = 1") == [(0, 11), (2, 211)]
    assert len(rows(f"SELECT k FROM {grid} WHERE k IN (0, 1)")) == 2 * C * D
    assert rows(f"SELECT k FROM {grid} WHERE k IN ()") == []
    assert len(rows(f"SELECT k FROM {grid} WHERE k IN (0, 1) LIMIT 25")) == 25


def test_per_partition_limit(rows, grid):
    assert rows(f"SELECT c, d FROM {grid} WHERE k = 1 PER PARTITION LIMIT 2") == ALL[:2]
    assert len(rows(f"SELECT k FROM {grid} PER PARTITION LIMIT 2")) == 2 * P
    assert len(rows(f"SELECT k FROM {grid} PER PARTITION LIMIT 2 LIMIT 5")) == 5
    assert len(rows(f"SELECT k FROM {grid} WHERE k IN (0, 1) PER PARTITION LIMIT 3")) == 6


def test_distinct(rows, grid):
    assert sorted(rows(f"SELECT DISTINCT k FROM {grid}")) == [(0,), (1,), (2,)]
    assert sorted(rows(f"SELECT DISTINCT k, s FROM {grid}")) == [(0, "s0"), (1, "s1"), (2, "s2")]
    assert rows(f"SELECT DISTINCT s FROM {grid} WHERE k = 1") == [("s1",)]
    assert len(rows(f"SELECT DISTINCT k FROM {grid} LIMIT 2")) == 2


def test_tokens(rows, grid):
    order = rows(f"SELECT DISTINCT k, token(k) FROM {grid}")
    assert [token for _, token in order] == sorted(token for _, token in order)
    assert dict(order)[1] == -4069959284402364209  # Murmur3 of 00000001
    middle = order[1][1]
    keys = [key for key, _ in order]
    distinct = lambda where: [row[0] for row in rows(f"SELECT DISTINCT k FROM {grid} WHERE {where}")]
    assert distinct(f"token(k) > {middle}") == keys[2:]
    assert distinct(f"token(k) >= {middle}") == keys[1:]
    assert distinct(f"token(k) < {middle}") == keys[:1]
    assert distinct(f"token(k) > {order[0][1]} AND token(k) <= {order[2][1]}") == keys[1:]
    assert distinct(f"token(k) = {middle}") == keys[1:2]
    assert distinct("token(k) > token(1)") == keys[keys.index(1) + 1 :]
    assert distinct(f"token(k) > {-(2**63)}") == keys
    assert len(rows(f"SELECT k FROM {grid} WHERE token(k) >= {middle} LIMIT 30")) == 30


AGGREGATES = [
    ("count(*)", (P * C * D,)),
    ("count(1)", (P * C * D,)),
    ("count(v) AS n", (P * C * D,)),
    ("min(v), max(v)", (0, 243)),
    ("sum(c), avg(c)", (P * D * 10, 2)),
    ("max(s)", ("s2",)),
]


@pytest.mark.parametrize("selection,expected", AGGREGATES)
def test_aggregates(rows, grid, selection, expected):
    assert rows(f"SELECT {selection} FROM {grid}") == [expected]


def test_aggregates_of_nothing(rows, grid):
    assert rows(f"SELECT count(*), min(v), max(v), sum(v), avg(v) FROM {grid} WHERE k = 9") == [(0, None, None, 0, 0)]


def test_group_by(rows, grid):
    assert rows(f"SELECT c, count(*), max(v) FROM {grid} WHERE k = 1 GROUP BY k, c") == [(c, D, 100 + 10 * c + 3) for c in range(C)]


ARITHMETIC = [
    ("sum", "tinyint", [100, 27], 127),
    ("sum", "bigint", [2**62, -1], 2**62 - 1),
    ("sum", "varint", [10**30, 1], 10**30 + 1),
    ("avg", "int", [1, 2], 1),
    ("avg", "double", [1.0, 2.0], 1.5),
    ("avg", "varint", [7, 2], 4),
    ("max", "text", ["a", "é", "z"], "é"),
    ("min", "boolean", [True, False], False),
]


@pytest.mark.parametrize("function,cql_type,values,expected", ARITHMETIC)
def test_aggregates_by_type(session, table, rows, function, cql_type, values, expected):
    name = table(f"k int, c int, v {cql_type}, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (1, ?, ?)")
    for c, value in enumerate([*values, None]):
        session.execute(insert, (c, value))
    assert rows(f"SELECT {function}(v) FROM {name} WHERE k = 1") == [(expected,)]


def test_filtering(rows, grid):
    with pytest.raises(InvalidRequest, match="ALLOW FILTERING"):
        rows(f"SELECT * FROM {grid} WHERE v = 11")
    assert rows(f"SELECT k, c, d FROM {grid} WHERE v = 11 ALLOW FILTERING") == [(0, 1, 1)]
    assert len(rows(f"SELECT k FROM {grid} WHERE v >= 100 AND v < 200 ALLOW FILTERING")) == C * D
    assert rows(f"SELECT c, d FROM {grid} WHERE k = 1 AND d = 2 ALLOW FILTERING") == [(c, 2) for c in range(C)]
    assert len(rows(f"SELECT k FROM {grid} WHERE s = 's1' ALLOW FILTERING")) == C * D
    assert len(rows(f"SELECT k FROM {grid} WHERE c > 3 ALLOW FILTERING")) == P * D
    assert len(rows(f"SELECT k FROM {grid} WHERE v IN (1, 2, 3) LIMIT 2 ALLOW FILTERING")) == 2


def test_filtering_collections(session, table, rows):
    name = table("k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, f frozen<list<int>>")
    session.execute(f"INSERT INTO {name} (k, l, s, m, f) VALUES (1, [1, 2], {{'a'}}, {{'x': 1}}, [5])")
    session.execute(f"INSERT INTO {name} (k, l, s, m, f) VALUES (2, [3], {{'b'}}, {{'y': 2}}, [6])")
    for where, key in [
        ("l CONTAINS 2", 1),
        ("s CONTAINS 'b'", 2),
        ("m CONTAINS 2", 2),
        ("m CONTAINS KEY 'x'", 1),
        ("m['y'] = 2", 2),
        ("f = [6]", 2),
    ]:
        assert rows(f"SELECT k FROM {name} WHERE {where} ALLOW FILTERING") == [(key,)], where


def test_selectors(session, table, rows):
    name = table("k int PRIMARY KEY, v int, t text, w int")
    session.execute(f"INSERT INTO {name} (k, v, t) VALUES (1, 2, 'x') USING TIMESTAMP 1234567 AND TTL 1000")
    [(stamp, ttl)] = rows(f"SELECT WRITETIME(v), TTL(v) FROM {name}")
    assert stamp == 1234567 and 990 < ttl <= 1000
    assert rows(f"SELECT writetime(w), ttl(w) FROM {name}") == [(None, None)]
    result = session.execute(f"SELECT v AS value, t, count(*) AS \"How Many\", cast(v AS text) AS spelled FROM {name}")
    assert result.column_names == ["value", "t", "How Many", "spelled"]
    assert tuple(result.one()) == (2, "x", 1, "2")
    assert session.execute(f"SELECT writetime(v), count(*) FROM {name}").column_names == ["writetime(v)", "count"]
    assert rows(f"SELECT blobasint(intasblob(v)) FROM {name}") == [(2,)]
    assert rows(f"SELECT JSON k, t FROM {name}") == [('{"k": 1, "t": "x"}',)]
    assert rows(f"SELECT * FROM {name}") == [(1, "x", 2, None)]


def test_static_columns(session, table, rows):
    name = table("k int, c int, s int static, v int, PRIMARY KEY (k, c)")
    session.execute(f"INSERT INTO {name} (k, s) VALUES (1, 10)")
    assert rows(f"SELECT * FROM {name} WHERE k = 1") == [(1, None, 10, None)]
    session.execute(f"INSERT INTO {name} (k, c, v) VALUES (1, 1, 1)")
    session.execute(f"INSERT INTO {name} (k, c, v, s) VALUES (1, 2, 2, 20)")
    assert rows(f"SELECT * FROM {name} WHERE k = 1") == [(1, 1, 20, 1), (1, 2, 20, 2)]
    assert rows(f"SELECT s FROM {name} WHERE k = 1") == [(20,), (20,)]
    assert rows(f"SELECT s, c FROM {name} WHERE k = 1 AND c = 2") == [(20, 2)]
    assert rows(f"SELECT s, c FROM {name} WHERE k = 1 AND c = 7") == []
    with pytest.raises(InvalidRequest, match="static"):
        session.execute(f"SELECT s FROM {name} WHERE k = 1 AND c = 1")
    session.execute(f"UPDATE {name} SET s = 30 WHERE k = 1")
    session.execute(f"DELETE s FROM {name} WHERE k = 1")
    assert rows(f"SELECT s, v FROM {name} WHERE k = 1") == [(None, 1), (None, 2)]
    with pytest.raises(InvalidRequest):
        session.execute(f"UPDATE {name} SET v = 3 WHERE k = 1")
    with pytest.raises(InvalidRequest):
        session.execute(f"UPDATE {name} SET s = 3 WHERE k = 1 AND c = 1")


def test_descending_tables(session, table, rows):
    """The newest N is a slice without a start."""
    name = table("k int, t bigint, v text, PRIMARY KEY (k, t)", "WITH CLUSTERING ORDER BY (t DESC)")
    for t in range(20):
        session.execute(f"INSERT INTO {name} (k, t, v) VALUES (1, {t}, 'v{t}')")
    first = lambda query: [row[0] for row in rows(query)]
    assert first(f"SELECT t FROM {name} WHERE k = 1 LIMIT 3") == [19, 18, 17]
    assert first(f"SELECT t FROM {name} WHERE k = 1 ORDER BY t ASC LIMIT 3") == [0, 1, 2]
    assert first(f"SELECT t FROM {name} WHERE k = 1 AND t < 10 LIMIT 2") == [9, 8]
    assert first(f"SELECT t FROM {name} WHERE k = 1 AND t >= 4 AND t < 7") == [6, 5, 4]
    assert first(f"SELECT t FROM {name} WHERE k = 1 AND t >= 4 AND t < 7 ORDER BY t ASC") == [4, 5, 6]
    assert first(f"SELECT t FROM {name} WHERE k = 1 AND t IN (3, 12, 7)") == [12, 7, 3]


REFUSED = [
    ("SELECT * FROM {t} WHERE c = 1", "(?i)allow filtering|partition key"),
    ("SELECT * FROM {t} WHERE k = 1 AND d = 1", "(?i)clustering|primary key"),
    ("SELECT * FROM {t} WHERE k > 1", "(?i)token|EQ and IN|allow filtering"),
    ("SELECT * FROM {t} WHERE nosuch = 1", "(?i)undefined column"),
    ("SELECT nosuch FROM {t}", "(?i)undefined column"),
    ("SELECT * FROM {t} ORDER BY c", "(?i)order by"),
    ("SELECT * FROM {t} WHERE k = 1 ORDER BY v", "(?i)order by"),
    ("SELECT * FROM {t} WHERE k = 1 ORDER BY c ASC, d ASC", "(?i)order"),
    ("SELECT * FROM {t} WHERE k = 1 LIMIT 0", "(?i)limit"),
    ("SELECT * FROM {t} WHERE k = 1 AND k = 2", "(?i)more than one|restrict"),
    ("SELECT * FROM {t} WHERE k = 1 AND c > 1 AND c = 2", "(?i)restrict"),
    ("SELECT * FROM {t} WHERE k = 1 AND c > 1 AND d > 1", "(?i)clustering|ALLOW"),
    ("SELECT * FROM {t} WHERE k = null", "(?i)null"),
    ("SELECT * FROM {t} WHERE k = 'x'", "(?i)string"),
    ("SELECT DISTINCT c FROM {t}", "(?i)distinct"),
    ("SELECT nosuch(v) FROM {t}", "(?i)function"),
    ("SELECT sum(s) FROM {t}", "(?i)sum"),
    ("SELECT * FROM nosuch.{n}", "(?i)keyspace"),
    ("SELECT * FROM {k}.nosuch", "(?i)table"),
    ("SELECT WRITETIME(k) FROM {t}", "(?i)primary key"),
]


@pytest.mark.parametrize("query,message", REFUSED)
def test_refused(session, keyspace, grid, query, message):
    with pytest.raises(InvalidRequest, match=message):
        session.execute(query.format(t=grid, k=keyspace, n=grid.split(".")[1]))


SYNTAX = ["SELEC * FROM x", "SELECT * FROM", "SELECT * FROM x WHERE k = ", "SELECT * FROM x WHERE k == 1", "SELECT 'open FROM x", "", ";;"]


@pytest.mark.parametrize("query", SYNTAX)
def test_syntax_errors_have_a_position(session, query):
    with pytest.raises(SyntaxException, match=r"line \d+"):
        session.execute(query)
