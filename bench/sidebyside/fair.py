"""Point reads while the widest partition is read as a whole, and while a table is compacted: what others do costs them little."""

import contextlib
import threading

from . import servers
from .client import Client, ClientError, measurement, random, request
from .data import wide_key
from .targets import Judge, Target

NAME = "fair"
TITLE = "Point reads beside scans of the widest partition, and beside a compaction"
NEEDS = ["wide", "points"]
POINTS = {"connections": 4, "in_flight": 4}
SECONDS_TIMES = 2
PAGE_ROWS = 5000
# The load goes on for so many times as long as what is measured.
LOAD_TIMES = 1.2
ALONE = "alone"
COMPACTION = "beside a major compaction"
WHOLE = "SELECT * FROM bench.ascending WHERE key = ?"
COUNT = "SELECT COUNT(*) FROM bench.ascending WHERE key = ?"
FILTER = "SELECT * FROM bench.ascending WHERE key = ? AND value = 'nowhere' ALLOW FILTERING"


def pages(bench):
    return request(WHOLE, [{"text": wide_key(bench.scale.widths[-1])}], page_size=PAGE_ROWS, again=True)


def whole(statement):
    """Of a partition of the middle width: such a statement cannot be stopped, and the next measurement begins when it is answered."""
    return lambda bench: request(statement, [{"text": wide_key(bench.scale.widths[-2])}])


# a case, the request that is made again and again beside the point reads, on how many connections
LOADS = [
    (ALONE, None, 0),
    ("beside 1 client that pages", pages, 1),
    ("beside 8 clients that page", pages, 8),
    ("beside a COUNT(*)", whole(COUNT), 1),
    ("beside a scan that filters", whole(FILTER), 1),
]


def point(bench, seed):
    return request("SELECT value FROM bench.points WHERE key = ?", [{"quotient": 1}], 1, index=random(bench.scale.points, seed))


@contextlib.contextmanager
def scanning(bench, server, load, connections, seconds):
    """Another client, on the core of the first. What it says at its end is not looked at: a server may refuse to go on."""
    client = Client(bench.programs.lean, server)
    if bench.options.pin:
        servers.pin(client.process.pid, bench.CLIENT_CORES)
    job = measurement(load(bench), seconds * LOAD_TIMES, connections=connections)
    client.begin(job)
    try:
        yield
    finally:
        with contextlib.suppress(ClientError):
            client.end(job)
        client.close()


@contextlib.contextmanager
def compacting(bench, server):
    """One major compaction after the other."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            server.nodetool("compact", "bench", "ascending")

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def measure(bench, case, beside):
    seconds = bench.scale.seconds * SECONDS_TIMES
    for server in bench.servers:
        bench.warm(server, point(bench, 0), POINTS)
    for repetition, server in bench.order():
        with beside(server, seconds):
            outcome = bench.client(server).measure(point(bench, repetition + 1), seconds, **POINTS)
        bench.record(NAME, case, server, repetition, outcome)
    bench.tell(NAME, case)


def run(bench):
    for case, load, connections in LOADS:
        measure(bench, case, lambda server, seconds: scanning(bench, server, load, connections, seconds) if load else contextlib.nullcontext())
    measure(bench, COMPACTION, lambda server, _: compacting(bench, server))


def targets(results, scale):
    judge = Judge(results, NAME)
    for case in [*(case for case, _, _ in LOADS), COMPACTION]:
        yield Target(f"{case}: p99 against Cassandra's", judge.share("p99_us", case), 1)
