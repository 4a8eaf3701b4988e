"""CQL scripts and their answers as text: shared by the recorder (tests/oracle/record_answers.py) and the test.

A last line `|| 0x0a null unset` binds values, as bytes, to the markers of the statement, which is prepared; their names and types are part
of the answer. A last line `|| pages 2` asks for pages of so many rows, which the answer tells apart. Both may be there, pages first.
A line `|| wait 2` lets so many seconds pass before: for what has a TTL.
A line `|| built NAME NAME` lets the node complete these indexes and views before.
A statement with the last line `|| export` is not sent: its answer is what the driver's export_as_string makes of the script's keyspace.
A statement with the last line `|| flush` is not sent: what is in memory becomes SSTables.
"""

import pathlib
import re
import time

from cassandra import DriverException, ReadFailure
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage
from cassandra.query import UNSET_VALUE, BoundStatement, SimpleStatement

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "answers"
KEYSPACE = "answers"
INDEX_NOT_AVAILABLE = 6  # the reason of a replica that fails a read
INDEX_TIME = 10  # seconds in which an index or a view of a few rows is made


def directives(text, name):
    """The words behind `-- NAME:` at the head of a script. `settings`: keys of cassandra.yaml that its server must have (KEY=VALUE);
    `compare`: what is compared besides rows and kinds of errors (texts of errors, warnings, warnings_of_errors)."""
    for line in text.splitlines():
        if line.startswith(f"-- {name}:"):
            return re.split(r",? +", line.split(":", 1)[1].strip())
    return []


def statements(text):
    """Statements end with a semicolon at the end of a line; lines that begin with -- are comments."""
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [part.strip() for part in ("\n".join(lines) + "\n").split(";\n") if part.strip()]


def spell(value):
    """A value the same in every run: sets and maps in the order that they came in."""
    if value is None:
        return "null"
    if isinstance(value, (bytes, bytearray)):
        return "0x" + value.hex()
    if isinstance(value, float):
        return repr(value)
    kind = type(value).__name__
    if kind in ("SortedSet", "set", "frozenset"):
        return "{" + ", ".join(spell(inner) for inner in value) + "}"
    if hasattr(value, "items"):
        return "{" + ", ".join(f"{spell(key)}: {spell(inner)}" for key, inner in value.items()) + "}"
    if hasattr(value, "_fields"):
        return "{" + ", ".join(f"{name}: {spell(getattr(value, name))}" for name in value._fields) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(spell(inner) for inner in value) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(spell(inner) for inner in value) + ")"
    if isinstance(value, str):
        return repr(value)
    return str(value)


def bound(session, statement):
    """What the driver is given, and a line about the markers, if there are any."""
    text, *lines = statement.split("\n|| ")
    sizes = [line.split()[1] for line in lines if line.startswith("pages ")]
    given = [line for line in lines if not line.startswith(("pages ", "wait ", "built "))]
    time.sleep(sum(float(line.split()[1]) for line in lines if line.startswith("wait ")))
    wait_until_built(session, {name for line in lines if line.startswith("built ") for name in line.split()[1:]})
    size = int(sizes[0]) if sizes else None
    if not given:
        return SimpleStatement(text, **({"fetch_size": size} if size else {})), []
    if text.startswith("BEGIN"):  # of a batch the driver itself finds the markers of the key, by the schema
        session.cluster.refresh_schema_metadata()
    prepared = session.prepare(text)
    markers = ", ".join(f"{marker.name} {marker.type.cql_parameterized_type()}" for marker in prepared.column_metadata)
    query = BoundStatement(prepared, fetch_size=size) if size else BoundStatement(prepared)
    words = {"null": None, "unset": UNSET_VALUE}
    query.values = [words[word] if word in words else bytes.fromhex(word[2:]) for word in given[0].split()]
    line = f"markers {markers}; key {prepared.routing_key_indexes or '-'}"
    prepared.routing_key_indexes = None  # the driver would compute a token of a value that is none
    return query, [line]


def wait_until_built(session, names):
    """Returns when these indexes and views of the script's keyspace are complete, or after the longest time."""
    deadline = time.monotonic() + INDEX_TIME
    while names and time.monotonic() < deadline:
        indexes = session.execute(f"SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = '{KEYSPACE}'")
        # the other nodes have been told of a view by then
        views = session.execute(f"SELECT view_name, status_replicated FROM system.built_views WHERE keyspace_name = '{KEYSPACE}'")
        names = names - {row.index_name for row in indexes} - {row.view_name for row in views if row.status_replicated}
        if names:
            time.sleep(0.01)


def failed(error):
    if isinstance(error, NoHostAvailable):  # error 0000: Cassandra failed inside; no statement for a script
        return f"error ServerError {' '.join(str(list(error.errors.values())[0]).split())}"
    return f"error {type(error).__name__} {' '.join(str(error).split())}"


def answer(session, statement, with_warnings=False, of_errors=False):
    """`error CODE message`, `done`, or a line of columns with their types and a line per row; `warning MESSAGE` before it, of errors only
    where `of_errors` says so: Cassandra says what a guardrail refuses twice."""
    warnings, future = [], None
    if statement.endswith("\n|| export"):
        session.cluster.refresh_schema_metadata()
        return session.cluster.metadata.keyspaces[KEYSPACE].export_as_string()
    try:
        query, lines = bound(session, statement)
        future, deadline = session.execute_async(query), time.monotonic() + INDEX_TIME
        while is_too_early(future) and time.monotonic() < deadline:
            time.sleep(0.01)
            future = session.execute_async(query)
        result = future.result()
        warnings = warnings_of(future) if with_warnings else []
        lines += rows(result)
    except (ErrorMessage, DriverException, NoHostAvailable) as error:
        lines = [failed(error)]
        warnings = warnings_of(future) if of_errors and future else []
    return "\n".join([*warnings, *lines])


def is_too_early(future):
    """Whether a read asked an index that is still being made. A new index of rows that are there is made in the background, as Cassandra
    does it."""
    try:
        future.result()
    except ReadFailure as error:
        return set((error.error_code_map or {}).values()) == {INDEX_NOT_AVAILABLE}
    except (ErrorMessage, DriverException, NoHostAvailable):
        pass
    return False


def warnings_of(future):
    return [f"warning {' '.join(warning.split())}" for warning in future.warnings or []]


def rows(result):
    if not result.column_names:
        return ["done"]
    types = [kind.cql_parameterized_type() for kind in result.column_types]
    lines = [" | ".join(f"{name} {kind}" for name, kind in zip(result.column_names, types))]
    while True:
        lines += [" | ".join(spell(value) for value in row) for row in result.current_rows]
        if not result.has_more_pages:
            return lines
        lines.append("-- the next page")
        try:
            result.fetch_next_page()
        except (ErrorMessage, DriverException) as error:
            return [*lines, failed(error)]


def login(script):
    """The role that a script is run as ("-- login:"), or None."""
    return next(iter(directives(script.read_text(encoding="utf-8"), "login")), None)


def run(session, script, connect=None, flush=None):
    """Each statement of the script with its answer, in a keyspace made for it and dropped afterwards. A script that is to be run as an
    ordinary user is given a superuser's session, and `connect`, which makes one of a role and its password; one with `|| flush` is given
    `flush`, which has the node write its memtables."""
    role = login(script)
    if role:
        session.execute(f"CREATE ROLE IF NOT EXISTS {role} WITH login = true AND password = '{role}'")
        session.execute(f"GRANT ALL ON ALL KEYSPACES TO {role}")
    session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.execute(f"USE {KEYSPACE}")
    text = script.read_text(encoding="utf-8")
    superuser = session
    if role:
        session = connect(role, role)
        session.execute(f"USE {KEYSPACE}")
    compared = directives(text, "compare")
    for statement in statements(text):
        if statement.endswith("|| flush"):
            flush()
            yield statement, "done"
            continue
        yield statement, answer(session, statement, "warnings" in compared, "warnings_of_errors" in compared)
    superuser.execute(f"DROP KEYSPACE {KEYSPACE}")
