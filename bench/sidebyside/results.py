"""What was measured: a line each in raw.jsonl, pooled over repetitions for the tables and plots."""

import json

QUANTILES = [("p50", 0.50), ("p80", 0.80), ("p95", 0.95), ("p99", 0.99)]


class Pool:
    """The repetitions of one case on one server."""

    def __init__(self):
        self.repetitions = self.requests = self.rows = 0
        self.seconds = self.cpu_us = 0.0
        self.min_ns, self.max_ns = None, 0
        self.histogram = {}
        self.outcomes = []

    def add(self, outcome):
        self.repetitions += 1
        self.outcomes.append(outcome)
        for name in ("requests", "rows", "seconds", "cpu_us"):
            setattr(self, name, getattr(self, name) + outcome[name])
        for nanoseconds, count in outcome.get("histogram", ()):
            self.histogram[nanoseconds] = self.histogram.get(nanoseconds, 0) + count
        if outcome.get("min_ns"):
            self.min_ns = min(self.min_ns or outcome["min_ns"], outcome["min_ns"])
        self.max_ns = max(self.max_ns, outcome.get("max_ns", 0))

    def quantile_us(self, quantile):
        """Of all latencies of all repetitions, in microseconds."""
        left = quantile * sum(self.histogram.values())
        for nanoseconds in sorted(self.histogram):
            left -= self.histogram[nanoseconds]
            if left <= 0:
                return min(nanoseconds, self.max_ns) / 1000
        return None

    @property
    def p50_us(self):
        return self.quantile_us(0.5)

    @property
    def p99_us(self):
        return self.quantile_us(0.99)

    @property
    def cpu_us_per_request(self):
        return self.cpu_us / self.requests

    @property
    def per_second(self):
        return self.requests / self.seconds if self.seconds else None

    @property
    def rows_per_second(self):
        return self.rows / self.seconds if self.seconds else None

    @property
    def cpu_us_per_row(self):
        return self.cpu_us / self.rows if self.rows else None

    @property
    def rows_per_cpu_second(self):
        return self.rows / (self.cpu_us / 1e6) if self.cpu_us else None


class Results:
    def __init__(self, raw):
        self.raw, self.pools, self.failures = raw, {}, {}

    def record(self, experiment, case, server, repetition, outcome):
        self.pools.setdefault((experiment, case, server), Pool()).add(outcome)
        pool = self.pools[experiment, case, server]
        kept = {name: value for name, value in outcome.items() if name != "histogram"}
        one = Pool()
        one.add(outcome)
        if one.histogram:
            kept |= {f"{name}_us": one.quantile_us(quantile) for name, quantile in QUANTILES}
        line = {"experiment": experiment, "case": case, "server": server, "repetition": repetition, **kept}
        self.raw.write(json.dumps(line) + "\n")
        self.raw.flush()
        return pool

    def fail(self, experiment, case, server, repetition, error):
        """What came instead of an outcome."""
        self.failures.setdefault((experiment, case, server), []).append(error)
        line = {"experiment": experiment, "case": case, "server": server, "repetition": repetition, "error": error}
        self.raw.write(json.dumps(line) + "\n")

    def pool(self, experiment, case, server):
        return self.pools.get((experiment, case, server))

    def cases(self, experiment):
        return list(dict.fromkeys(case for name, case, _ in [*self.pools, *self.failures] if name == experiment))

    def servers(self, experiment):
        return list(dict.fromkeys(server for name, _, server in [*self.pools, *self.failures] if name == experiment))
