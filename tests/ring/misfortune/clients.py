"""Clients outside of the ring, and the history of what each asked and was told.

A history is a file of JSON lines for each workload: {"client", "op", "key", "in", "out", "from", "to"}, with `from` and `to` in
nanoseconds of one monotonic clock. `to` is null where the outcome is unknown: a timeout, a refusal, a connection that broke. No
request is sent twice.
"""

import json
import random
import threading
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy

import load
from misfortune.workloads import KEYSPACE

REQUEST_SECONDS = 12
INSIST_SECONDS = 90
# after a failure: some come at once, as when all nodes are down
PAUSE_SECONDS = 0.2


def connect(addresses):
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        retry_policy=load.NeverRetry(),
        consistency_level=ConsistencyLevel.QUORUM,
        serial_consistency_level=ConsistencyLevel.SERIAL,
        request_timeout=REQUEST_SECONDS,
    )
    cluster = Cluster(
        addresses,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(0.5, None),
        connect_timeout=5,
        max_schema_agreement_wait=30,
    )
    return cluster, cluster.connect()


def make_schema(session, workloads):
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 3}}", timeout=60)
    for workload in workloads:
        for text in workload.tables:
            session.execute(text.replace("TABLE TABLE", f"TABLE {KEYSPACE}.{workload.name}"), timeout=60)


class Histories:
    """One file a workload."""

    def __init__(self, place, workloads):
        self.lock = threading.Lock()
        self.paths = {workload.name: place / f"{workload.name}.jsonl" for workload in workloads}
        self.files = {name: open(path, "w") for name, path in self.paths.items()}
        self.answered, self.unknown, self.errors = dict.fromkeys(self.paths, 0), dict.fromkeys(self.paths, 0), {}

    def add(self, name, record, error):
        line = json.dumps(record) + "\n"
        with self.lock:
            self.files[name].write(line)
            if error is None:
                self.answered[name] += 1
            else:
                self.unknown[name] += 1
                sort = f"{name} {record['op']}: {type(error).__name__}"
                self.errors[sort] = self.errors.get(sort, 0) + 1

    def close(self):
        for file in self.files.values():
            file.close()


class Client(threading.Thread):
    """One client: an operation after the other, each of a workload drawn from the seed."""

    def __init__(self, number, session, workloads, histories, seed, interval):
        super().__init__(daemon=True)
        self.number, self.session, self.workloads, self.histories = number, session, workloads, histories
        self.rng, self.interval = random.Random(seed * 1000 + number), interval
        self.stopping, self.broken = threading.Event(), None

    def run(self):
        try:
            while not self.stopping.is_set():
                begun = time.monotonic()
                self.rng.choice(self.workloads).step(self, self.rng)
                time.sleep(max(0, self.interval * self.rng.uniform(0.5, 1.5) - (time.monotonic() - begun)))
        except Exception as error:  # an answer of a form that nobody expects is a finding
            self.broken = f"client {self.number}: {type(error).__name__}: {error}"

    def ask(self, name, op, key, given, statement, values, shape=lambda rows: True):
        """The answer in the form of the history, or None where the outcome is unknown."""
        begun, out, failure = time.monotonic_ns(), None, None
        try:
            out = shape(self.session.execute(statement, values))
        except load.FAILURES as error:
            failure = error
        ended = time.monotonic_ns()
        record = {"client": self.number, "op": op, "key": key, "in": given, "out": out, "from": begun, "to": None if failure else ended}
        self.histories.add(name, record, failure)
        if failure is not None:
            time.sleep(PAUSE_SECONDS)
        return out

    def insist(self, ask):
        """Asks until there is an answer: after the last trouble the ring serves again."""
        until = time.monotonic() + INSIST_SECONDS
        while ask() is None:
            if time.monotonic() > until:
                raise RuntimeError(f"no answer for {INSIST_SECONDS} s after the last trouble")
