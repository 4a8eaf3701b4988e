"""cqlsh 6.2 from PyPI against the server: DESCRIBE, COPY, TRACING, PAGING, CONSISTENCY, EXPAND, SOURCE."""

import csv
import pathlib
import re
import subprocess
import sys

import pytest

CQLSH = pathlib.Path(sys.executable).with_name("cqlsh")
SECONDS = 120


@pytest.fixture(scope="module")
def shell(contact, tmp_path_factory):
    """Runs a script of cqlsh and hands back standard output; what goes to standard error fails the test unless asked for."""
    home = tmp_path_factory.mktemp("home")

    def run(script, errors=False):
        command = [str(CQLSH), "--no-color", "--request-timeout=30", "--connect-timeout=30", contact.host, str(contact.port)]
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        done = subprocess.run(command, input=script.rstrip().removesuffix(";") + ";\n", capture_output=True, text=True, timeout=SECONDS, env=environment)
        complaints = [line for line in done.stderr.splitlines() if line.strip() and "Warning" not in line and "warn(" not in line]
        if errors:
            return done.stdout + done.stderr
        assert complaints == [] and done.returncode == 0, done.stderr
        return "".join(line for line in done.stdout.splitlines(True) if not line.startswith("WARNING: cqlsh was built"))

    return run


@pytest.fixture(scope="module")
def each(shell):
    """Runs scripts in one process, which takes a second to start, and hands back the output of each."""

    def run(*scripts):
        return re.split(r"^\[cqlsh .*\]\n", shell(";\nSHOW VERSION;\n".join(scripts)), flags=re.MULTILINE)

    return run


@pytest.fixture(scope="module")
def people(shell, keyspace):
    shell(
        f"CREATE TYPE {keyspace}.place (street text, number int);\n"
        f"CREATE TABLE {keyspace}.people (id int PRIMARY KEY, name text, tags set<text>, born date, home frozen<place>);\n"
        + "".join(
            f"INSERT INTO {keyspace}.people (id, name, tags, born, home) VALUES"
            f" ({i}, 'name {i}', {{'a', 'b{i}'}}, '2000-01-{i + 1:02}', {{street: 'High', number: {i}}});\n"
            for i in range(25)
        )
    )
    return f"{keyspace}.people"


def test_greeting_and_version(shell):
    out = shell("SHOW VERSION;\nSHOW HOST")
    assert "CQL spec 3.4.7" in out and "Native protocol v5" in out and "Connected to" in out


def test_describe_lists(each, keyspace, people):
    cluster, keyspaces, tables, own_tables, types = each(
        "DESCRIBE CLUSTER", "DESCRIBE KEYSPACES", "DESCRIBE TABLES", f"USE {keyspace}; DESCRIBE TABLES", f"USE {keyspace};\nDESCRIBE TYPES"
    )
    assert "Cluster: " in cluster and "Partitioner: Murmur3Partitioner" in cluster
    for name in ("system", "system_schema", "system_auth", "system_traces", "system_views", keyspace):
        assert name in keyspaces
    assert f"Keyspace {keyspace}" in tables and "people" in own_tables
    assert "place" in types


def test_describe_keyspace_table_and_type(shell, each, keyspace, people):
    out, table, own_type, local = each(
        f"DESCRIBE KEYSPACE {keyspace}", f"DESCRIBE TABLE {people}", f"DESCRIBE TYPE {keyspace}.place", "DESCRIBE TABLE system.local"
    )
    for text in (
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': '1'}}",
        f"CREATE TYPE {keyspace}.place (\n    street text,\n    number int\n);",
        f"CREATE TABLE {people} (\n    id int PRIMARY KEY,\n    born date,\n    home frozen<place>,\n    name text,\n    tags set<text>\n) WITH",
    ):
        assert text in out
    assert "AND compaction = {'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy'" in table
    assert "CREATE TYPE" in own_type
    assert "CREATE TABLE system.local" in local
    assert "not found" in shell(f"DESCRIBE TABLE {keyspace}.nosuch", errors=True)


def test_what_describe_prints_makes_the_same_schema(shell, keyspace, people):
    described = shell(f"DESCRIBE KEYSPACE {keyspace}")
    copy = described.replace(f"KEYSPACE {keyspace} ", f"KEYSPACE {keyspace}_copy ").replace(f" {keyspace}.", f" {keyspace}_copy.")
    shell(copy)
    again = shell(f"DESCRIBE KEYSPACE {keyspace}_copy").replace(f"{keyspace}_copy", keyspace)
    shell(f"DROP KEYSPACE {keyspace}_copy")
    assert again == described


def test_select_layout(shell, people):
    out = shell(f"SELECT id, name, born, tags, home FROM {people} WHERE id = 7")
    assert "  7 | name 7 | 2000-01-08 | {'a', 'b7'} | {street: 'High', number: 7}" in out
    assert "(1 rows)" in out


def test_expand(shell, people):
    out = shell(f"EXPAND ON;\nSELECT id, name FROM {people} WHERE id = 7")
    assert "@ Row 1" in out and "name | name 7" in out


def test_paging(shell, people):
    out = shell(f"PAGING 10;\nSELECT id FROM {people};\n\n\n")
    assert "Page size: 10" in out and "(25 rows)" in out
    out = shell(f"PAGING OFF;\nSELECT count(*) FROM {people}")
    assert "    25" in out


def test_consistency(shell, people):
    out = shell(f"CONSISTENCY;\nCONSISTENCY QUORUM;\nCONSISTENCY;\nSERIAL CONSISTENCY LOCAL_SERIAL;\nSELECT id FROM {people} WHERE id = 1")
    assert "Current consistency level is ONE." in out
    assert "Consistency level set to QUORUM." in out and "Current consistency level is QUORUM." in out
    assert "(1 rows)" in out


def test_tracing(shell, people):
    out = shell(f"TRACING ON;\nSELECT id FROM {people} WHERE id = 1;\nTRACING OFF")
    assert "Tracing session: " in out and "Execute CQL3 query" in out and "Request complete" in out


def test_source(shell, people, tmp_path):
    script = tmp_path / "script.cql"
    script.write_text(f"SELECT name\n  FROM {people}\n  WHERE id = 3; -- a comment\n/* another */ SELECT name FROM {people} WHERE id = 4;\n")
    out = shell(f"SOURCE '{script}'")
    assert "name 3" in out and "name 4" in out


def test_errors_are_shown(shell, people):
    assert "SyntaxException" in shell("SELEC 1;", errors=True)
    assert "InvalidRequest" in shell(f"SELECT nosuch FROM {people};", errors=True)


def test_copy_out_and_in(shell, keyspace, people, tmp_path):
    out_file, again_file = tmp_path / "people.csv", tmp_path / "again.csv"
    out = shell(f"COPY {people} (id, name, tags, born, home) TO '{out_file}' WITH HEADER = TRUE AND NUMPROCESSES = 2")
    assert "25 rows exported to 1 files" in out
    with open(out_file, newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["id", "name", "tags", "born", "home"] and len(lines) == 26
    copy = f"{keyspace}.copied"
    shell(f"CREATE TABLE {copy} (id int PRIMARY KEY, name text, tags set<text>, born date, home frozen<place>)".replace("<place>", f"<{keyspace}.place>"))
    out = shell(f"COPY {copy} (id, name, tags, born, home) FROM '{out_file}' WITH HEADER = TRUE AND NUMPROCESSES = 2")
    assert "25 rows imported from 1 files" in out
    shell(f"COPY {copy} (id, name, tags, born, home) TO '{again_file}' WITH HEADER = TRUE AND NUMPROCESSES = 2")
    assert sorted(again_file.read_text().splitlines()) == sorted(out_file.read_text().splitlines())
