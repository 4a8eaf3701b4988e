"""The blob text's table: blobs of 100 bytes to 5 MB, batches of 1 to 32,768 rows, on 1 to 64 partitions, from 1 to 24 connections."""

import dataclasses

from .client import ClientError, each, request
from .targets import GROUP, PERIODIC, Judge, Target, quotient

NAME = "blobs"
TITLE = "Blobs in batches"
NEEDS = []
TABLE = "CREATE TABLE IF NOT EXISTS bench.recording (partkey int, id uuid, vs_id uuid, url ascii, message_time bigint, data blob, PRIMARY KEY ((partkey, vs_id), id))"
INSERT = "INSERT INTO bench.recording (partkey, vs_id, id, url, message_time, data) VALUES (?, ?, ?, ?, ?, ?)"
URL = "rtsp://recorder.example/streams/main"
# Requests without end: time ends them.
WITHOUT_END = 1 << 50
SECONDS_TIMES = 3
# In a batch at most; the frame, the mutation and the segment of the commit log have limits.
BATCH_BYTES_MAX = 8_000_000


@dataclasses.dataclass(frozen=True)
class Cell:
    bytes: int
    batch: int
    partitions: int
    connections: int

    @property
    def name(self):
        return f"{size(self.bytes)}, batch {self.batch:,}, partitions {self.partitions}, connections {self.connections}"


def size(count):
    return f"{count // 1_000_000} MB" if count >= 1_000_000 else f"{count // 1000} kB" if count >= 1000 else f"{count} B"


FEATURED = [Cell(100, 256, 8, connections) for connections in (1, 4, 8, 24)]
CELLS = [
    *FEATURED,
    *(Cell(100, batch, 8, 8) for batch in (1, 16, 4_096, 32_768)),
    *(Cell(100, 256, partitions, 8) for partitions in (1, 64)),
    *(Cell(100, 32_768, partitions, connections) for partitions, connections in ((1, 1), (64, 24))),
    *(Cell(1_000, batch, 8, 8) for batch in (1, 256, 4_096)),
    *(Cell(5_000, batch, 8, 8) for batch in (1, 256)),
    *(Cell(10_000, batch, 8, 8) for batch in (1, 256)),
    *(Cell(20_000, batch, 8, 8) for batch in (1, 256)),
    *(Cell(500_000, batch, 8, 8) for batch in (1, 16)),
    *(Cell(5_000_000, 1, 8, connections) for connections in (1, 8, 24)),
]


def cells(scale):
    """All, or some of them where nothing is measured."""
    return CELLS[:: scale.cell_step]


def message(count):
    """Hexadecimal digits: half of each byte says something."""
    return {"digits": count}


def write_request(cell, first=0):
    values = [{"int_rest": cell.partitions}, {"uuid": cell.partitions}, {"uuid": 0}, {"text": URL}, {"quotient": 1}, message(cell.bytes)]
    return request(INSERT, values, index=each(WITHOUT_END, first), batch=cell.batch if cell.batch > 1 else None)


def measure(bench, cell):
    how = {"connections": cell.connections, "in_flight": 1}
    seconds = bench.scale.seconds * SECONDS_TIMES
    for server in bench.servers:
        try:
            bench.warm(server, write_request(cell), how)
        except ClientError as error:
            bench.fail(NAME, cell.name, server, -1, error)
    for repetition, server in bench.order():
        try:
            # other rows each time
            outcome = bench.client(server).measure(write_request(cell, (repetition + 1) << 36), seconds, **how)
        except ClientError as error:
            bench.fail(NAME, cell.name, server, repetition, error)
            continue
        bench.record(NAME, cell.name, server, repetition, outcome | {"rows": outcome["requests"] * cell.batch})
    bench.tell(NAME, cell.name)
    for server in bench.servers:
        bench.client(server).query("TRUNCATE bench.recording")


def stored(bench):
    """Bytes on disk for each message of 100 bytes, when all is compacted into one SSTable."""
    cell = Cell(100, 256, 8, 8)
    for server in bench.servers:
        bench.spread(server)
        job = write_request(cell) | {"index": each(bench.scale.message_rows)}
        bench.client(server).measure(job, 600, connections=cell.connections)
        server.nodetool("flush", "bench", "recording")
        server.nodetool("compact", "bench", "recording")
        written = sum(map(length, server.table_directory("bench", "recording").iterdir()))
        # requests are rows, seconds are what is told of: bytes
        outcome = {"requests": bench.scale.message_rows, "rows": 0, "seconds": 0.0, "cpu_us": 0.0, "bytes": written}
        bench.record(NAME, STORED, server, 0, outcome)
        bench.say(f"{server.name}: {written / bench.scale.message_rows:.1f} bytes on disk for a message")


def length(file):
    """Of a file; none of what a compaction has just removed."""
    try:
        return file.stat().st_size if file.is_file() else 0
    except FileNotFoundError:
        return 0


STORED = "bytes on disk for each message of 100 B"


def run(bench):
    for server in bench.servers:
        bench.client(server).query(TABLE)
    for cell in cells(bench.scale):
        measure(bench, cell)
    stored(bench)


def bytes_a_row(pool):
    return quotient(sum(outcome["bytes"] for outcome in pool.outcomes), pool.requests)


def targets(results, scale):
    for ours in (GROUP, PERIODIC):
        judge = Judge(results, NAME, ours)
        featured = {cell.name for cell in FEATURED}
        for cell in cells(scale):
            least = 4 if cell.name in featured else 2
            yield Target(f"{cell.name}: rows a second, times Cassandra's, {ours}", judge.times("rows_per_second", cell.name), least, at_least=True)
            if cell.name in featured:
                yield Target(f"{cell.name}: server CPU of a row against Cassandra's, {ours}", judge.share("cpu_us_per_row", cell.name), 0.2)
        yield Target(f"failures and timeouts, {ours}", judge.failures([cell.name for cell in cells(scale)]), 0)
    judge = Judge(results, NAME, PERIODIC)
    mine, theirs = judge.helenus(STORED), judge.cassandras(STORED)
    ratio = mine and quotient(bytes_a_row(mine), min(map(bytes_a_row, theirs), default=None))
    yield Target(f"{STORED}, against Cassandra's", ratio, 1)
