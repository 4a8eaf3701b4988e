"""Python, Testcontainers: pip install testcontainers cassandra-driver pytest. The image is loaded first (docker load)."""

import pytest
from cassandra.cluster import Cluster
from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import wait_for_logs


@pytest.fixture(scope="module")
def session():
    with DockerContainer("helenus:0.1.0").with_exposed_ports(9042).with_env("MAX_HEAP_SIZE", "256M") as node:
        wait_for_logs(node, "Startup complete", timeout=30)
        # a driver asks the node for its address, which other machines do not reach: it has to stay with the given one
        with Cluster([node.get_container_host_ip()], port=int(node.get_exposed_port(9042))) as cluster:
            yield cluster.connect()


def test_release(session):
    assert session.execute("SELECT release_version FROM system.local").one().release_version.startswith("5.0")
