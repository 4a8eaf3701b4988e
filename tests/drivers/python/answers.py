"""CQL scripts and their answers as text: shared by the recorder (tests/oracle/record_answers.py) and the test."""

import pathlib
import re

from cassandra import DriverException
from cassandra.protocol import ErrorMessage

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "answers"
KEYSPACE = "answers"


def directives(text, name):
    """The words behind `-- NAME:` at the head of a script. `settings`: keys of cassandra.yaml that its server must have (KEY=VALUE);
    `compare`: what is compared besides rows and kinds of errors (texts of errors, warnings)."""
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


def answer(session, statement, with_warnings=False):
    """`error CODE message`, `done`, or a line of columns with their types and a line per row; `warning MESSAGE` before it, but for errors:
    Cassandra says what a guardrail refuses twice."""
    future = session.execute_async(statement)
    try:
        result = future.result()
    except (ErrorMessage, DriverException) as error:
        text = f"error {type(error).__name__} {' '.join(str(error).split())}"
    else:
        text = rows(result)
    warnings = [f"warning {' '.join(warning.split())}" for warning in future.warnings or [] if with_warnings and not text.startswith("error")]
    return "\n".join([*warnings, text])


def rows(result):
    if not result.column_names:
        return "done"
    types = [kind.cql_parameterized_type() for kind in result.column_types]
    lines = [" | ".join(f"{name} {kind}" for name, kind in zip(result.column_names, types))]
    lines += [" | ".join(spell(value) for value in row) for row in result]
    return "\n".join(lines)


def login(script):
    """The role that a script is run as ("-- login:"), or None."""
    return next(iter(directives(script.read_text(encoding="utf-8"), "login")), None)


def run(session, script, connect=None):
    """Each statement of the script with its answer, in a keyspace made for it and dropped afterwards. A script that is to be run as an
    ordinary user is given a superuser's session, and `connect`, which makes one of a role and its password."""
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
    with_warnings = "warnings" in directives(text, "compare")
    for statement in statements(text):
        yield statement, answer(session, statement, with_warnings)
    superuser.execute(f"DROP KEYSPACE {KEYSPACE}")
