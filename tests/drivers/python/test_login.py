"""Logging in: SASL PLAIN on the wire in each version, drivers and cqlsh with users, limits, roles that survive a restart."""

import concurrent.futures
import pathlib
import socket
import struct
import subprocess
import sys
import time

import pytest
import role_answers
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from server import Server

CQLSH = pathlib.Path(sys.executable).with_name("cqlsh")
STARTUP, ERROR, READY, AUTHENTICATE, QUERY, AUTH_RESPONSE, AUTH_SUCCESS = 1, 0, 2, 3, 7, 15, 16
BAD_CREDENTIALS, PROTOCOL_ERROR, INVALID = 0x0100, 0x000A, 0x2200


@pytest.fixture(scope="module")
def users(guarded):
    with role_answers.Users(guarded.host, guarded.port) as users:
        yield users


class Raw:
    """Bare frames of version 4, or of 3."""

    def __init__(self, server, version=4):
        self.version = version
        self.socket = socket.create_connection((server.host, server.port), timeout=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, opcode, body):
        """Opcode of the answer and its body; of an ERROR the code and the text. None: the connection is closed."""
        self.socket.sendall(struct.pack(">BBhBI", self.version, 0, 0, opcode, len(body)) + body)
        header = self.read(9)
        if header is None:
            return None
        answer, length = struct.unpack(">4xBI", header)
        body = self.read(length)
        if answer == ERROR:
            [code, size] = struct.unpack(">IH", body[:6])
            return answer, code, body[6 : 6 + size].decode()
        return answer, body

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                return None
            data += part
        return data

    def start(self):
        return self.ask(STARTUP, b"\0\1\0\x0bCQL_VERSION\0\x053.0.0")

    def token(self, token):
        return self.ask(AUTH_RESPONSE, b"\xff\xff\xff\xff" if token is None else struct.pack(">i", len(token)) + token)


@pytest.mark.parametrize("version", [3, 4])
def test_exchange(guarded, version):
    with Raw(guarded, version) as raw:
        answer, body = raw.start()
        assert answer == AUTHENTICATE and body[2:] == b"org.apache.cassandra.auth.PasswordAuthenticator"
        assert raw.token(b"\0cassandra\0cassandra") == (AUTH_SUCCESS, b"\xff\xff\xff\xff")
        query = b"SELECT key FROM system.local"
        answer, _ = raw.ask(QUERY, struct.pack(">I", len(query)) + query + b"\0\1\0")
        assert answer == 8


@pytest.mark.parametrize("version", [3, 4, 5])
def test_driver_in_each_version(guarded, version):
    provider = PlainTextAuthProvider("cassandra", "cassandra")
    with Cluster([guarded.host], port=guarded.port, auth_provider=provider, protocol_version=version) as cluster:
        assert cluster.connect().execute("SELECT key FROM system.local").one().key == "local"


@pytest.mark.parametrize(
    "token,text",
    [
        (b"", "Password must not be null"),
        (b"cassandra", "Password must not be null"),
        (b"\0cassandra\0", "Password must not be null"),
        (b"cassandra\0cassandra", "Authentication ID must not be null"),
        (b"\0\0cassandra", "Authentication ID must not be null"),
        (b"\0a\0cassandra\0cassandra", "Credential format error: username or password is empty or contains NUL(\\0) character"),
        (b"\0cassandra\0Cassandra", "Provided username cassandra and/or password are incorrect"),
        (b"\0\xff\xfe\0x", "Provided username \ufffd\ufffd and/or password are incorrect"),
        (b"\0" + b"n" * 20_000 + b"\0x", "Provided username " + "n" * 20_000 + " and/or password are incorrect"),
    ],
)
def test_tokens_that_do_not_fit(guarded, token, text):
    with Raw(guarded) as raw:
        raw.start()
        assert raw.token(token) == (ERROR, BAD_CREDENTIALS, text)
        assert raw.token(b"\0cassandra\0cassandra")[0] == AUTH_SUCCESS, "another try is given"


def test_nothing_is_answered_before_the_login(guarded):
    query = b"SELECT key FROM system.local"
    body = struct.pack(">I", len(query)) + query + b"\0\1\0"
    with Raw(guarded) as raw:
        assert raw.ask(QUERY, body)[:2] == (ERROR, PROTOCOL_ERROR)
        raw.start()
        assert raw.ask(QUERY, body)[:2] == (ERROR, PROTOCOL_ERROR)
        raw.token(b"\0cassandra\0wrong")
        assert raw.ask(QUERY, body)[:2] == (ERROR, PROTOCOL_ERROR)


def test_strangers_send_little(guarded):
    """What is larger than any login is thrown away before the login, and taken after it."""
    with Raw(guarded) as raw:
        raw.start()
        assert raw.token(b"x" * 1_000_000)[:2] == (ERROR, INVALID)
        assert raw.token(b"\0cassandra\0cassandra")[0] == AUTH_SUCCESS
        query = b"SELECT key FROM system.local" + b" " * 1_000_000
        assert raw.ask(QUERY, struct.pack(">I", len(query)) + query + b"\0\1\0")[0] == 8


def test_failing_for_ever_ends(guarded):
    with Raw(guarded) as raw:
        raw.start()
        for _ in range(10):
            assert raw.token(b"\0cassandra\0wrong")[:2] == (ERROR, BAD_CREDENTIALS)
        try:
            assert raw.token(b"\0cassandra\0cassandra") is None
        except ConnectionError:
            pass
    with Raw(guarded) as raw:
        raw.start()
        assert raw.token(b"\0cassandra\0cassandra")[0] == AUTH_SUCCESS


def test_logins_do_not_hold_up_requests(guarded, users):
    """Passwords are hashed beside the workers: a query in a storm of logins waits for none of them."""
    session = users.session("cassandra")

    def fail(_):
        with Raw(guarded) as raw:
            raw.start()
            return raw.token(b"\0cassandra\0wrong")[1]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        storm = [pool.submit(fail, i) for i in range(48)]
        begun, asked = time.monotonic(), 0
        while not all(login.done() for login in storm):
            session.execute("SELECT key FROM system.local")
            asked += 1
        took = time.monotonic() - begun
    assert {login.result() for login in storm} == {BAD_CREDENTIALS}
    assert asked > 20 and took / asked < 0.25, f"{asked} queries in {took:.1f} s"


def test_long_names(users):
    name = "n" * 5_000
    users.session("cassandra").execute(f"CREATE ROLE {name} WITH LOGIN = true AND PASSWORD = '{'p' * 200}'")
    assert users.login(name, "p" * 200) == "done"
    # bcrypt looks at 72 bytes
    assert users.login(name, "p" * 72) == "done"
    assert users.login(name, "p" * 71).startswith("error")
    users.session("cassandra").execute(f"DROP ROLE {name}")
    assert users.answer("cassandra", f"CREATE ROLE {'n' * 70_000}").startswith("error")
    assert users.answer("cassandra", "SELECT key FROM system.local") == "key varchar\n'local'"


def test_prepared_statements_are_checked_when_executed(users):
    admin = users.session("cassandra")
    admin.execute("CREATE KEYSPACE prepared WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    admin.execute("CREATE TABLE prepared.t (k int PRIMARY KEY, v int)")
    admin.execute("CREATE ROLE asker WITH LOGIN = true AND PASSWORD = 'asker'")
    session = users.session("asker")
    select = session.prepare("SELECT * FROM prepared.t WHERE k = ?")
    insert = session.prepare("INSERT INTO prepared.t (k, v) VALUES (?, ?)")
    with pytest.raises(Exception, match="no SELECT permission"):
        session.execute(select, [1])
    admin.execute("GRANT SELECT ON prepared.t TO asker")
    assert list(session.execute(select, [1])) == []
    with pytest.raises(Exception, match="no MODIFY permission"):
        session.execute(insert, [1, 1])
    admin.execute("GRANT MODIFY ON KEYSPACE prepared TO asker")
    session.execute(insert, [1, 1])
    assert len(list(session.execute(select, [1]))) == 1
    admin.execute("REVOKE SELECT ON prepared.t FROM asker")
    with pytest.raises(Exception, match="no SELECT permission"):
        session.execute(select, [1])
    admin.execute("DROP KEYSPACE prepared")
    admin.execute("DROP ROLE asker")


def shell(server, script, *flags):
    command = [str(CQLSH), "--no-color", "--request-timeout=30", "--connect-timeout=30", *flags, server.host, str(server.port)]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_cqlsh(guarded, users):
    users.session("cassandra").execute("CREATE ROLE sheila WITH LOGIN = true AND PASSWORD = 'sheila'")
    code, out = shell(guarded, "LIST ROLES;\n", "-u", "cassandra", "-p", "cassandra")
    assert code == 0 and "sheila" in out and "datacenters" in out, out
    code, out = shell(guarded, "LIST ROLES;\n", "-u", "cassandra", "-p", "wrong")
    assert code != 0 and "Bad credentials" in out, out
    code, out = shell(guarded, "LIST ROLES;\n")
    assert code != 0 and "requires authentication" in out, out
    code, out = shell(guarded, "LOGIN sheila 'sheila'\nLIST ROLES;\nSELECT * FROM system_auth.roles;\n", "-u", "cassandra", "-p", "cassandra")
    assert "sheila" in out and "no SELECT permission" in out, out
    users.session("cassandra").execute("DROP ROLE sheila")


def test_roles_outlive_a_restart(tmp_path):
    server = Server(tmp_path / "data", settings=role_answers.SETTINGS).start()
    with role_answers.Users(server.host, server.port) as users:
        users.session("cassandra").execute("CREATE ROLE stays WITH LOGIN = true AND PASSWORD = 'stays'")
        users.session("cassandra").execute("ALTER ROLE cassandra WITH HASHED PASSWORD = '$2a$10$MwWulXFIn83A4cSgkx7TDu0YD1ohlAGL1KvmbLGZyQWNEGOTvppW6'")
    server.kill()
    server.start()
    with role_answers.Users(server.host, server.port) as users:
        assert users.login("stays", "stays") == "done"
        assert users.login("cassandra", "a") == "done"
        assert users.login("cassandra", "cassandra").startswith("error")
    assert server.stop() == 0


def test_without_logins(contact, is_helenus):
    """AllowAllAuthenticator: drivers may bring credentials, roles cannot be changed."""
    with Cluster([contact.host], port=contact.port, auth_provider=PlainTextAuthProvider("a", "b")) as cluster:
        session = cluster.connect()
        for statement in ["CREATE ROLE r", "LIST ROLES", "LIST ALL PERMISSIONS", "DROP ROLE r", "GRANT SELECT ON ALL KEYSPACES TO r", "GRANT a TO b"]:
            with pytest.raises(Exception, match="You have to be logged in and not anonymous to perform this request"):
                session.execute(statement)
        with pytest.raises(Exception, match="Only superusers can create a role with superuser status"):
            session.execute("CREATE ROLE r WITH SUPERUSER = true")
        with pytest.raises(Exception, match="CassandraRoleManager doesn't support PASSWORD"):
            session.execute("CREATE ROLE r WITH PASSWORD = 'x'")


def test_open_doors_are_told(tmp_path):
    """Who lets everybody in on another address than this machine's own is told so, in one line."""
    server = Server(tmp_path / "data", settings=["broadcast_rpc_address=127.0.0.1"])
    server.host = "0.0.0.0"
    server.start()
    assert server.stop() == 0
    assert server.log_tail(20_000).count("ANYBODY WHO REACHES") == 1
    server = Server(tmp_path / "other").start()
    assert server.stop() == 0
    assert "ANYBODY" not in server.log_tail(20_000)


def test_refused_settings(tmp_path):
    for setting, why in [
        ("authenticator=MutualTlsAuthenticator", "is none of AllowAllAuthenticator, PasswordAuthenticator"),
        ("authorizer=CassandraAuthorizer", "needs authenticator: PasswordAuthenticator"),
        ("cidr_authorizer=CassandraCIDRAuthorizer", "not honoured"),
    ]:
        server = Server(tmp_path / "data", settings=[setting])
        with pytest.raises(RuntimeError, match=why):
            server.start()


def test_wrong_users_are_refused(guarded):
    with pytest.raises(NoHostAvailable, match="Bad credentials"):
        Cluster([guarded.host], port=guarded.port, auth_provider=PlainTextAuthProvider("nobody", "x")).connect()
