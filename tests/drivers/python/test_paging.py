"""Paging: every result through pages of every size, forwards and reversed, by hand and across connections."""

import pytest
from cassandra.protocol import ProtocolException
from cassandra.query import SimpleStatement

ROWS = 103


@pytest.fixture(scope="module")
def wide(session, table):
    name = table("k int, c int, v text, s text static, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, ?)")
    for k in (1, 2, 3):
        session.execute(f"INSERT INTO {name} (k, s) VALUES ({k}, 's{k}')")
        for c in range(ROWS if k == 1 else 7 * k):
            session.execute(insert, (k, c, f"v{k}-{c}"))
    return name


def paged(session, query, size, parameters=None):
    return [tuple(row) for row in session.execute(SimpleStatement(query, fetch_size=size), parameters)]


@pytest.mark.parametrize("size", [1, 2, 7, 50, 103, 104, 1000])
@pytest.mark.parametrize(
    "rest,count",
    [
        ("WHERE k = 1", ROWS),
        ("WHERE k = 1 ORDER BY c DESC", ROWS),
        ("WHERE k = 1 AND c > 10 AND c <= 60", 50),
        ("WHERE k = 1 AND c > 10 AND c <= 60 ORDER BY c DESC", 50),
        ("WHERE k = 1 AND c IN (1, 5, 9, 70, 80, 102, 200)", 6),
        ("WHERE k = 1 LIMIT 31", 31),
        ("WHERE k IN (2, 3)", 35),
        ("", ROWS + 35),
        ("LIMIT 120", 120),
        ("PER PARTITION LIMIT 10", 30),
        ("WHERE token(k) > -9223372036854775808", ROWS + 35),
        ("WHERE c < 5 ALLOW FILTERING", 15),
    ],
)
def test_pages_give_the_whole_result(session, wide, rest, count, size):
    query = f"SELECT k, c, v, s FROM {wide} {rest}"
    whole = paged(session, query, 5000)
    assert len(whole) == count
    assert paged(session, query, size) == whole


@pytest.mark.parametrize("size", [1, 2, 3])
def test_distinct_and_aggregates_are_paged(session, wide, size):
    assert sorted(paged(session, f"SELECT DISTINCT k, s FROM {wide}", size)) == [(1, "s1"), (2, "s2"), (3, "s3")]
    assert paged(session, f"SELECT count(*) FROM {wide}", size) == [(ROWS + 35,)]
    assert sorted(paged(session, f"SELECT k, count(*) FROM {wide} GROUP BY k", size)) == [(1, ROWS), (2, 14), (3, 21)]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_state_by_hand_in_another_connection(contact, wide, version):
    statement = lambda: SimpleStatement(f"SELECT c FROM {wide} WHERE k = 1", fetch_size=10)
    state, seen = None, []
    while True:
        with contact.cluster(protocol_version=version) as cluster:
            result = cluster.connect().execute(statement(), paging_state=state)
            seen += [row.c for row in result.current_rows]
            state = result.paging_state
            if state is None or len(seen) > 40:
                break
    assert seen == list(range(len(seen))) and len(seen) == 50


def test_prepared_pages(session, wide):
    select = session.prepare(f"SELECT * FROM {wide} WHERE k = ? AND c >= ? ORDER BY c DESC")
    select.fetch_size = 9
    got = [row.c for row in session.execute(select, (1, 3))]
    assert got == list(range(ROWS - 1, 2, -1))


def test_pages_have_the_size_asked_for(session, wide):
    result = session.execute(SimpleStatement(f"SELECT c FROM {wide} WHERE k = 1", fetch_size=40))
    sizes = [len(result.current_rows)]
    while result.has_more_pages:
        result.fetch_next_page()
        sizes.append(len(result.current_rows))
    assert sizes == [40, 40, 23]


def test_writes_between_pages(session, table):
    name = table("k int, c int, PRIMARY KEY (k, c)")
    for c in range(0, 20, 2):
        session.execute(f"INSERT INTO {name} (k, c) VALUES (1, {c})")
    result = session.execute(SimpleStatement(f"SELECT c FROM {name} WHERE k = 1", fetch_size=4))
    first = [row.c for row in result.current_rows]
    session.execute(f"INSERT INTO {name} (k, c) VALUES (1, 1)")
    session.execute(f"INSERT INTO {name} (k, c) VALUES (1, 9)")
    session.execute(f"DELETE FROM {name} WHERE k = 1 AND c = 6")
    result.fetch_next_page()
    rest = [row.c for row in result]
    assert first == [0, 2, 4, 6] and rest == [8, 9, 10, 12, 14, 16, 18]


def test_a_broken_paging_state_is_an_error(contact, session, wide):
    """A protocol error, at which the driver closes that connection: hence one of its own."""
    statement = SimpleStatement(f"SELECT c FROM {wide} WHERE k = 1", fetch_size=10)
    with contact.cluster() as cluster:
        with pytest.raises(ProtocolException):
            cluster.connect().execute(statement, paging_state=b"\x07not a state")
    assert len(list(session.execute(statement))) == ROWS
