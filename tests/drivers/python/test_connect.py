"""Connecting: protocol versions, negotiation, compression, many connections, what the driver learns of the node."""

import random
import socket
import struct
import threading

import pytest
from cassandra import ProtocolVersion
from cassandra.cluster import Cluster, NoHostAvailable
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy


def test_defaults_negotiate_v5(contact):
    with Cluster([contact.host], port=contact.port) as cluster:
        session = cluster.connect()
        assert cluster.protocol_version == ProtocolVersion.V5
        assert session.execute("SELECT key FROM system.local").one().key == "local"


@pytest.mark.parametrize("version", [3, 4, 5])
def test_version_asked_for(contact, version):
    with contact.cluster(protocol_version=version) as cluster:
        session = cluster.connect()
        row = session.execute("SELECT release_version, cql_version FROM system.local").one()
        assert row.release_version.startswith("5.0")
        assert row.cql_version == "3.4.7"


@pytest.mark.parametrize("version", [1, 2])
def test_old_versions_are_refused(contact, version):
    with pytest.raises(NoHostAvailable):
        with contact.cluster(protocol_version=version, allow_beta_protocol_version=True) as cluster:
            cluster.connect()


@pytest.mark.parametrize("version,compression", [(3, "lz4"), (3, "snappy"), (4, "lz4"), (4, "snappy"), (5, "lz4")])
def test_compression(contact, table, version, compression):
    with contact.cluster(protocol_version=version, compression=compression) as cluster:
        session = cluster.connect()
        rows = list(session.execute("SELECT * FROM system_schema.columns"))
        assert len(rows) > 100
        name = table("k int PRIMARY KEY, v text")
        for k, text in enumerate(["", "x", "x" * 200_000, random.Random(1).randbytes(100_000).hex()]):
            session.execute(f"INSERT INTO {name} (k, v) VALUES (%s, %s)", (k, text))
            assert session.execute(f"SELECT v FROM {name} WHERE k = {k}").one().v == text


def raw_exchange(contact, frame):
    with socket.create_connection((contact.host, contact.port), timeout=10) as connection:
        connection.sendall(frame)
        header = b""
        while len(header) < 9:
            part = connection.recv(9 - len(header))
            if not part:
                return header, b""
            header += part
        length = struct.unpack(">I", header[5:9])[0]
        body = b""
        while len(body) < length:
            part = connection.recv(length - len(body))
            if not part:
                break
            body += part
        return header, body


def test_options_without_startup(contact):
    header, body = raw_exchange(contact, bytes([4, 0, 0, 7, 5, 0, 0, 0, 0]))
    assert header[0] == 0x84 and header[4] == 6 and header[2:4] == b"\0\7"
    for word in (b"COMPRESSION", b"lz4", b"snappy", b"CQL_VERSION", b"3.4.7", b"PROTOCOL_VERSIONS", b"3/v3", b"4/v4", b"5/v5"):
        assert word in body


@pytest.mark.parametrize("version", [7, 0x42])
def test_unknown_version_gets_a_protocol_error(contact, version):
    header, body = raw_exchange(contact, bytes([version, 0, 0, 0, 1, 0, 0, 0, 0]))
    assert header[4] == 0, "an ERROR"
    assert struct.unpack(">I", body[:4])[0] == 0x000A
    assert b"nsupported protocol version" in body


def test_query_before_startup_is_refused(contact):
    header, body = raw_exchange(contact, bytes([4, 0, 0, 0, 7, 0, 0, 0, 0]))
    assert header[4] == 0
    assert struct.unpack(">I", body[:4])[0] == 0x000A


def test_a_broken_frame_closes_only_its_connection(contact, session):
    startup = b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0"
    with socket.create_connection((contact.host, contact.port), timeout=10) as connection:
        connection.sendall(bytes([4, 0, 0, 0, 1]) + struct.pack(">I", len(startup)) + startup)
        assert connection.recv(9)[4] == 2
        connection.sendall(bytes([4, 0, 0, 1, 0x63, 0, 0, 0, 0]))  # no such opcode
        answer = connection.recv(4096)
        assert answer[4] == 0 and struct.unpack(">I", answer[9:13])[0] == 0x000A
    assert session.execute("SELECT key FROM system.local").one()


def test_node_metadata(cluster, session):
    hosts = cluster.metadata.all_hosts()
    assert len(hosts) == 1
    host = hosts[0]
    assert host.is_up and host.datacenter == "datacenter1" and host.rack == "rack1"
    assert host.release_version.startswith("5.0")
    assert cluster.metadata.partitioner == "org.apache.cassandra.dht.Murmur3Partitioner"
    assert len(cluster.metadata.token_map.ring) == 16
    assert list(session.execute("SELECT * FROM system.peers")) == []
    assert list(session.execute("SELECT * FROM system.peers_v2")) == []


def test_token_aware_policy(contact, keyspace, session):
    session.execute(f"CREATE TABLE {keyspace}.routed (k int PRIMARY KEY, v int)")
    policy = TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1"))
    with contact.cluster(load_balancing_policy=policy, execution_profiles=None) as cluster:
        routed = cluster.connect(keyspace)
        insert = routed.prepare("INSERT INTO routed (k, v) VALUES (?, ?)")
        assert insert.routing_key_indexes == [0]
        for k in range(50):
            routed.execute(insert, (k, k))
        assert routed.execute("SELECT count(*) FROM routed").one()[0] == 50
        replicas = cluster.metadata.get_replicas(keyspace, b"\0\0\0\1")
        assert len(replicas) == 1


def test_connect_to_keyspace_and_use(contact, keyspace, session):
    session.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.used (k int PRIMARY KEY)")
    with contact.cluster() as cluster:
        used = cluster.connect(keyspace)
        assert list(used.execute("SELECT * FROM used")) == []
        used.execute("USE system")
        assert used.keyspace == "system"
        assert used.execute("SELECT key FROM local").one().key == "local"
        with pytest.raises(Exception, match="(?i)keyspace"):
            used.set_keyspace("no_such_keyspace")


def test_many_connections(contact):
    begin = threading.Barrier(30)
    answers, errors = [], []

    def one():
        try:
            begin.wait(30)
            with socket.create_connection((contact.host, contact.port), timeout=20) as connection:
                for _ in range(20):
                    connection.sendall(bytes([4, 0, 0, 1, 5, 0, 0, 0, 0]))
                    header = connection.recv(9, socket.MSG_WAITALL)
                    connection.recv(struct.unpack(">I", header[5:9])[0], socket.MSG_WAITALL)
                    answers.append(header[4])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(30)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert errors == [] and answers == [6] * 600
