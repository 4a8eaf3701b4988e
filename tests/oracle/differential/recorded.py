"""Statements with Cassandra's answers as text, for a test that needs no Cassandra: a line of JSON for each."""

import json


def as_json(item):
    return item.hex() if isinstance(item, bytes) else item


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
