"""Figures of system_views that follow what is done: batches, reads, writes, clients, snapshots, logs."""

import pytest
from conftest import Contact


@pytest.fixture
def view(session):
    """The row of a virtual table for a table."""

    def get(name, table):
        keyspace, table = table.split(".")
        return session.execute(f"SELECT * FROM system_views.{name} WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'").one()

    return get


def test_reads_and_writes_are_counted(session, table, view):
    name = table("k int, c int, v int, PRIMARY KEY (k, c)")
    for c in range(10):
        session.execute(f"INSERT INTO {name} (k, c, v) VALUES (1, {c}, 1)")
    for c in range(3):
        session.execute(f"DELETE FROM {name} WHERE k = 1 AND c = {c}")
    assert len(list(session.execute(f"SELECT * FROM {name} WHERE k = 1"))) == 7
    assert len(list(session.execute(f"SELECT * FROM {name}"))) == 7
    assert view("local_write_latency", name).count == 13 and view("coordinator_write_latency", name).count == 13
    assert view("local_read_latency", name).count == 1 and view("coordinator_scan_latency", name).count == 1
    live, dead = view("rows_per_read", name), view("tombstones_per_read", name)
    assert (live.count, live.max, dead.max) == (2, 7, 3)


def test_batches_are_counted(node):
    # a server of its own: the others have batches of any size
    with Contact(node.host, node.port).cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE k.plain (k int PRIMARY KEY, v int)")
        session.execute("CREATE TABLE k.counters (k int PRIMARY KEY, v counter)")

        def batch(kind, count, text):
            session.execute(f"BEGIN {kind} BATCH " + " ".join(text.format(k=k) for k in range(count)) + " APPLY BATCH")

        batch("", 41, "INSERT INTO k.plain (k, v) VALUES ({k}, 1)")
        batch("UNLOGGED", 42, "INSERT INTO k.plain (k, v) VALUES ({k}, 1)")
        batch("COUNTER", 43, "UPDATE k.counters SET v = v + 1 WHERE k = {k}")
        found = {row.name: row.max for row in session.execute("SELECT name, max FROM system_views.batch_metrics")}
    # kept in buckets: Cassandra says their upper bounds
    assert 41 <= found["partitions_per_logged_batch"] <= 50
    assert 42 <= found["partitions_per_unlogged_batch"] <= 50
    assert 43 <= found["partitions_per_counter_batch"] <= 50


def test_statements_are_counted(session, table):
    def metrics():
        return {row.name: row.value for row in session.execute("SELECT * FROM system_views.cql_metrics")}

    name = table("k int PRIMARY KEY")
    before = metrics()
    insert = session.prepare(f"INSERT INTO {name} (k) VALUES (?)")
    for k in range(10):
        session.execute(insert, (k,))
    for k in range(5):
        session.execute(f"INSERT INTO {name} (k) VALUES ({k})")
    after = metrics()
    assert after["prepared_statements_executed"] - before["prepared_statements_executed"] == 10
    assert after["regular_statements_executed"] - before["regular_statements_executed"] >= 5
    assert after["prepared_statements_count"] >= 1


def test_this_client_is_listed(session):
    clients = list(session.execute("SELECT * FROM system_views.clients"))
    mine = [client for client in clients if client.driver_name == "DataStax Python Driver"]
    assert mine and all(client.connection_stage == "ready" and client.protocol_version == 5 for client in mine)
    assert all(client.client_options["CQL_VERSION"] == "3.4.7" for client in mine)


def test_pages_of_a_virtual_table(session):
    from cassandra.query import SimpleStatement

    for query in ("SELECT name FROM system_views.settings", "SELECT column_name FROM system_virtual_schema.columns"):
        whole = [row[0] for row in session.execute(SimpleStatement(query, fetch_size=None))]
        paged = [row[0] for row in session.execute(SimpleStatement(query, fetch_size=7))]
        assert paged == whole and len(whole) > 400


def test_the_log_is_there(session, is_helenus):
    if not is_helenus:
        pytest.skip("Cassandra keeps its log only when logback.xml says so")
    lines = list(session.execute("SELECT * FROM system_views.system_logs"))
    assert [line.timestamp for line in lines] == sorted((line.timestamp for line in lines), reverse=True)
    assert all(line.level and line.logger for line in lines)
