"""A run: the servers, a client each, and turns of measurements."""

import dataclasses
import datetime

from . import data, servers
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


EVENT_PARTS = 4
SCALES = {
    "full": Scale((1_000, 100_000, 10_000_000), 1_000_000, 100_000, (10_000, 100_000), 1_000_000, 0.4, 3.0),
    "small": Scale((1_000, 10_000, 100_000), 100_000, 20_000, (1_000, 10_000), 50_000, 0.1, 0.5),
}
# A native program needs no compiler to warm up; its caches do.
HELENUS_WARM = 0.2
SERVER_CORES, CLIENT_CORES = {0}, {1}


class Bench:
    def __init__(self, made, program, options, results):
        self.servers, self.program, self.options, self.results = made, program, options, results
        self.scale = SCALES[options.scale]
        self.clients, self.loaded = {}, set()
        self.begun = datetime.datetime.now()

    def say(self, text):
        seconds = (datetime.datetime.now() - self.begun).total_seconds()
        print(f"{seconds:6.0f} s  {text}", flush=True)

    def start(self, server, more=()):
        server.start(more)
        self.clients[server.name] = Client(self.program, server, None)

    def stop(self, server):
        self.clients.pop(server.name).close()
        server.stop()

    def client(self, server):
        return self.clients[server.name]

    def need(self, what):
        """Data that an experiment wants, loaded by the first that does."""
        for server in self.servers:
            if (what, server.name) in self.loaded:
                continue
            self.spread(server)
            client = self.client(server)
            if what == "wide":
                data.load_wide(server, client, self.scale.widths)
            elif what == "points":
                data.load_points(server, client, self.scale.points)
            elif what == "events":
                data.load_events(server, client, EVENT_PARTS, self.scale.event_rows)
            self.loaded.add((what, server.name))
            self.say(f"{server.name}: {what} is loaded")

    def spread(self, server):
        """All cores for server and client: loading is not measured."""
        everything = SERVER_CORES | CLIENT_CORES
        servers.pin(server.pid, everything)
        servers.pin(self.client(server).process.pid, everything)

    def pin(self, server):
        """One core for the server, another one for the client."""
        if self.options.pin:
            servers.pin(server.pid, SERVER_CORES)
            servers.pin(self.client(server).process.pid, CLIENT_CORES)

    def pin_all(self):
        for server in self.servers:
            self.pin(server)

    def warm_seconds(self, server):
        return self.scale.warm_seconds * (HELENUS_WARM if server.is_helenus else 1)

    def turns(self, experiment, case, request_of, seconds=None, **how):
        """A case on every server in turn, as often as wanted, after a time to warm up."""
        seconds = seconds or self.scale.seconds
        for server in self.servers:
            self.client(server).measure(request_of(0), self.warm_seconds(server), **how)
        for repetition, server in self.order():
            self.record(experiment, case, server, repetition, self.client(server).measure(request_of(repetition + 1), seconds, **how))
        self.tell(experiment, case)

    def order(self):
        """Repetitions and servers, another one first each time."""
        for repetition in range(self.options.repetitions):
            turn = repetition % len(self.servers)
            for server in self.servers[turn:] + self.servers[:turn]:
                yield repetition, server

    def record(self, experiment, case, server, repetition, outcome):
        return self.results.record(experiment, case, server.name, repetition, outcome)

    def tell(self, experiment, case):
        for server in self.servers:
            pool = self.results.pool(experiment, case, server.name)
            if pool is None:
                continue
            latency = f"p50 {pool.p50_us:10.1f} µs  p99 {pool.p99_us:10.1f} µs" if pool.histogram else " " * 34
            per_row = f"  {pool.rows_per_cpu_second:12,.0f} rows/CPU s" if pool.rows and pool.cpu_us else ""
            self.say(f"{experiment:<8} {case:<34} {server.name:<18} {latency}  {pool.cpu_us_per_request:12.1f} µs CPU{per_row}")
