"""A load on a ring that keeps account of what was acknowledged, and the judge of what is there in the end.

Each worker owns its keys, so that of each key the acknowledged values and those whose fate is unknown (the
request failed or timed out) are known. A request that fails is sent again, as a driver's retry would;
increments of counters are not, since they may count twice.
"""

import random
import threading
import time

from cassandra import ConsistencyLevel, OperationTimedOut, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import RetryPolicy, RoundRobinPolicy
from cassandra.protocol import ErrorMessage
from cassandra.query import BatchStatement, BatchType, SimpleStatement

ATTEMPTS = 8
PAUSE_SECONDS = 0.25
KEYS = 200
SCHEMA = """
CREATE KEYSPACE load WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3};
CREATE TABLE load.rows (worker int, key int, v int, note text, PRIMARY KEY ((worker, key)));
CREATE TABLE load.wide (worker int, c int, v int, PRIMARY KEY (worker, c));
CREATE TABLE load.first (worker int, key int, v int, PRIMARY KEY ((worker, key)));
CREATE TABLE load.second (key int, worker int, v int, PRIMARY KEY ((key, worker)));
CREATE TABLE load.counts (worker int, key int, n counter, PRIMARY KEY ((worker, key)));
CREATE TABLE load.registers (worker int, key int, v int, PRIMARY KEY ((worker, key)))
"""


class NeverRetry(RetryPolicy):
    """Retries are the load's own, so that they can be counted."""

    def on_read_timeout(self, *_, **__):
        return self.RETHROW, None

    def on_write_timeout(self, *_, **__):
        return self.RETHROW, None

    def on_unavailable(self, *_, **__):
        return self.RETHROW, None

    def on_request_error(self, *_, **__):
        return self.RETHROW, None


def connect(addresses, level=ConsistencyLevel.QUORUM):
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        retry_policy=NeverRetry(),
        consistency_level=level,
        serial_consistency_level=ConsistencyLevel.SERIAL,
        request_timeout=12,
    )
    cluster = Cluster(addresses, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=10, max_schema_agreement_wait=30)
    return cluster, cluster.connect()


def make_schema(session):
    for statement in SCHEMA.strip().split(";"):
        session.execute(statement, timeout=60)


FAILURES = (RequestExecutionException, OperationTimedOut, NoHostAvailable, ConnectionError, ConnectionException, ErrorMessage)


class Value:
    """The value of one key: acknowledged, and what may have come after."""

    def __init__(self):
        self.known, self.maybe = None, []

    def acknowledged(self, value):
        self.known, self.maybe = value, []

    def unknown(self, value):
        self.maybe.append(value)

    def may_be(self, value):
        return value == self.known or value in self.maybe


class Worker(threading.Thread):
    """One thread of the load."""

    def __init__(self, number, session, seed, stop, conditional, counters):
        super().__init__(daemon=True)
        self.number, self.session, self.stop = number, session, stop
        self.rng = random.Random(seed * 1000 + number)
        self.values, self.counts, self.registers = {}, {}, {}
        self.done = self.retried = 0
        self.failed, self.wrong = [], []
        kinds = ["row"] * 4 + ["wide"] * 2 + ["batch"] * 2 + ["read"] * 4 + ["range"]
        self.kinds = kinds + ["register"] * (2 if conditional else 0) + ["counter"] * (2 if counters else 0)
        self.next_value = 0

    def run(self):
        while not self.stop.is_set():
            kind = self.rng.choice(self.kinds)
            try:
                getattr(self, kind)()
                self.done += 1
            except Exception as error:  # noqa: BLE001 a thread that ended would make a run without its kind of request pass
                self.failed.append(f"{kind}: {type(error).__name__}: {str(error)[:300]}")

    def execute(self, statement, values=None):
        """Sends until it is acknowledged; after the last attempt the error is raised."""
        for attempt in range(ATTEMPTS):
            try:
                return self.session.execute(statement, values)
            except FAILURES:
                if attempt == ATTEMPTS - 1:
                    raise
                self.retried += 1
                time.sleep(PAUSE_SECONDS * (attempt + 1))

    def write(self, places, statement, values, value):
        try:
            self.execute(statement, values)
        except FAILURES:
            for place in places:
                self.values.setdefault(place, Value()).unknown(value)
            raise
        for place in places:
            self.values.setdefault(place, Value()).acknowledged(value)

    def fresh(self):
        self.next_value += 1
        return self.next_value

    def row(self):
        key, value = self.rng.randrange(KEYS), self.fresh()
        text = "INSERT INTO load.rows (worker, key, v, note) VALUES (%s, %s, %s, %s)"
        self.write([("rows", key)], text, (self.number, key, value, "x" * self.rng.randrange(200)), value)

    def wide(self):
        key, value = self.rng.randrange(KEYS), self.fresh()
        self.write([("wide", key)], "UPDATE load.wide SET v = %s WHERE worker = %s AND c = %s", (value, self.number, key), value)

    def batch(self):
        key, value = self.rng.randrange(KEYS), self.fresh()
        batch = BatchStatement(BatchType.LOGGED)
        batch.add(SimpleStatement("INSERT INTO load.first (worker, key, v) VALUES (%s, %s, %s)"), (self.number, key, value))
        batch.add(SimpleStatement("INSERT INTO load.second (key, worker, v) VALUES (%s, %s, %s)"), (key, self.number, value))
        self.write([("first", key), ("second", key)], batch, None, value)

    def counter(self):
        key = self.rng.randrange(10)
        known, maybe = self.counts.get(key, (0, 0))
        try:
            self.session.execute("UPDATE load.counts SET n = n + 1 WHERE worker = %s AND key = %s", (self.number, key))
            self.counts[key] = (known + 1, maybe)
        except FAILURES:
            self.counts[key] = (known, maybe + 1)

    def register(self):
        """A register counts up by compare-and-set; after an unknown outcome it is read at SERIAL."""
        key = self.rng.randrange(5)
        now = self.registers.get(key)
        if now is None:
            found = self.serial_read(key)
            if found is None:
                self.execute("INSERT INTO load.registers (worker, key, v) VALUES (%s, %s, 0) IF NOT EXISTS", (self.number, key))
                found = self.serial_read(key)
            self.registers[key] = now = found
        self.registers[key] = None
        text = "UPDATE load.registers SET v = %s WHERE worker = %s AND key = %s IF v = %s"
        try:
            applied = self.session.execute(text, (now + 1, self.number, key, now)).one()
        except FAILURES:
            # it may have been applied: the next turn reads the register, and goes on from what it finds
            self.retried += 1
            return
        if not applied[0]:
            self.wrong.append(f"register {self.number}/{key}: IF v = {now} did not hold: {applied}")
            return
        self.registers[key] = now + 1

    def serial_read(self, key):
        text = "SELECT v FROM load.registers WHERE worker = %s AND key = %s"
        row = self.execute(SimpleStatement(text, consistency_level=ConsistencyLevel.SERIAL), (self.number, key)).one()
        return row[0] if row else None

    def read(self):
        places = [place for place in self.values if place[0] == "rows"]
        if not places:
            return
        place = self.rng.choice(places)
        row = self.execute("SELECT v FROM load.rows WHERE worker = %s AND key = %s", (self.number, place[1])).one()
        self.check(place, row[0] if row else None)

    def range(self):
        places = {place[1]: place for place in self.values if place[0] == "wide"}
        rows = {row[0]: row[1] for row in self.execute("SELECT c, v FROM load.wide WHERE worker = %s", (self.number,))}
        for key, place in places.items():
            self.check(place, rows.get(key))

    def check(self, place, found):
        if not self.values[place].may_be(found):
            value = self.values[place]
            self.wrong.append(f"{place} of worker {self.number}: read {found}, acknowledged {value.known}, unknown {value.maybe}")

    def judge(self):
        """What is there in the end, at QUORUM."""
        texts = {
            "rows": "SELECT v FROM load.rows WHERE worker = %s AND key = %s",
            "wide": "SELECT v FROM load.wide WHERE worker = %s AND c = %s",
            "first": "SELECT v FROM load.first WHERE worker = %s AND key = %s",
            "second": "SELECT v FROM load.second WHERE worker = %s AND key = %s ALLOW FILTERING",
        }
        for place in sorted(self.values):
            row = self.execute(texts[place[0]], (self.number, place[1])).one()
            self.check(place, row[0] if row else None)
        for key, (known, maybe) in self.counts.items():
            row = self.execute("SELECT n FROM load.counts WHERE worker = %s AND key = %s", (self.number, key)).one()
            found = row[0] if row else 0
            if not known <= found <= known + maybe:
                self.wrong.append(f"counter {self.number}/{key}: {found}, acknowledged {known}, unknown {maybe}")
        for key, now in self.registers.items():
            found = self.serial_read(key)
            if now is not None and found != now:
                self.wrong.append(f"register {self.number}/{key}: {found}, acknowledged {now}")


class Load:
    """Workers on a ring."""

    def __init__(self, addresses, workers=6, seed=1, conditional=True, counters=True):
        self.cluster, self.session = connect(addresses)
        self.stopping = threading.Event()
        self.workers = [Worker(number, self.session, seed, self.stopping, conditional, counters) for number in range(workers)]

    def start(self):
        for worker in self.workers:
            worker.start()

    def stop(self):
        self.stopping.set()
        for worker in self.workers:
            worker.join(120)

    def figures(self):
        done, retried = sum(w.done for w in self.workers), sum(w.retried for w in self.workers)
        return done, retried, sum(len(w.failed) for w in self.workers), sum(len(w.wrong) for w in self.workers)

    def judge(self):
        for worker in self.workers:
            worker.judge()

    def findings(self):
        """Wrong answers, then requests that no retry has cured."""
        return [line for w in self.workers for line in w.wrong], [line for w in self.workers for line in w.failed]

    def close(self):
        self.cluster.shutdown()
