"""The commit log's options on a whole server: compression, change data capture, archiving."""

import datetime
import os
import re
import shutil
import time

import pytest
from cassandra import WriteFailure
from cassandra.cluster import Cluster

from server import Server

KEYSPACE = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


def connected(server):
    return Cluster([server.host], port=server.port)


@pytest.mark.parametrize("compressor", ["LZ4", "Snappy", "Deflate", "Zstd"])
def test_a_killed_node_replays_its_compressed_log(tmp_path, compressor):
    settings = ["commitlog_segment_size=1MiB", f"commitlog_compression=[{{class_name: {compressor}Compressor}}]"]
    server = Server(tmp_path / "data", settings).start()
    with connected(server) as cluster:
        session = cluster.connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v blob)")
        insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
        rows = {k: os.urandom(300_000) if k % 4 == 0 else bytes([k]) * 300_000 for k in range(12)}
        for row in rows.items():
            session.execute(insert, row)
        setting = session.execute("SELECT value FROM system_views.settings WHERE name = 'commitlog_compression.class_name'")
        assert setting.one().value == f"{compressor}Compressor"
    server.kill()
    heads = [path.read_bytes()[:100] for path in (tmp_path / "data" / "commitlog").glob("CommitLog-*.log")]
    assert sum(f'"compressionClass":"{compressor}Compressor"'.encode() in head for head in heads) > 1
    server.start()
    with connected(server) as cluster:
        assert dict(cluster.connect().execute("SELECT k, v FROM ks.t")) == rows
    assert server.stop() == 0, server.log_tail()


@pytest.mark.parametrize(
    "setting, why",
    [
        ("commitlog_compression=[{class_name: BrotliCompressor}]", "commitlog_compression: there is no compressor BrotliCompressor"),
        (
            "commitlog_compression=[{class_name: SnappyCompressor, parameters: [{level: 3}]}]",
            "commitlog_compression: SnappyCompressor has no parameter level",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path, setting, why):
    with pytest.raises(RuntimeError, match=re.escape(why)):
        Server(tmp_path / "data", [setting]).start()


def test_changes_are_captured(tmp_path):
    raw = tmp_path / "data" / "cdc_raw"
    settings = ["cdc_enabled=true", "commitlog_segment_size=1MiB", "cdc_total_space=3MiB", "cdc_free_space_check_interval=50ms"]
    server = Server(tmp_path / "data", settings).start()
    with connected(server) as cluster:
        session = cluster.connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v blob) WITH cdc = true")
        session.execute("CREATE TABLE ks.other (k int PRIMARY KEY, v blob)")
        stored = session.execute("SELECT table_name, cdc FROM system_schema.tables WHERE keyspace_name = 'ks'")
        assert dict(stored) == {"t": True, "other": False}
        insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
        taken = 0
        with pytest.raises(WriteFailure):
            while taken < 100:
                session.execute(insert, (taken, b"captured" * 10_000))
                taken += 1
        assert taken > 20
        other = session.prepare("INSERT INTO ks.other (k, v) VALUES (?, ?)")
        for k in range(15):
            session.execute(other, (k, b"not captured" * 7_000))
        with pytest.raises(WriteFailure):
            session.execute("BEGIN BATCH INSERT INTO ks.other (k) VALUES (2); DELETE FROM ks.t WHERE k = 1; APPLY BATCH")
        indexes = sorted(raw.glob("*_cdc.idx"))
        assert len(indexes) >= 2 and re.fullmatch(r"\d+\nCOMPLETED", indexes[0].read_text())
        first = raw / indexes[0].name.replace("_cdc.idx", ".log")
        assert b"captured" * 100 in first.read_bytes()
        for index in indexes[:2]:
            index.unlink()
            (raw / index.name.replace("_cdc.idx", ".log")).unlink()
        for _ in range(100):
            time.sleep(0.1)
            try:
                session.execute(insert, (1000, b"again"))
                break
            except WriteFailure:
                pass
        session.execute(insert, (1001, b"again"))
        session.execute("ALTER TABLE ks.t WITH cdc = false")
        session.execute("UPDATE ks.t SET v = 0x02 WHERE k = 1002")
    server.kill()
    server.start()
    with connected(server) as cluster:
        rows = {row.k for row in cluster.connect().execute("SELECT k FROM ks.t")}
        assert rows == {*range(taken), 1000, 1001, 1002}
    assert server.stop() == 0, server.log_tail()
    assert "writes to tables with cdc = true are refused" in server.log_tail(100_000)
    names = {path.name for path in raw.iterdir()}
    assert {name.replace(".log", "_cdc.idx") for name in names if name.endswith(".log")} == {name for name in names if name.endswith(".idx")}


def archiving(directory, **properties):
    """The file beside a cassandra.yaml; gives the flags that name the latter."""
    directory.mkdir(exist_ok=True)
    (directory / "cassandra.yaml").write_text("cluster_name: Test Cluster\n")
    lines = [f"{name}={value}" for name, value in properties.items()]
    (directory / "commitlog_archiving.properties").write_text("\n".join(["# as in Cassandra", *lines, ""]))
    return ["--config", str(directory / "cassandra.yaml")]


def test_a_point_in_time_is_restored_from_the_archive(tmp_path):
    archive, conf = tmp_path / "archive", tmp_path / "conf"
    archive.mkdir()
    data = tmp_path / "data"
    flags = archiving(conf, archive_command=f"cp %path {archive}/%name")
    server = Server(data, ["commitlog_segment_size=1MiB"], flags=flags).start()
    with connected(server) as cluster:
        session = cluster.connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v blob)")
        insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
        for k in range(60):
            session.execute(insert, (k, b"before" * 10_000))
        session.execute("CREATE TABLE ks.truncated (k int PRIMARY KEY)")
        session.execute("INSERT INTO ks.truncated (k) VALUES (1)")
    server.kill()
    server.start()
    with connected(server) as cluster:
        session = cluster.connect("ks")
        session.execute("UPDATE t SET v = 0x01 WHERE k = 0")
        time.sleep(0.01)
        point = datetime.datetime.now(datetime.timezone.utc)
        time.sleep(0.01)
        for k in range(40, 80):
            session.execute("INSERT INTO t (k, v) VALUES (%s, 0x02)", (k,))
        session.execute("DELETE FROM t WHERE k = 1")
        session.execute("TRUNCATE truncated")
        session.execute("ALTER TABLE t ADD late int")
        session.execute("CREATE TABLE after_it (k int PRIMARY KEY)")
    assert server.stop() == 0, server.log_tail()
    assert not list((data / "commitlog").glob("CommitLog*"))
    archived = sorted(path.name for path in archive.iterdir())
    assert len(archived) >= 5

    shutil.rmtree(data)
    restore = {
        "restore_command": "cp -f %from %to",
        "restore_directories": archive,
        "restore_point_in_time": point.strftime("%Y:%m:%d %H:%M:%S.%f"),
    }
    archiving(conf, **restore)
    server.start()
    for life in range(3):
        with connected(server) as cluster:
            session = cluster.connect("ks")
            rows = {row.k: row.v for row in session.execute("SELECT * FROM t")}
            later = {100 + past: b"\x03" for past in range(life)}
            assert rows == {0: b"\x01", **{k: b"before" * 10_000 for k in range(1, 60)}, **later}
            assert [row.k for row in session.execute("SELECT k FROM truncated")] == [1]
            tables = {row.table_name for row in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks'")}
            assert tables == {"t", "truncated"}
            # what is written now is later than the point, and kept all the same
            session.execute("INSERT INTO t (k, v) VALUES (%s, 0x03)", (100 + life,))
        server.kill()
        server.start()
    assert server.stop() == 0, server.log_tail()
    assert "restore_point_in_time is set" in server.log_tail(100_000)
    assert archived == sorted(path.name for path in archive.iterdir())


def test_a_failing_archive_command_keeps_the_segments(tmp_path):
    flags = archiving(tmp_path / "conf", archive_command="cp %path /nowhere/%name")
    server = Server(tmp_path / "data", ["commitlog_segment_size=1MiB"], flags=flags).start()
    with connected(server) as cluster:
        session = cluster.connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v blob)")
        for k in range(40):
            session.execute("INSERT INTO ks.t (k, v) VALUES (%s, %s)", (k, b"x" * 60_000))
    assert server.stop() == 0, server.log_tail()
    kept = list((tmp_path / "data" / "commitlog").glob("CommitLog*"))
    assert len(kept) >= 3
    assert "/nowhere/" in server.log_tail(100_000) and "its file stays" in server.log_tail(100_000)
    archive = tmp_path / "archive"
    archive.mkdir()
    archiving(tmp_path / "conf", archive_command=f"/bin/ln %path {archive}/%name")
    server.start()
    with connected(server) as cluster:
        assert cluster.connect().execute("SELECT count(*) FROM ks.t").one()[0] == 40
    assert server.stop() == 0, server.log_tail()
    assert {path.name for path in kept} <= {path.name for path in archive.iterdir()}
    assert not list((tmp_path / "data" / "commitlog").glob("CommitLog*"))


@pytest.mark.parametrize(
    "properties, why",
    [
        ({"restore_point_in_time": "2024-01-01"}, "commitlog_archiving.properties: restore_point_in_time: '2024-01-01'"),
        ({"precision": "NANOSECONDS"}, "precision: NANOSECONDS is not supported"),
        ({"restore_directories": "{tmp}/dir"}, "there is no restore_command"),
        ({"restore_directories": "{tmp}/dir", "restore_command": "cp %from %to"}, "README cannot be restored"),
        ({"snapshot_commitlog_position": "x"}, "snapshot_commitlog_position: 'x'"),
    ],
)
def test_archiving_that_cannot_be_is_refused_by_name(tmp_path, properties, why):
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "README").write_text("not a segment")
    properties = {name: value.replace("{tmp}", str(tmp_path)) for name, value in properties.items()}
    with pytest.raises(RuntimeError, match=re.escape(why)):
        Server(tmp_path / "data", flags=archiving(tmp_path / "conf", **properties)).start()
