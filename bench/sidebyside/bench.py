"""A run: the servers, a client each, and turns of measurements."""

import dataclasses
import datetime
import os
import time

from . import data, profiles, servers
from .bare import Bare
from .client import Client


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much data, how long."""

    widths: tuple
    points: int
    event_rows: int
    deletes: tuple
    many_deletes: int
    seconds: float
    warm_seconds: float
    restart_rows: tuple
    message_rows: int
    sustained_seconds: float
    cell_step: int = 1


# full: what is published; small: to see where one stands; smoke: that everything works, measuring nothing
SCALES = {
    "full": Scale((1_000, 100_000, 10_000_000), 1_000_000, 100_000, (10_000, 100_000), 1_000_000, 0.3, 0.75, (1_000_000, 10_000_000), 1_000_000, 60),
    "small": Scale((1_000, 10_000, 100_000), 100_000, 20_000, (1_000, 10_000), 50_000, 0.1, 0.2, (100_000, 1_000_000), 200_000, 5),
    "smoke": Scale((200, 1_000, 10_000), 5_000, 2_000, (100, 1_000), 2_000, 0.02, 0.02, (1_000, 10_000), 2_000, 0.1, 5),
}
# A node's compiler is waited for in pieces of `warm_seconds`: until one costs more than this share of the one before, at most so many.
WARM_ENOUGH = 0.9
WARM_PIECES_MAX = 10
WARM_LOAD = {"connections": 2, "in_flight": 4}
# Before a measurement all servers are to be at rest: they share a core, and what one does behind its answers would be counted against another's.
REST_SECONDS = 0.05
REST_CPU_SECONDS = 0.011
REST_SECONDS_MAX = 10


class Bench:
    SERVER_CORES, CLIENT_CORES = frozenset({0}), frozenset({1})

    def __init__(self, made, programs, options, results):
        self.servers, self.programs, self.options, self.results = made, programs, options, results
        self.scale = SCALES[options.scale]
        self.clients = {}
        self.bare, self.recorded = Bare(self), {}
        self.begun = datetime.datetime.now()

    def say(self, text):
        seconds = (datetime.datetime.now() - self.begun).total_seconds()
        print(f"{seconds:6.0f} s  {text}", flush=True)

    def start(self, server, more=()):
        server.start(more)
        self.clients[server.name] = Client(self.programs.lean, server)

    def stop(self, server):
        self.clients.pop(server.name).close()
        server.stop()

    def client(self, server):
        return self.clients[server.name]

    def need(self, what):
        """Data that an experiment wants, loaded by the first that does."""
        for server in self.servers:
            marker = self.options.scratch / f"{what}-{self.options.scale}-{server.name}"
            if not marker.exists():
                self.spread(server)
                data.LOADS[what](server, self.client(server), self.scale)
                marker.touch()
                self.say(f"{server.name}: {what} is loaded")

    def spread(self, server):
        """All cores for server and client: loading is not measured."""
        everything = self.SERVER_CORES | self.CLIENT_CORES
        servers.pin(server.pid, everything)
        servers.pin(self.client(server).process.pid, everything)

    def pin(self, server):
        """One core for the server, another one for the client."""
        if self.options.pin:
            servers.pin(server.pid, self.SERVER_CORES)
            servers.pin(self.client(server).process.pid, self.CLIENT_CORES)

    def pin_all(self):
        for server in self.servers:
            self.pin(server)

    def warm(self, server, request, how):
        """On all cores, until a piece of time costs the server hardly less than the one before: its compiler is done with this kind of request."""
        client, before = self.client(server), None
        self.spread(server)
        for _ in range(1 if server.is_helenus else WARM_PIECES_MAX):
            outcome = client.measure(request, self.scale.warm_seconds, **how)
            now = outcome["cpu_us"] / outcome["requests"]
            if before and now > before * WARM_ENOUGH:
                break
            before = now
        self.pin(server)

    def turns(self, experiment, case, request_of, seconds=None, rows=True, **how):
        """A case on every server in turn, as often as wanted, when all are warm; `rows`: answers have some."""
        seconds = seconds or self.scale.seconds
        for server in self.servers:
            self.warm(server, request_of(0), how or WARM_LOAD)
        for repetition, server in self.order():
            self.record(experiment, case, server, repetition, self.client(server).measure(request_of(repetition + 1), seconds, **how))
        self.tell(experiment, case)
        self.bare.add(case, request_of, seconds, how, rows)
        self.profile(experiment, case, request_of(0), how)

    def profile(self, experiment, case, request, how):
        """Looks at Helenus while it does what was just measured."""
        for server in self.servers:
            if server.is_helenus and self.options.profile:
                recorded = self.recorded.setdefault(experiment, [])
                file = self.options.scratch / f"{experiment}-{len(recorded)}.perf"
                profiles.record(file, server.pid, lambda: self.client(server).measure(request, profiles.SECONDS, **how))
                recorded.append((case, file))

    def order(self):
        """Repetitions and servers, another one first each time."""
        for repetition in range(self.options.repetitions):
            turn = repetition % len(self.servers)
            for server in self.servers[turn:] + self.servers[:turn]:
                self.rest()
                yield repetition, server

    def rest(self):
        """Waits until no server flushes or compacts any more, or for long enough, and the kernel has written what they left."""
        end, before = time.monotonic() + REST_SECONDS_MAX, None
        while time.monotonic() < end:
            now = sum(servers.cpu_seconds(server.pid) for server in self.servers)
            if before is not None and now - before < REST_CPU_SECONDS:
                break
            before = now
            time.sleep(REST_SECONDS)
        os.sync()

    def record(self, experiment, case, server, repetition, outcome):
        return self.results.record(experiment, case, server.name, repetition, outcome)

    def fail(self, experiment, case, server, repetition, error):
        self.say(f"{experiment:<8} {case:<34} {server.name:<18} failed: {error}")
        self.results.fail(experiment, case, server.name, repetition, str(error)[:300])

    def tell(self, experiment, case):
        for server in self.servers:
            pool = self.results.pool(experiment, case, server.name)
            if pool is None:
                continue
            latency = f"p50 {pool.p50_us:10.1f} µs  p99 {pool.p99_us:10.1f} µs" if pool.histogram else " " * 34
            per_row = f"  {pool.rows_per_cpu_second:12,.0f} rows/CPU s" if pool.rows and pool.cpu_us else ""
            self.say(f"{experiment:<8} {case:<34} {server.name:<18} {latency}  {pool.cpu_us_per_request:12.1f} µs CPU{per_row}")
