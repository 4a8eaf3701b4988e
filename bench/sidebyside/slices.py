"""100 rows of partitions of very different width: a slice from a random position, and 100 names that stand side by side."""

from .client import random, request
from .data import wide_key
from .targets import Judge, Target

NAME = "slices"
TITLE = "100 rows from a random position: a slice, and as many names on one page"
NEEDS = ["wide"]
ROWS = 100
SLICE = f"SELECT name, value FROM bench.ascending WHERE key = ? AND name >= ? LIMIT {ROWS}"
NAMES = "SELECT name, value FROM bench.ascending WHERE key = ? AND name IN ?"


def slice_of(width, seed):
    return request(SLICE, [{"text": wide_key(width)}, {"name": 0}], ROWS, index=random(width - ROWS, seed))


def names_of(width, seed):
    return request(NAMES, [{"text": wide_key(width)}, {"names_from": ROWS}], ROWS, index=random(width - ROWS, seed))


FORMS = {"slice": slice_of, "names": names_of}


def run(bench):
    for form, request_of in FORMS.items():
        for width in bench.scale.widths:
            bench.turns(NAME, f"{form} in {width:,}", lambda seed: request_of(width, seed))


def targets(results, scale):
    judge = Judge(results, NAME)
    for form in FORMS:
        small, wide = (f"{form} in {width:,}" for width in (scale.widths[0], scale.widths[-1]))
        yield Target(f"{form}: p50 in the widest partition against the smallest, Helenus", judge.ratio("p50_us", wide, small), 1.3)
        for width in scale.widths:
            case = f"{form} in {width:,}"
            yield Target(f"{case}: p50 against Cassandra's", judge.share("p50_us", case), 1)
            yield Target(f"{case}: server CPU against Cassandra's", judge.share("cpu_us_per_request", case), 0.2)
