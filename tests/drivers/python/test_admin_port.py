"""The admin port as a browser, a script and another user of the machine see it; secrets that nobody who looks on is shown."""

import http.client
import json
import os
import pathlib
import re
import stat
import subprocess
import time

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from server import Server, binary

SECRET = "s3cr3t"


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    settings = ["slow_query_log_timeout=1ms", "authenticator=PasswordAuthenticator"]
    server = Server(tmp_path_factory.mktemp("admin") / "data", settings=settings).start()
    yield server
    assert server.stop() == 0, server.log_tail()


def ask(node, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(node.host, node.admin_port, timeout=30)
    headers.setdefault("Host", f"{node.host}:{node.admin_port}")
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def token_file(node):
    return pathlib.Path(json.loads(ask(node, "GET", "/api/token_file")[1]))


def test_a_page_whose_name_points_here_is_refused(node):
    for path in ("/metrics", "/api/node"):
        assert ask(node, "GET", path)[0] == 200
        assert ask(node, "GET", path, Host="localhost:9180")[0] == 200
        assert ask(node, "GET", path, Host="rebound.example:9180")[0] == 403


def test_changes_need_the_token(node):
    path = token_file(node)
    assert path == node.data_dir / "admin_token"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    token = path.read_text().split()[-1]
    tables = json.dumps({"tables": {"keyspaces": [], "tables": []}})
    assert ask(node, "POST", "/api/flush", tables)[0] == 401
    assert ask(node, "POST", "/api/flush", tables, Authorization="Bearer " + "0" * 64)[0] == 401
    assert ask(node, "POST", "/api/flush", tables, Authorization="Bearer " + token) == (200, "null")
    assert ask(node, "GET", "/api/drain")[0] == 405
    assert ask(node, "GET", "/api/timeout?kind=read") == (200, "5000")


def test_nodetool_finds_the_token_by_itself_where_it_may_read_it(node, tmp_path):
    assert node.nodetool("flush").returncode == 0
    command = [binary(), "nodetool", "-p", str(node.admin_port)]
    given = subprocess.run([*command, "--token-file", str(token_file(node)), "flush"], capture_output=True, text=True)
    assert (given.returncode, given.stderr) == (0, "")
    wrong = tmp_path / "token"
    wrong.write_text(f"helenus admin token of port {node.admin_port}\n{'0' * 64}\n")
    refused = subprocess.run([*command, "--token-file", str(wrong), "flush"], capture_output=True, text=True)
    assert refused.returncode == 2 and "not the token of this start" in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_another_user_may_look_but_not_change(node):
    def as_nobody(*words):
        command = [binary(), "nodetool", "-p", str(node.admin_port), *words]
        return subprocess.run(command, capture_output=True, text=True, user=65534, group=65534, extra_groups=[])

    try:
        looked = as_nobody("status")
    except PermissionError:
        pytest.skip("the program lies where only root may go")
    assert looked.returncode == 0, looked
    refused = as_nobody("flush")
    assert refused.returncode == 2 and "--token-file" in refused.stderr, refused


def test_passwords_are_kept_nowhere(node):
    login = PlainTextAuthProvider("cassandra", "cassandra")
    with Cluster([node.host], port=node.port, auth_provider=login) as cluster:
        session = cluster.connect()
        created = session.execute(f"CREATE ROLE somebody WITH PASSWORD = '{SECRET}' AND LOGIN = true", trace=True)
        trace = created.get_query_trace(max_wait_sec=10)
        assert trace.parameters["query"] == "CREATE ROLE somebody WITH PASSWORD = '*******' AND LOGIN = true"
        assert any(event.description.startswith("Parsing CREATE ROLE") for event in trace.events)
        assert SECRET not in str([trace.parameters, trace.events])
        shown = wait_for_log(session)
        assert "PASSWORD = '*******'" in shown and SECRET not in shown
        settings = {row.name: row.value for row in session.execute("SELECT * FROM system_views.settings")}
        assert settings["client_encryption_options.keystore_password"] == "<REDACTED>"
    with Cluster([node.host], port=node.port, auth_provider=PlainTextAuthProvider("somebody", SECRET)) as cluster:
        cluster.connect()
    assert SECRET not in node.log_tail(1 << 20)


def wait_for_log(session, seconds=15):
    """The lines on slow statements, once they are told: bcrypt makes any statement on a password slow."""
    deadline = time.monotonic() + seconds
    while True:
        rows = session.execute("SELECT message FROM system_views.system_logs")
        told = "\n".join(row.message for row in rows if re.search("CREATE ROLE", row.message))
        if told or time.monotonic() > deadline:
            return told
        time.sleep(0.2)
