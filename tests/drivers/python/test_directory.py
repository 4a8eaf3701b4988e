"""Directories that a real Cassandra left (testdata/directories, recorded by tests/oracle/record_directory), and those that earlier commits of
this program left (testdata/directories/own, recorded by tests/record_directory), opened as they are."""

import hashlib
import json
import os
import pathlib
import shutil
import tarfile
import tempfile

import pytest
import server as helenus
from cassandra.cluster import Cluster

DIRECTORIES = pathlib.Path(__file__).resolve().parents[3] / "testdata" / "directories"
NOBODY = 65534
FORMATS = sorted(path.name.split(".")[0] for path in DIRECTORIES.glob("*.tar.gz"))
OWN = sorted(path.name.removesuffix(".tar.gz") for path in (DIRECTORIES / "own").glob("*.tar.gz"))


def extracted(name, target):
    with tarfile.open(DIRECTORIES / f"{name}.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target


def content(server, tables):
    found = {}
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        for table in tables:
            found[table] = sorted(repr(tuple(row)) for row in session.execute(f"SELECT * FROM {table}"))
        for table in ["ks.kv", "ks.wide"]:
            found[table] += sorted(str(row[0]) for row in session.execute(f"SELECT writetime(v) FROM {table}"))
        found["schema"] = [row.create_statement for row in session.execute("DESCRIBE SCHEMA")]
    return found


def by_index(server, clauses):
    """What each clause, which an index answers, gives."""
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        return [[clause, [repr(tuple(row)) for row in session.execute(f"SELECT * FROM {clause}")]] for clause in clauses]


def listing(directory):
    paths = sorted(directory.rglob("*"))
    stats = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths]
    return stats, [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()]


def make_unwritable(directory):
    for path in [directory, *directory.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.mark.parametrize("name", FORMATS)
def test_read_only_touches_nothing(name, tmp_path):
    directory = extracted(name, tmp_path / "cassandra")
    want = json.loads((DIRECTORIES / f"{name}.json").read_text())
    make_unwritable(directory)
    before = listing(directory)
    for data_dir in [directory, directory / "data"]:
        server = helenus.Server(data_dir, flags=["--read-only"], log=tmp_path / "log")
        server.start()
        assert content(server, [table for table in want if table != "schema"]) == want
        with Cluster([server.host], port=server.port) as cluster:
            session = cluster.connect()
            for refused in ["INSERT INTO ks.kv (k, v) VALUES (1, 'x')", "TRUNCATE ks.kv", "DROP TABLE ks.kv", "CREATE TABLE ks.x (k int PRIMARY KEY)"]:
                with pytest.raises(Exception, match="read-only"):
                    session.execute(refused)
        assert server.stop() == 0
        assert listing(directory) == before


@pytest.mark.parametrize("name", FORMATS)
def test_a_snapshot_of_a_table(name, tmp_path):
    directory = extracted(name, tmp_path / "cassandra")
    [table] = (directory / "data" / "ks").glob("kv-*")
    server = helenus.Server(table / "snapshots" / "before", flags=["--read-only"], log=tmp_path / "log")
    server.start()
    with Cluster([server.host], port=server.port) as cluster:
        assert len(list(cluster.connect().execute("SELECT * FROM ks.kv"))) == 118
        # what cqlsh and drivers know of the schema comes from system_schema
        assert list(cluster.metadata.keyspaces["ks"].tables["kv"].columns) == ["k", "v"]
    assert server.stop() == 0


def by_index_equals_filtered(session):
    """An index that Cassandra wrote gives what a filtered scan gives."""
    rows = list(session.execute("SELECT * FROM ks.idx"))
    for value in range(12):
        assert list(session.execute(f"SELECT * FROM ks.idx WHERE w = {value}")) == [row for row in rows if row.w == value]


@pytest.mark.parametrize("name", FORMATS)
def test_opened_written_and_opened_again(name, tmp_path):
    directory = extracted(name, tmp_path / "cassandra")
    want = json.loads((DIRECTORIES / f"{name}.json").read_text())
    tables = [table for table in want if table != "schema"]
    server = helenus.Server(directory, log=tmp_path / "log")
    server.start()
    assert content(server, tables) == want
    [table] = (directory / "data" / "ks").glob("kv-*")
    assert not list(table.glob("*_txn_*.log")) and not list(table.glob("*-900-*")), "the unfinished flush is taken back"
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        session.execute("INSERT INTO ks.kv (k, v) VALUES (1000, 'new')")
        by_index_equals_filtered(session)
        session.execute("INSERT INTO ks.idx (k, w) VALUES (1, 100)")
        by_index_equals_filtered(session)
        assert [row.k for row in session.execute("SELECT k FROM ks.idx WHERE w = 100")] == [1]
        session.execute("INSERT INTO ks.idx (k, w) VALUES (1, 1)")
    server.kill()
    server.start()
    after = content(server, tables)
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        by_index_equals_filtered(session)
        assert list(session.execute("SELECT k FROM ks.idx WHERE w = 100")) == []
        session.execute("DELETE FROM ks.base WHERE k = 1")
        assert 1 not in [row.k for row in session.execute("SELECT k FROM ks.base_by_v")]
        session.execute("DROP MATERIALIZED VIEW ks.base_by_v")
        assert list(session.execute("SELECT * FROM system.built_views")) == []
    assert server.stop() == 0
    assert after["schema"] == want["schema"]
    assert len(after["ks.kv"]) == len(want["ks.kv"]) + 2
    assert {table: after[table] for table in tables if table not in ("ks.kv", "ks.idx")} == {
        table: want[table] for table in tables if table not in ("ks.kv", "ks.idx")
    }


@pytest.mark.parametrize("name", OWN)
def test_a_directory_of_an_earlier_commit(name, tmp_path):
    """What docs/files.md promises: rows, write times, indexes and schema are there, after a kill and with the commit log replayed; the
    directory is written, killed again, compacted, and opened again."""
    directory = extracted(f"own/{name}", tmp_path / "earlier")
    want = json.loads((DIRECTORIES / f"own/{name}.json").read_text())
    wanted_by_index = want.pop("by index")
    tables, clauses = [table for table in want if table != "schema"], [clause for clause, _ in wanted_by_index]
    settings = ["materialized_views_enabled=true", "user_defined_functions_enabled=true"]
    server = helenus.Server(directory, settings=settings, log=tmp_path / "log").start()
    assert content(server, tables) == want and by_index(server, clauses) == wanted_by_index
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        session.execute("INSERT INTO ks.trunc (k, v) VALUES (-1, 1)")
        want["ks.trunc"] = sorted([*want["ks.trunc"], "(-1, 1)"])
    server.kill()
    server.start()
    assert server.nodetool("compact").returncode == 0
    assert content(server, tables) == want and by_index(server, clauses) == wanted_by_index
    assert server.stop() == 0


@pytest.fixture
def open_path():
    """A directory that every user can look into."""
    with tempfile.TemporaryDirectory(prefix="helenus-") as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        yield path


def test_a_directory_that_cannot_be_written_is_refused(open_path):
    directory = extracted(FORMATS[0], open_path / "cassandra")
    make_unwritable(directory)
    # root writes everywhere: there somebody else starts the server
    as_somebody = {}
    if os.geteuid() == 0:
        as_somebody = {"user": NOBODY, "program": shutil.copy(helenus.binary(), open_path / "helenus")}
    with pytest.raises(RuntimeError, match="ermission denied"):
        helenus.Server(directory, log=open_path / "log", **as_somebody).start()
    server = helenus.Server(directory, flags=["--read-only"], log=open_path / "log", **as_somebody).start()
    want = json.loads((DIRECTORIES / f"{FORMATS[0]}.json").read_text())
    assert content(server, [table for table in want if table != "schema"]) == want
    assert server.stop() == 0
