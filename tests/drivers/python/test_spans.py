"""Spans of OpenTelemetry: a collector gets the shares of two nodes of a ring in one request under the trace that the client
names, over https as well; a node that stops sends what waits; a node without a collector counts what is lost and serves on."""

import contextlib
import http.server
import json
import re
import ssl
import threading
import time
import urllib.request

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement
from server import Server, free_port, ring
from test_tls import pki  # noqa: F401: a fixture

TRACE, ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
# spans wait five seconds at most before they are sent
SECONDS = 20
# so many are sent at once
BATCH = 512
# a stop waits three seconds at most for a collector
STOP_SECONDS = 8


class Collector:
    """Takes OTLP over HTTP as JSON, and keeps the spans with the name of the node that made each; with `certificate` over TLS;
    with `hangs` it never answers."""

    def __init__(self, certificate=None, hangs=False):
        self.spans, collector = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                if hangs:
                    return collector.released.wait()
                assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/json")
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for part in message["resourceSpans"]:
                    resource = attributes(part["resource"])
                    assert resource["service.name"] == "helenus"
                    collector.spans += [(resource["server.address"], span) for scope in part["scopeSpans"] for span in scope["spans"]]
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.released = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.endpoint = f"{'https' if certificate else 'http'}://127.0.0.1:{self.server.server_port}"

    def until(self, count):
        """The spans, once there are so many."""
        deadline = time.monotonic() + SECONDS
        while len(self.spans) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return list(self.spans)

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


def attributes(of):
    return {one["key"]: one["value"]["stringValue"] for one in of["attributes"]}


def counts(node):
    """Spans by what became of them, as /metrics has them."""
    text = urllib.request.urlopen(f"http://{node.host}:{node.admin_port}/metrics", timeout=30).read().decode()
    found = re.findall(r'^cassandra_otlp_spans_total\{end="(\w+)"\} (\d+)$', text, re.M)
    return {end: int(count) for end, count in found}


@contextlib.contextmanager
def session_of(node):
    """A session that asks this node alone."""
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([node.host]), consistency_level=ConsistencyLevel.ALL)
    with Cluster([node.host], port=node.port, execution_profiles={EXEC_PROFILE_DEFAULT: profile}) as cluster:
        yield cluster.connect()


def test_a_request_is_one_trace_across_two_nodes(tmp_path):
    collector = Collector()
    nodes = ring(tmp_path, 2, [f"otlp_endpoint={collector.endpoint}", "otlp_sample_ratio=0"])
    with session_of(nodes[0]) as session:
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
        session.execute("INSERT INTO ks.t (k, v) VALUES (0, 0)")
        for statement in ("INSERT INTO ks.t (k, v) VALUES (1, 1)", "SELECT v FROM ks.t WHERE k = 1"):
            named = {"traceparent": f"00-{TRACE}-{ABOVE}-01".encode()}
            session.execute(SimpleStatement(statement, consistency_level=ConsistencyLevel.ALL), custom_payload=named)
        spans = collector.until(4)
        assert len(spans) == 4, spans
        assert {span["traceId"] for _, span in spans} == {TRACE}
        requests = [span for address, span in spans if address == "127.0.0.1"]
        assert [attributes(span)["db.query.text"].split()[0] for span in requests] == ["INSERT", "SELECT"]
        assert all(span["parentSpanId"] == ABOVE and attributes(span)["db.system.name"] == "cassandra" for span in requests)
        shares = {span["parentSpanId"]: span for address, span in spans if address == "127.0.0.2"}
        for request, verb in zip(requests, ("MUTATION_REQ", "READ_REQ")):
            share = shares[request["spanId"]]
            assert share["name"] == verb and attributes(share)["network.peer.address"] == "127.0.0.1"
            assert int(request["startTimeUnixNano"]) < int(share["endTimeUnixNano"]) and share["events"]
        assert counts(nodes[0]) == {"sent": 2, "dropped": 0, "failed": 0}
        # nothing is written for requests that are exported alone
        assert session.execute("SELECT count(*) FROM system_traces.sessions").one()[0] == 0
    assert [node.stop() for node in nodes] == [0, 0]
    collector.close()


def test_without_a_collector_spans_are_lost_and_counted(tmp_path):
    settings = [f"otlp_endpoint=http://127.0.0.1:{free_port()}", "otlp_sample_ratio=1"]
    node = Server(tmp_path / "data", settings=settings).start()
    asked(node, BATCH)
    assert_lost(node)
    assert node.log_tail(1 << 16).count("the collector does not take spans") == 1
    assert node.stop() == 0


def assert_lost(node):
    """A batch of spans is lost, and none is sent."""
    deadline = time.monotonic() + SECONDS
    while (told := counts(node))["failed"] < BATCH and time.monotonic() < deadline:
        time.sleep(0.05)
    assert told["failed"] >= BATCH and told["sent"] == 0, told


def asked(node, count):
    """Asks the node so often; drivers ask more on their way."""
    with session_of(node) as session:
        for _ in range(count):
            session.execute("SELECT key FROM system.local WHERE key = 'local'")


def test_spans_go_over_https(pki, tmp_path):  # noqa: F811
    collector = Collector(certificate=pki / "node.pem")
    settings = [f"otlp_endpoint={collector.endpoint}", "otlp_sample_ratio=1"]
    node = Server(tmp_path / "data", settings=[*settings, f"otlp_certificate={pki / 'ca.pem'}"]).start()
    asked(node, BATCH)
    assert len(collector.until(BATCH)) >= BATCH, node.log_tail(1 << 16)
    assert counts(node)["failed"] == 0
    assert node.stop() == 0
    # without the key those authorities count that the system trusts, and the collector's is none of them
    taken = len(collector.spans)
    node = Server(tmp_path / "other", settings=settings).start()
    asked(node, BATCH)
    assert_lost(node)
    assert len(collector.spans) == taken
    assert "ertificate" in node.log_tail(1 << 16)
    assert node.stop() == 0
    collector.close()


def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(tmp_path):
    (tmp_path / "empty.pem").write_text("")
    settings = ["otlp_endpoint=https://127.0.0.1:1", f"otlp_certificate={tmp_path / 'empty.pem'}"]
    node = Server(tmp_path / "data", settings=settings)
    with pytest.raises(RuntimeError, match="otlp_certificate: .*empty.pem has no certificate"):
        node.start()


def test_a_node_that_stops_sends_the_spans_that_wait(tmp_path):
    collector = Collector()
    node = Server(tmp_path / "data", settings=[f"otlp_endpoint={collector.endpoint}", "otlp_sample_ratio=1"]).start()
    # more than one message takes
    asked(node, 700)
    begun = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - begun < STOP_SECONDS
    queries = [span for _, span in collector.spans if attributes(span).get("db.query.text", "").endswith("key = 'local'")]
    assert len(queries) >= 700
    collector.close()


def test_a_collector_that_hangs_does_not_hold_a_stop(tmp_path):
    collector = Collector(hangs=True)
    node = Server(tmp_path / "data", settings=[f"otlp_endpoint={collector.endpoint}", "otlp_sample_ratio=1"]).start()
    asked(node, 5)
    begun = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - begun < STOP_SECONDS
    assert node.log_tail(1 << 16).count("slow to take spans while the node stops") == 1
    collector.close()


def test_without_the_key_there_is_nothing(tmp_path):
    node = Server(tmp_path / "data").start()
    assert counts(node) == {}
    assert node.stop() == 0
