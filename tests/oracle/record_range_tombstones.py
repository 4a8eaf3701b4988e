"""Record what a real Cassandra makes of overlapping range deletions.

Usage: record_range_tombstones.py HOST PORT DIR OUT

DIR is the directory of the node (see `cassandra`), OUT the file to write: a line per case, the deletions in the order in which they are
executed, " = ", and the intervals that sstabledump shows after a flush. An interval is `[1,5)@3`: bounds, square where they belong to it,
and timestamp; a bound of two clustering columns is `1:2`, an open one is empty. Some cases are written down here, the rest is drawn.
"""

import json
import pathlib
import random
import re
import subprocess
import sys

from cassandra.cluster import Cluster

CASES = [
    "[0,10]@3 [5,8]@1 [8,15]@4",
    "[0,10]@3 [8,15]@4 [5,8]@1",
    "[8,15]@4 [5,8]@1 [0,10]@3",
    "[0,10]@1 [3,5]@2",
    "[0,10]@2 [3,5]@1",
    "[3,5]@1 [0,10]@2",
    "[3,5]@2 [0,10]@1",
    "[3,5]@2 [7,9]@2 [0,10]@1",
    "[3,5]@2 [7,9]@2 [0,10]@3",
    "(3,5)@2 [0,10]@1",
    "[3,5)@2 (5,9]@2 [0,10]@1",
    "[0,5)@1 [5,9]@2",
    "[0,5]@1 (5,9]@2",
    "[0,5]@1 [5,9]@2",
    "[0,5]@2 [5,9]@1",
    "[0,5)@2 (5,9]@1",
    "(0,5)@1 (5,9)@1",
    "[0,5]@1 (5,9]@1",
    "[0,5)@1 [5,9]@1",
    "[0,9]@1 [0,9]@1",
    "[0,9]@1 [0,9]@2 (0,9)@3",
    "[0,9]@3 (0,9)@2 [0,9]@1",
    "(,5]@1 [3,)@2",
    "(,5]@2 [3,)@1",
    "[3,4]@5 [0,)@2",
    "[1:1,1:1]@1 [1:2,1:4]@2 [1,1]@1",
    "[1:1,1:3)@3 [1,2]@2 (1:2,1]@4",
    "[1,1]@2 (1:3,1]@3 [1,1:2)@4",
    "[0,2]@1 [1:5,1]@2 (2,4:1]@1",
    "(1:2,1]@1 [1:2,1:2]@2 [1,1:2)@3",
]


def bound(dice, pair):
    return f"{dice.randrange(3)}:{dice.randrange(4)}" if pair else str(dice.randrange(20))


def drawn(dice):
    """Deletions with bounds in order; those of two columns have one value for the first."""
    ranges = []
    for _ in range(dice.randrange(2, 9)):
        kind = dice.randrange(3)
        if kind == 0:
            first = dice.randrange(3)
            low, high = sorted(dice.sample(range(5), 2))
            low, high = f"{first}:{low}", f"{first}:{high}"
        elif kind == 1:
            low = high = str(dice.randrange(4))
        else:
            low, high = map(str, sorted(dice.sample(range(12), 2)))
        start, end = ("[", "]") if low == high else (dice.choice("[("), dice.choice("])"))
        ranges.append(f"{start}{low},{high}{end}@{dice.randrange(1, 6)}")
    return " ".join(ranges)


def where(text):
    """The CQL conditions of an interval."""
    start, low, high, end, timestamp = re.fullmatch(r"([\[(])([^,]*),([^\])]*)([\])])@(\d+)", text).groups()
    low, high = low.split(":") if low else [], high.split(":") if high else []
    common, conditions = 0, []
    if low and low[:1] == high[:1]:
        common = 1
        conditions.append(f"c = {low[0]}")
    several = not common and len(low) + len(high) > 2
    for values, operators in ((low, ("> ", ">=")), (high, ("< ", "<="))):
        if len(values) > common:
            inclusive = (start == "[") if values is low else (end == "]")
            if several:
                conditions.append(f"({', '.join('cd'[: len(values)])}) {operators[inclusive]} ({', '.join(values)})")
            else:
                conditions.append(f"{'cd'[common]} {operators[inclusive]} {values[common]}")
    return timestamp, conditions


def shown(bound, opens):
    values = ":".join(value for value in map(str, bound.get("clustering", [])) if value != "*")
    inclusive = bound["type"] == "inclusive"
    if not values:
        return "(" if opens else ")", values
    return ("[" if inclusive else "(") if opens else ("]" if inclusive else ")"), values


def micros(deletion):
    """A timestamp as sstabledump words it, less the base that keeps it positive."""
    return int(re.sub(r"\D", "", deletion["marked_deleted"]))


def intervals(partition):
    found, opened = [], None
    for item in partition["rows"]:
        if not item["type"].startswith("range_tombstone_bound"):
            raise ValueError(f"a row was not expected: {item}")
        if "end" in item:
            bracket, values = shown(item["end"], False)
            start_bracket, start, timestamp = opened
            found.append(f"{start_bracket}{start},{values}{bracket}@{timestamp}")
            opened = None
        if "start" in item:
            bracket, values = shown(item["start"], True)
            opened = (bracket, values, micros(item["start"]["deletion_info"]) % 1000)
    return " ".join(found)


def main():
    host, port, directory, out = sys.argv[1:]
    oracle = pathlib.Path(__file__).with_name("cassandra")
    dice = random.Random(5)
    cases = CASES + [drawn(dice) for _ in range(170)]
    with Cluster([host], port=int(port)) as cluster:
        session = cluster.connect()
        session.execute("DROP KEYSPACE IF EXISTS ranges")
        session.execute("CREATE KEYSPACE ranges WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE ranges.t (k int, c int, d int, v int, PRIMARY KEY (k, c, d))")
        for number, case in enumerate(cases):
            for text in case.split():
                timestamp, conditions = where(text)
                rest = " AND ".join(conditions)
                session.execute(f"DELETE FROM ranges.t USING TIMESTAMP {timestamp} WHERE k = {number} AND {rest}")
    subprocess.run([oracle, "nodetool", directory, "flush", "ranges", "t"], check=True)
    data = next(pathlib.Path(directory).glob("data/ranges/t-*/*-Data.db"))
    dump = subprocess.run([oracle, "sstabledump", directory, data], check=True, capture_output=True, text=True).stdout
    answers = {int(partition["partition"]["key"][0]): intervals(partition) for partition in json.loads(dump)}
    lines = [f"{case} = {answers[number]}\n" for number, case in enumerate(cases)]
    head = "# Range deletions and what Cassandra 5.0.8 keeps of them (tests/oracle/record_range_tombstones.py).\n"
    pathlib.Path(out).write_text(head + "".join(lines), encoding="utf-8")


main()
