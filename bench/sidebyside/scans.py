"""A scan of a table, page by page, over four SSTables and over one; and the major compaction of the four into one."""

import pathlib
import shutil
import time

from . import data, servers
from .client import request
from .data import EVENT_PARTS
from .targets import Judge, Target

NAME = "scans"
TITLE = "Scan of a table, and major compaction"
NEEDS = []
PAGE_ROWS = 5000
SCAN = request("SELECT * FROM bench.events", [], page_size=PAGE_ROWS)
SCAN_SECONDS = 120
ONE_PAGE_AT_A_TIME = {"connections": 1, "in_flight": 1}
COMPACTION = "major compaction"


def scan_of(sstables):
    return f"scan of {sstables} SSTable{'s' if sstables > 1 else ''}"


def scan(bench, case, want):
    for server in bench.servers:
        bench.warm(server, SCAN, ONE_PAGE_AT_A_TIME)
    for repetition, server in bench.order():
        outcome = bench.client(server).measure(SCAN, SCAN_SECONDS)
        if outcome["rows"] != want:
            raise RuntimeError(f"{server.name}: a scan of {outcome['rows']:,} rows, {want:,} were expected")
        bench.record(NAME, case, server, repetition, outcome)
    bench.tell(NAME, case)
    # a first page over and over
    bench.bare.add(case, lambda _: SCAN, bench.scale.seconds, ONE_PAGE_AT_A_TIME)
    bench.profile(NAME, case, SCAN, ONE_PAGE_AT_A_TIME)


def keep(bench, server):
    """Copies of the four SSTables, for every compaction anew."""
    kept = bench.options.scratch / f"events-{server.name}"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(server.table_directory("bench", "events"), kept, ignore=shutil.ignore_patterns("backups", "snapshots"))
    return kept


def put_back(bench, server, kept):
    bench.client(server).query("TRUNCATE bench.events")
    target = pathlib.Path(server.table_directory("bench", "events"))
    for file in kept.iterdir():
        shutil.copy(file, target)
    server.nodetool("refresh", "bench", "events")


def compact(bench, want):
    kept = {server.name: keep(bench, server) for server in bench.servers}
    written = EVENT_PARTS * bench.scale.event_rows
    for repetition, server in bench.order():
        put_back(bench, server, kept[server.name])
        cpu, begun = servers.cpu_seconds(server.pid), time.monotonic()
        server.nodetool("compact", "bench", "events")
        seconds, cpu = time.monotonic() - begun, servers.cpu_seconds(server.pid) - cpu
        outcome = {"requests": 1, "rows": written, "seconds": seconds, "cpu_us": cpu * 1e6}
        bench.record(NAME, COMPACTION, server, repetition, outcome)
    bench.tell(NAME, COMPACTION)


def run(bench):
    want = data.events_left(bench.scale)
    for server in bench.servers:
        bench.spread(server)
        data.load_events(server, bench.client(server), bench.scale)
        bench.pin(server)
    scan(bench, scan_of(EVENT_PARTS), want)
    compact(bench, want)
    scan(bench, scan_of(1), want)


def targets(results, scale):
    judge = Judge(results, NAME)
    for case in (scan_of(EVENT_PARTS), scan_of(1), COMPACTION):
        yield Target(f"{case}: rows per CPU second, times Cassandra's", judge.times("rows_per_cpu_second", case), 4, at_least=True)
