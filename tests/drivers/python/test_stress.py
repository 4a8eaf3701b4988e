"""`helenus stress`: cassandra-stress's commands against a node, and what they report."""

import html.parser
import json
import os
import signal
import subprocess
import time

import pytest

import server as servers
from test_tls import options, pki  # noqa: F401 (a fixture)

PROFILE = """
specname: sensors
keyspace: stress_profile
keyspace_definition: |
  CREATE KEYSPACE stress_profile WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
table: readings
table_definition: |
  CREATE TABLE readings (sensor uuid, day date, at timestamp, kind text, value double, tags set<text>, place frozen<tuple<int, text>>,
                         note text static, PRIMARY KEY ((sensor), day, at))
columnspec:
  - name: sensor
    population: uniform(1..50)
  - name: day
    cluster: fixed(3)
  - name: at
    cluster: uniform(2..4)
  - name: kind
    size: gaussian(4..12)
    population: fixed(10)
insert:
  partitions: fixed(2)
  batchtype: UNLOGGED
  select: fixed(1)/1
queries:
  day:
    cql: SELECT * FROM readings WHERE sensor = ? AND day = ?
    fields: samerow
  Note:
    cql: UPDATE readings SET note = ? WHERE sensor = ?
token_range_queries:
  all:
    columns: kind, value
    page_size: 40
"""
# every type, where a set, a map and a list can be empty, and a few different partitions: seeds give the same key again and again
TYPES = """
keyspace: stress_profile
keyspace_definition: "CREATE KEYSPACE stress_profile WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
table: everything
table_definition: |
  CREATE TABLE everything (p int, q text, c blob, d boolean, a ascii, b bigint, da date, de decimal, dou double, du duration, f float, i inet, sm smallint,
                           st text static, t time, ti tinyint, ts timestamp, tu timeuuid, u uuid, v varint, l list<int>, s set<text>, m map<text, int>,
                           fl frozen<map<int, frozen<set<int>>>>, ve vector<float, 3>, PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)
columnspec:
  - {name: p, population: uniform(1..5)}
  - {name: q, population: uniform(1..2)}
  - {name: c, cluster: uniform(1..6), size: uniform(1..3)}
  - {name: d, cluster: fixed(2)}
  - {name: l, size: uniform(0..3)}
  - {name: s, size: uniform(0..3)}
  - {name: m, size: uniform(0..3)}
insert:
  row-population: uniform(1..4)/4
queries: {}
"""
COUNTERS = """
specname: hits
keyspace: stress_profile
table: hits
table_definition: CREATE TABLE hits (page text, day int, hits counter, PRIMARY KEY (page, day))
columnspec:
  - {name: day, cluster: fixed(4)}
insert: {partitions: fixed(3), batchtype: COUNTER}
queries: {}
"""

# columns of a table, and the keyspace of tables with as many
THREE = ["-schema", "keyspace=three", "-col", "n=FIXED(3)"]


def stress(server, *words, fails=False):
    """Standard output and errors of a load; with `words` of -node it is told where to go."""
    command = [servers.binary(), "stress", *words, "-node", f"{server.host}:{server.port}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done


def results(report):
    """Kinds of operations of the first run."""
    kinds = json.loads(report.read_text())["runs"][0]["kinds"]
    return {name: kind["results"] for name, kind in kinds.items()}


def test_a_read_finds_what_a_write_of_the_same_seeds_wrote(contact, session, tmp_path):
    report = tmp_path / "write.json"
    done = stress(contact, "write", "n=2000", "no-warmup", "-rate", "threads=20", *THREE, "size=UNIFORM(5..50)", "-log", f"json={report}")
    assert done.stdout.rstrip().endswith("END") and "Total errors              : 0" in done.stdout
    run = json.loads(report.read_text())["runs"][0]
    assert (run["threads"], run["total"]["operations"], run["total"]["errors"]) == (20, 2000, 0)
    assert run["kinds"]["WRITE"]["results"]["p99_ms"] > 0
    assert session.execute("SELECT count(*) FROM three.standard1").one()[0] == 2000

    done = stress(contact, "read", "n=1000", "no-warmup", "-rate", "threads=8", "-pop", "seq=1..2000", *THREE, "size=UNIFORM(5..50)")
    assert "Total errors              : 0" in done.stdout
    # other sizes: other values
    done = stress(contact, "read", "n=10", "no-warmup", "-rate", "threads=1", "-pop", "seq=1..10", *THREE, "-errors", "retries=0", fails=True)
    assert "is not what a write" in done.stderr
    # seeds that nobody wrote
    done = stress(contact, "read", "n=5", "no-warmup", "-rate", "threads=1", "-pop", "seq=900001..900009", "-errors", "retries=0", "ignore", *THREE)
    assert "Total errors              : 5" in done.stdout and "Total retries             : 0" in done.stdout
    assert done.stderr.count("no row for seed 90000") == 5
    # all tries are counted, and the run that fails is reported like any other
    words = ["read", "n=5", "no-warmup", "-rate", "threads=1", "-pop", "seq=900001..900009", "-errors", "retries=2"]
    done = stress(contact, *words, *THREE, "-log", f"json={report}", "level=minimal", fails=True)
    assert "failed 3 times: no row" in done.stderr and done.stdout.rstrip().endswith("FAILURE")
    assert (results(report)["READ"]["errors"], results(report)["READ"]["retries"], results(report)["READ"]["operations"]) == (1, 2, 1)


def test_keys_timestamps_and_reads_behind_the_writes(contact, session):
    where = ["-schema", "keyspace=behind", "-rate", "threads=10"]
    stress(contact, "write", "n=20", "keysize=24", "no-warmup", *where, "-col", "n=FIXED(1)", "timestamp=1700000000000000")
    rows = list(session.execute('SELECT key, writetime("C0") AS at FROM behind.standard1'))
    assert {len(row.key) for row in rows} == {24} and {row.at for row in rows} == {1700000000000000} and len(rows) == 20
    stress(contact, "read", "n=20", "keysize=24", "no-warmup", *where, "-col", "n=FIXED(1)", "slice", "-pop", "seq=1..20")
    # no read asks for what was not written yet, though both go on at once: each that did would fail
    words = ["mixed", "ratio(write=1,read=1)", "n=2000", "no-warmup", "-pop", "seq=1..4000", "read-lookback=EXP(1..500)", "-errors", "retries=3"]
    stress(contact, "write", "n=10", "no-warmup", *where, "-col", "n=FIXED(1)")
    stress(contact, *words, *where, "-col", "n=FIXED(1)")


def test_a_fixed_rate_is_kept_and_reported(contact, tmp_path):
    page, log, lines = tmp_path / "report.html", tmp_path / "times.hdr", tmp_path / "lines.txt"
    words = ["mixed", "ratio(write=1,read=1)", "duration=3s", "no-warmup", "-rate", "threads=10", "fixed=400/s", "-pop", "seq=1..50"]
    stress(contact, "write", "n=50", "no-warmup", "-rate", "threads=4")
    report = tmp_path / "mixed.json"
    done = stress(contact, *words, "-graph", f"file={page}", "title=a <title>", "-log", f"hdrfile={log}", f"file={lines}", f"json={report}", "interval=500ms")
    run = json.loads(report.read_text())["runs"][0]
    assert 300 < run["total"]["per_second"] < 440, done.stdout
    assert set(run["kinds"]) == {"WRITE", "READ"} and len(run["intervals"]) >= 5
    assert "Service 99th percentile" in done.stdout
    assert report_of(page) == {"title": "a <title>", "plots": 5, "rows": 3, "runs": ["unknown"]}
    assert sum(line.startswith("Tag=all") for line in log.read_text().splitlines()) == len(run["intervals"])
    assert lines.read_text() == done.stdout
    # a second run comes beside the first
    stress(contact, *words, "-graph", f"file={page}", "title=two", "revision=</script>", "op=half", "-log", "interval=500ms")
    assert report_of(page) == {"title": "two", "plots": 5, "rows": 6, "runs": ["unknown", "</script>"]}
    done = stress(contact, "read", "n=1", "no-warmup", "-rate", "threads=1", "-pop", "seq=1..1", "-graph", f"file={lines}", fails=True)
    assert "no report of this tool" in done.stderr and "Running" not in done.stdout


@pytest.mark.parametrize("words", [["-log", "json=none/run.json"], ["-graph", "file=none/run.html"]])
def test_files_that_cannot_be_written_are_told_before_the_load(contact, words):
    done = stress(contact, "write", "n=1", "no-warmup", "-rate", "threads=1", *words, fails=True)
    assert "none/run." in done.stderr and "Running" not in done.stdout, done.stdout


class Page(html.parser.HTMLParser):
    """Elements of a report, and what stands in some."""

    VOID = {"meta"}

    def __init__(self):
        super().__init__()
        self.open, self.count, self.text = [], {}, {}

    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.setdefault(self.open[-1] if self.open else "", []).append(data)


def report_of(path):
    page = Page()
    page.feed(path.read_text())
    page.close()
    assert not page.open and page.count["polyline"] >= 5
    assert not {"link", "img", "iframe"} & set(page.count) and page.count["script"] == 1
    runs = json.loads("".join(page.text["script"]))
    return {"title": "".join(page.text["title"]), "plots": page.count["svg"], "rows": page.count["tr"] - 1, "runs": [run["revision"] for run in runs]}


def test_a_server_that_stalls_is_not_spared(tmp_path):
    """A second of four without an answer: a quarter of what should have been asked waited for up to a second, though few were on the way."""
    node = servers.Server(tmp_path / "data").start()
    report = tmp_path / "stalled.json"
    stress(node, "write", "n=50", "no-warmup", "-rate", "threads=4")
    command = [servers.binary(), "stress", "read", "duration=4s", "no-warmup", "-node", f"{node.host}:{node.port}", "-pop", "dist=UNIFORM(1..50)"]
    command += ["-rate", "threads=4", "fixed=200/s", "-log", f"json={report}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        while not load.stdout.readline().startswith("total,"):
            pass
        os.kill(node.process.pid, signal.SIGSTOP)
        time.sleep(1)
        os.kill(node.process.pid, signal.SIGCONT)
        load.communicate()
    assert node.stop() == 0
    (run,) = json.loads(report.read_text())["runs"]
    assert run["total"]["errors"] == 0 and 700 <= run["total"]["operations"] <= 810
    times = {round(point["percentile"], 1): point for point in run["percentiles"]}
    # uniform from 0 to 1 s over a quarter of the operations: the 90th percentile stands at 0.6 s
    assert 400 < times[90.0]["response_ms"] < 900, times[90.0]
    # four were on the way when it stopped
    assert times[90.0]["service_ms"] < 200, times[90.0]
    assert run["total"]["max_ms"] > 900


def test_an_interrupted_load_has_results(contact, tmp_path):
    report = tmp_path / "interrupted.json"
    command = [servers.binary(), "stress", "write", "duration=100s", "no-warmup", "-node", f"{contact.host}:{contact.port}"]
    command += ["-rate", "threads=4", "-log", f"json={report}", "interval=100ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as load:
        assert any(line.startswith("total,") for line in iter(load.stdout.readline, "")), load.stderr.read()
        load.send_signal(signal.SIGINT)
        out, err = load.communicate(timeout=60)
    assert load.returncode == 1 and "interrupted" in err and "Op rate" in out and out.rstrip().endswith("FAILURE"), out + err
    assert results(report)["WRITE"]["operations"] > 0


def test_a_load_ends_when_nobody_reads_its_lines(contact):
    command = [servers.binary(), "stress", "write", "duration=100s", "no-warmup", "-node", f"{contact.host}:{contact.port}"]
    command += ["-rate", "threads=4", "-log", "interval=100ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as load:
        load.stdout.readline()
        load.stdout.close()
        err = load.stderr.read()
        assert load.wait(60) == 1 and "standard output" in err and "panicked" not in err, err


def test_tls_and_a_login(tmp_path, pki):  # noqa: F811
    encryption = options(pki, require_client_auth=True, truststore=str(pki / "ca.pem"))
    node = servers.Server(tmp_path / "data", settings=[encryption, "authenticator=PasswordAuthenticator"]).start()
    login = ["-mode", "user=cassandra", "password=cassandra"]
    tls = ["-transport", f"truststore={pki / 'ca.pem'}", f"keystore={pki / 'client.pem'}"]
    once = ["n=200", "no-warmup", "-rate", "threads=4"]
    stress(node, "write", *once, *login, *tls)
    stress(node, "read", *once, *login, *tls, "ssl-protocol=TLSv1.2", "ssl-ciphers=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "-pop", "seq=1..200")
    (tmp_path / "credentials").write_text("cql.username=cassandra\ncql.password=cassandra\n")
    done = stress(node, "read", *once, "-credentials-file", str(tmp_path / "credentials"), *tls, "-pop", "seq=1..200")
    assert "Total errors              : 0" in done.stdout
    for words, text in [
        ([*login], "no connection to"),
        ([*login, "-transport", f"truststore={pki / 'ca.pem'}"], "keystore="),
        ([*login, "-transport", f"truststore={pki / 'client.crt'}", f"keystore={pki / 'client.pem'}"], "TLS with"),
        ([*login, "-transport", f"truststore={pki / 'node.key'}"], "holds no certificate in PEM"),
        ([*login, *tls, "ssl-ciphers=ROT13"], "known are TLS_AES_256_GCM_SHA384"),
        (["-mode", "user=cassandra", "password=wrong", *tls], "no connection to"),
    ]:
        done = stress(node, "read", *once, *words, fails=True)
        assert text in done.stderr and "wrong" not in done.stderr + done.stdout, done.stderr
    assert node.stop() == 0


def test_all_types_are_written_as_they_are_validated(contact, session, tmp_path):
    profile = tmp_path / "types.yaml"
    profile.write_text(TYPES)
    # one at a time: of two inserts of a list at the same microsecond both add their elements
    def user(*words, fails=False):
        done = stress(contact, "user", f"profile={profile}", "no-warmup", *words, "-rate", "threads=1", "-pop", "seq=1..60", fails=fails)
        return done.stderr

    user("ops(insert=1)", "n=60", "-insert", "partitions=uniform(1..3)", "batchtype=UNLOGGED")
    assert len(list(session.execute("SELECT DISTINCT p, q FROM stress_profile.everything"))) == 10
    user("ops(validate=1)", "n=60")
    # half of the rows, and partitions in parts: what is there is right, and not all is there
    session.execute("TRUNCATE stress_profile.everything")
    chosen = ["-insert", "select-ratio=fixed(1)/2", "batchtype=UNLOGGED"]
    user("ops(insert=1)", "n=10", *chosen)
    user("ops(validate=1)", "n=60", *chosen)
    errors = user("ops(validate=1)", "n=60", "-errors", "retries=0", fails=True)
    assert "are missing" in errors
    # a cell that no insert writes
    row = session.execute("SELECT p, q, c, d FROM stress_profile.everything LIMIT 1").one()
    session.execute("UPDATE stress_profile.everything SET ti = 5, sm = 77 WHERE p = %s AND q = %s AND c = %s AND d = %s", row)
    errors = user("ops(validate=1)", "n=60", *chosen, "-errors", "retries=0", fails=True)
    assert "an insert writes" in errors


def test_a_partition_is_written_in_visits(contact, session, tmp_path):
    # sensors enough that each seed has its own
    (profile := tmp_path / "profile.yaml").write_text(PROFILE.replace("uniform(1..50)", "uniform(1..1b)"))
    words = ["user", f"profile={profile}", "ops(insert=1)", "n=30", "no-warmup", "truncate=once", "-rate", "threads=1", "-pop", "seq=1..50"]
    report = tmp_path / "visits.json"
    visits = ["-insert", "partitions=fixed(1)", "visits=fixed(3)", "revisit=uniform(0..9)"]
    stress(contact, *words, *visits, "-log", f"json={report}")
    inserts = results(report)["insert"]
    # three visits a partition; with ten that may wait, a part of them are not over
    sensors = {row.sensor: row.count for row in session.execute("SELECT sensor, count(*) AS count FROM stress_profile.readings GROUP BY sensor")}
    assert 10 <= len(sensors) <= 20 and inserts["partitions"] == 30
    assert inserts["rows"] == sum(sensors.values())
    stress(contact, "user", f"profile={profile}", "ops(validate=1)", "n=50", "no-warmup", "-rate", "threads=2", "-pop", "seq=1..50", *visits)


def test_ranges_of_tokens_are_read_once(contact, session, tmp_path):
    (profile := tmp_path / "profile.yaml").write_text(PROFILE)

    def user(*words):
        stress(contact, "user", f"profile={profile}", "no-warmup", *words, "-rate", "threads=4", "-pop", "seq=1..100")

    user("ops(insert=1)", "n=100", "truncate=once")
    rows = session.execute("SELECT count(*) FROM stress_profile.readings").one()[0]
    partitions = len(list(session.execute("SELECT DISTINCT sensor FROM stress_profile.readings")))
    for split in (1, 7):
        report = tmp_path / f"{split}.json"
        user("ops(all=1)", "n=100000", "-tokenrange", f"split-factor={split}", "-log", f"json={report}")
        read = results(report)["all"]
        assert (read["rows"], read["errors"]) == (rows, 0)
        # a page may end within a partition, whose token the next one knows
        assert read["partitions"] == partitions
        assert read["operations"] >= rows / 40
    user("ops(all=1)", "n=500", "-tokenrange", "wrap", "-log", f"json={report}")
    assert results(report)["all"]["operations"] == 500 and results(report)["all"]["rows"] > rows


def test_counters_and_several_profiles(contact, session, tmp_path):
    for name, text in (("readings", PROFILE), ("hits", COUNTERS)):
        (tmp_path / f"{name}.yaml").write_text(text)
    words = ["user", f"profile={tmp_path}/readings.yaml,{tmp_path}/hits.yaml", "no-warmup", "truncate=once"]
    report = tmp_path / "two.json"
    stress(contact, *words, "ops(sensors.insert=1,hits.insert=2)", "clustering=fixed(2)", "n=90", "-pop", "seq=1..1000", "-rate", "threads=3", "-log", f"json={report}")
    kinds = results(report)
    assert set(kinds) == {"sensors.insert", "hits.insert"} and kinds["hits.insert"]["errors"] == 0
    pages = session.execute("SELECT count(*) FROM stress_profile.hits").one()[0]
    assert pages == kinds["hits.insert"]["rows"] == 4 * kinds["hits.insert"]["partitions"]
    done = stress(contact, *words, "ops(hits.validate=1)", "n=1", fails=True)
    assert "what a counter holds" in done.stderr


def test_counters_add_up(contact, session):
    stress(contact, "counter_write", "n=100", "add=FIXED(3)", "no-warmup", "-rate", "threads=5", "-pop", "seq=1..10", "-schema", "keyspace=counted", "-col", "n=FIXED(2)")
    rows = list(session.execute('SELECT "C0", "C1" FROM counted.counter1'))
    assert [tuple(row) for row in rows] == [(30, 30)] * 10
    stress(contact, "counter_read", "n=20", "no-warmup", "-rate", "threads=2", "-pop", "seq=1..10", "-schema", "keyspace=counted", "-col", "n=FIXED(2)")


def test_a_profile_of_ones_own(contact, session, tmp_path):
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE)
    report = tmp_path / "user.json"
    stress(contact, "user", f"profile={profile}", "ops(insert=1)", "n=100", "no-warmup", "-rate", "threads=5", "-pop", "seq=1..50", "-log", f"json={report}")
    inserted = json.loads(report.read_text())["runs"][0]["kinds"]["insert"]["results"]
    assert inserted["operations"] == 50 and inserted["errors"] == 0
    # 50 seeds drawn from 50 sensors: some are the same; each has three days of two to four moments, the same whichever seed wrote it
    sensors = list(session.execute("SELECT DISTINCT sensor FROM stress_profile.readings"))
    assert 20 < len(sensors) <= 50
    for (sensor,) in sensors[:10]:
        rows = list(session.execute("SELECT day, at, tags, place, note FROM stress_profile.readings WHERE sensor = %s", (sensor,)))
        assert len({row.day for row in rows}) == 3 and 6 <= len(rows) <= 12 and all(row.tags and row.note for row in rows)
    stress(contact, "user", f"profile={profile}", "ops(validate=1)", "n=50", "no-warmup", "-rate", "threads=5", "-pop", "seq=1..50")
    done = stress(contact, "user", f"profile={profile}", "ops(day=3,note=1)", "n=200", "no-warmup", "-rate", "threads=5", "-pop", "seq=1..50", "-log", f"json={report}")
    kinds = json.loads(report.read_text())["runs"][0]["kinds"]
    assert kinds["day"]["results"]["rows_per_second"] > 0 and kinds["note"]["results"]["errors"] == 0, done.stdout
    done = stress(contact, "user", f"profile={profile}", "ops(night=1)", "n=1", fails=True)
    assert "no query 'night'; it has insert, validate, day, note, all" in done.stderr


def test_more_and_more_threads_until_it_is_no_faster(contact):
    stress(contact, "write", "n=100", "no-warmup", "-rate", "threads=4")
    done = stress(contact, "read", "n=100", "no-warmup", "-rate", "threads>=1", "threads<=4", "-pop", "seq=1..100")
    assert [line.split()[2] for line in done.stdout.splitlines() if line.startswith("Running with")] == ["1", "2", "4"]


@pytest.mark.parametrize(
    "words, text",
    [
        (["write", "n=1", "-rate", "threads=1", "-turbo"], "-turbo is not known"),
        (["write", "n=1", "-rate", "speed=1"], "'speed=1'; it knows threads>="),
        (["write", "n=1", "-transport", "truststore=x", "truststore-password=y"], "without a password"),
        (["write", "n=1", "-jmx", "user=x"], "no gc columns"),
        (["user", "profile=p", "ops(insert=1)", "-schema", "keyspace=k"], "in its definitions"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(words, text):
    done = subprocess.run([servers.binary(), "stress", *words], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and text in done.stderr


def test_a_node_that_is_not_there_is_named():
    done = subprocess.run([servers.binary(), "stress", "write", "n=1", "-node", "127.0.0.1", "-port", "native=1"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "no connection to 127.0.0.1 (port 1)" in done.stderr


def test_print_and_help():
    def said(*words):
        return subprocess.run([servers.binary(), "stress", *words], stdout=subprocess.PIPE, text=True, check=True).stdout

    shares = [float(line.split()[2]) for line in said("print", "dist=UNIFORM(1..10)", "n=100000").splitlines()]
    assert len(shares) == 10 and all(9 < share < 11 for share in shares)
    assert "counter_write" in said("help") and "fixed=N/s" in said("help", "-rate") and "PROFILE.QUERY" in said("help", "user")
    assert "split-factor=" in said("-?", "-tokenrange") and said("version").startswith("helenus stress ")
