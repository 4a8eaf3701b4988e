"""The data: keyspace, tables, loads. Each is loaded once a server, by batches of many rows, flushed and compacted into one SSTable."""

from .client import each, request

KEYSPACE = "CREATE KEYSPACE IF NOT EXISTS bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
# no compaction but the one that is asked for: all servers have the same SSTables
OPTIONS = "compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"
WIDE = "key text, name text, value text, PRIMARY KEY (key, name)"
TABLES = {
    "ascending": f"CREATE TABLE IF NOT EXISTS bench.ascending ({WIDE}) WITH CLUSTERING ORDER BY (name ASC) AND {OPTIONS}",
    "descending": f"CREATE TABLE IF NOT EXISTS bench.descending ({WIDE}) WITH CLUSTERING ORDER BY (name DESC) AND {OPTIONS}",
    "deleted": f"CREATE TABLE IF NOT EXISTS bench.deleted ({WIDE}) WITH {OPTIONS}",
    "points": f"CREATE TABLE IF NOT EXISTS bench.points (key bigint PRIMARY KEY, value blob) WITH {OPTIONS}",
    "events": f"CREATE TABLE IF NOT EXISTS bench.events (device text, at bigint, reading double, note text, PRIMARY KEY (device, at)) WITH {OPTIONS}",
}
# of a wide row: 10 characters of name, 25 of value
VALUE_DIGITS = 25
POINT_BYTES = 100
NOTE_DIGITS = 40
EVENTS_OF_DEVICE = 100
WIDE_BATCH = 200
POINTS_BATCH = 50
# what a run changes
CHANGED = ("deleted", "events")
EVENT_PARTS = 4
LOAD = {"connections": 4, "in_flight": 16}
LOAD_SECONDS = 1800


def wide_key(width):
    return f"cells-{width}"


def create_keyspace(client):
    client.query(KEYSPACE)


def create(client):
    """The tables; those that a run changes are made anew."""
    create_keyspace(client)
    for table in CHANGED:
        client.query(f"DROP TABLE IF EXISTS bench.{table}")
    for statement in TABLES.values():
        client.query(statement)


def write(client, statement, values, count, batch, start=0):
    job = request(statement, values, index=each(count, start), batch=batch)
    return client.measure(job, LOAD_SECONDS, **LOAD)


def load_wide(server, client, scale):
    for table in ("ascending", "descending"):
        insert = f"INSERT INTO bench.{table} (key, name, value) VALUES (?, ?, ?)"
        for width in scale.widths:
            write(client, insert, [{"text": wide_key(width)}, {"name": 0}, {"digits": VALUE_DIGITS}], width, WIDE_BATCH)
        server.nodetool("flush", "bench", table)
        server.nodetool("compact", "bench", table)


def load_points(server, client, scale):
    write(client, "INSERT INTO bench.points (key, value) VALUES (?, ?)", [{"quotient": 1}, {"blob": POINT_BYTES}], scale.points, POINTS_BATCH)
    server.nodetool("flush", "bench", "points")
    server.nodetool("compact", "bench", "points")


def load_events(server, client, scale):
    """Some SSTables; a fourth of each overwrites rows of the one before."""
    insert = "INSERT INTO bench.events (device, at, reading, note) VALUES (?, ?, ?, ?)"
    values = [{"quotient_text": EVENTS_OF_DEVICE}, {"rest": EVENTS_OF_DEVICE}, "double", {"digits": NOTE_DIGITS}]
    for part in range(EVENT_PARTS):
        write(client, insert, values, scale.event_rows, EVENTS_OF_DEVICE, part * scale.event_rows * 3 // 4)
        server.nodetool("flush", "bench", "events")


def events_left(scale):
    """Rows that are left of all parts."""
    return (EVENT_PARTS - 1) * (scale.event_rows * 3 // 4) + scale.event_rows


LOADS = {"wide": load_wide, "points": load_points}


def stored_bytes(server, table):
    return sum(file.stat().st_size for file in server.table_directory("bench", table).glob("*-Data.db"))
