"""The scripts of tests/answers: the same rows, types and names of columns and the same kinds of errors as Cassandra's, recorded
beside them. The words of an error are compared in scripts that say so; a script that needs settings has a server of its own."""

import contextlib
import os
import re

import pytest
from cassandra.auth import PlainTextAuthProvider

import answers
from conftest import READS_NO_SCHEMA
from server import Server


def recorded(script):
    """The answers in the order of the statements."""
    text = script.with_suffix(".txt").read_text(encoding="utf-8")
    expected = []
    for statement in answers.statements(script.read_text(encoding="utf-8")):
        head = f"> {statement}\n"
        assert text.startswith(head), f"{script.name}: recorded without {statement!r}: record it again"
        text = text[len(head) :]
        end = text.find("\n> ")
        expected.append(text[: len(text) if end < 0 else end].rstrip("\n"))
        text = "" if end < 0 else text[end + 1 :]
    return expected


CASES = [
    pytest.param(script, number, statement, expected, id=f"{script.stem}-{number + 1}")
    for script in sorted(answers.DIRECTORY.glob("*.cql"))
    for number, (statement, expected) in enumerate(zip(answers.statements(script.read_text(encoding="utf-8")), recorded(script)))
]


@pytest.fixture(scope="module")
def given(contact, tmp_path_factory):
    """Runs a script once, at its first case."""
    found = {}

    def run(contact, script, flush=None):
        with contextlib.ExitStack() as clusters:

            def connect(*login):
                # scripts have nearly two thousand changes of the schema; where one has the driver's text of it (`|| export`) it is read then
                options = {"auth_provider": PlainTextAuthProvider(*login)} if login else {}
                return clusters.enter_context(contact.cluster(**options, **READS_NO_SCHEMA)).connect()

            session = connect("cassandra", "cassandra") if answers.login(script) else connect()
            return [answer for _, answer in answers.run(session, script, connect, flush)]

    def get(script, number):
        if script in found:
            return found[script][number]
        settings = answers.directives(script.read_text(encoding="utf-8"), "settings")
        if not settings:
            found[script] = run(contact, script)
        elif os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
            pytest.skip(f"needs {settings}")
        else:
            server = Server(tmp_path_factory.mktemp(script.stem) / "data", settings).start()
            try:
                found[script] = run(type(contact)(server.host, server.port), script, lambda: server.nodetool("flush", answers.KEYSPACE))
            finally:
                assert server.stop() == 0, server.log_tail()
        return found[script][number]

    return get


def kind(answer):
    """Of an error its exception and code; of anything else all of it."""
    return re.sub(r"^error (\w+).*", r"error \1", answer, flags=re.MULTILINE)


def text(answer):
    """All of it but the node's address; of the parser's complaints, which have our words, that they are one."""
    answer = re.sub(r"\b127(\.\d+){3}\b", "127.0.0.1", answer)
    return re.sub(r"^error SyntaxException .*message=\"(line \d+:-?\d+ |Failed parsing statement).*", "error SyntaxException", answer, flags=re.MULTILINE)


@pytest.mark.parametrize("script,number,statement,expected", CASES)
def test_answer(given, script, number, statement, expected):
    answer = given(script, number)
    part = text if "texts" in answers.directives(script.read_text(encoding="utf-8"), "compare") else kind
    assert part(answer) == part(expected), f"{statement}\nCassandra: {expected}\nhere:      {answer}"
