"""100 names on 100 pages of the widest partition: one from each hundredth of it."""

from .client import random, request
from .data import wide_key
from .slices import NAMES, ROWS
from .targets import Judge, Target

NAME = "pages"
TITLE = "100 names on 100 random pages of the widest partition, warm"
NEEDS = ["wide"]
SERVER_US_MAX = 1000


def run(bench):
    width = bench.scale.widths[-1]
    values = [{"text": wide_key(width)}, {"names_spread": {"count": ROWS, "of": width}}]
    # the chunks of the whole partition come into the cache first
    sweep = request("SELECT name, value FROM bench.ascending WHERE key = ?", [{"text": wide_key(width)}], page_size=5000)
    for server in bench.servers:
        if server.is_helenus:
            bench.client(server).measure(sweep, 60)
    bench.turns(NAME, case(bench.scale), lambda seed: request(NAMES, values, ROWS, index=random(1 << 40, seed)), bench.scale.seconds * 2)


def case(scale):
    return f"100 pages of {scale.widths[-1]:,}"


def targets(results, scale):
    judge, name = Judge(results, NAME), case(scale)
    ours = judge.helenus(name)
    yield Target("server CPU of a query, µs", ours.cpu_us_per_request if ours else None, SERVER_US_MAX)
    yield Target("p50 of a query, µs", ours.p50_us if ours else None, SERVER_US_MAX)
    yield Target("server CPU against Cassandra's", judge.share("cpu_us_per_request", name), 0.2)
    yield Target("p50 against Cassandra's", judge.share("p50_us", name), 0.2)
