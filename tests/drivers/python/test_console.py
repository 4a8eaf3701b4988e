"""The console at the admin port: the page, every path that it asks for, logins, queries, and a walk over it in a browser.

The paths are read from the script that the node serves, so that a path of the page that the node does not answer fails here. The
walk needs a chromium; where there is none the page is checked as text alone.
"""

import http.client
import json
import re
import shutil
import subprocess

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from server import Server

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
PAGE = ("/", "/console.css", "/console.js")
SIZE_MAX = 300_000
# what stands in a section once it is filled
SHOWN = {
    "overview": "Latencies of clients",
    "ring": "host id",
    "tables": "shop.orders",
    "slow": "slow_query_log_timeout",
    "work": "No compaction runs.",
    "tombstones": "why not purged?",
    "partitions": "Partitions by heat",
    "caches": "hits now",
    "commitlog": "records that wait for a sync",
    "schema": "CREATE TABLE shop.orders",
    "query": "A statement that reads",
    "logs": "Log, the newest line first",
}


def ask(node, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(node.host, node.admin_port, timeout=60)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if method == "POST":
        headers.setdefault("Content-Type", "application/json")
        body = json.dumps(body)
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers


def get(node, path):
    status, text, _ = ask(node, "GET", path)
    return status, text


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("console") / "data", settings=["console_queries_enabled=true"]).start()
    with Cluster([server.host], port=server.port) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY, words text)")
        session.execute("CREATE INDEX words ON shop.orders (words)")
        session.execute("INSERT INTO shop.orders (id, words) VALUES (1, 'a <b>bold</b> order')")
        session.execute("DELETE FROM shop.orders WHERE id = 2")
    assert server.nodetool("flush").returncode == 0
    yield server
    assert server.stop() == 0, server.log_tail()


def test_the_page_is_small_strict_and_whole(node):
    texts = {}
    for path in PAGE:
        status, texts[path], headers = ask(node, "GET", path)
        assert status == 200
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert ask(node, "GET", path, Host="rebound.example")[0] == 403
    assert sum(len(text.encode()) for text in texts.values()) < SIZE_MAX
    page, script = texts["/"], texts["/console.js"]
    outside = re.findall(r"""(?:src|href)="([^"]+)"|https?://[^"'\s)]+""", page)
    assert set(outside) <= {"/console.css", "/console.js", "#view", "/metrics", "data:,"}
    assert set(re.findall(r"https?://[^\"'\s)]+", script + texts["/console.css"])) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(", script), "values are never markup"
    assert not re.search(r"<script(?! src)|<style| style=| on\w+=", page), "nothing is inline"
    for landmark in ("<header", "<nav aria-label", "<main", 'lang="en"', 'aria-live="polite"', 'class="skip"'):
        assert landmark in page, landmark
    for wanted in re.findall(r'\$\("([\w-]+)"\)', script):
        assert f'id="{wanted}"' in page or f'id: "{wanted}"' in script, wanted
    for field in re.findall(r'<input id="(\w+)"', page):
        assert f'<label for="{field}"' in page, field
    assert sections(script) == set(SHOWN)


def sections(script):
    return set(re.findall(r'\["(\w+)", "[^"]+", \w+, (?:true|false)\]', script))


def test_every_path_of_the_page_is_answered(node):
    script = get(node, "/console.js")[1]
    asked = set(re.findall(r'call\("(/[\w/?=]+)"', script))
    fields = {
        "/api/tombstones?": "keyspace=shop&table=orders&top=5",
        "/api/schema?": "keyspace=shop",
        "/api/log?": "count=5&level=INFO&text=",
    }
    bodies = {"/console/query": {"query": "SELECT 1"}, "/console/sample": None, "/console/login": {}, "/console/logout": None}
    assert len(asked) >= 20 and set(fields) <= asked and set(bodies) <= asked
    for path in sorted(asked - set(bodies)):
        status, text = get(node, path + fields.get(path, ""))
        assert status == 200, (path, text)
        json.loads(text)
    status, samples, _ = ask(node, "POST", "/console/sample", None)
    assert (status, dict(json.loads(samples)).keys() >= {"READS", "WRITES"}) == (200, True)


def query(node, text, **headers):
    status, answer, _ = ask(node, "POST", "/console/query", {"query": text}, **headers)
    return status, json.loads(answer)


def test_queries_only_read(node):
    status, answer = query(node, "SELECT id, words FROM shop.orders WHERE id = 1;")
    assert (status, answer["rows"]) == (200, [["1", "a <b>bold</b> order"]])
    assert answer["columns"] == [["id", "int"], ["words", "text"]]
    assert query(node, "EXPLAIN SELECT * FROM shop.orders WHERE id = 1")[1]["rows"]
    assert query(node, "EXPLAIN ANALYZE SELECT * FROM shop.orders WHERE id = 1")[1]["rows"]
    assert query(node, "EXPLAIN INSERT INTO shop.orders (id) VALUES (7)")[1]["rows"]
    assert "CREATE TABLE shop.orders" in str(query(node, "DESCRIBE TABLE shop.orders"))
    for changes in (
        "INSERT INTO shop.orders (id) VALUES (7)",
        "EXPLAIN ANALYZE INSERT INTO shop.orders (id) VALUES (7)",
        "TRUNCATE shop.orders",
        "DROP TABLE shop.orders",
        "BEGIN BATCH INSERT INTO shop.orders (id) VALUES (7) APPLY BATCH",
        "CREATE ROLE r",
        "USE shop",
    ):
        status, answer = query(node, changes)
        assert status == 400 and "the console takes SELECT" in answer["Invalid"], (changes, answer)
    assert query(node, "SELECT count(*) FROM shop.orders")[1]["rows"] == [["1"]]
    assert query(node, "SELECT")[0] == 400
    status, _, _ = ask(node, "POST", "/console/query", {"query": "SELECT * FROM shop.orders"}, Content_Type="text/plain")
    assert status == 415, "what a page of another origin may send"


def test_probes(node, tmp_path):
    assert get(node, "/healthz") == (200, "ok\n")
    assert get(node, "/readyz") == (200, "ready\n")
    other = Server(tmp_path / "data").start()
    assert other.nodetool("drain").returncode == 0
    assert get(other, "/healthz")[0] == 200
    status, why = get(other, "/readyz")
    assert status == 503 and "DRAINED" in why
    assert query(other, "SELECT * FROM system.local")[0] == 403, "queries are off by default"
    assert other.stop() == 0


def test_logins(tmp_path):
    """Where roles are on: texts of users and queries need a role that may read them."""
    settings = ["authenticator=PasswordAuthenticator", "authorizer=CassandraAuthorizer", "console_queries_enabled=true"]
    server = Server(tmp_path / "data", settings=settings).start()
    with Cluster([server.host], port=server.port, auth_provider=PlainTextAuthProvider("cassandra", "cassandra")) as cluster:
        session = cluster.connect()
        session.execute("CREATE ROLE ann WITH PASSWORD = 'pass' AND LOGIN = true")
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY)")
        session.execute("GRANT SELECT ON system.local TO ann")

        def log_in(user, password):
            status, _, headers = ask(server, "POST", "/console/login", {"user": user, "password": password})
            return status, (headers["Set-Cookie"] or "").split(";")[0]

        assert get(server, "/api/node")[0] == 200, "figures stay open"
        for path in ("/api/log?count=1", "/api/slow_statements", "/api/schema?keyspace=shop"):
            assert get(server, path)[0] == 401, path
        assert query(server, "SELECT * FROM shop.orders")[0] == 401
        assert log_in("ann", "wrong")[0] == 401 and log_in("nobody", "pass")[0] == 401
        status, ann = log_in("ann", "pass")
        assert status == 200
        assert query(server, "SELECT cluster_name FROM system.local", Cookie=ann)[0] == 200
        status, refused = query(server, "SELECT * FROM shop.orders", Cookie=ann)
        assert status == 400 and "has no SELECT permission" in refused["Invalid"]
        assert ask(server, "GET", "/api/log?count=1", Cookie=ann)[0] == 401, "the log holds what others do"
        _, superuser = log_in("cassandra", "cassandra")
        assert ask(server, "GET", "/api/log?count=1", Cookie=superuser)[0] == 200
        assert query(server, "SELECT * FROM shop.orders", Cookie=superuser)[0] == 200
        session.execute("DROP ROLE ann")
        assert query(server, "SELECT cluster_name FROM system.local", Cookie=ann)[0] in (400, 401), "a role that is gone"
        assert ask(server, "POST", "/api/drain", {}, Cookie=superuser)[0] == 401, "a login changes nothing"
    assert server.stop() == 0, server.log_tail()


def browse(node, path, *flags):
    common = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000"]
    address = f"http://{node.host}:{node.admin_port}{path}"
    return subprocess.run([BROWSER, *common, *flags, address], capture_output=True, text=True, timeout=120).stdout


def test_a_walk_over_the_sections(node):
    script = get(node, "/console.js")[1]
    assert sections(script) == set(SHOWN)
    for section, shown in SHOWN.items() if BROWSER else ():
        page = browse(node, f"/#{section}", "--dump-dom")
        content = page[page.index('id="content"'):]
        assert shown in content, (section, content[:2000])
        assert 'id="trouble" role="alert" hidden' in page, (section, page)
        assert f'href="#{section}" aria-current="page"' in page
