"""The scripts of tests/answers/roles: several users, each allowed something else, on a server where they have to log in. The same
rows, types, names of columns, warnings and refusals as Cassandra's, recorded beside them; of syntax errors and failures
of the server itself the kind only."""

import re

import pytest
import role_answers


def recorded(script):
    """The answers in the order of the statements."""
    text = script.with_suffix(".txt").read_text(encoding="utf-8")
    expected = []
    for user, statement in role_answers.statements(script.read_text(encoding="utf-8")):
        head = f"{user}> {statement}\n"
        assert text.startswith(head), f"{script.name}: recorded without {statement!r}: record it again"
        text = text[len(head) :]
        end = re.search(r"\n[a-z_]+> ", text)
        expected.append(text[: end.start() if end else len(text)].rstrip("\n"))
        text = text[end.start() + 1 :] if end else ""
    return expected


def cases():
    for script in sorted(role_answers.DIRECTORY.glob("*.cql")):
        asked = role_answers.statements(script.read_text(encoding="utf-8"))
        for number, ((user, statement), expected) in enumerate(zip(asked, recorded(script))):
            yield pytest.param(script, number, user, statement, expected, id=f"{script.stem}-{number + 1}")


@pytest.fixture(scope="module")
def given(guarded):
    """Runs a script once, at its first case."""
    found = {}

    def get(script, number):
        if script not in found:
            with role_answers.Users(guarded.host, guarded.port) as users:
                found[script] = [answer for _, _, answer in role_answers.run(users, script)]
        return found[script][number]

    return get


def compared(answer):
    kind = re.match(r"error (SyntaxException|ServerError)", answer)
    return kind.group() if kind else answer


@pytest.mark.parametrize("script,number,user,statement,expected", cases())
def test_answer(given, script, number, user, statement, expected):
    answer = given(script, number)
    assert compared(answer) == compared(expected), f"{user}: {statement}\nCassandra: {expected}\nhere:      {answer}"
