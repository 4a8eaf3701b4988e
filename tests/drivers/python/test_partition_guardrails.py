"""Guardrails of partitions in SSTables: what the log says of flushes and compactions, against what a Cassandra's log said of the same.

Recorded with a Cassandra started with SETTINGS:
    python tests/drivers/python/test_partition_guardrails.py HOST PORT SYSTEM_LOG NODETOOL... >tests/drivers/python/partition_guardrails.txt
"""

import pathlib
import re
import subprocess
import sys
import time

from cassandra.cluster import Cluster

from server import Server

SETTINGS = [
    "partition_size_warn_threshold=1KiB", "partition_size_fail_threshold=4KiB",
    "partition_tombstones_warn_threshold=3", "partition_tombstones_fail_threshold=6",
]
OPTIONS = "WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"
FLUSH, COMPACT, WAIT = "flush guarded", "compact guarded", "wait"
TIMES = "USING TIMESTAMP 1700000000000000"
STEPS = [
    "CREATE KEYSPACE guarded WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    f"CREATE TABLE guarded.sizes (a text, b int, c int, v text, PRIMARY KEY ((a, b), c)) {OPTIONS}",
    f"CREATE TABLE guarded.dead (k int, c int, s int static, v int, l list<int>, PRIMARY KEY (k, c)) {OPTIONS}",
    # sizes: below, over the first, over the second threshold; all of one SSTable alone and both together
    *[f"INSERT INTO guarded.sizes (a, b, c, v) VALUES ('{key}', 1, {c}, '{'x' * size}') {TIMES}"
      for key, count, size in [("small", 1, 900), ("warn it", 2, 700), ("f:ail", 6, 1000), ("", 1, 1100)] for c in range(count)],
    FLUSH,
    *[f"INSERT INTO guarded.sizes (a, b, c, v) VALUES ('{key}', 1, {c}, '{'y' * 600}') {TIMES}" for key in ["small", "warn it"] for c in range(5, 9)],
    FLUSH, COMPACT,
    # every kind of tombstone: rows, ranges that touch, cells, collections, the partition, what expires
    *[f"DELETE FROM guarded.dead WHERE k = 1 AND c = {c}" for c in range(3)],
    *[f"DELETE FROM guarded.dead WHERE k = 2 AND c = {c}" for c in range(4)],
    *[f"DELETE FROM guarded.dead WHERE k = 3 AND c = {c}" for c in range(7)],
    *[f"DELETE FROM guarded.dead USING TIMESTAMP {1000 + c} WHERE k = 4 AND c >= {c} AND c < {c + 1}" for c in range(3)],
    *[f"DELETE v, l FROM guarded.dead WHERE k = 5 AND c = {c}" for c in range(2)],
    "DELETE FROM guarded.dead USING TIMESTAMP 1000 WHERE k = 6",
    *[f"INSERT INTO guarded.dead (k, c, v, l) VALUES (6, {c}, 1, [1, 2])" for c in range(3)],
    "DELETE s FROM guarded.dead WHERE k = 6",
    *[f"INSERT INTO guarded.dead (k, c, v) VALUES (7, {c}, 1) USING TTL 1" for c in range(2)],
    *[f"INSERT INTO guarded.dead (k, c, v) VALUES (8, {c}, 1) USING TTL 86400" for c in range(9)],
    *[f"INSERT INTO guarded.dead (k, c, v) VALUES (9, {c}, null)" for c in range(5)],
    WAIT, FLUSH,
    *[f"DELETE FROM guarded.dead WHERE k = 1 AND c = {c}" for c in range(3, 9)],
    "DELETE FROM guarded.dead WHERE k = 3",
    FLUSH, COMPACT,
]


def carry_out(session, nodetool):
    for step in STEPS:
        if step == WAIT:
            time.sleep(1.5)  # the TTL of a second has ended
        elif step in (FLUSH, COMPACT):
            # the order of tables is nobody's promise
            for table in ("sizes", "dead"):
                nodetool(*step.split(), table)
        else:
            session.execute(step)


def told(log):
    """Level and text of each line about a partition."""
    lines = re.findall(r"\b(WARN|ERROR)\b.*?(Guardrail partition_.*)", re.sub(r"\x1b\[[0-9;]*m", "", log))
    return [f"{level} {re.sub(r'on sstable [^ ]*-Data.db', 'on sstable FILE', text)}" for level, text in lines if " guarded." in text]


def test_what_the_log_says_is_what_cassandra_says(tmp_path):
    expected = pathlib.Path(__file__).with_name("partition_guardrails.txt").read_text().splitlines()
    server = Server(tmp_path / "data", SETTINGS).start()

    def nodetool(*arguments):
        assert server.nodetool(*arguments).returncode == 0

    with Cluster([server.host], port=server.port) as cluster:
        carry_out(cluster.connect(), nodetool)
    assert server.stop() == 0, server.log_tail()
    assert told(server.log.read_text()) == expected


if __name__ == "__main__":
    host, port, system_log, *tool = sys.argv[1:]
    with Cluster([host], port=int(port)) as cluster:
        carry_out(cluster.connect(), lambda *arguments: subprocess.run([*tool, *arguments], check=True, stdout=subprocess.DEVNULL))
    print("\n".join(told(pathlib.Path(system_log).read_text())))
