"""The newest 10: the end of a partition in ascending order, read backwards, against the start of one in descending order."""

from .client import request
from .data import wide_key
from .targets import Judge, Target

NAME = "newest"
TITLE = "The newest 10 rows: ascending table (read reversed) against descending table"
NEEDS = ["wide"]
ROWS = 10
STATEMENTS = {
    "ascending": f"SELECT name, value FROM bench.ascending WHERE key = ? ORDER BY name DESC LIMIT {ROWS}",
    "descending": f"SELECT name, value FROM bench.descending WHERE key = ? LIMIT {ROWS}",
}


def run(bench):
    for width in bench.scale.widths:
        for table, statement in STATEMENTS.items():
            bench.turns(NAME, f"{table} of {width:,}", lambda _: request(statement, [{"text": wide_key(width)}], ROWS))


def targets(results, scale):
    judge = Judge(results, NAME)
    for width in scale.widths:
        reversed_case, forward_case = f"ascending of {width:,}", f"descending of {width:,}"
        for what, words in (("p50_us", "p50"), ("cpu_us_per_request", "server CPU")):
            yield Target(f"{width:,} rows: {words}, reversed against forward, Helenus", judge.ratio(what, reversed_case, forward_case), 1.15)
