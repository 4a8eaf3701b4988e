"""Every type there and back, in every protocol version; null, unset and empty values; collections changed in place."""

import datetime
import decimal
import ipaddress
import math
import uuid

import pytest
from cassandra import InvalidRequest
from cassandra.query import UNSET_VALUE
from cassandra.util import Date, Duration, OrderedMapSerializedKey, Time

D = decimal.Decimal
U = uuid.UUID("8ac6d1dc-fbeb-11e9-8f0b-362b9e155667")
R = uuid.UUID("5f3c0a8e-4f0e-4a57-9b0e-9d7a3f1a2b3c")
WHEN = datetime.datetime(2024, 2, 29, 12, 34, 56, 789000)

NATIVE = {
    "ascii": ["", "plain", "x" * 1000],
    "bigint": [0, 1, -1, 2**63 - 1, -(2**63)],
    "blob": [b"", b"\0", bytes(range(256)), b"\xff" * 70_000],
    "boolean": [True, False],
    "date": [Date(0), Date("1970-01-01"), Date("2024-02-29"), Date("1969-12-31"), Date("9999-12-31")],
    "decimal": [D("0"), D("1.50"), D("-0.000000001"), D("123456789012345678901234567890.123456789"), D("1E+5")],
    "double": [0.0, -0.0, 1.5, -1e308, 5e-324, math.inf, -math.inf],
    "duration": [Duration(0, 0, 0), Duration(14, 3, 4_000_000_000), Duration(-1, -2, -3), Duration(2**31 - 1, 2**31 - 1, 2**63 - 1)],
    "float": [0.0, 1.5, -2.25, 2.0**127, math.inf],
    "inet": ["127.0.0.1", "255.255.255.255", "::1", "2001:db8::ff00:42:8329"],
    "int": [0, 1, -1, 2**31 - 1, -(2**31)],
    "smallint": [0, -1, 2**15 - 1, -(2**15)],
    "text": ["", "Ἕλενος", "\U0001f600", "line\nline", "quote ' quote"],
    "time": [Time(0), Time("23:59:59.999999999"), Time(1)],
    "timestamp": [datetime.datetime(1970, 1, 1), WHEN, datetime.datetime(1900, 1, 1), datetime.datetime(9999, 12, 31)],
    "timeuuid": [U],
    "tinyint": [0, -1, 127, -128],
    "uuid": [R, U, uuid.UUID(int=0)],
    "varchar": ["same as text"],
    "varint": [0, 1, -1, 127, 128, -128, -129, 10**40, -(10**40)],
}

NESTED = {
    "list<int>": [[1], [3, 1, 2, 1]],
    "set<text>": [{"a"}, {"b", "a", "é"}],
    "map<text, int>": [{"a": 1}, {"b": 2, "a": 1, "c": -1}],
    "map<int, frozen<list<text>>>": [{1: ["a", "b"], 2: []}],
    "frozen<list<int>>": [[], [1, 2, 3]],
    "frozen<set<int>>": [set(), {3, 1, 2}],
    "frozen<map<text, frozen<set<int>>>>": [{}, {"a": {2, 1}}],
    "list<frozen<map<text, int>>>": [[{"a": 1}, {"b": 2}]],
    "tuple<int, text, boolean>": [(1, "a", True), (None, "b", None)],
    "frozen<tuple<int, frozen<tuple<text, double>>>>": [(1, ("x", 2.5))],
    "vector<float, 3>": [[1.0, 2.5, -3.0]],
    "vector<int, 2>": [[1, -2]],
    "list<timeuuid>": [[U]],
    "set<varint>": [{10**30, -5}],
}


def plain(value):
    """Driver containers as the plain ones that they stand for."""
    if isinstance(value, OrderedMapSerializedKey):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if type(value).__name__ == "SortedSet":
        return set(value)
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


@pytest.fixture(scope="module", params=[3, 4, 5])
def versioned(request, contact):
    with contact.cluster(protocol_version=request.param) as cluster:
        yield cluster.connect()


@pytest.mark.parametrize("cql_type", NATIVE | NESTED)
def test_prepared_round_trip(versioned, table, cql_type):
    name = table(f"k int PRIMARY KEY, v {cql_type}")
    insert = versioned.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    select = versioned.prepare(f"SELECT v FROM {name} WHERE k = ?")
    for k, value in enumerate((NATIVE | NESTED)[cql_type]):
        versioned.execute(insert, (k, value))
        got = plain(versioned.execute(select, (k,)).one().v)
        assert got == value, f"{cql_type}: {value!r}"


@pytest.mark.parametrize("cql_type", NATIVE)
def test_as_keys(session, table, cql_type):
    if cql_type == "duration":
        with pytest.raises(InvalidRequest, match="(?i)duration"):
            table("k duration PRIMARY KEY")
        return
    name = table(f"k {cql_type}, c {cql_type}, v int, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, 1)")
    select = session.prepare(f"SELECT k, c FROM {name} WHERE k = ? AND c = ?")
    for value in NATIVE[cql_type]:
        if value in ("", b"") or (isinstance(value, bytes) and len(value) > 60_000):
            continue
        session.execute(insert, (value, value))
        assert tuple(session.execute(select, (value, value)).one()) == (value, value)


def test_empty_partition_key_is_refused(session, table):
    name = table("k text PRIMARY KEY")
    with pytest.raises(InvalidRequest, match="(?i)empty"):
        session.execute(f"INSERT INTO {name} (k) VALUES ('')")


LITERALS = [
    ("int", "-5", -5),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("varint", "1000000000000000000000", 10**21),
    ("decimal", "1.25e3", D("1.25e3")),
    ("double", "1.5", 1.5),
    ("double", "NaN", None),
    ("float", "Infinity", math.inf),
    ("text", "'it''s'", "it's"),
    ("text", "$$dollar 'quoted'$$", "dollar 'quoted'"),
    ("blob", "0xCAfe", b"\xca\xfe"),
    ("boolean", "TRUE", True),
    ("uuid", str(R).upper(), R),
    ("inet", "'::1'", "::1"),
    ("date", "'2024-02-29'", Date("2024-02-29")),
    ("date", "2147483648", Date(0)),
    ("time", "'01:02:03.000000004'", Time("01:02:03.000000004")),
    ("timestamp", "'2024-02-29 12:34:56.789+0000'", WHEN),
    ("timestamp", "'2024-02-29T14:34:56.789+02:00'", WHEN),
    ("timestamp", "1709210096789", WHEN),
    ("duration", "1y2mo3d4s", Duration(14, 3, 4_000_000_000)),
    ("duration", "P1Y2M3DT4S", Duration(14, 3, 4_000_000_000)),
    ("list<int>", "[1, 2]", [1, 2]),
    ("set<int>", "{2, 1}", {1, 2}),
    ("map<text, int>", "{'a': 1}", {"a": 1}),
    ("tuple<int, text>", "(1, 'a')", (1, "a")),
    ("vector<float, 2>", "[1.5, 2]", [1.5, 2.0]),
    ("uuid", "uuid()", None),
    ("int", "(int) 7", 7),
    ("blob", "int_as_blob(1)", b"\0\0\0\1"),
    ("blob", "textAsBlob('ab')", b"ab"),
]


@pytest.mark.parametrize("cql_type,literal,expected", LITERALS)
def test_literals(session, table, cql_type, literal, expected):
    name = table(f"k int PRIMARY KEY, v {cql_type}")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, {literal})")
    got = plain(session.execute(f"SELECT v FROM {name}").one().v)
    if expected is not None:
        assert got == expected
    else:
        assert got is not None


WRONG_LITERALS = [
    ("int", "'text'"),
    ("int", "2147483648"),
    ("text", "1"),
    ("boolean", "1"),
    ("uuid", "'not a uuid'"),
    ("date", "'2024-02-30'"),
    ("inet", "'300.1.1.1'"),
    ("ascii", "'é'"),
    ("list<int>", "{1}"),
    ("tuple<int, text>", "(1, 2)"),
    ("vector<float, 2>", "[1.0]"),
    ("frozen<map<int, int>>", "{1: null}"),
]


@pytest.mark.parametrize("cql_type,literal", WRONG_LITERALS)
def test_wrong_literals_are_refused(session, table, cql_type, literal):
    name = table(f"k int PRIMARY KEY, v {cql_type}")
    with pytest.raises(InvalidRequest):
        session.execute(f"INSERT INTO {name} (k, v) VALUES (1, {literal})")


def test_null_and_unset(session, table, rows):
    name = table("k int PRIMARY KEY, a int, b text, l list<int>")
    insert = session.prepare(f"INSERT INTO {name} (k, a, b, l) VALUES (?, ?, ?, ?)")
    session.execute(insert, (1, 10, "x", [1]))
    session.execute(insert, (1, UNSET_VALUE, None, UNSET_VALUE))
    assert rows(f"SELECT * FROM {name}") == [(1, 10, None, [1])]
    session.execute(insert, (1, None, UNSET_VALUE, []))
    assert rows(f"SELECT * FROM {name}") == [(1, None, None, None)]
    session.execute(insert, (2,))  # what is not bound is unset
    assert rows(f"SELECT * FROM {name} WHERE k = 2") == [(2, None, None, None)]
    with pytest.raises(InvalidRequest, match="(?i)null"):
        session.execute(insert, (None, 1, "x", []))
    clustered = session.prepare(f"SELECT * FROM {table('k int, c int, PRIMARY KEY (k, c)')} WHERE k = ? AND c = ?")
    with pytest.raises(InvalidRequest, match="(?i)unset"):
        session.execute(clustered, (1, UNSET_VALUE))
    where = session.prepare(f"SELECT * FROM {name} WHERE k = ?")
    with pytest.raises(InvalidRequest):
        session.execute(where, (None,))


def test_collection_changes(session, table, rows):
    name = table("k int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>")
    session.execute(f"INSERT INTO {name} (k, l, s, m) VALUES (1, [1, 2], {{1, 2}}, {{'a': 1}})")
    for change in [
        "l = l + [3]",
        "l = [0] + l",
        "l[1] = 11",
        "l = l - [2]",
        "s = s + {3}",
        "s = s - {1}",
        "m = m + {'b': 2, 'c': 3}",
        "m = m - {'c'}",
        "m['d'] = 4",
        "m['a'] = null",
    ]:
        session.execute(f"UPDATE {name} SET {change} WHERE k = 1")
    [(l, s, m)] = rows(f"SELECT l, s, m FROM {name}")
    assert (l, set(s), dict(m)) == ([0, 11, 3], {2, 3}, {"b": 2, "d": 4})
    session.execute(f"DELETE l[0], s[2], m['b'] FROM {name} WHERE k = 1")
    [(l, s, m)] = rows(f"SELECT l, s, m FROM {name}")
    assert (l, set(s), dict(m)) == ([11, 3], {3}, {"d": 4})
    assert rows(f"SELECT m['d'], s[3] FROM {name}") == [(4, 3)]
    session.execute(f"UPDATE {name} SET l = [9], s = {{}}, m = {{'z': 26}} WHERE k = 1")
    [(l, s, m)] = rows(f"SELECT l, s, m FROM {name}")
    assert (l, s, dict(m)) == ([9], None, {"z": 26})
    with pytest.raises(InvalidRequest):
        session.execute(f"UPDATE {name} SET l[5] = 1 WHERE k = 1")
    prepared = session.prepare(f"UPDATE {name} SET l = l + ?, s = s + ?, m[?] = ? WHERE k = ?")
    session.execute(prepared, ([10], {7}, "y", 25, 1))
    [(l, s, m)] = rows(f"SELECT l, s, m FROM {name}")
    assert (l, set(s), dict(m)) == ([9, 10], {7}, {"y": 25, "z": 26})


@pytest.fixture(scope="module")
def address(session, keyspace):
    session.execute(f"CREATE TYPE {keyspace}.street (name text, number int)")
    session.execute(f"CREATE TYPE {keyspace}.address (street frozen<street>, zip text, tags frozen<set<text>>)")


def test_user_types(session, keyspace, address, table, rows):
    name = table("k int PRIMARY KEY, a address, f frozen<address>, l list<frozen<street>>")
    session.execute(
        f"INSERT INTO {name} (k, a, f, l) VALUES (1, {{street: {{name: 'High', number: 7}}, zip: '123'}},"
        f" {{zip: '9', tags: {{'x', 'y'}}}}, [{{name: 'Low', number: 1}}])"
    )
    row = session.execute(f"SELECT a, f, l FROM {name}").one()
    assert row.a.street.name == "High" and row.a.street.number == 7 and row.a.zip == "123" and row.a.tags is None
    assert row.f.street is None and row.f.zip == "9" and set(row.f.tags) == {"x", "y"}
    assert row.l[0].name == "Low"
    session.execute(f"UPDATE {name} SET a.zip = '456', a.street = {{name: 'Mid'}} WHERE k = 1")
    row = session.execute(f"SELECT a.zip, a.street, a FROM {name}").one()
    assert row[0] == "456" and row[1].name == "Mid" and row[1].number is None
    session.execute(f"DELETE a.zip FROM {name} WHERE k = 1")
    assert rows(f"SELECT a.zip FROM {name}") == [(None,)]
    insert = session.prepare(f"INSERT INTO {name} (k, f) VALUES (?, ?)")
    session.execute(insert, (2, (("Prep", 3), "z", {"t"})))
    row = session.execute(f"SELECT f FROM {name} WHERE k = 2").one()
    assert row.f.street.name == "Prep" and row.f.zip == "z"
    session.execute(f"ALTER TYPE {keyspace}.street ADD side text")
    row = session.execute(f"SELECT l FROM {name} WHERE k = 1").one()
    assert row.l[0].side is None and row.l[0].name == "Low"
    session.execute(f"ALTER TYPE {keyspace}.street RENAME number TO house")
    row = session.execute(f"SELECT l FROM {name} WHERE k = 1").one()
    assert row.l[0].house == 1


def test_frozen_collections_as_keys(session, table, rows):
    name = table("k frozen<list<int>>, c frozen<map<text, int>>, d frozen<tuple<int, text>>, v int, PRIMARY KEY (k, c, d)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, d, v) VALUES (?, ?, ?, ?)")
    session.execute(insert, ([1, 2], {"b": 1, "a": 2}, (1, "x"), 1))
    session.execute(insert, ([1, 2], {"a": 2}, (1, "x"), 2))
    assert rows(f"SELECT v FROM {name} WHERE k = [1, 2]") == [(2,), (1,)]
    assert rows(f"SELECT v FROM {name} WHERE k = [1, 2] AND c = {{'a': 2, 'b': 1}}") == [(1,)]
