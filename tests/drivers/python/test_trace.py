"""Tracing, warnings, custom payloads, status of the node."""

import uuid

import pytest
from cassandra.query import SimpleStatement


def test_query_trace(session, table):
    name = table("k int, c int, v int, PRIMARY KEY (k, c)")
    for c in range(5):
        session.execute(f"INSERT INTO {name} (k, c, v) VALUES (1, {c}, 1)")
    result = session.execute(SimpleStatement(f"SELECT * FROM {name} WHERE k = 1"), trace=True)
    trace = result.get_query_trace(max_wait_sec=10)
    assert trace.request_type == "Execute CQL3 query" and trace.duration.total_seconds() > 0
    assert trace.parameters["query"] == f"SELECT * FROM {name} WHERE k = 1"
    assert trace.coordinator is not None and trace.client is not None
    assert len(trace.events) >= 3
    assert all(event.source_elapsed is not None and event.description for event in trace.events)
    assert any(word in event.description for event in trace.events for word in ("memtable", "Memtable"))


def test_traces_of_prepared_statements_and_batches(session, table):
    name = table("k int PRIMARY KEY")
    insert = session.prepare(f"INSERT INTO {name} (k) VALUES (?)")
    trace = session.execute(insert, (1,), trace=True).get_query_trace(max_wait_sec=10)
    assert trace.request_type == "Execute CQL3 prepared query"
    from cassandra.query import BatchStatement

    batch = BatchStatement()
    batch.add(insert, (2,))
    trace = session.execute(batch, trace=True).get_query_trace(max_wait_sec=10)
    assert trace.request_type == "Execute batch of CQL3 queries"


def test_untraced_requests_leave_nothing(session, rows):
    before = rows("SELECT count(*) FROM system_traces.sessions")
    for _ in range(20):
        session.execute("SELECT key FROM system.local")
    assert rows("SELECT count(*) FROM system_traces.sessions") == before
    assert rows(f"SELECT * FROM system_traces.sessions WHERE session_id = {uuid.uuid4()}") == []


def test_warning_of_an_unrestricted_aggregate(session, table):
    name = table("k int PRIMARY KEY")
    future = session.execute_async(f"SELECT count(*) FROM {name}")
    future.result()
    assert future.warnings and "Aggregation query used without partition key" in future.warnings[0]


@pytest.mark.parametrize("version", [4, 5])
def test_custom_payload_is_accepted(contact, version):
    with contact.cluster(protocol_version=version) as cluster:
        session = cluster.connect()
        assert session.execute("SELECT key FROM system.local", custom_payload={"reason": b"\1\2"}).one().key == "local"
