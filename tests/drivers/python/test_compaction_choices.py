"""What the strategies choose: the same flushes, and then compactions until there is nothing left to do, against what a Cassandra did.

Tables are not compressed, so that both have SSTables of the same sizes; each compaction is known by the bytes that went in and came out.
Recorded with a Cassandra started with concurrent_compactors=1 (DATA: its data directory):
    python tests/drivers/python/test_compaction_choices.py HOST PORT DATA NODETOOL... >tests/drivers/python/compaction_choices.txt
"""

import difflib
import pathlib
import random
import subprocess
import sys
import time

from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.metadata import Murmur3Token

from server import Server

KEYSPACE = "chosen"
# No compaction for so long: there is nothing left to do.
QUIET_SECONDS = 6
MINUTE = 60_000_000
EPOCH = 1_700_000_040_000_000
SIZE_TIERED, LEVELED, WINDOWS, UNIFIED = (f"{name}CompactionStrategy" for name in ("SizeTiered", "Leveled", "TimeWindow", "Unified"))


def each(*kibibytes, minute=0, tokens=(0, 1000)):
    """Flushes of these sizes, of a minute of timestamps and some thousandths of the ring."""
    return [(size, minute, tokens) for size in kibibytes]


# Options and flushes of a table.
TABLES = {
    "tiers": ({"class": SIZE_TIERED, "min_sstable_size": 0}, each(10, 11, 12, 9, 100, 110, 90, 105, 40, 300, 320, 310)),
    "small_tiers": ({"class": SIZE_TIERED, "min_threshold": 2, "max_threshold": 3, "min_sstable_size": 0},
                    each(10, 20, 14, 13, 12, 30, 28, 64, 60, 58, 200, 7)),
    "below_the_least": ({"class": SIZE_TIERED, "min_sstable_size": 50 << 10}, each(3, 5, 49, 60, 30, 55, 70, 90, 20)),
    "narrow_tiers": ({"class": SIZE_TIERED, "min_sstable_size": 0, "bucket_low": 0.8, "bucket_high": 1.2, "min_threshold": 3},
                     each(100, 110, 95, 130, 120, 85, 75, 140, 160, 150)),
    "windows": ({"class": WINDOWS, "compaction_window_unit": "MINUTES", "compaction_window_size": 1, "min_sstable_size": 0},
                each(20, 30, minute=1) + each(10, minute=2) + each(15, 25, 35, minute=3) + each(40, 41, 42, 43, 90, minute=9) + each(12, minute=1)),
    "wide_windows": ({"class": WINDOWS, "compaction_window_unit": "MINUTES", "compaction_window_size": 5, "max_threshold": 4, "min_sstable_size": 0},
                     each(20, 30, 22, 31, 33, 90, 10, minute=1) + each(15, 25, minute=6) + each(50, 51, 52, minute=20)),
    "levels": ({"class": LEVELED, "sstable_size_in_mb": 1, "fanout_size": 2},
               each(700, 650, 720, 690, 600, 710, 640, 800, 300, 200)),
    "many_in_l0": ({"class": LEVELED, "sstable_size_in_mb": 1}, each(*range(6, 41))),
    "tiered": ({"class": UNIFIED, "scaling_parameters": "T4", "flush_size_override": "1MiB", "base_shard_count": 1},
               each(200, 210, 220, 190, 180, 230, 205, 215, 195, 1700, 1800)),
    "neutral": ({"class": UNIFIED, "scaling_parameters": "N", "flush_size_override": "1MiB", "base_shard_count": 1},
                each(300, 900, 1300, 310, 1900, 320)),
    "leveled": ({"class": UNIFIED, "scaling_parameters": "L4", "flush_size_override": "1MiB", "base_shard_count": 1},
                each(300, 700, 800, 310, 900, 320)),
    "mixed": ({"class": UNIFIED, "scaling_parameters": "T3,L3,N", "flush_size_override": "1MiB", "base_shard_count": 1},
              each(900, 400, 500, 800, 600, 450, 350)),
    "at_most": ({"class": UNIFIED, "scaling_parameters": "T2", "max_sstables_to_compact": 4, "flush_size_override": "1MiB", "base_shard_count": 1},
                each(40, 50, 60, 45, 55, 65, 70, 35, 30, 42, 52)),
    "sharded": ({"class": UNIFIED, "scaling_parameters": "T4", "flush_size_override": "1MiB", "base_shard_count": 4, "min_sstable_size": "0B",
                 "target_sstable_size": "1MiB"},
                each(400, 500, 600, 450, 550)),
    "sections": ({"class": UNIFIED, "scaling_parameters": "T4", "flush_size_override": "1MiB", "base_shard_count": 1},
                 each(50, 60, 55, 65, 70, 45, 40, tokens=(0, 240)) + each(30, 35, 31, 36, 37, 33, tokens=(260, 490)) +
                 each(80, 81, 82, 83, 84, tokens=(510, 740)) + each(20, 21, 22, tokens=(760, 990))),
    "alone": ({"class": UNIFIED, "scaling_parameters": "T3", "overlap_inclusion_method": "NONE", "flush_size_override": "1MiB", "base_shard_count": 1},
              each(50, 60, 55, 65, tokens=(0, 400)) + each(30, 35, tokens=(350, 700)) + each(80, tokens=(650, 990))),
}
ROWS = 24


def keys_within(dice, tokens):
    """Keys of partitions spread evenly over some thousandths of the ring."""
    low, high = ((thousandth << 64) // 1000 - (1 << 63) for thousandth in tokens)
    step = (high - low) // ROWS
    for row in range(ROWS):
        # in the middle of its part: where an SSTable begins and ends is about the same for all
        start = low + row * step + step // 4
        while True:
            key = dice.getrandbits(31)
            if start <= Murmur3Token.hash_fn(key.to_bytes(4, "big")) < start + step // 2:
                yield key
                break


def compactions(session, table):
    rows = session.execute("SELECT columnfamily_name, compacted_at, bytes_in, bytes_out FROM system.compaction_history")
    mine = [row for row in rows if row.columnfamily_name == table]
    return [f"{row.bytes_in} -> {row.bytes_out}" for row in sorted(mine, key=lambda row: row.compacted_at)]


def number_of_compactions(session):
    rows = session.execute("SELECT keyspace_name FROM system.compaction_history")
    return sum(row.keyspace_name == KEYSPACE for row in rows)


def sizes(data, table):
    files = (pathlib.Path(data) / KEYSPACE).glob(f"{table}-*/*-Data.db")
    return sorted(file.stat().st_size for file in files)


def carry_out(session, nodetool, data):
    """What comes of it, as lines."""
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    inserts = {}
    for table, (options, _) in TABLES.items():
        options = {name: str(value) for name, value in options.items()}
        session.execute(f"CREATE TABLE {KEYSPACE}.{table} (k int PRIMARY KEY, v blob) WITH compression = {{'enabled': 'false'}} AND compaction = {options}")
        inserts[table] = session.prepare(f"INSERT INTO {KEYSPACE}.{table} (k, v) VALUES (?, ?) USING TIMESTAMP ?")
    nodetool("disableautocompaction", KEYSPACE)
    for turn in range(max(len(flushes) for _, flushes in TABLES.values())):
        for table, (_, flushes) in TABLES.items():
            if turn < len(flushes):
                size, minute, tokens = flushes[turn]
                dice = random.Random(f"{table} {turn}")
                value = bytes((size << 10) // ROWS - 24)
                rows = [(key, value, EPOCH + minute * MINUTE + turn) for key in keys_within(dice, tokens)]
                execute_concurrent_with_args(session, inserts[table], rows)
        nodetool("flush", KEYSPACE)
    before = {table: sizes(data, table) for table in TABLES}
    nodetool("enableautocompaction", KEYSPACE)
    known, since = 0, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(0.5)
        now = number_of_compactions(session)
        if now != known:
            known, since = now, time.monotonic()
    for table in TABLES:
        yield f"{table}: {' '.join(map(str, before[table]))}"
        yield from (f"    {line}" for line in compactions(session, table))
        yield f"    left {' '.join(map(str, sizes(data, table)))}"


def test_choices_are_those_of_cassandra(tmp_path):
    expected = pathlib.Path(__file__).with_name("compaction_choices.txt").read_text().splitlines()
    server = Server(tmp_path / "data", ["concurrent_compactors=1", "compaction_throughput=0MiB/s"]).start()

    def nodetool(*arguments):
        assert server.nodetool(*arguments).returncode == 0

    with Cluster([server.host], port=server.port) as cluster:
        found = list(carry_out(cluster.connect(), nodetool, tmp_path / "data" / "data"))
    assert server.stop() == 0, server.log_tail()
    assert found == expected, "\n".join(difflib.unified_diff(expected, found, "cassandra", "helenus", lineterm=""))


if __name__ == "__main__":
    host, port, data, *tool = sys.argv[1:]
    with Cluster([host], port=int(port)) as cluster:
        run = lambda *arguments: subprocess.run([*tool, *arguments], check=True, stdout=subprocess.DEVNULL)
        print("\n".join(carry_out(cluster.connect(), run, data)))
