"""From the start of a process to the first correct answer, over few and many rows, after a clean stop and after kill -9; and the memory it then takes."""

import os
import pathlib
import signal
import socket
import threading
import time

from . import servers
from .client import Client, each, request
from .targets import GROUP, PERIODIC, Judge, Target, quotient

NAME = "restart"
TITLE = "Restart: process start to first correct answer"
NEEDS = []
TABLE = "CREATE TABLE IF NOT EXISTS bench.kept (key bigint PRIMARY KEY, value blob)"
INSERT = "INSERT INTO bench.kept (key, value) VALUES (?, ?)"
READ = "SELECT value FROM bench.kept WHERE key = ?"
VALUE_BYTES = 120
BATCH = 50
LOAD = {"connections": 4, "in_flight": 16}
REPETITIONS_MAX = 3
# of the rows, so many are only in the commit log when the process is killed
UNFLUSHED_SHARE = 10
DROP_CACHES = pathlib.Path("/proc/sys/vm/drop_caches")
POLL_SECONDS = 0.005
REST_SECONDS = 2
# with a commit log that is synced every 10 s, what is written reaches the kernel behind a marker in a tenth of a second
MARKER_SECONDS = 1
ENDS = ("clean stop", "kill -9")


def case(rows, end):
    return f"{rows:,} rows, {end}"


def at_rest(rows):
    return f"memory at rest, {rows:,} rows"


def write(bench, server, start, count):
    job = request(INSERT, [{"quotient": 1}, {"blob": VALUE_BYTES}], index=each(count, start), batch=BATCH)
    bench.client(server).measure(job, 3600, **LOAD)


def drop_caches(bench):
    """What the kernel keeps of files; only root may."""
    os.sync()
    try:
        DROP_CACHES.write_text("3\n")
    except OSError as error:
        bench.say(f"the page cache stays: {error}")


def end(bench, server, how):
    if how == ENDS[0]:
        bench.stop(server)
        return
    os.kill(server.pid, signal.SIGKILL)
    bench.clients.pop(server.name).close()
    server.ended()


def started(server):
    """Starts it on another thread, and waits until its port is open."""
    starter = threading.Thread(target=server.start)
    starter.start()
    while not server.is_helenus:
        try:
            socket.create_connection((server.ip, server.port), 1).close()
            break
        except OSError:
            time.sleep(POLL_SECONDS)
    if server.is_helenus:
        starter.join()
    return starter


def restart(bench, server, how, key):
    """Seconds to the answer about a row that was written last."""
    end(bench, server, how)
    drop_caches(bench)
    begun = time.monotonic()
    starter = started(server)
    server.pid = os.getpid() if not server.is_helenus else server.pid
    client = Client(bench.programs.lean, server)
    client.measure(request(READ, [{"quotient": 1}], 1, index=each(1, key)), 60, requests=1)
    seconds = time.monotonic() - begun
    client.close()
    starter.join()
    bench.clients[server.name] = Client(bench.programs.lean, server)
    return seconds


def resident_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def grow(bench, server, start, rows):
    bench.spread(server)
    write(bench, server, start, rows - start)
    server.nodetool("flush", "bench", "kept")
    bench.say(f"{server.name}: {rows:,} rows are loaded")


def run(bench):
    loaded = 0
    for server in bench.servers:
        bench.client(server).query(TABLE)
    for rows in bench.scale.restart_rows:
        for server in bench.servers:
            grow(bench, server, loaded, rows)
        loaded = rows
        for repetition, server in bench.order():
            if repetition < REPETITIONS_MAX:
                for how in ENDS:
                    turn(bench, server, repetition, rows, how)
        for how in ENDS:
            bench.tell(NAME, case(rows, how))


def turn(bench, server, repetition, rows, how):
    last = rows - 1
    if how != ENDS[0]:
        extra = rows // UNFLUSHED_SHARE
        # behind the others, the same ones in each repetition
        write(bench, server, 1 << 40, extra)
        last = (1 << 40) + extra - 1
        time.sleep(MARKER_SECONDS)
    seconds = restart(bench, server, how, last)
    bench.say(f"{server.name}: {case(rows, how)}: {seconds:.2f} s")
    time.sleep(REST_SECONDS)
    rss = resident_mib(server.pid)
    outcome = {"requests": 1, "rows": 0, "seconds": seconds, "cpu_us": servers.cpu_seconds(server.pid) * 1e6, "rss_mib": rss}
    bench.record(NAME, case(rows, how), server, repetition, outcome)
    if how == ENDS[0]:
        bench.record(NAME, at_rest(rows), server, repetition, outcome | {"seconds": 0.0, "cpu_us": 0.0})
        bench.say(f"{server.name}: {rss:.0f} MiB at rest")


def seconds_each(pool):
    return quotient(pool.seconds, pool.repetitions)


def targets(results, scale):
    few, many = scale.restart_rows
    # they start alike: the log's writer has no part in it
    measured = [ours for ours in (GROUP, PERIODIC) if ours in results.servers(NAME)]
    for ours in measured or [PERIODIC]:
        judge = Judge(results, NAME, ours)
        for how, most in zip(ENDS, (0.3, 2), strict=True):
            here = judge.helenus(case(many, how))
            yield Target(f"{case(many, how)}: seconds, {ours}", here and seconds_each(here), most)
            less = judge.helenus(case(few, how))
            yield Target(f"{how}: {many:,} against {few:,} rows, {ours}", here and less and seconds_each(here) / seconds_each(less), 1.2)
            theirs = judge.cassandras(case(many, how))
            least = min(map(seconds_each, theirs), default=None)
            yield Target(f"{case(many, how)}: against Cassandra's, {ours}", here and quotient(seconds_each(here), least), 1 / 30)
        pool = judge.helenus(at_rest(many))
        yield Target(f"{at_rest(many)}: MiB, {ours}", pool and max(outcome["rss_mib"] for outcome in pool.outcomes), 100)
