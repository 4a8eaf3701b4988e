"""Statements with Cassandra's answers as text, for a test that needs no Cassandra: a line of JSON for each."""

import json
import pathlib

DIRECTORY = pathlib.Path(__file__).resolve().parent / "recorded"
KEYSPACE = "fuzz_0"
"""Of the first job: names of keyspaces are in the answers."""


def as_json(item):
    return {"hex": item.hex()} if isinstance(item, bytes) else item


def from_json(item):
    return bytes.fromhex(item["hex"]) if set(item) == {"hex"} else item


class Recorder:
    """Gathers the steps of seeds."""

    def __init__(self):
        self.lines = {}

    def of(self, seed):
        lines = self.lines.setdefault(seed, [])
        return lambda step, answers: lines.append(json.dumps([step, answers], default=as_json, ensure_ascii=False))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            for seed in sorted(self.lines):
                out.write("\n".join(self.lines[seed]) + "\n")


def files():
    return sorted(DIRECTORY.glob("*.jsonl"))


def read(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line, object_hook=from_json)
