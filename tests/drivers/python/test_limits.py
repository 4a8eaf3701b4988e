"""Where things end: frames too large, garbage, too many connections, idle ones, a full cache of prepared statements, requests
beyond the bytes in flight. Each harms its own connection or request and nothing else."""

import os
import socket
import struct
import time

import pytest

import server as helenus
from conftest import Contact

STARTUP = b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0"


def frame(version, opcode, body, stream=1):
    return bytes([version, 0, 0, stream, opcode]) + struct.pack(">I", len(body)) + body


def opened(contact, version):
    connection = socket.create_connection((contact.host, contact.port), timeout=10)
    connection.sendall(frame(version, 1, STARTUP))
    assert connection.recv(9, socket.MSG_WAITALL)[4] == 2
    return connection


def closed(connection):
    """Reads until the other side closes, or has said what is wrong: the bytes that came."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    except TimeoutError:
        assert received, "neither closed nor answered"
    return received


def still_serves(session):
    return session.execute("SELECT key FROM system.local").one().key == "local"


def test_a_frame_over_the_limit(contact, session):
    with opened(contact, 4) as connection:
        connection.sendall(bytes([4, 0, 0, 1, 7]) + struct.pack(">I", 300 << 20) + b"x" * 1000)
        connection.settimeout(10)
        try:
            answer = connection.recv(4096)
        except (ConnectionResetError, TimeoutError):
            answer = b""
        assert answer == b"" or (answer[4] == 0 and b"too" in answer.lower() or b"exceed" in answer.lower())
    assert still_serves(session)


@pytest.mark.parametrize("version", [4, 5])
def test_garbage_after_the_handshake(contact, session, version):
    with opened(contact, version) as connection:
        connection.sendall(b"\xde\xad\xbe\xef" * 64)
        connection.settimeout(3)
        closed(connection)
    assert still_serves(session)


def test_garbage_before_the_handshake(contact, session):
    with socket.create_connection((contact.host, contact.port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.settimeout(3)
        closed(connection)
    assert still_serves(session)


def test_half_a_frame_and_gone(contact, session):
    for size in (1, 5, 9, 20):
        with socket.create_connection((contact.host, contact.port), timeout=10) as connection:
            connection.sendall(frame(4, 1, STARTUP)[:size])
    assert still_serves(session)


@pytest.fixture
def node_with(tmp_path):
    """A server of one's own with settings; Helenus only."""
    if os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
        pytest.skip("starts Helenus itself")
    nodes = []

    def start(*settings):
        node = helenus.Server(tmp_path / "data", settings).start()
        nodes.append(node)
        return node

    yield start
    for node in nodes:
        assert node.stop() == 0, node.log_tail()


def test_connections_in_all(node_with):
    node = node_with("native_transport_max_concurrent_connections=3")
    held = [opened(node, 4) for _ in range(3)]
    with socket.create_connection((node.host, node.port), timeout=10) as refused:
        refused.settimeout(10)
        try:
            refused.sendall(frame(4, 1, STARTUP))
        except OSError:
            pass
        assert closed(refused)[4:5] in (b"", b"\0"), "closed, with or without an ERROR"
    held.pop().close()
    time.sleep(0.3)
    held.append(opened(node, 4))
    for connection in held:
        connection.close()


def test_connections_per_address(node_with):
    node = node_with("native_transport_max_concurrent_connections_per_ip=2")
    held = [opened(node, 4) for _ in range(2)]
    with socket.create_connection((node.host, node.port), timeout=10) as refused:
        refused.settimeout(10)
        refused.sendall(frame(4, 1, STARTUP))
        assert closed(refused)[4:5] in (b"", b"\0")
    for connection in held:
        connection.close()


def test_idle_connections_are_closed(node_with):
    node = node_with("native_transport_idle_timeout=1s")
    with opened(node, 4) as connection:
        connection.settimeout(10)
        begun = time.monotonic()
        closed(connection)
        assert 0.5 < time.monotonic() - begun < 8


def test_a_small_cache_of_prepared_statements(node_with):
    """What was forgotten is prepared again by the driver, without the application noticing."""
    node = node_with("prepared_statements_cache_size=1MiB")
    with Contact(node.host, node.port).cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE cached WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE cached.t (k int PRIMARY KEY, v text)")
        first = session.prepare("INSERT INTO cached.t (k, v) VALUES (?, 'first')")
        for number in range(3000):
            session.prepare(f"SELECT v AS \"{'column' * 20}{number}\" FROM cached.t WHERE k = ?")
        session.execute(first, (1,))
        assert session.execute("SELECT v FROM cached.t").one().v == "first"


def test_a_statement_over_the_frame_size_of_the_server(node_with):
    node = node_with("native_transport_max_frame_size=1MiB")
    with Contact(node.host, node.port).cluster() as cluster:
        session = cluster.connect()
        with pytest.raises(Exception):
            session.execute("SELECT key FROM system.local WHERE key = '" + "x" * (2 << 20) + "'")
    with Contact(node.host, node.port).cluster() as cluster:
        assert still_serves(cluster.connect())
