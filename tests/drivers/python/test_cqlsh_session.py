"""What cqlsh keeps and shows of a session: CAPTURE, SOURCE, TRACING, SHOW SESSION, LOGIN, CLEAR, completion."""

import os
import pty
import re
import select
import subprocess
import time

import pytest

import shells


@pytest.fixture
def shell(contact, tmp_path):
    def run(script, flags=()):
        return shells.run(contact.host, contact.port, script + ";\n", tmp_path, flags)[1]

    return run


def test_capture(shell, tmp_path):
    file = tmp_path / "captured"
    out = shell(f"CAPTURE '{file}';\nSELECT key FROM system.local;\nCAPTURE;\nCAPTURE OFF")
    assert "Now capturing query output to" in out and "Currently capturing query output to" in out
    assert " local" in file.read_text()


def test_tracing_and_the_session_shown_again(shell, session, keyspace):
    session.execute(f"CREATE TABLE {keyspace}.traced (k int, c int, v int, PRIMARY KEY (k, c))")
    for c in range(20):
        session.execute(f"INSERT INTO {keyspace}.traced (k, c, v) VALUES (1, {c}, 1)")
    for c in range(5):
        session.execute(f"DELETE FROM {keyspace}.traced WHERE k = 1 AND c = {c}")
    out = shell(f"TRACING ON;\nSELECT * FROM {keyspace}.traced WHERE k = 1;\nTRACING OFF")
    for activity in (
        "Execute CQL3 query",
        f"Parsing SELECT * FROM {keyspace}.traced WHERE k = 1;",
        "Preparing statement",
        "Executing single-partition query on traced",
        "Read 15 live rows and 5 tombstone cells",
        "Request complete",
    ):
        assert activity in out, activity
    assert re.search(r"Merged data from memtables and 0.* sstables", out)
    number = re.search(r"Tracing session: ([0-9a-f-]{36})", out).group(1)
    again = shell(f"SHOW SESSION {number}")
    assert "Read 15 live rows and 5 tombstone cells" in again and "Request complete" in again


def test_trace_of_a_write(shell, session, keyspace):
    session.execute(f"CREATE TABLE {keyspace}.written (k int PRIMARY KEY, v int)")
    out = shell(f"TRACING ON;\nINSERT INTO {keyspace}.written (k, v) VALUES (1, 1);\nTRACING OFF")
    assert "Appending to commitlog" in out and "Adding to written memtable" in out


def test_login(shell):
    out = shell("LOGIN cassandra 'cassandra';\nSELECT key FROM system.local")
    assert " local" in out
    assert " local" in shell("SELECT key FROM system.local", ("-u", "cassandra", "-p", "cassandra"))


def test_one_statement(contact, tmp_path):
    def run(statement):
        return shells.run(contact.host, contact.port, "", tmp_path, ("-e", statement))

    code, out = run("SELECT key FROM system.local")
    assert code == 0 and "local" in out
    code, out = run("SELECT nothing FROM system.local")
    assert code == 2 and "Undefined column name nothing" in out


def test_wrong_keyspace_and_file(contact, tmp_path):
    code, out = shells.run(contact.host, contact.port, "", tmp_path, ("-k", "no_such_keyspace"))
    assert code != 0 or "InvalidRequest" in out or "does not exist" in out
    file = tmp_path / "script.cql"
    file.write_text("SELECT key FROM system.local;\nSELECT data_center FROM system.local;\n")
    code, out = shells.run(contact.host, contact.port, "", tmp_path, ("-f", str(file)))
    assert code == 0 and " local" in out and "datacenter1" in out


class Terminal:
    """cqlsh at a terminal of its own."""

    def __init__(self, contact, home):
        self.main, side = pty.openpty()
        command = [str(shells.CQLSH), "--no-color", contact.host, str(contact.port)]
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
        self.process = subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=environment, close_fds=True)
        os.close(side)
        self.seen = ""

    def until(self, text, seconds=60):
        limit = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.main], [], [], max(0, limit - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.main, 65536).decode(errors="replace")
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, text):
        os.write(self.main, text.encode())

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)


@pytest.fixture
def terminal(contact, tmp_path):
    terminal = Terminal(contact, tmp_path)
    terminal.until("cqlsh> ")
    yield terminal
    terminal.close()


@pytest.fixture
def finished(session, keyspace):
    session.execute(f"CREATE TABLE {keyspace}.finished_by_tab (only_key int PRIMARY KEY, only_value text)")


def test_completion_of_names(finished, terminal, keyspace):
    """Tab knows keyspaces and tables of the server."""
    terminal.type(f"SELECT * FROM {keyspace}.finished\t")
    terminal.until("finished_by_tab")
    terminal.type(";\n")
    terminal.until("(0 rows)")


def test_clear_and_exit(terminal):
    terminal.type("CLEAR\n")
    terminal.until("cqlsh> ")
    terminal.type("HELP\n")
    terminal.until("CQL help topics:")
    terminal.type("EXIT\n")
    assert terminal.process.wait(30) == 0
