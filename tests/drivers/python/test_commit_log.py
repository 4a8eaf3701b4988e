"""The commit log's options on a whole server: compression, change data capture, archiving."""

import os
import re
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
