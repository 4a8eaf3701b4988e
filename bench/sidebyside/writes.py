"""Single rows written: 64 and 512 in flight for a moment, and 64 for so long that memtables are flushed and SSTables compacted meanwhile."""

from .blobs import WITHOUT_END
from .client import each, request
from .targets import GROUP, PERIODIC, Judge, Target

NAME = "writes"
TITLE = "Writes of single rows"
NEEDS = []
TABLE = "CREATE TABLE IF NOT EXISTS bench.written (key bigint PRIMARY KEY, value blob)"
INSERT = "INSERT INTO bench.written (key, value) VALUES (?, ?)"
VALUE_BYTES = 100
CONNECTIONS = 4
IN_FLIGHT = (64, 512)
SECONDS_TIMES = 3
SUSTAINED = "64 in flight, while memtables are flushed and SSTables compacted"
SUSTAINED_REPETITIONS = 2
# a node that has just started: pieces of less than a second cost alike long before its compiler is done with all that a write takes
FIRST_WRITES_SECONDS = 20


def write(repetition):
    # the same million keys again and again, from another start: compaction has something to do
    return request(INSERT, [{"rest": 1_000_000}, {"blob": VALUE_BYTES}], index=each(WITHOUT_END, repetition * 77_777))


def in_flight(count):
    return f"{count} in flight"


def sustained(bench):
    for server in bench.servers:
        bench.spread(server)
    for repetition, server in bench.order():
        if repetition < SUSTAINED_REPETITIONS:
            outcome = bench.client(server).measure(write(repetition), bench.scale.sustained_seconds, connections=CONNECTIONS, in_flight=IN_FLIGHT[0] // CONNECTIONS)
            bench.record(NAME, SUSTAINED, server, repetition, outcome)
    bench.tell(NAME, SUSTAINED)


def run(bench):
    for server in bench.servers:
        bench.client(server).query(TABLE)
        if not server.is_helenus:
            seconds = min(FIRST_WRITES_SECONDS, bench.scale.sustained_seconds)
            bench.client(server).measure(write(0), seconds, connections=CONNECTIONS, in_flight=IN_FLIGHT[0] // CONNECTIONS)
    for count in IN_FLIGHT:
        how = {"connections": CONNECTIONS, "in_flight": count // CONNECTIONS}
        bench.turns(NAME, in_flight(count), write, bench.scale.seconds * SECONDS_TIMES, rows=False, **how)
    sustained(bench)


def targets(results, scale):
    for ours in (GROUP, PERIODIC):
        judge = Judge(results, NAME, ours)
        for count in IN_FLIGHT:
            yield Target(f"{in_flight(count)}: writes a second, times Cassandra's, {ours}", judge.times("per_second", in_flight(count)), 4, at_least=True)
        yield Target(f"{SUSTAINED}: p99 against Cassandra's, {ours}", judge.share("p99_us", SUSTAINED), 1)
