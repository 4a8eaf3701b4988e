"""What the experiments are held to: each target beside what was measured, and whether it is reached, computed and never typed."""

from __future__ import annotations

import dataclasses


# what Helenus is called with the commit log of Cassandra's default, and with its own
PERIODIC, GROUP = "helenus", "helenus-group"


@dataclasses.dataclass(frozen=True)
class Target:
    """A value that is to be at most, or at least, a limit."""

    what: str
    value: float | None
    limit: float
    at_least: bool = False

    @property
    def verdict(self):
        if self.value is None:
            return "not measured"
        reached = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "reached" if reached else "not reached"

    @property
    def wanted(self):
        return f"at {'least' if self.at_least else 'most'} {self.limit:g}"


class Judge:
    """The pools of one experiment, asked for by case."""

    def __init__(self, results, experiment, ours=PERIODIC):
        self.results, self.experiment, self.ours = results, experiment, ours

    def helenus(self, case):
        return self.results.pool(self.experiment, case, self.ours)

    def failures(self, cases):
        """How often there was an error instead of an outcome; none when nothing was measured."""
        if self.ours in self.results.servers(self.experiment):
            return sum(len(self.results.failures.get((self.experiment, case, self.ours), ())) for case in cases)
        return None

    def cassandras(self, case):
        names = [name for name in self.results.servers(self.experiment) if name.startswith("cassandra")]
        return [pool for name in names if (pool := self.results.pool(self.experiment, case, name))]

    def ratio(self, what, over, under):
        """A property of Helenus in one case against another."""
        above, below = self.helenus(over), self.helenus(under)
        return above and below and quotient(getattr(above, what), getattr(below, what))

    def share(self, what, case):
        """A property of Helenus against the lower one of the Cassandras."""
        ours, theirs = self.helenus(case), self.cassandras(case)
        return ours and theirs and quotient(getattr(ours, what), min(getattr(pool, what) for pool in theirs)) or None

    def times(self, what, case):
        """A property of Helenus against the higher one of the Cassandras."""
        ours, theirs = self.helenus(case), self.cassandras(case)
        return ours and theirs and quotient(getattr(ours, what), max(getattr(pool, what) for pool in theirs)) or None


def quotient(over, under):
    """None where a clock of hundredths of a second has seen nothing."""
    return over / under if over and under else None
