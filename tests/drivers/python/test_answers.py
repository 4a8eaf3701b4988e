"""The scripts of tests/answers: the same rows, types and names of columns and the same kinds of errors as Cassandra's, recorded
beside them. The words of an error are our own."""

import re

import pytest

import answers


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
def given(contact):
    """Runs a script once, at its first case."""
    found = {}

    def get(script, number):
        if script not in found:
            with contact.cluster() as cluster:
                found[script] = [answer for _, answer in answers.run(cluster.connect(), script)]
        return found[script][number]

    return get


def kind(answer):
    """Of an error its exception and code; of anything else all of it."""
    error = re.match(r"error (\w+)", answer)
    return f"error {error.group(1)}" if error else answer


@pytest.mark.parametrize("script,number,statement,expected", CASES)
def test_answer(given, script, number, statement, expected):
    answer = given(script, number)
    assert kind(answer) == kind(expected), f"{statement}\nCassandra: {expected}\nhere:      {answer}"
