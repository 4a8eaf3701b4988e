"""`helenus stress`: cassandra-stress's commands against a node, and what they report."""

import json
import subprocess

import pytest

import server as servers

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
"""

# columns of a table, and the keyspace of tables with as many
THREE = ["-schema", "keyspace=three", "-col", "n=FIXED(3)"]


def stress(server, *words, fails=False):
    command = [servers.binary(), "stress", *words, "-node", f"{server.host}:{server.port}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done


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
    assert "Total errors              : 5" in done.stdout


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
    text = page.read_text()
    assert text.count("<svg") == 5 and "a &lt;title&gt;" in text
    assert sum(line.startswith("Tag=all") for line in log.read_text().splitlines()) == len(run["intervals"])
    assert lines.read_text() == done.stdout


def test_counters_add_up(contact, session):
    stress(contact, "counter_write", "n=100", "no-warmup", "-rate", "threads=5", "-pop", "seq=1..10", "-schema", "keyspace=counted", "-col", "n=FIXED(2)", "add=FIXED(3)")
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
    # 50 seeds drawn from 50 sensors: some are the same; each has three days of two to four moments
    sensors = list(session.execute("SELECT DISTINCT sensor FROM stress_profile.readings"))
    assert 20 < len(sensors) <= 50
    for (sensor,) in sensors[:10]:
        rows = list(session.execute("SELECT day, at, tags, place, note FROM stress_profile.readings WHERE sensor = %s", (sensor,)))
        assert len({row.day for row in rows}) % 3 == 0 and all(row.tags and row.note for row in rows)
    done = stress(contact, "user", f"profile={profile}", "ops(day=3,note=1)", "n=200", "no-warmup", "-rate", "threads=5", "-pop", "seq=1..50", "-log", f"json={report}")
    kinds = json.loads(report.read_text())["runs"][0]["kinds"]
    assert kinds["day"]["results"]["rows_per_second"] > 0 and kinds["note"]["results"]["errors"] == 0, done.stdout
    done = stress(contact, "user", f"profile={profile}", "ops(night=1)", "n=1", fails=True)
    assert "no query 'night'; it has insert, day, note" in done.stderr


def test_more_and_more_threads_until_it_is_no_faster(contact):
    stress(contact, "write", "n=100", "no-warmup", "-rate", "threads=4")
    done = stress(contact, "read", "n=100", "no-warmup", "-rate", "threads>=1", "threads<=4", "-pop", "seq=1..100")
    assert [line.split()[2] for line in done.stdout.splitlines() if line.startswith("Running with")] == ["1", "2", "4"]


@pytest.mark.parametrize(
    "words, text",
    [
        (["write", "n=1", "-rate", "threads=1", "-turbo"], "-turbo is not known"),
        (["write", "n=1", "-rate", "speed=1"], "'speed=1'; it knows threads>="),
        (["write", "n=1", "-transport", "truststore=x"], "without TLS"),
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
    assert "counter_write" in said("help") and "fixed=N/s" in said("help", "-rate")
