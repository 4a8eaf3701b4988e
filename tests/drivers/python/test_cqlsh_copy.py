"""COPY TO and COPY FROM of cqlsh: all types, many rows, options. What is exported is imported again and is the same."""

import re

import pytest

import shells

TYPES = {
    "a": ("ascii", "'abc'"),
    "b": ("bigint", "-9223372036854775808"),
    "c": ("blob", "0x00ff"),
    "d": ("boolean", "true"),
    "e": ("date", "'2024-02-29'"),
    "f": ("decimal", "1234567890.0123456789"),
    "g": ("double", "1.25"),
    "i": ("inet", "'2001:db8::1'"),
    "j": ("smallint", "-32768"),
    "l": ("text", "'it''s \"quoted\", ü | x'"),
    "m": ("time", "'23:59:59.999999999'"),
    "n": ("timestamp", "'2024-02-29 12:34:56.789+0000'"),
    "o": ("timeuuid", "50554d6e-29bb-11e5-b345-feff819cdc9f"),
    "p": ("tinyint", "-128"),
    "q": ("uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    "r": ("varint", "123456789012345678901234567890"),
    "s": ("float", "0.5"),
    "u": ("list<int>", "[3, 1, 2]"),
    "v": ("set<text>", "{'z', 'a, b'}"),
    "w": ("map<text, frozen<list<int>>>", "{'x': [1, 2], 'y': [3]}"),
    "x": ("tuple<int, text>", "(1, 'one')"),
}


@pytest.fixture(scope="module")
def shell(contact, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")

    def run(script, code=0):
        found, text = shells.run(contact.host, contact.port, script + ";\n", home)
        assert found == code, text
        return text

    return run


@pytest.fixture(scope="module")
def every(session, keyspace):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    for table in ("every", "every_again"):
        session.execute(f"CREATE TABLE {keyspace}.{table} (k int PRIMARY KEY, {columns})")
    names, values = ", ".join(TYPES), ", ".join(value for _, value in TYPES.values())
    for k in (1, 2):
        session.execute(f"INSERT INTO {keyspace}.every (k, {names}) VALUES ({k}, {values})")
    session.execute(f"INSERT INTO {keyspace}.every (k) VALUES (3)")
    return f"{keyspace}.every"


@pytest.mark.parametrize(
    "options",
    [
        "HEADER = TRUE",
        "DELIMITER = '|' AND HEADER = TRUE",
        "NULL = 'nothing'",
        "QUOTE = '\"' AND ESCAPE = '\\'",
        "BOOLSTYLE = 'yes,no' AND DOUBLEPRECISION = 15",
        "PAGESIZE = 1 AND MAXREQUESTS = 1",
    ],
)
def test_all_types(shell, rows, session, every, tmp_path, options):
    file = tmp_path / "every.csv"
    options = f"{options} AND DATETIMEFORMAT = '%Y-%m-%d %H:%M:%S.%f%z'"
    assert "3 rows exported to 1 files" in shell(f"COPY {every} TO '{file}' WITH {options} AND NUMPROCESSES = 1")
    session.execute(f"TRUNCATE {every}_again")
    read = re.sub(r" AND (DOUBLEPRECISION|MAXREQUESTS) = \d+|PAGESIZE = 1 AND MAXREQUESTS = 1 AND ", "", options)
    out = shell(f"COPY {every}_again FROM '{file}' WITH {read} AND NUMPROCESSES = 1")
    assert "3 rows imported from 1 files" in out, out
    assert sorted(rows(f"SELECT * FROM {every}_again")) == sorted(rows(f"SELECT * FROM {every}"))


def test_many_rows(shell, rows, session, keyspace, tmp_path):
    session.execute(f"CREATE TABLE {keyspace}.many (k int, c int, v text, PRIMARY KEY (k, c))")
    file, again = tmp_path / "many.csv", tmp_path / "again.csv"
    file.write_text("".join(f"{i % 100},{i},value {i}\n" for i in range(20_000)))
    assert "20000 rows imported from 1 files" in shell(f"COPY {keyspace}.many FROM '{file}' WITH NUMPROCESSES = 2 AND CHUNKSIZE = 1000")
    assert rows(f"SELECT count(*) FROM {keyspace}.many") == [(20_000,)]
    assert "20000 rows exported to 1 files" in shell(f"COPY {keyspace}.many TO '{again}' WITH NUMPROCESSES = 2")
    assert sorted(again.read_text().splitlines()) == sorted(file.read_text().splitlines())


def test_parts(shell, rows, session, keyspace, tmp_path):
    session.execute(f"CREATE TABLE {keyspace}.parts (k int PRIMARY KEY, v text, w text)")
    file = tmp_path / "parts.csv"
    file.write_text("k,v,w\n" + "".join(f"{i},v{i},w{i}\n" for i in range(50)))
    out = shell(f"COPY {keyspace}.parts (k, v, w) FROM '{file}' WITH HEADER = TRUE AND SKIPROWS = 10 AND MAXROWS = 20 AND SKIPCOLS = 'w'")
    assert "10 rows imported from 1 files" in out and "(10 skipped)" in out
    found = rows(f"SELECT k, v, w FROM {keyspace}.parts")
    assert sorted(k for k, _, _ in found) == list(range(10, 20)) and all(w is None and v == f"v{k}" for k, v, w in found)
    out = shell(f"COPY {keyspace}.parts (v, k) TO STDOUT WITH NUMPROCESSES = 1")
    assert sorted(line for line in out.splitlines() if line.startswith("v")) == sorted(f"v{k},{k}" for k in range(10, 20))


def test_ttl_and_plain_statements(shell, rows, session, keyspace, tmp_path):
    session.execute(f"CREATE TABLE {keyspace}.times (k int PRIMARY KEY, v text)")
    file = tmp_path / "times.csv"
    file.write_text("1,a\n2,b\n")
    out = shell(f"COPY {keyspace}.times FROM '{file}' WITH TTL = 1000 AND PREPAREDSTATEMENTS = FALSE AND NUMPROCESSES = 1")
    assert "2 rows imported from 1 files" in out
    assert all(900 < left <= 1000 for (left,) in rows(f"SELECT ttl(v) FROM {keyspace}.times"))


def test_counters(shell, rows, session, keyspace, tmp_path):
    session.execute(f"CREATE TABLE {keyspace}.counts (k int PRIMARY KEY, c counter)")
    file = tmp_path / "counts.csv"
    file.write_text("1,5\n2,7\n")
    assert "2 rows imported from 1 files" in shell(f"COPY {keyspace}.counts FROM '{file}' WITH NUMPROCESSES = 1")
    assert sorted(rows(f"SELECT k, c FROM {keyspace}.counts")) == [(1, 5), (2, 7)]


def test_rows_that_do_not_fit(shell, rows, session, keyspace, tmp_path):
    session.execute(f"CREATE TABLE {keyspace}.wrong (k int PRIMARY KEY, v int)")
    file, refused = tmp_path / "wrong.csv", tmp_path / "refused.csv"
    file.write_text("1,1\n2,two\n3,3\n")
    shell(f"COPY {keyspace}.wrong FROM '{file}' WITH ERRFILE = '{refused}' AND NUMPROCESSES = 1", code=2)
    assert refused.read_text().strip() == "2,two"
    assert sorted(rows(f"SELECT k FROM {keyspace}.wrong")) == [(1,), (3,)]
