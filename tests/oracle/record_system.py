"""Record what a fresh Cassandra answers for its own keyspaces.

Usage: record_system.py HOST PORT OUT_DIR

Writes one file per keyspace, OUT_DIR/KEYSPACE.jsonl; a line is {"table": ..., "row": {...}} with the row as
`SELECT JSON *` prints it, in result order. A table without rows has one line without "row"; of tables with one row per table or token range
(SAMPLED) the first few rows stand for all. Paths of the recording
machine are replaced by Cassandra's usual ones; system_logs and system_properties (a machine's own) are left out.
"""

import json
import pathlib
import re
import sys

from cassandra.cluster import Cluster

KEYSPACES = ["system", "system_schema", "system_virtual_schema", "system_views"]
LEFT_OUT = {"system_logs", "system_properties", "queries"}
SAMPLED = re.compile(r".*(_estimates|_latency|disk_usage|max_.*|_per_read)$")
SAMPLE = 4
REPLACED = [(re.compile(r"/tmp/cassandra"), "/var/lib/cassandra"), (re.compile(r"127\.0\.0\.\d+"), "127.0.0.1")]


def tables(session, keyspace):
    source = "system_schema" if keyspace in ("system", "system_schema") else "system_virtual_schema"
    query = f"SELECT table_name FROM {source}.tables WHERE keyspace_name = %s"
    return sorted(row[0] for row in session.execute(query, (keyspace,)))


def record(session, keyspace, out):
    for table in tables(session, keyspace):
        if table in LEFT_OUT:
            continue
        rows = [row[0] for row in session.execute(f'SELECT JSON * FROM {keyspace}."{table}"')]
        if not rows:
            out.write(json.dumps({"table": table}) + "\n")
        for row in rows[:SAMPLE] if SAMPLED.match(table) else rows:
            for pattern, replacement in REPLACED:
                row = pattern.sub(replacement, row)
            line = json.dumps({"table": table, "row": json.loads(row)}, ensure_ascii=False)
            out.write(line + "\n")


def main():
    host, port, directory = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    directory.mkdir(parents=True, exist_ok=True)
    with Cluster([host], port=port) as cluster:
        session = cluster.connect()
        for keyspace in KEYSPACES:
            with open(directory / f"{keyspace}.jsonl", "w", encoding="utf-8") as out:
                record(session, keyspace, out)


main()
