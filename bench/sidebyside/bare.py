"""The bare cost: the null server (bench/null) gives the same bytes through the same connection layer as Helenus, without a database behind it.

Each case that a module measures is noted; at the end of the experiment one answer of each statement is taken from Helenus, and the null server
is asked the same requests as the others were."""

import dataclasses
import json
import subprocess

from . import servers
from .client import Client

NAME = "null"
# It needs no long look: it does the same for every request.
SECONDS_SHARE = 0.5
WARM_SECONDS = 0.05


class NullServer:
    """Looks like the others to a client."""

    def __init__(self, program, file):
        self.process = subprocess.Popen([program, "127.0.0.1:0", str(file)], stdout=subprocess.PIPE, text=True)
        self.name, self.pid = NAME, self.process.pid
        address = self.process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"the null server ended with {self.process.wait()}")
        self.ip, _, self.port = address.rpartition(":")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    request_of: object
    seconds: float
    how: dict


class Bare:
    def __init__(self, bench):
        self.bench, self.cases, self.answers = bench, [], {}

    def add(self, name, request_of, seconds, how, rows=True):
        """A case that Helenus has just answered; `rows`: with rows, which are taken from it now."""
        ours = [server for server in self.bench.servers if server.is_helenus]
        if not ours or not self.bench.options.bare:
            return
        self.cases.append(Case(name, request_of, seconds, how))
        request = request_of(0)
        if rows and request["statement"] not in self.answers:
            self.answers[request["statement"]] = self.bench.client(ours[0]).do({"do": "capture", "request": request})

    def measure(self, experiment):
        cases, self.cases = self.cases, []
        if not cases:
            return
        file = self.bench.options.scratch / "canned.jsonl"
        file.write_text("".join(json.dumps(answer) + "\n" for answer in self.answers.values()))
        server = NullServer(self.bench.programs.null, file)
        client = Client(self.bench.programs.lean, server)
        try:
            if self.bench.options.pin:
                servers.pin(server.pid, self.bench.SERVER_CORES)
                servers.pin(client.process.pid, self.bench.CLIENT_CORES)
            for case in cases:
                client.measure(case.request_of(0), WARM_SECONDS, **case.how)
                for repetition in range(self.bench.options.repetitions):
                    outcome = client.measure(case.request_of(repetition + 1), case.seconds * SECONDS_SHARE, **case.how)
                    self.bench.results.record(experiment, case.name, NAME, repetition, outcome)
        finally:
            client.close()
            server.stop()
        self.bench.say(f"{experiment}: bare cost of {len(cases)} cases")
