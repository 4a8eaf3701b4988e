"""The client's side: jobs for the program `bench-lean`, a line of JSON each (see bench/lean/src/job.rs)."""

import json
import subprocess


class ClientError(Exception):
    """What the client or the server said instead of an outcome."""


class Client:
    """One process a server; a job at a time."""

    def __init__(self, program, server):
        command = [program, f"{server.ip}:{server.port}", str(server.pid)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, job):
        self.begin(job)
        return self.end(job)

    def begin(self, job):
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()

    def end(self, job):
        """The outcome of the job that was begun."""
        line = self.process.stdout.readline()
        if not line:
            raise ClientError(f"the client ended with {self.process.wait()}")
        outcome = json.loads(line)
        if "error" in outcome:
            raise ClientError(f"{outcome['error']}: {json.dumps(job)[:400]}")
        return outcome

    def query(self, statement):
        return self.do({"do": "query", "statement": statement})

    def measure(self, request, seconds, **how):
        return self.do(measurement(request, seconds, **how))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def measurement(request, seconds, **how):
    return {"do": "measure", "request": request, "seconds": seconds, **how}


def request(statement, values, rows=None, **more):
    """A request of the client: see bench/lean/src/template.rs."""
    return {"statement": statement, "values": values, "rows": rows, **more}


def random(below, seed=1):
    return {"random": {"below": below, "seed": seed}}


def each(count, start=0, step=1):
    return {"each": {"from": start, "count": count, "step": step}}
