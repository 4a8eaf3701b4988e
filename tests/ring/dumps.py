"""What the nodes of a ring hold on disk, in Cassandra's words: sstabledump of each table, node beside node.

Everything is read at ALL first, so that read repair has made the replicas equal; then each node flushes and compacts. With as
many copies as nodes each node then has the same partitions, and sstabledump prints the same of them. Not compared: `position`, where
an unfiltered stands in its file, because replicas may have come to different blocks. Not dumped: the files of indexes.

Cassandra 5.0.8 now and then turns the local time of a deletion into its greatest one (4294967294), each replica on its own: a ring
of Cassandra alone differs so from itself (tests/ring/histories --kinds cassandra,cassandra,cassandra --seed 213 --dump). Where a
Cassandra has that value, local times of deletions are not compared.
"""

import json
import pathlib
import re
import subprocess
import tempfile
import time

import lab

SETTLED_SECONDS, STEADY_SECONDS = 60, 1
# characters of a difference: so many before it, and twice as many after
SHOWN = 200
GREATEST = '"local_delete_time": "2106-02-07T06:28:14Z"'
DELETED_AT = re.compile(r'"local_delete_time": "[^"]*"')
POSITION = re.compile(r',?\s*"position" : \d+')


class Dumper:
    """sstabledump of many files in one process of Java."""

    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.place = pathlib.Path(self.scratch.name)
        command = [lab.ORACLE, "tools", str(self.place)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def dump(self, path):
        """The partitions of a file, each as text without positions, by key."""
        out = self.place / "dump.json"
        self.process.stdin.write(f"SSTableExport\t{out}\t{path}\n")
        self.process.stdin.flush()
        code = self.process.stdout.readline().strip()
        text = out.read_text()
        if code != "0":
            raise RuntimeError(f"sstabledump of {path} ends with {code}: {text[-500:]}")
        partitions = json.loads(POSITION.sub("", text) or "[]")
        return {json.dumps(one["partition"]["key"]): json.dumps(one, ensure_ascii=False) for one in partitions}

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.scratch.cleanup()


def files(node, keyspace):
    """The data files of each table."""
    found = {}
    for directory in sorted((node.directory / "data" / keyspace).glob("*")):
        table = directory.name.rpartition("-")[0]
        found[table] = sorted(path for path in directory.glob("*-Data.db"))
    return found


def settled_files(node, keyspace):
    """The same when compactions have taken away what they have read."""
    until, steady, before = time.monotonic() + SETTLED_SECONDS, time.monotonic(), None
    while time.monotonic() < until:
        now = files(node, keyspace)
        if now != before:
            before, steady = now, time.monotonic()
        elif time.monotonic() - steady > STEADY_SECONDS:
            return now
        time.sleep(0.2)
    raise RuntimeError(f"the files of {node.ip} do not come to rest")


def tables(node, keyspace, dumper):
    """What a node holds: of each table the partitions by key."""
    node.nodetool("flush", keyspace)
    node.nodetool("compact", keyspace)
    held = {}
    for table, paths in settled_files(node, keyspace).items():
        partitions = held.setdefault(table, {})
        for path in paths:
            for key, text in dumper.dump(path).items():
                # a table may have several files after a compaction, but a partition is in one
                partitions[key] = text if key not in partitions else f"in two files: {text} {partitions[key]}"
    return held


def alike(one, other):
    if one is not None and other is not None and GREATEST in one + other:
        return DELETED_AT.sub("", one) == DELETED_AT.sub("", other)
    return one == other


def apart(one, other):
    """Two texts around the place where they begin to differ."""
    at = max(0, next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other))) - SHOWN)
    return one[at : at + 3 * SHOWN], other[at : at + 3 * SHOWN]


def differences(nodes, keyspace, dumper):
    """A line for each partition that two nodes do not hold alike."""
    held = [tables(node, keyspace, dumper) for node in nodes]
    found = []
    for node, theirs in zip(nodes[1:], held[1:]):
        for table in sorted(held[0].keys() | theirs.keys()):
            one, other = held[0].get(table, {}), theirs.get(table, {})
            for key in sorted(one.keys() | other.keys()):
                if not alike(one.get(key), other.get(key)):
                    first, second = apart(one.get(key, "nothing"), other.get(key, "nothing"))
                    found.append(f"{keyspace}.{table} {key}\n    {nodes[0].kind} {nodes[0].ip}: {first}\n    {node.kind} {node.ip}: {second}")
    return found, sum(len(partitions) for partitions in held[0].values())
