"""What the driver does with many requests: concurrent execution, speculative execution, paging by hand, tracing by chance."""

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.concurrent import execute_concurrent, execute_concurrent_with_args
from cassandra.policies import ConstantSpeculativeExecutionPolicy, RoundRobinPolicy
from cassandra.query import SimpleStatement

from server import Server


def test_execute_concurrent(session, table, rows):
    name = table("k int PRIMARY KEY, v int")
    statements = [(f"INSERT INTO {name} (k, v) VALUES ({k}, {k})", None) for k in range(200)]
    statements.append((f"INSERT INTO {name} (nothing) VALUES (1)", None))
    results = execute_concurrent(session, statements, concurrency=50, raise_on_first_error=False)
    assert [ok for ok, _ in results] == [True] * 200 + [False]
    select = session.prepare(f"SELECT v FROM {name} WHERE k = ?")
    found = execute_concurrent_with_args(session, select, [(k,) for k in range(200)], concurrency=100, results_generator=True)
    assert [result.one().v for _, result in found] == list(range(200))


def test_speculative_execution(contact, table, session):
    name = table("k int PRIMARY KEY, v int")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 1)")
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(), speculative_execution_policy=ConstantSpeculativeExecutionPolicy(0.0, 3)
    )
    with contact.cluster(execution_profiles={EXEC_PROFILE_DEFAULT: profile}) as cluster:
        speculative = cluster.connect()
        statement = SimpleStatement(f"SELECT v FROM {name} WHERE k = 1", is_idempotent=True)
        for _ in range(50):
            assert speculative.execute(statement).one().v == 1


def test_pages_by_hand(session, table):
    name = table("k int, c int, PRIMARY KEY (k, c)")
    for c in range(25):
        session.execute(f"INSERT INTO {name} (k, c) VALUES (1, {c})")
    found, state = [], None
    while True:
        page = session.execute(SimpleStatement(f"SELECT c FROM {name} WHERE k = 1", fetch_size=10), paging_state=state)
        found.append([row.c for row in page.current_rows])
        state = page.paging_state
        if state is None:
            break
    assert found == [list(range(10)), list(range(10, 20)), list(range(20, 25))]


@pytest.fixture(scope="module")
def own_server(tmp_path_factory):
    """A server whose trace probability may be changed."""
    server = Server(tmp_path_factory.mktemp("traced") / "data").start()
    yield server
    assert server.stop() == 0


def test_trace_probability(own_server):
    from conftest import Contact

    with Contact(own_server.host, own_server.port).cluster() as cluster:
        session = cluster.connect()
        count = lambda: session.execute("SELECT count(*) FROM system_traces.sessions").one()[0]
        assert count() == 0
        assert own_server.nodetool("settraceprobability", "1").returncode == 0
        assert "1.0" in own_server.nodetool("gettraceprobability").stdout
        session.execute("SELECT key FROM system.local")
        assert own_server.nodetool("settraceprobability", "0").returncode == 0
        queries = [row.parameters["query"] for row in session.execute("SELECT parameters FROM system_traces.sessions")]
        assert "SELECT key FROM system.local" in queries
        before = count()
        session.execute("SELECT key FROM system.local")
        assert count() == before
