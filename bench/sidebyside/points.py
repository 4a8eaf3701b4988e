"""Single rows by key: all in memory, and with three times as much data as the cache holds."""

from . import data
from .client import random, request
from .targets import Judge, Target

NAME = "points"
TITLE = "Point reads: one row by key"
NEEDS = ["points"]
CONNECTIONS = 4
IN_FLIGHT = (64, 512)
SMALL_CACHE = "3 times the cache, 64 in flight"
TIMES_THE_CACHE = 3
SECONDS_TIMES = 2
STATEMENT = "SELECT value FROM bench.points WHERE key = ?"


def read(bench, seed):
    return request(STATEMENT, [{"quotient": 1}], 1, index=random(bench.scale.points, seed))


def in_memory(in_flight):
    return f"in memory, {in_flight} in flight"


def measure(bench, case, in_flight):
    how = {"connections": CONNECTIONS, "in_flight": in_flight // CONNECTIONS}
    bench.turns(NAME, case, lambda seed: read(bench, seed), bench.scale.seconds * SECONDS_TIMES, **how)


def run(bench):
    for in_flight in IN_FLIGHT:
        measure(bench, in_memory(in_flight), in_flight)
    restart_with_small_cache(bench)
    measure(bench, SMALL_CACHE, IN_FLIGHT[0])


def restart_with_small_cache(bench):
    """A cache of a third of the data. The page cache of the kernel keeps the files."""
    for server in bench.servers:
        stored = data.stored_bytes(server, "points")
        mebibytes = max(1, stored // TIMES_THE_CACHE >> 20)
        bench.stop(server)
        bench.start(server, server.small_cache(mebibytes))
        bench.say(f"{server.name}: started again, cache of {mebibytes} MiB for {stored >> 20} MiB of data")


def targets(results, scale):
    judge = Judge(results, NAME)
    for case in [*map(in_memory, IN_FLIGHT), SMALL_CACHE]:
        yield Target(f"{case}: reads a second, times Cassandra's", judge.times("per_second", case), 4, at_least=True)
        yield Target(f"{case}: server CPU of a read against Cassandra's", judge.share("cpu_us_per_request", case), 1 / 6)
        yield Target(f"{case}: p99 against Cassandra's", judge.share("p99_us", case), 1)
