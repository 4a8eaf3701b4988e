"""The node as its operator sees it: started, stopped, killed, asked by nodetool, scraped. Starts servers of its own, so only
for Helenus."""

import os
import queue
import socket
import subprocess
import time
import urllib.request

import cassandra.cluster
import pytest

import server as helenus

if os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
    pytest.skip("these tests start Helenus themselves", allow_module_level=True)

SCHEMA = [
    "CREATE KEYSPACE kept WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE kept.place (name text, number int)",
    "CREATE TABLE kept.rows (k int, c int, v text, s text static, l list<int>, p frozen<place>, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
]


def connect(node):
    from conftest import READS_NO_SCHEMA, Contact

    return Contact(node.host, node.port).cluster(**READS_NO_SCHEMA)


def fill(node):
    with connect(node) as cluster:
        session = cluster.connect()
        for statement in SCHEMA:
            session.execute(statement)
        insert = session.prepare("INSERT INTO kept.rows (k, c, v, s, l, p) VALUES (?, ?, ?, ?, ?, ?)")
        for k in range(10):
            for c in range(30):
                session.execute(insert, (k, c, f"v{k}-{c}", f"s{k}", [k, c], ("High", c)))
        session.execute("DELETE FROM kept.rows WHERE k = 3 AND c >= 10 AND c < 20")
        session.execute("DELETE FROM kept.rows WHERE k = 4")
        session.execute("DELETE v FROM kept.rows WHERE k = 5 AND c = 5")


def content(node):
    with connect(node) as cluster:
        session = cluster.connect()
        rows = session.execute("SELECT k, c, v, s, l, p, writetime(v) FROM kept.rows")
        return sorted((row.k, row.c, row.v, row.s, tuple(row.l), tuple(row.p), row[6]) for row in rows)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    node = helenus.Server(tmp_path_factory.mktemp("node") / "data").start()
    fill(node)
    yield node
    assert node.stop() == 0


@pytest.mark.parametrize("how", ["stop", "kill", "flush and kill", "drain and kill", "compact and stop"])
def test_what_was_written_is_there_after_a_restart(node, how):
    fill(node)
    before = content(node)
    assert len(before) == 300 - 10 - 30
    if how != "stop" and how != "kill":
        done = node.nodetool(how.split()[0])
        assert done.returncode == 0, done.stderr
    if "kill" in how:
        node.kill()
    else:
        assert node.stop() == 0, node.log_tail()
    node.start()
    assert content(node) == before
    assert node.stop() == 0, node.log_tail()


def test_what_was_truncated_or_dropped_stays_away_after_a_kill(node):
    fill(node)
    with connect(node) as cluster:
        session = cluster.connect()
        session.execute("CREATE TABLE kept.gone (k int PRIMARY KEY)")
        session.execute("INSERT INTO kept.gone (k) VALUES (1)")
        session.execute("TRUNCATE kept.rows")
        session.execute("INSERT INTO kept.rows (k, c, v) VALUES (1, 1, 'after')")
        session.execute("DROP TABLE kept.gone")
    node.kill()
    node.start()
    with connect(node) as cluster:
        session = cluster.connect()
        assert [tuple(row) for row in session.execute("SELECT k, c, v FROM kept.rows")] == [(1, 1, "after")]
        with pytest.raises(Exception, match="gone"):
            session.execute("SELECT * FROM kept.gone")


def test_many_kills(node):
    fill(node)
    with connect(node) as cluster:
        session = cluster.connect()
        written = 0
    for round_number in range(5):
        with connect(node) as cluster:
            session = cluster.connect()
            insert = session.prepare("INSERT INTO kept.rows (k, c, v) VALUES (100, ?, 'x')")
            for _ in range(50):
                session.execute(insert, (written,))
                written += 1
            if round_number % 2:
                assert node.nodetool("flush").returncode == 0
        node.kill()
        node.start()
    with connect(node) as cluster:
        rows = cluster.connect().execute("SELECT c FROM kept.rows WHERE k = 100 ORDER BY c ASC")
        assert [row.c for row in rows] == list(range(written))


def test_a_second_server_is_refused(node):
    command = [helenus.binary(), "serve", "--data-dir", str(node.data_dir), "--port", str(helenus.free_port()), "--admin-port", str(helenus.free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and str(node.data_dir) in done.stderr
    command = [helenus.binary(), "serve", "--data-dir", f"{node.data_dir}-2", "--port", str(node.port), "--admin-port", str(helenus.free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and str(node.port) in done.stderr


def test_unknown_settings_are_refused_by_name(tmp_path):
    command = [helenus.binary(), "serve", "--data-dir", str(tmp_path / "data"), "--port", str(helenus.free_port()), "--admin-port", str(helenus.free_port()), "--set", "no_such_key=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "no_such_key" in done.stderr


def test_settings_with_old_and_new_names(tmp_path):
    settings = ["read_request_timeout_in_ms=7000", "write_request_timeout=3s", "cluster_name=Named"]
    node = helenus.Server(tmp_path / "data", settings).start()
    try:
        with connect(node) as cluster:
            session = cluster.connect()
            assert session.execute("SELECT cluster_name FROM system.local").one()[0] == "Named"
        assert "7000 ms" in node.nodetool("gettimeout", "read").stdout
    finally:
        assert node.stop() == 0


TIERED = {"class": "SizeTieredCompactionStrategy", "max_threshold": "32", "min_threshold": "4"}
# As a Cassandra shows them with the default_compaction of its cassandra_latest.yaml
UNIFIED = {
    "class": "UnifiedCompactionStrategy", "max_sstables_to_compact": "64", "min_sstable_size": "100MiB", "scaling_parameters": "T4",
    "sstable_growth": "0.3333333333333333", "target_sstable_size": "1GiB",
}


@pytest.mark.parametrize("setting, compaction, fp_chance", [
    ("default_compaction=null", UNIFIED, 0.01),
    ("default_compaction=SizeTieredCompactionStrategy", TIERED, 0.01),
    ("default_compaction={class_name: LeveledCompactionStrategy, parameters: {sstable_size_in_mb: 64}}",
     {"class": "LeveledCompactionStrategy", "max_threshold": "32", "min_threshold": "4", "sstable_size_in_mb": "64"}, 0.1),
])
def test_new_tables_have_the_strategy_of_the_configuration(tmp_path, setting, compaction, fp_chance):
    node = helenus.Server(tmp_path / "data", [setting]).start()
    try:
        with connect(node) as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            session.execute("CREATE TABLE k.t (k int PRIMARY KEY, v int)")
            session.execute("CREATE TABLE k.own (k int PRIMARY KEY, v int) WITH compaction = {'class': 'SizeTieredCompactionStrategy'}")
            found = {}
            for row in session.execute("SELECT keyspace_name, table_name, compaction, bloom_filter_fp_chance FROM system_schema.tables"):
                options = {name: value.removeprefix("org.apache.cassandra.db.compaction.") for name, value in row.compaction.items()}
                found[row.keyspace_name, row.table_name] = (options, row.bloom_filter_fp_chance)
            assert found["k", "t"] == (compaction, fp_chance)
            assert found["k", "own"] == (TIERED, 0.01)
            assert found["system", "local"] == (TIERED, 0.01)
            described = session.execute("DESCRIBE TABLE k.t").one().create_statement
            assert all(f"'{name}': '" in described for name in compaction) and compaction["class"] in described
    finally:
        assert node.stop() == 0


def test_a_strategy_that_there_is_not_is_refused_at_the_start(tmp_path):
    for setting, why in [
        ("default_compaction=NoStrategy", "default_compaction: Unable to find compaction strategy class"),
        ("default_compaction={class_name: LeveledCompactionStrategy, parameters: {scaling_parameters: T4}}", "default_compaction: Properties specified"),
    ]:
        command = [helenus.binary(), "serve", "--data-dir", str(tmp_path / "data"), "--port", str(helenus.free_port()), "--admin-port", str(helenus.free_port()), "--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and why in done.stderr, done.stderr


def test_start_is_fast_and_small(node):
    assert node.seconds_to_ready < 2, "a debug build on a busy machine; a release build needs less than 0.1 s"
    # The pages of an unoptimised program's own code say nothing of a release, so only memory that the server asked for counts.
    with open(f"/proc/{node.process.pid}/status") as status:
        kibibytes = {line.split(":")[0]: int(line.split()[1]) for line in status if line.startswith("Rss")}
    assert 1024 < kibibytes["RssAnon"] < 40 * 1024, kibibytes


VERBS = [
    (["status"], ["Datacenter: datacenter1", "=======================", "Status=Up/Down", "|/ State=Normal/Leaving/Joining/Moving", "UN  127.0.0.1"]),
    (["info"], ["ID                     : ", "Gossip active          : ", "Native Transport active: true", "Uptime (seconds)       : ", "Data Center            : datacenter1"]),
    (["version"], ["ReleaseVersion: 5.0"]),
    (["describecluster"], ["Cluster Information:", "\tName: Test Cluster", "\tPartitioner: org.apache.cassandra.dht.Murmur3Partitioner"]),
    (["ring"], ["Datacenter: datacenter1", "==========", "Up     Normal"]),
    (["tablestats", "kept.rows"], ["Total number of tables:", "Keyspace: kept", "\tTable: rows", "\t\tSSTable count: ", "\t\tSpace used (live): ", "\t\tLocal read latency: "]),
    (["tablehistograms", "kept", "rows"], ["kept/rows histograms", "Percentile", "95%", "Min", "Max"]),
    (["compactionstats"], ["pending tasks"]),
    (["getendpoints", "kept", "rows", "7"], ["127.0.0.1"]),
    (["gettimeout", "read"], ["Current timeout for type read: 5000 ms"]),
    (["gettraceprobability"], ["Current trace probability: 0.0"]),
]  # fmt: skip


@pytest.mark.parametrize("verb,lines", VERBS, ids=[" ".join(verb) for verb, _ in VERBS])
def test_nodetool_layouts(shared, verb, lines):
    done = shared.nodetool(*verb)
    assert done.returncode == 0, done.stderr
    for line in lines:
        assert line in done.stdout, done.stdout


def test_clients_are_sent_away_and_let_in_again(node):
    """What drivers see of `nodetool disablebinary` and `enablebinary`: DOWN, a closed port, and the node again."""
    fill(node)
    with connect(node) as cluster:
        session = cluster.connect()
        seen = queue.Queue()
        cluster.control_connection._connection.register_watchers({"STATUS_CHANGE": seen.put})
        assert node.nodetool("statusbinary").stdout == "running\n"
        for flags in ([], [], ["--force"]):
            assert node.nodetool("disablebinary", *flags).returncode == 0
        assert seen.get(timeout=10) == {"change_type": "DOWN", "address": (node.host, node.port)}
        assert node.nodetool("statusbinary").stdout == "not running\n"
        assert "Native Transport active: false" in node.nodetool("info").stdout
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((node.host, node.port))
        assert node.nodetool("flush").returncode == 0, "the operator's side goes on"
        for _ in range(2):
            assert node.nodetool("enablebinary").returncode == 0
        assert node.nodetool("statusbinary").stdout == "running\n"
        assert len(content(node)) > 200
        # the session that was there before finds back by itself
        until = time.monotonic() + 60
        while True:
            try:
                assert session.execute("SELECT c FROM kept.rows WHERE k = 1 LIMIT 1").one() is not None
                break
            except cassandra.cluster.NoHostAvailable:
                assert time.monotonic() < until
                time.sleep(0.2)
    assert node.nodetool("drain").returncode == 0
    refused = node.nodetool("enablebinary")
    assert refused.returncode == 1 and "Unable to start native transport because the node was drained." in refused.stderr + refused.stdout


def test_clients_may_have_to_wait_for_the_operator(tmp_path):
    """`start_native_transport: false`: the node is up for nodetool, and for clients behind `enablebinary`."""
    node = helenus.Server(tmp_path / "data", settings=["start_native_transport=false"]).start()
    try:
        assert node.nodetool("statusbinary").stdout == "not running\n"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((node.host, node.port))
        assert "UN  127.0.0.1" in node.nodetool("status").stdout
        assert node.nodetool("enablebinary").returncode == 0
        fill(node)
        assert node.nodetool("statusbinary").stdout == "running\n"
    finally:
        assert node.stop() == 0


def test_guardrails_are_changed_until_the_next_start(node):
    """`nodetool setguardrailsconfig`: what is in force is what nodetool and system_views.settings show; nothing else can be set."""

    def in_force():
        with connect(node) as cluster:
            statement = "SELECT value FROM system_views.settings WHERE name = 'tables_warn_threshold'"
            return node.nodetool("getguardrailsconfig", "tables_threshold").stdout, cluster.connect().execute(statement).one().value

    assert in_force() == ("[-1, -1]\n", "-1")
    assert node.nodetool("setguardrailsconfig", "tables_threshold", "20", "10").returncode == 0
    assert in_force() == ("[20, 10]\n", "10")
    refused = node.nodetool("setguardrailsconfig", "tables_threshold", "5", "10")
    assert refused.returncode == 1 and "The warn threshold 10 for tables_warn_threshold should be lower than the fail threshold 5" in refused.stderr + refused.stdout
    assert in_force() == ("[20, 10]\n", "10"), "a change that is refused changes nothing"
    assert "Guardrail cdc_enabled not found." in node.nodetool("setguardrailsconfig", "cdc_enabled", "true").stderr
    shown = node.nodetool("getguardrailsconfig").stdout
    assert "tables_threshold" in shown and "cdc_enabled" not in shown
    assert node.stop() == 0
    node.start()
    assert in_force() == ("[-1, -1]\n", "-1")


def test_snapshots(shared):
    done = shared.nodetool("snapshot", "-t", "first", "kept")
    assert done.returncode == 0 and "Requested creating snapshot(s) for [kept] with snapshot name [first]" in done.stdout
    listed = shared.nodetool("listsnapshots").stdout
    assert "Snapshot Details:" in listed and any(line.split()[:3] == ["first", "kept", "rows"] for line in listed.splitlines())
    files = list(shared.data_dir.glob("**/kept/rows-*/snapshots/first/*-Data.db"))
    assert files, "the snapshot holds the SSTables"
    assert shared.nodetool("clearsnapshot").returncode == 1
    assert shared.nodetool("clearsnapshot", "-t", "first").returncode == 0
    assert "first" not in shared.nodetool("listsnapshots").stdout


def test_nodetool_refuses_what_it_does_not_know(shared):
    for arguments in (["frobnicate"], ["flush", "nosuch"], ["tablestats", "nosuch"], ["settraceprobability", "2"]):
        done = shared.nodetool(*arguments)
        assert done.returncode != 0 and (done.stderr + done.stdout).strip(), arguments


def test_files_are_cassandras(shared):
    assert shared.nodetool("flush").returncode == 0
    [directory] = [path for path in shared.data_dir.glob("**/kept/rows-*") if path.is_dir()]
    components = {path.name.split("-", 3)[3] for path in directory.iterdir() if path.name.startswith("da-")}
    assert components >= {"Data.db", "Partitions.db", "Rows.db", "Filter.db", "Statistics.db", "CompressionInfo.db", "Digest.crc32", "TOC.txt"}


def test_metrics(shared):
    with urllib.request.urlopen(f"http://{shared.host}:{shared.admin_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line and not line.startswith("#")}
    assert text.count("# TYPE") > 10
    for part in ("request", "read_latency", "write_latency", "commitlog", "compaction", "memory", "cache"):
        assert any(part in name for name in names), part
