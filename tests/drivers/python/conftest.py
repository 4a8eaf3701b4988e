"""Where the tests connect to, and a keyspace for each file.

HELENUS_TEST_HOST and HELENUS_TEST_PORT name a running server: Helenus, or a real Cassandra, on which every expectation in these
files was proven. Without them a server is started for the run (see server.py).
"""

import itertools
import os

import pytest
import role_answers
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy

from server import Server

REQUEST_SECONDS = 30
# for a driver that is only to send statements: otherwise it reads the whole schema when it connects, and what has changed behind each change
READS_NO_SCHEMA = {"schema_metadata_enabled": False, "token_metadata_enabled": False, "max_schema_agreement_wait": 0}


class Contact:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def cluster(self, **options):
        profile = ExecutionProfile(
            load_balancing_policy=RoundRobinPolicy(), retry_policy=FallthroughRetryPolicy(), request_timeout=REQUEST_SECONDS
        )
        options.setdefault("execution_profiles", {EXEC_PROFILE_DEFAULT: profile})
        options.setdefault("connect_timeout", REQUEST_SECONDS)
        # a driver reads what has changed behind the answer to its own statement; behind the event it would read it once more, and
        # the changes of all other tests too. Tests of events say so.
        options.setdefault("schema_event_refresh_window", -1)
        return Cluster([self.host], port=self.port, **options)


@pytest.fixture(scope="session")
def contact(tmp_path_factory):
    host = os.environ.get("HELENUS_TEST_HOST")
    if host:
        yield Contact(host, int(os.environ.get("HELENUS_TEST_PORT", "9042")))
        return
    server = Server(tmp_path_factory.mktemp("server") / "data", settings=["user_defined_functions_enabled=true"]).start()
    yield Contact(server.host, server.port)
    assert server.stop() == 0, server.log_tail()


@pytest.fixture(scope="session")
def is_helenus(contact):
    """Only for what a user may see differ, such as the text of a trace."""
    return os.environ.get("HELENUS_TEST_PEER", "helenus") == "helenus"


@pytest.fixture(scope="session")
def cluster(contact):
    with contact.cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session(cluster):
    return cluster.connect()


@pytest.fixture(scope="module")
def keyspace(request, session):
    name = request.module.__name__.split(".")[-1]
    session.execute(f"DROP KEYSPACE IF EXISTS {name}")
    session.execute(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    yield name
    session.execute(f"DROP KEYSPACE IF EXISTS {name}")


_numbers = itertools.count()


@pytest.fixture(scope="module")
def table(keyspace, session):
    """A function that makes a table of the given columns (and options) and hands back its full name."""

    def create(columns, options=""):
        name = f"{keyspace}.t{next(_numbers)}"
        session.execute(f"CREATE TABLE {name} ({columns}) {options}")
        return name

    return create


@pytest.fixture(scope="module")
def rows(session):
    """A function that runs a statement and hands back its rows as tuples."""

    def run(query, parameters=None, **options):
        return [tuple(row) for row in session.execute(query, parameters, **options)]

    return run


@pytest.fixture
def node(tmp_path):
    """A server of the test's own, whatever HELENUS_TEST_HOST says."""
    node = Server(tmp_path / "data").start()
    yield node
    if node.process.poll() is None:
        node.kill()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server where users have to log in: the one at HELENUS_TEST_GUARDED (HOST:PORT), or one of ours."""
    if given := os.environ.get("HELENUS_TEST_GUARDED"):
        host, port = given.rsplit(":", 1)
        yield Contact(host, int(port))
        return
    server = Server(tmp_path_factory.mktemp("guarded") / "data", settings=role_answers.SETTINGS).start()
    yield server
    assert server.stop() == 0, server.log_tail()
