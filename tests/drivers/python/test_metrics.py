"""Metrics, dashboards, alert rules and the log: every name that a document, a dashboard or a rule uses is at /metrics, and back."""

import http.client
import json
import re

import pytest
from cassandra.cluster import Cluster
from server import ROOT, Server

NAME = re.compile(r"\b(?:cassandra|process)_[a-z_]+\b")
ENDS = re.compile(r"_(?:bucket|sum|count)$")


def get(node, path):
    connection = http.client.HTTPConnection(node.host, node.admin_port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    directory = tmp_path_factory.mktemp("metrics")
    flags = ["--log-format", "json", "--log-dir", str(directory / "logs")]
    server = Server(directory / "data", flags=flags).start()
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY)")
        session.execute("INSERT INTO shop.orders (id) VALUES (1)")
        assert list(session.execute("SELECT id FROM shop.orders WHERE id = 1"))
    yield server
    assert server.stop() == 0, server.log_tail()


@pytest.fixture(scope="module")
def families(node):
    status, text = get(node, "/metrics")
    assert status == 200
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    assert len(kinds) > 60
    return kinds


def test_the_document_has_every_metric(families):
    document = (ROOT / "docs/metrics.md").read_text()
    written = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", document, re.M))
    assert written == families


def test_dashboards_and_rules_use_names_that_are_there(families):
    files = [*(ROOT / "dist/grafana").glob("*.json"), ROOT / "dist/prometheus/alerts.yml"]
    assert len(files) == 3
    for path in files:
        text = path.read_text()
        if path.suffix == ".json":
            panels = json.loads(text)["panels"]
            expressions = [target["expr"] for panel in panels for target in panel["targets"]]
        else:
            expressions = re.findall(r"^    expr: (.*)$", text, re.M)
        assert len(expressions) > 10
        for expression in expressions:
            names = {name for name in NAME.findall(expression)}
            for name in names:
                is_part = ENDS.search(name) and families.get(ENDS.sub("", name)) == "histogram"
                assert is_part or name in families, (path.name, name)
            assert names or "up{" in expression, expression


def test_labels_of_rules_are_there(node):
    text = get(node, "/metrics")[1]
    for error in ("unavailable", "timeout", "failure", "overloaded", "server"):
        assert f'cassandra_client_errors_total{{error="{error}"}}' in text
    assert 'cassandra_streaming_sessions_ended_total{end="failure"}' in text
    for what in ("memtables", "chunk_cache", "bloom_filters", "compression_metadata", "requests_in_flight"):
        assert f'cassandra_memory_bytes{{what="{what}"}}' in text


def test_names_of_the_exporters(node):
    shop = 'keyspace="shop",table="orders"'
    for names, wanted in {
        "helenus": [f"cassandra_table_live_sstable_count{{{shop}}} 0"],
        "jmx_exporter": [
            f"cassandra_table_writelatency_seconds_count{{{shop}}} 1",
            f"cassandra_table_livesstablecount{{{shop}}} 0",
            'cassandra_clientrequest_latency_seconds_count{clientrequest="Read"} 1',
            'cassandra_cache_capacity{cache="KeyCache"}',
            'cassandra_threadpools_pendingtasks{threadpools="',
        ],
        "cassandra_exporter": [
            f'cassandra_table_operation_latency_seconds_count{{{shop},operation="write"}} 1',
            'cassandra_client_request_latency_seconds{operation="read",quantile="0.99"}',
            "cassandra_storage_load_bytes",
        ],
        "mcac": [
            'mcac_client_request_latency_bucket{cluster="Test Cluster",dc="datacenter1",rack="rack1",instance="127.0.0.1",request_type="read",le="',
            "mcac_table_live_ss_table_count{",
            "mcac_compaction_pending_tasks{",
        ],
        "management_api": [
            "org_apache_cassandra_metrics_table_percent_repaired{host=",
            "org_apache_cassandra_metrics_compaction_pending_tasks{host=",
        ],
    }.items():
        status, text = get(node, f"/metrics?names={names}")
        assert status == 200
        for line in wanted:
            assert line in text, (names, line)
        document = (ROOT / "docs/metrics.md").read_text()
        assert f"`{names}`" in document
        for name, value in re.findall(r"^(\w+)(?:\{[^}]*\})? (\S+)$", text, re.M):
            assert float(value) >= -1, (name, value)
    status, why = get(node, "/metrics?names=nosuch")
    assert status == 400 and "jmx_exporter" in why
    status, why = get(node, "/metrics?names=mcac&name=mcac_table")
    assert status == 400 and "management_api" in why


def test_logs_in_json_and_in_files(node):
    """stderr has one JSON object a line; system.log has Cassandra's layout."""
    lines = [json.loads(line) for line in node.log.read_text().splitlines()]
    assert len(lines) >= 2
    for line in lines:
        assert {"timestamp", "level", "logger", "thread", "message"} <= line.keys()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["timestamp"])
    directory = node.data_dir.parent / "logs"
    assert sorted(path.name for path in directory.iterdir()) == ["debug.log", "system.log"]
    first = (directory / "system.log").read_text().splitlines()[0]
    assert re.match(r"(INFO |WARN ) \[[^\]]+\] \d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \w[\w:]*:\d+ - ", first), first
    assert lines[0]["message"] in first
