"""Deletes of rows and of ranges in one partition, as they are taken in, then a read that has to pass all of them, from the memtable and
from an SSTable, forwards and backwards. A live row stands before the deletes and one behind them: a read begins past the one and ends at the other."""

from .client import each, request
from .targets import Judge, Target, quotient

NAME = "deletes"
TITLE = "Deletes in one partition, then a read through all of them"
NEEDS = []
KINDS = {
    "rows": ("DELETE FROM bench.deleted WHERE key = ? AND name = ?", [{"name": 0}]),
    "ranges": ("DELETE FROM bench.deleted WHERE key = ? AND name >= ? AND name < ?", [{"name": 0}, {"name": 1}]),
}
# Neither first to last nor random: a step that has no divisor in common with powers of ten.
STEP = 7919
INSERT = "INSERT INTO bench.deleted (key, name, value) VALUES (?, ?, ?)"
DIRECTIONS = {
    "forwards": ("SELECT name FROM bench.deleted WHERE key = ? AND name > ? LIMIT 1", lambda count: name(0)),
    "reversed": ("SELECT name FROM bench.deleted WHERE key = ? AND name < ? ORDER BY name DESC LIMIT 1", lambda count: name(count + 1)),
}
TAKING_IN = {"connections": 4, "in_flight": 16}
# Taking in is repeated until it has lasted this long on a server; a single one is cut off after MANY_SECONDS.
BUDGET_SECONDS = 12
MANY_SECONDS = 60
CASSANDRA_MANY_SECONDS = 20
MANY_REPETITIONS = 5
TENTHS = 10


def name(number):
    return f"{number * 2:010}"


def key(kind, count, repetition=0):
    return f"{kind}-{count}-{repetition}"


def taking_in(kind, count):
    return f"taking in {count:,} {kind}"


def reading(kind, count, place, direction):
    return f"{count:,} {kind}, {place}, {direction}"


def take_in(bench, server, kind, count, repetition, seconds):
    """The two live rows, then the deletes between them."""
    client, partition = bench.client(server), {"text": key(kind, count, repetition)}
    for number in (0, count + 1):
        insert = request(INSERT, [partition, {"text": name(number)}, {"text": "live"}])
        client.measure(insert, 60, requests=1)
    statement, names = KINDS[kind]
    job = request(statement, [partition, *names], index=each(count, 1, STEP))
    outcome = client.measure(job, seconds, **TAKING_IN)
    bench.record(NAME, taking_in(kind, count), server, repetition, outcome)
    return outcome["seconds"]


def take_in_all(bench, kind, count):
    spent = {server.name: 0 for server in bench.servers}
    for repetition, server in bench.order():
        if spent[server.name] < BUDGET_SECONDS:
            spent[server.name] += take_in(bench, server, kind, count, repetition, bench.options.seconds_max)
    bench.tell(NAME, taking_in(kind, count))
    statement, names = KINDS[kind]
    job = request(statement, [{"text": key(kind, count)}, *names], index=each(count, 1, STEP))
    bench.bare.add(taking_in(kind, count), lambda _: job, bench.scale.seconds, TAKING_IN, rows=False)


def read(bench, kind, count, place):
    for direction, (statement, bound) in DIRECTIONS.items():
        values = [{"text": key(kind, count)}, {"text": bound(count)}]
        bench.turns(NAME, reading(kind, count, place, direction), lambda _: request(statement, values, 1))


def many(bench):
    """More range deletes than Cassandra takes in while one waits: it is cut off."""
    count = bench.scale.many_deletes
    for server in bench.servers:
        take_in(bench, server, "ranges", count, 0, MANY_SECONDS if server.is_helenus else CASSANDRA_MANY_SECONDS)
    bench.tell(NAME, taking_in("ranges", count))
    ours = [server for server in bench.servers if server.is_helenus]
    for server in ours:
        for direction, (statement, bound) in DIRECTIONS.items():
            job = request(statement, [{"text": key("ranges", count)}, {"text": bound(count)}], 1)
            for repetition in range(min(MANY_REPETITIONS, bench.options.repetitions)):
                outcome = bench.client(server).measure(job, 60, requests=1)
                bench.record(NAME, reading("ranges", count, "memtable", direction), server, repetition, outcome)
            bench.tell(NAME, reading("ranges", count, "memtable", direction))


def run(bench):
    cases = [(kind, count) for kind in KINDS for count in bench.scale.deletes]
    for kind, count in cases:
        take_in_all(bench, kind, count)
        read(bench, kind, count, "memtable")
    for server in bench.servers:
        server.nodetool("flush", "bench", "deleted")
    for kind, count in cases:
        read(bench, kind, count, "SSTable")
    many(bench)


def tenths_ratio(pool, count):
    """Server CPU of the last tenth against that of the first, all repetitions together."""
    first = last = 0
    for outcome in pool.outcomes if pool else ():
        cpu_us = [cpu for _, cpu in outcome["tenths"]]
        if outcome["requests"] == count and len(cpu_us) == TENTHS:
            first, last = first + cpu_us[0], last + cpu_us[-1] - cpu_us[-2]
    return quotient(last, first)


def targets(results, scale):
    judge = Judge(results, NAME)
    few, much = scale.deletes
    for place in ("memtable", "SSTable"):
        for kind in KINDS:
            for count in scale.deletes:
                forwards, reverse = (reading(kind, count, place, direction) for direction in DIRECTIONS)
                yield Target(f"{count:,} {kind}, {place}: p50, reversed against forwards, Helenus", judge.ratio("p50_us", reverse, forwards), 1.15)
                for case in (forwards, reverse):
                    yield Target(f"{case}: server CPU against Cassandra's", judge.share("cpu_us_per_request", case), 0.2)
            for direction in DIRECTIONS:
                over, under = (reading(kind, count, place, direction) for count in (much, few))
                ratio = judge.ratio("cpu_us_per_request", over, under)
                each_one = ratio and ratio * few / much
                yield Target(f"{kind}, {place}, {direction}: CPU for each tombstone, {much:,} against {few:,}, Helenus", each_one, 1.2)
    for count in (much, scale.many_deletes):
        pool = judge.helenus(taking_in("ranges", count))
        yield Target(f"taking in {count:,} ranges: last tenth against first, server CPU, Helenus", tenths_ratio(pool, count), 1.2)
    pool = judge.helenus(taking_in("ranges", scale.many_deletes))
    yield Target(f"{scale.many_deletes:,} range deletes taken in", pool and pool.requests, scale.many_deletes, at_least=True)
