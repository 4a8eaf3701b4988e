"""The admin port over TLS at a node that runs: nodetool --ssl, Prometheus and a browser's kind of client, certificates of callers, logins,
and certificates that are replaced while the node runs."""

import http.client
import json
import ssl
import subprocess

import pytest
from server import Server, binary
from test_tls import PEM, context, made_in, pki  # noqa: F401: pki is a fixture

SETTING = "admin_encryption_options="


def node_of(pki, tmp_path, settings=(), **more):
    asked = {"enabled": True, "ssl_context_factory": {"class_name": PEM}, "keystore": str(pki / "node.pem"), **more}
    return Server(tmp_path / "data", settings=[SETTING + json.dumps(asked), *settings]).start()


def get(node, path, context):
    connection = http.client.HTTPSConnection(node.host, node.admin_port, timeout=30, context=context)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_nodetool_and_metrics_over_tls(pki, tmp_path):
    node = node_of(pki, tmp_path)
    trusted = ["--ssl", "--truststore", str(pki / "ca.pem")]
    shown = node.nodetool(*trusted, "status")
    assert shown.returncode == 0 and "UN  127.0.0.1" in shown.stdout, shown
    assert node.nodetool(*trusted, "flush").returncode == 0, "a change, with the token of the directory"
    assert "cassandra_" in get(node, "/metrics", context(pki))[1]
    # who does not encrypt, and who trusts another authority, learns nothing
    plain = node.nodetool("status")
    assert plain.returncode != 0 and "UN  127.0.0.1" not in plain.stdout
    (tmp_path / "others").mkdir()
    others = made_in(tmp_path / "others")
    other = node.nodetool("--ssl", "--truststore", str(others / "ca.pem"), "status")
    assert other.returncode != 0 and "UN  127.0.0.1" not in other.stdout, other
    assert "ertificate" in other.stderr, other.stderr
    without = node.nodetool("--ssl", "status")
    assert without.returncode != 0 and "--truststore" in without.stderr
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        connection = http.client.HTTPConnection(node.host, node.admin_port, timeout=30)
        connection.request("GET", "/metrics")
        connection.getresponse()
    assert node.stop() == 0


def test_callers_show_a_certificate(pki, tmp_path):
    node = node_of(pki, tmp_path, require_client_auth=True, truststore=str(pki / "ca.pem"))
    trusted = ["--ssl", "--truststore", str(pki / "ca.pem")]
    refused = node.nodetool(*trusted, "status")
    assert refused.returncode != 0 and "UN  127.0.0.1" not in refused.stdout
    shown = node.nodetool(*trusted, "--keystore", str(pki / "client.pem"), "status")
    assert shown.returncode == 0 and "UN  127.0.0.1" in shown.stdout, shown
    assert get(node, "/healthz", context(pki, client=True))[0] == 200
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
        get(node, "/healthz", context(pki))
    assert node.stop() == 0


def test_a_superuser_logs_in_instead_of_the_token(pki, tmp_path):
    node = node_of(pki, tmp_path, settings=["authenticator=PasswordAuthenticator"])
    command = [binary(), "nodetool", "-h", node.host, "-p", str(node.admin_port), "--ssl", "--truststore", str(pki / "ca.pem")]

    def run(*words):
        return subprocess.run([*command, "--token-file", str(tmp_path / "none"), *words], capture_output=True, text=True, timeout=60)

    assert run("flush").returncode != 0
    assert run("-u", "cassandra", "-pw", "wrong", "flush").returncode != 0
    done = run("-u", "cassandra", "-pw", "cassandra", "flush")
    assert done.returncode == 0, done
    (tmp_path / "passwords").write_text("ann secret\ncassandra cassandra\n")
    assert run("-u", "cassandra", "-pwf", str(tmp_path / "passwords"), "flush").returncode == 0
    assert node.stop() == 0


def test_a_certificate_is_replaced_while_the_node_runs(pki, tmp_path):
    held = tmp_path / "node.pem"
    held.write_text((pki / "node.pem").read_text())
    node = node_of(pki, tmp_path, keystore=str(held))
    (tmp_path / "new").mkdir()
    new = made_in(tmp_path / "new")
    before = ["--ssl", "--truststore", str(pki / "ca.pem")]
    after = ["--ssl", "--truststore", str(new / "ca.pem")]
    assert node.nodetool(*after, "status").returncode != 0
    held.write_text((new / "node.pem").read_text())
    assert node.nodetool(*before, "reloadssl").returncode == 0
    assert node.nodetool(*after, "status").returncode == 0
    assert node.nodetool(*before, "status").returncode != 0
    assert node.stop() == 0
