"""TLS: the Python driver and cqlsh --ssl, optional encryption, certificates of clients, protocols and suites, what is refused.
The certificates are made with openssl."""

import json
import pathlib
import socket
import ssl
import subprocess
import sys

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from server import Server

CQLSH = pathlib.Path(sys.executable).with_name("cqlsh")
PEM = "org.apache.cassandra.security.PEMBasedSslContextFactory"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return made_in(tmp_path_factory.mktemp("pki"))


def made_in(home):
    """An authority, a certificate of the server and one of a client; `node.pem` holds key and chain."""
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *ec, "-keyout", home / "ca.key", "-out", home / "ca.pem", "-subj", "/CN=authority", "-days", "30")
    (home / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("node", "client"):
        key, request, certificate = (home / f"{name}.{end}" for end in ("key", "csr", "crt"))
        openssl("req", *ec, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        signed = ["-CA", home / "ca.pem", "-CAkey", home / "ca.key", "-CAcreateserial", "-extfile", home / "names", "-days", "30"]
        openssl("x509", "-req", "-in", request, "-out", certificate, *signed)
        (home / f"{name}.pem").write_text(key.read_text() + certificate.read_text() + (home / "ca.pem").read_text())
    return home


def options(pki, **more):
    asked = {"enabled": True, "ssl_context_factory": {"class_name": PEM}, "keystore": str(pki / "node.pem"), **more}
    return "client_encryption_options=" + json.dumps(asked)


def context(pki, client=False, **versions):
    made = ssl.create_default_context(cafile=pki / "ca.pem")
    made.check_hostname = False
    for name, value in versions.items():
        setattr(made, name, value)
    if client:
        made.load_cert_chain(pki / "client.crt", pki / "client.key")
    return made


def key_of(server, **how):
    with Cluster([server.host], port=server.port, **how) as cluster:
        return cluster.connect().execute("SELECT key FROM system.local").one().key


@pytest.fixture
def start(tmp_path):
    started = []

    def run(*settings):
        server = Server(tmp_path / f"data{len(started)}", settings=settings).start()
        started.append(server)
        return server

    yield run
    for server in started:
        assert server.stop() == 0, server.log_tail()


def test_encrypted(start, pki):
    server = start(options(pki))
    for version in (3, 4, 5):
        assert key_of(server, ssl_context=context(pki), protocol_version=version) == "local"
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        assert key_of(server, ssl_context=context(pki, minimum_version=version, maximum_version=version)) == "local"
    with pytest.raises(NoHostAvailable):
        key_of(server)
    with pytest.raises(NoHostAvailable):
        key_of(server, ssl_context=ssl.create_default_context())


def test_much_goes_through(start, pki):
    """Answers larger than any buffer, from many requests at once."""
    server = start(options(pki))
    with Cluster([server.host], port=server.port, ssl_context=context(pki)) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE tls WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE tls.t (k int, c int, v blob, PRIMARY KEY (k, c))")
        insert = session.prepare("INSERT INTO tls.t (k, c, v) VALUES (?, ?, ?)")
        for future in [session.execute_async(insert, [i % 4, i, bytes([i % 256]) * 50_000]) for i in range(200)]:
            future.result()
        select = session.prepare("SELECT c, v FROM tls.t WHERE k = ?")
        for _ in range(3):
            for k, future in [(k, session.execute_async(select, [k])) for k in range(4)]:
                rows = list(future.result())
                assert [row.c for row in rows] == list(range(k, 200, 4))
                assert all(row.v == bytes([row.c % 256]) * 50_000 for row in rows)


def test_optional(start, pki):
    server = start(options(pki, enabled=False, optional=True))
    assert key_of(server) == "local"
    assert key_of(server, ssl_context=context(pki)) == "local"


def test_certificates_of_clients(start, pki):
    server = start(options(pki, require_client_auth=True, truststore=str(pki / "ca.pem")))
    assert key_of(server, ssl_context=context(pki, client=True)) == "local"
    with pytest.raises(NoHostAvailable):
        key_of(server, ssl_context=context(pki))


def test_in_the_text_with_passwords(start, pki):
    factory = {"class_name": "PEMBasedSslContextFactory", "parameters": {"private_key": (pki / "node.pem").read_text()}}
    asked = {"enabled": True, "ssl_context_factory": factory}
    server = start("client_encryption_options=" + json.dumps(asked), "authenticator=PasswordAuthenticator")
    provider = PlainTextAuthProvider("cassandra", "cassandra")
    assert key_of(server, ssl_context=context(pki), auth_provider=provider) == "local"


def test_protocols_and_suites(start, pki):
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    server = start(options(pki, accepted_protocols=["TLSv1.2"], cipher_suites=[suite]))
    assert key_of(server, ssl_context=context(pki)) == "local"
    with socket.create_connection((server.host, server.port)) as plain, context(pki).wrap_socket(plain) as wrapped:
        assert (wrapped.version(), wrapped.cipher()[0]) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")
    with pytest.raises(NoHostAvailable):
        key_of(server, ssl_context=context(pki, minimum_version=ssl.TLSVersion.TLSv1_3))


def test_silence_and_nonsense_end(start, pki):
    server = start(options(pki))
    with socket.create_connection((server.host, server.port), timeout=20) as nonsense:
        nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n")
        try:
            while nonsense.recv(4096):
                pass
        except ConnectionError:
            pass
    with socket.create_connection((server.host, server.port), timeout=20) as silent:
        assert silent.recv(1) == b"", "closed after ten seconds"
    assert key_of(server, ssl_context=context(pki)) == "local"


def test_cqlsh(start, pki, tmp_path):
    server = start(options(pki))
    (tmp_path / "cqlshrc").write_text(f"[ssl]\ncertfile = {pki / 'ca.pem'}\nvalidate = true\n")
    command = [str(CQLSH), "--no-color", "--ssl", "--cqlshrc", str(tmp_path / "cqlshrc"), "--connect-timeout=30", server.host, str(server.port)]
    done = subprocess.run(command, input="SELECT key FROM system.local;\n", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "local" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "more,why",
    [
        ({"ssl_context_factory": None}, "keystores of Java"),
        ({"keystore": "/nonexistent.pem"}, "/nonexistent.pem"),
        ({"keystore": None}, "needs a private key"),
        ({"cipher_suites": ["TLS_RSA_WITH_AES_256_CBC_SHA"]}, "TLS_RSA_WITH_AES_256_CBC_SHA is not there"),
        ({"accepted_protocols": ["TLSv1.1"]}, "TLSv1.1 is not spoken"),
        ({"require_client_auth": True}, "needs a truststore"),
        ({"require_endpoint_verification": True}, "not honoured"),
        ({"colour": "red"}, "colour is no sub-key"),
    ],
)
def test_refused(tmp_path, pki, more, why):
    with pytest.raises(RuntimeError, match=why):
        Server(tmp_path / "data", settings=[options(pki, **more)]).start()


def test_encrypted_keys_are_refused(tmp_path, pki):
    openssl("pkcs8", "-topk8", "-in", pki / "node.key", "-out", tmp_path / "locked.key", "-passout", "pass:secret")
    (tmp_path / "locked.pem").write_text((tmp_path / "locked.key").read_text() + (pki / "node.crt").read_text())
    with pytest.raises(RuntimeError, match="the private key is encrypted"):
        Server(tmp_path / "data", settings=[options(pki, keystore=str(tmp_path / "locked.pem"))]).start()
