"""Record what Cassandra answers to DESCRIBE over a varied schema.

Usage: record_describe.py HOST PORT OUT_DIR

Runs OUT_DIR/schema.cql, then writes one file per statement to OUT_DIR: the statement, a line of dashes, the result's
column names, a line of dashes, and the rows. A row is a line "# keyspace | type | name" and its create statement
below it. Table ids and times of dropped columns differ in each run. The keyspaces of the schema are dropped before and after.
"""

import pathlib
import re
import sys

from cassandra.cluster import Cluster

STATEMENTS = """
DESCRIBE KEYSPACES; DESCRIBE TABLES; DESCRIBE TYPES; DESCRIBE FUNCTIONS; DESCRIBE AGGREGATES; DESCRIBE CLUSTER;
DESCRIBE SCHEMA; DESCRIBE KEYSPACE shop; DESCRIBE ONLY KEYSPACE shop; DESCRIBE KEYSPACE empty_ks; DESCRIBE KEYSPACE "MixedCase";
DESCRIBE KEYSPACE system_traces; DESCRIBE TABLE shop.simple; DESCRIBE TABLE shop.only_key; DESCRIBE TABLE shop.compound;
DESCRIBE TABLE shop.with_static; DESCRIBE TABLE shop.every_type; DESCRIBE TABLE shop.nested; DESCRIBE TABLE shop."QuotedTable";
DESCRIBE TABLE shop.visits; DESCRIBE TABLE shop.options; DESCRIBE TABLE shop.uncompressed; DESCRIBE TABLE shop.series;
DESCRIBE TABLE shop.altered; DESCRIBE TABLE shop.altered WITH INTERNALS; DESCRIBE TABLE shop.simple WITH INTERNALS;
DESCRIBE TABLE system.local; DESCRIBE TABLE system_views.clients; DESCRIBE TYPE shop.street; DESCRIBE TYPE shop.address;
DESCRIBE TYPE shop."OddType"; DESCRIBE INDEX shop.simple_by_name; DESCRIBE MATERIALIZED VIEW shop.by_value;
DESCRIBE FUNCTION shop.plus; DESCRIBE AGGREGATE shop.total; DESCRIBE shop; DESCRIBE shop.simple; DESCRIBE shop.simple_by_name;
DESCRIBE TABLE shop.nosuch; DESCRIBE KEYSPACE nosuch; DESCRIBE TYPE shop.nosuch; DESCRIBE nosuch; DESCRIBE TABLE simple
"""


def statements(text):
    return [part.strip() for part in text.split(";") if part.strip()]


def schema_statements(text):
    """Splits at semicolons that end a line: a function's body holds one of its own."""
    return [part for part in re.split(r";\n+", text) if part.strip()]


def file_name(statement):
    words = re.sub(r"[^A-Za-z0-9_]+", "_", statement.removeprefix("DESCRIBE "))
    return words.strip("_").lower() + ".txt"


def answer(session, statement):
    try:
        result = session.execute(statement)
    except Exception as error:  # the message is the record
        return f"{type(error).__name__}: {error}\n"
    lines = [" | ".join(result.column_names), "----"]
    for row in result:
        keys = [str(value) for value in row[:-1]]
        lines.append("# " + " | ".join(keys))
        lines.append(str(row[-1]))
    return "\n".join(lines) + "\n"


def main():
    host, port, directory = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    with Cluster([host], port=port) as cluster:
        session = cluster.connect()
        drop = lambda: [session.execute(f"DROP KEYSPACE IF EXISTS {k}") for k in ("shop", '"MixedCase"', "empty_ks")]
        drop()
        for statement in schema_statements((directory / "schema.cql").read_text()):
            session.execute(statement)
        for statement in statements(STATEMENTS):
            text = f"{statement};\n----\n" + answer(session, statement)
            (directory / file_name(statement)).write_text(text, encoding="utf-8")
        drop()


main()
