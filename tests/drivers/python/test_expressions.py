"""Bind markers inside of expressions: their names and types, what they may be bound to; ids that are new for each row; groups by a function, in pages."""

import datetime

import pytest
from cassandra import FunctionFailure, InvalidRequest
from cassandra.query import UNSET_VALUE, SimpleStatement

COLUMNS = "k int PRIMARY KEY, i int, x text, l list<int>, m map<text, int>, st set<int>, ve vector<float, 2>, ts timestamp, v varint"


@pytest.fixture(scope="module")
def filled(table, session):
    name = table(COLUMNS)
    session.execute(f"INSERT INTO {name} (k, i, x, m, st, ve) VALUES (1, 7, 'x', {{'a': 1, 'b': 2}}, {{1, 2}}, [1, 2])")
    return name


# what is selected, the marker's types, then pairs of bound values and rows; a text is what the error says
SELECTED = [
    ("i + (int)?", ["int"], [((3,), (10,)), ((None,), (None,)), ((UNSET_VALUE,), "unset value for argument in call to function _add")]),
    ("(int)? * 2 + i", ["int"], [((3,), (13,))]),
    ("abs((int)?)", ["int"], [((-3,), (3,)), ((UNSET_VALUE,), "unset value for argument in call to function abs")]),
    ("(int)?, (text)?", ["int", "varchar"], [((3, "a"), (3, "a")), ((UNSET_VALUE, None), (None, None))]),
    ("- (int)?", ["int"], [((4,), (-4,))]),
    ("m[?], st[?]", ["varchar", "int"], [(("a", 1), (1, 1)), (("z", 9), (None, None)), ((None, 1), "null value"), ((UNSET_VALUE, 1), "unset value")]),
    ("mask_inner(x, ?, ?)", ["int", "int"], [((0, 0), ("*",)), ((None, 1), ("x",)), ((UNSET_VALUE, 1), "unset value")]),
    ("mask_inner(x, ?, ?, ?)", ["int", "int", "varchar"], [((0, 0, "#"), ("#",)), ((0, 0, "##"), "single-character")]),
    ("mask_replace(i, ?)", ["int"], [((5,), (5,))]),
    ("mask_hash(x, ?)", ["varchar"], [(("MD5",), (bytes.fromhex("9dd4e461268c8034f5c8564e155c67a6"),)), (("nope",), "not found")]),
    ("similarity_cosine(ve, ?)", None, [(([1.0, 2.0],), (1.0,))]),
    ("token(?)", ["int"], [((1,), (-4069959284402364209,)), ((None,), (None,)), ((UNSET_VALUE,), "unset value")]),
    ("int_as_blob(?), blob_as_int(?)", ["int", "blob"], [((1, b"\0\0\0\1"), (b"\0\0\0\1", 1)), ((1, b"x"), "not a valid binary representation")]),
    ("(tuple<int, text>)(i, ?)", ["varchar"], [(("q",), ((7, "q"),))]),
    ("[i, ?]", ["int"], [((5,), ([7, 5],))]),
    ("to_json((int)?)", ["int"], [((5,), ("5",))]),
    ("CAST((int)? AS text)", ["int"], [((5,), ("5",))]),
]


@pytest.mark.parametrize("selected,types,values", SELECTED)
def test_markers_in_a_select_clause(session, filled, selected, types, values):
    statement = session.prepare(f"SELECT {selected} FROM {filled} WHERE k = 1")
    assert {marker.name for marker in statement.column_metadata} <= {"[selection]", "key(m)", "value(st)"}
    if types:
        assert [marker.type.cql_parameterized_type() for marker in statement.column_metadata] == types
    for bound, expected in values:
        if isinstance(expected, str):
            with pytest.raises(InvalidRequest, match=expected):
                session.execute(statement, bound)
        else:
            assert [tuple(row) for row in session.execute(statement, bound)] == [expected]


VALUES = [
    ("i", "(int)? + 1", [("arg0(system._add)", "int")], [((3,), 4), ((None,), None)]),
    ("i", "abs(?)", [("arg0(system.abs)", "int")], [((-3,), 3)]),
    ("i", "- ?", [("arg0(system._negate)", "int")], [((3,), -3)]),
    ("x", "mask_inner(?, 1, ?)", [("arg0(system.mask_inner)", "varchar"), ("arg2(system.mask_inner)", "int")], [(("hello", 1), "h***o")]),
    ("i", "from_json(?)", [("arg0(system.from_json)", "varchar")], [(("5",), 5), ((None,), None)]),
    ("i", "CAST((double)? AS int)", [("arg0(system.cast_as_int)", "double")], [((3.7,), 3)]),
    ("v", "(int)?", [("v", "varint")], [((3,), 3)]),
    ("ts", "? + 1d", [("arg0(system._add)", "timestamp")], [((datetime.datetime(2024, 2, 28),), datetime.datetime(2024, 2, 29))]),
]


@pytest.mark.parametrize("column,value,markers,values", VALUES)
def test_markers_in_values(session, filled, column, value, markers, values):
    statement = session.prepare(f"INSERT INTO {filled} (k, {column}) VALUES (2, {value})")
    assert [(marker.name, marker.type.cql_parameterized_type()) for marker in statement.column_metadata] == markers
    for bound, expected in values:
        session.execute(statement, bound)
        assert session.execute(f"SELECT {column} FROM {filled} WHERE k = 2").one()[0] == expected
    if markers[0][0].startswith("arg"):
        with pytest.raises(InvalidRequest, match="unset value for argument in call to function"):
            session.execute(statement, (UNSET_VALUE, *values[0][0][1:]))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT abs(?) FROM {}",
        "SELECT ? FROM {}",
        "SELECT i + ? FROM {}",
        "SELECT (i, ?) FROM {}",
        "SELECT to_json(?) FROM {}",
        "SELECT max(?) FROM {}",
        "SELECT CAST(? AS text) FROM {}",
        "SELECT similarity_cosine(?, ?) FROM {}",
        "INSERT INTO {} (k, i) VALUES (2, ? + 1)",
        "INSERT INTO {} (k, i) VALUES (2, ? + ?)",
        "INSERT INTO {} (k, x) VALUES (2, 'a' + ?)",
        "INSERT INTO {} (k, l) VALUES (2, [?])",
        "INSERT INTO {} (k, i) VALUES (2, CAST(? AS int))",
        "INSERT INTO {} (k, x) VALUES (2, to_json(?))",
    ],
)
def test_markers_without_a_type_are_refused(session, filled, statement):
    with pytest.raises(InvalidRequest):
        session.prepare(statement.format(filled))


def test_what_fails_fails_when_it_is_executed(session, filled):
    for statement in [f"SELECT 1 / 0 FROM {filled}", f"INSERT INTO {filled} (k, i) VALUES (2, 1 / 0)"]:
        prepared = session.prepare(statement)
        with pytest.raises(FunctionFailure, match="/ by zero"):
            session.execute(prepared)
    prepared = session.prepare(f"SELECT i FROM {filled} WHERE k = 1 / (int)?")
    assert session.execute(prepared, (1,)).one().i == 7
    with pytest.raises(FunctionFailure):
        session.execute(prepared, (0,))


def test_ids_are_new_for_each_row(session, table, rows):
    name = table("k int, c int, PRIMARY KEY (k, c)")
    for number in range(20):
        session.execute(f"INSERT INTO {name} (k, c) VALUES ({number % 4}, {number})")
    found = rows(f"SELECT uuid(), uuid(), now(), current_timeuuid() FROM {name}")
    ids = [id for row in found for id in row]
    assert len(set(ids)) == 80
    assert {(row[0].version, row[2].version) for row in found} == {(4, 1)}
    [(low, high)] = rows(f"SELECT min(to_unix_timestamp(now())), max(to_unix_timestamp(now())) FROM {name}")
    assert 0 <= high - low < 60_000


def test_groups_by_a_function_in_pages(session, table):
    name = table("k int, ts timestamp, v int, PRIMARY KEY (k, ts)")
    start = datetime.datetime(2024, 1, 1)
    insert = session.prepare(f"INSERT INTO {name} (k, ts, v) VALUES (?, ?, ?)")
    for number in range(60):
        session.execute(insert, (number % 2, start + datetime.timedelta(minutes=20 * number), number))
    query = f"SELECT k, floor(ts, 3h) AS t, count(*) AS n, sum(v) AS s FROM {name} GROUP BY k, floor(ts, 3h)"
    whole = [tuple(row) for row in session.execute(SimpleStatement(query, fetch_size=None))]
    assert sum(n for _, _, n, _ in whole) == 60 and len(whole) == 14
    for size in (1, 2, 3, 5):
        assert [tuple(row) for row in session.execute(SimpleStatement(query, fetch_size=size))] == whole
    limited = [tuple(row) for row in session.execute(SimpleStatement(f"{query} LIMIT 5", fetch_size=2))]
    assert limited == whole[:5]
