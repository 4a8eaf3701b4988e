"""Statements of extreme size and shape: each is answered, or refused with an error that says why; the connection and the server live on."""

import pytest
from cassandra import InvalidRequest
from cassandra.protocol import ConfigurationException, SyntaxException

REFUSED = (SyntaxException, InvalidRequest)
DEEP = 20_000


def lists(depth):
    return "[" * depth + "1" + "]" * depth


@pytest.fixture(scope="module")
def name(table):
    return table("k int PRIMARY KEY, v text, l list<int>, b blob")


@pytest.mark.parametrize(
    "value",
    [lists(DEEP), "{" * DEEP, "(" * DEEP + "1" + ")" * DEEP, "-" * DEEP + "1", "(int)" * DEEP + "1", "f(" * DEEP + ")" * DEEP, " + ".join(["1"] * DEEP)],
    ids=["lists", "braces", "parentheses", "minus", "casts", "calls", "sums"],
)
def test_deep_terms_are_refused(session, name, value):
    with pytest.raises(REFUSED):
        session.execute(f"INSERT INTO {name} (k, l) VALUES (1, {value})")
    with pytest.raises(REFUSED):
        session.execute(f"SELECT {value} FROM {name}")
    assert session.execute(f"SELECT count(*) FROM {name} WHERE k = -1").one()[0] == 0


def test_deep_types_are_refused(session, keyspace):
    for kind in ("frozen<list<", "list<", "tuple<"):
        depth = 2_000
        with pytest.raises(REFUSED):
            session.execute(f"CREATE TABLE {keyspace}.deep (k int PRIMARY KEY, v {kind * depth}int{'>' * (depth * kind.count('<'))})")


def test_the_most_markers_and_one_more(session, name):
    most = session.prepare(f"SELECT k FROM {name} WHERE k IN ({', '.join(['?'] * 65_535)})")
    assert len(most.column_metadata) == 65_535
    assert list(session.execute(most, list(range(65_535)))) == []
    with pytest.raises(REFUSED, match="65535|65,535|Too many"):
        session.prepare(f"SELECT k FROM {name} WHERE k IN ({', '.join(['?'] * 65_536)})")


def test_long_texts(session, name, rows):
    long = "x" * (4 << 20)
    session.execute(f"INSERT INTO {name} (k, v, b) VALUES (5, '{long}', 0x{'ab' * (1 << 20)})")
    [(v, b)] = rows(f"SELECT v, b FROM {name} WHERE k = 5")
    assert (len(v), len(b)) == (4 << 20, 1 << 20)
    elements = list(range(60_000))
    session.execute(f"INSERT INTO {name} (k, l) VALUES (6, {elements})")
    assert rows(f"SELECT l FROM {name} WHERE k = 6") == [(elements,)]


def test_long_names(session, keyspace, name):
    with pytest.raises(ConfigurationException):
        session.execute(f"CREATE TABLE {keyspace}.{'t' * 300} (k int PRIMARY KEY)")
    with pytest.raises(InvalidRequest):
        session.execute(f"SELECT {'c' * 100_000} FROM {name}")


def test_long_batches(session, name, rows):
    statements = "".join(f"INSERT INTO {name} (k) VALUES ({-k});" for k in range(1, 501))
    session.execute(f"BEGIN UNLOGGED BATCH {statements} APPLY BATCH")
    assert rows(f"SELECT count(*) FROM {name} WHERE k IN ({', '.join(str(-k) for k in range(1, 501))})") == [(500,)]


def test_keys_too_long(session, table):
    name = table("k text, c text, PRIMARY KEY (k, c)")
    for k, c in (("k" * 70_000, "c"), ("k", "c" * 70_000)):
        with pytest.raises(InvalidRequest):
            session.execute(f"INSERT INTO {name} (k, c) VALUES ('{k}', '{c}')")
        session.execute(f"INSERT INTO {name} (k, c) VALUES ('x', 'y')")
