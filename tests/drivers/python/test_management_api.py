"""The management API of K8ssandra at nodes that run: what Reaper and Medusa ask a ring of two for, in the order in which they ask."""

import base64
import http.client
import json
import re
import time
import urllib.parse

import pytest
from cassandra.cluster import Cluster
from server import ring

SECONDS = 60


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    nodes = ring(tmp_path_factory.mktemp("management"), 2)
    with Cluster([nodes[0].host], port=nodes[0].port) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")
        session.execute("CREATE TABLE shop.items (id int PRIMARY KEY, price int)")
        for key in range(100):
            session.execute(f"INSERT INTO shop.items (id, price) VALUES ({key}, {key})")
    yield nodes
    assert [node.stop() for node in nodes] == [0, 0]


def call(node, method, path, body=None, token=None, **query):
    """The status, and the answer: JSON if it is JSON, else text."""
    connection = http.client.HTTPConnection(node.host, node.admin_port, timeout=SECONDS)
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Basic " + base64.b64encode(f"reaper:{token}".encode()).decode()
    asked = path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")
    connection.request(method, asked, body=None if body is None else json.dumps(body), headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, text


def token(node):
    return (node.data_dir / "admin_token").read_text().split()[-1]


def ended(node, job):
    """A job, once it has ended."""
    deadline = time.monotonic() + SECONDS
    while True:
        status, told = call(node, "GET", "/api/v0/ops/executor/job", job_id=job)
        assert status == 200 and told["id"] == job, told
        if told["status"] != "WAITING" or time.monotonic() > deadline:
            return told
        time.sleep(0.05)


def test_the_ring_as_reaper_looks_at_it(nodes):
    first = nodes[0]
    for probe in ("liveness", "readiness", "cluster"):
        assert call(first, "GET", f"/api/v0/probes/{probe}")[0] == 200, probe
    assert call(first, "GET", "/api/v0/lifecycle/pid") == (200, first.process.pid)
    assert call(first, "GET", "/api/v0/metadata/versions/release") == (200, "5.0.8")
    _, endpoints = call(first, "GET", "/api/v0/metadata/endpoints")
    told = {one["ENDPOINT_IP"]: one["IS_ALIVE"] for one in endpoints["entity"]}
    assert told == {"127.0.0.1": "true", "127.0.0.2": "true"}
    assert "shop" in call(first, "GET", "/api/v0/ops/keyspace")[1]
    assert call(first, "GET", "/api/v0/ops/tables", keyspaceName="shop") == (200, ["items"])
    status, ranges = call(first, "GET", "/api/v2/tokens/rangetoendpoint", keyspaceName="shop")
    assert status == 200 and len(ranges["token_range_to_endpoints"]) == 32
    assert all(sorted(of["endpoints"]) == ["127.0.0.1", "127.0.0.2"] for of in ranges["token_range_to_endpoints"])


def test_metrics_as_reaper_asks_for_them(nodes):
    """By the beginning of their names; a value is what this expression of Reaper's finds."""
    for prefix, label in {
        "org_apache_cassandra_metrics_thread_pools_pending_tasks": 'pool_name="CompactionExecutor"',
        "org_apache_cassandra_metrics_dropped_message": 'message_type="MUTATION_REQ"',
        "org_apache_cassandra_metrics_client_request_latency": 'request_type="Write"',
        "org_apache_cassandra_metrics_table_percent_repaired": 'keyspace="shop",table="items"',
    }.items():
        status, text = call(nodes[0], "GET", "/metrics", name=prefix)
        found = re.findall(r"(\w+)(\{.*\})?\s(\d+\.\d+)", text)
        assert status == 200 and all(name.startswith(prefix) for name, *_ in found), text
        assert any(label in labels for _, labels, _ in found), (prefix, text)


def test_changes_need_the_token(nodes):
    first, other = nodes
    flush = {"keyspace_name": "shop", "tables": ["items"]}
    assert call(first, "POST", "/api/v0/ops/tables/flush", flush)[0] == 401
    assert call(first, "POST", "/api/v0/ops/tables/flush", flush, token=token(other))[0] == 401, "each node has its own"
    assert call(first, "POST", "/api/v0/ops/tables/flush", flush, token=token(first))[0] == 200
    tables = next(first.data_dir.glob("data/shop/items-*"))
    assert list(tables.glob("*-Data.db"))
    assert call(first, "POST", "/api/v0/lifecycle/stop", {}, token=token(first))[0] == 501
    assert call(first, "GET", "/api/v0/nosuch")[0] == 404


def test_a_repair_as_reaper_asks_for_it(nodes):
    first = nodes[0]
    asked = {"keyspace": "shop", "tables": ["items"], "full_repair": True, "repair_parallelism": "parallel", "repair_thread_count": 1}
    status, answer = call(first, "PUT", "/api/v2/repairs", asked, token=token(first))
    assert status == 202, answer
    job = ended(first, answer["repair_id"])
    assert (job["status"], job["type"], job["error"] or "") == ("COMPLETED", "repair", ""), job
    assert {change["status"] for change in job["status_changes"]} >= {"START", "SUCCESS", "COMPLETE"}
    with Cluster([first.host], port=first.port) as cluster:
        history = cluster.connect().execute("SELECT status FROM system_distributed.repair_history WHERE keyspace_name = 'shop' AND columnfamily_name = 'items'")
        assert {row.status for row in history} == {"SUCCESS"}
    assert call(first, "DELETE", "/api/v2/repairs", token=token(first))[0] == 202


def test_snapshots_and_work_on_tables_as_medusa_asks_for_them(nodes):
    first, path = nodes[0], "/api/v0/ops/node/snapshots"
    assert call(first, "POST", path, {"snapshot_name": "medusa-one", "keyspaces": ["shop"]}, token=token(first))[0] == 200
    _, listed = call(first, "GET", path, snapshotNames="medusa-one")
    assert [(one["Keyspace name"], one["Column family name"]) for one in listed["entity"]] == [("shop", "items")]
    directory = next(first.data_dir.glob("data/shop/items-*/snapshots/medusa-one"))
    assert (directory / "manifest.json").exists() and list(directory.glob("*-Data.db"))
    assert call(first, "DELETE", path, token=token(first), snapshotNames="medusa-one")[0] == 200
    assert not directory.exists()
    status, job = call(first, "POST", "/api/v1/ops/keyspace/cleanup", {"jobs": 1, "keyspace_name": "shop", "tables": ["items"]}, token=token(first))
    assert status == 202 and ended(first, job)["status"] == "COMPLETED"
