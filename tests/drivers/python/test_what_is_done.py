"""Slow statements in the log, and samples of reads and writes: `slow_query_log_timeout`, `nodetool profileload`."""

import re
import threading
import time

import pytest
from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args

from server import Server


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("done") / "data", settings=["slow_query_log_timeout=1ms"]).start()
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE done WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE done.orders (id int, line int, v text, PRIMARY KEY (id, line))")
        session.execute("CREATE TABLE done.pairs (a text, b int, v text, PRIMARY KEY ((a, b)))")
        for line in range(100):
            session.execute("INSERT INTO done.orders (id, line, v) VALUES (1, %s, 'x')", (line,))
        session.execute("DELETE FROM done.orders WHERE id = 2 AND line = 1")
        yield server, session
    assert server.stop() == 0, server.log_tail()


def profile(server, session, *arguments):
    """The output of a run beside which one partition is read often, one seldom and one is written."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            for _ in range(4):
                session.execute("SELECT * FROM done.orders WHERE id = 1")
            session.execute("SELECT * FROM done.orders WHERE id = 2")
            session.execute("INSERT INTO done.pairs (a, b, v) VALUES ('x y', 7, 'z')")

    worker = threading.Thread(target=work)
    worker.start()
    try:
        done = server.nodetool("profileload", *arguments)
    finally:
        stop.set()
        worker.join()
    assert done.returncode == 0, done
    return done.stdout


def sections(text):
    """Rows of cells by the title above them."""
    parts = [part.splitlines() for part in text.strip("\n").split("\n\n")]
    return {part[0]: [line.split() for line in part[2:]] for part in parts}


def test_samples_of_all_tables(node):
    told = sections(profile(*node, "1500"))
    reads = told["Frequency of reads by partition:"]
    assert [row[:2] for row in reads[:2]] == [["done.orders", "1"], ["done.orders", "2"]]
    assert int(reads[0][2]) > 2 * int(reads[1][2]) and reads[0][3] == "0"
    writes = told["Frequency of writes by partition:"]
    assert writes[0][:3] == ["done.pairs", "x", "y:7"]
    assert told["Partitions read with the most rows:"][0] == ["done.orders", "1", "100"]
    assert told["Partitions read with the most tombstones:"][0] == ["done.orders", "2", "1"]
    # a driver that looks at the schema meanwhile may take longest
    longest = told["Longest read query times:"]
    assert longest and all(row[0] == "SELECT" for row in longest)
    assert any("done.orders" in row for row in longest)
    assert told["Frequency of CAS contention by partition:"] == []


def test_samples_of_a_table(node):
    told = sections(profile(*node, "done", "pairs", "700", "-a", "READS,WRITES", "-k", "1"))
    assert list(told) == ["Frequency of reads by partition:", "Frequency of writes by partition:"]
    assert told["Frequency of reads by partition:"] == [] and len(told["Frequency of writes by partition:"]) == 1


def test_scheduled_samples_go_to_the_log(node):
    server, session = node
    assert server.nodetool("profileload", "done", "orders", "200", "-i", "300", "-a", "READS").stdout == ""
    again = server.nodetool("profileload", "done", "orders", "200", "-i", "300").stdout
    assert again.startswith("Unable to schedule sampling for keyspace: done, table: orders due to existing samplings.")
    assert server.nodetool("profileload", "-l").stdout.split() == ["KEYSPACE", "TABLE", "done", "orders"]
    until = time.monotonic() + 10
    while "Frequency of reads by partition" not in server.log_tail(20_000) and time.monotonic() < until:
        session.execute("SELECT * FROM done.orders WHERE id = 1")
    assert "Frequency of reads by partition" in server.log_tail(20_000)
    assert server.nodetool("profileload", "done", "orders", "-t").stdout == ""
    assert "non-existent" in server.nodetool("profileload", "done", "orders", "-t").stdout


def test_slow_statements_are_one_line_each(node):
    server, session = node
    session.execute("INSERT INTO done.orders (id, line, v) VALUES (7, 1, 'slow')")
    slow = session.prepare("SELECT * FROM done.orders WHERE v = 'nowhere' ALLOW FILTERING")
    rows = session.prepare("INSERT INTO done.orders (id, line, v) VALUES (8, ?, 'y')")
    execute_concurrent_with_args(session, rows, [(line,) for line in range(10_000)])
    for _ in range(5):
        session.execute(slow)

    def told():
        plain = re.sub(r"\x1b\[[0-9;]*m", "", server.log_tail(500_000))
        return [line for line in plain.splitlines() if "slow statement" in line and "nowhere" in line]

    until = time.monotonic() + 20
    while sum(int(count) for line in told() for count in re.findall(r"\bcount=(\d+)", line)) < 5:
        assert time.monotonic() < until, told()
        time.sleep(0.2)
    # one line, or two when a report was due in between
    assert len(told()) <= 2 and all("min_ms=" in line and "tombstones=" in line for line in told())
