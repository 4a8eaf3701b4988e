"""Generated tables, written, flushed, compacted and opened again by Helenus in each format: what it gives equals the naive twin, value for
value, write time and TTL of each cell. The long form, with Cassandra's tools and node, is tests/oracle/roundtrip.

    .venv/bin/pytest tests/roundtrip --seeds 100:120
"""

import time

import pytest

from formats import HELENUS
from generated import DAY, Writer
from raw import Session
from server import Server

LAYERS = 3

def differences(session, twin):
    """Lines that tell twin and server apart; none if they are equal."""
    table = twin.table
    _, found = session.select(table.query())
    want = twin.rows(session.now)
    keys, got = [], {}
    for row in found:
        key = row[: len(table.partition)]
        if key not in got:
            keys.append(key)
        got.setdefault(key, []).append(tuple(row))
    lines = []
    for key in {*got, *want}:
        mine, theirs = got.get(key, []), want.get(key, [])
        for at in range(max(len(mine), len(theirs))):
            a, b = (rows[at] if at < len(rows) else None for rows in (mine, theirs))
            if a != b:
                lines.append(f"{table.name} {key} row {at}:\n   server {a}\n   twin   {b}\n   {table.create()}")
                break
    return lines


@pytest.mark.parametrize("form", HELENUS)
def test_twin(tmp_path, form, seed):
    clock = int(time.time())
    writer = Writer(seed, clock)
    server = Server(tmp_path / "data", HELENUS[form]).start()
    session = Session(server.host, server.port, writer.now)
    for statement in writer.schema():
        session.execute(statement)
    for layer in range(LAYERS):
        session.now = writer.now
        writer.layer(session.run)
        check(session, writer, clock)
        assert server.nodetool("flush", writer.keyspace).returncode == 0
        check(session, writer, clock)
        if layer == 1:
            assert server.nodetool("compact", writer.keyspace).returncode == 0
            check(session, writer, clock)
    session.close()
    assert server.stop() == 0, server.log_tail()
    server = Server(tmp_path / "data", HELENUS[form]).start()
    session = Session(server.host, server.port, writer.now)
    check(session, writer, clock)
    session.close()
    assert server.stop() == 0, server.log_tail()


def check(session, writer, clock):
    session.now = clock + DAY
    lines = [line for twin in writer.twins for line in differences(session, twin)]
    assert not lines, f"seed {writer.keyspace}\n" + "\n".join(lines[:5])
