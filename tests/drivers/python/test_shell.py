"""helenus shell: it prints what cqlsh prints (the recorded scripts of tests/drivers/python/cqlsh), exchanges files of COPY with cqlsh, and
can be used at a terminal."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import server as helenus
import shells

SECONDS = 120
# The server has Cassandra's limits for batches, which COPY stays below
ROWS = 3000


def environment(home, **more):
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", **more}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def shell(contact, home):
    """Runs a script, and hands back exit code, standard output and errors."""

    def run(script, *flags, address=True, **more):
        words = [contact.host, str(contact.port)] if address else []
        command = [helenus.binary(), "shell", "--request-timeout=30", *flags, *words]
        return subprocess.run(command, input=script, capture_output=True, text=True, timeout=SECONDS, env=environment(home, **more), cwd=home)

    return run


def both(contact, home, script):
    """Standard output and errors in the order in which they come."""
    command = [helenus.binary(), "shell", "--request-timeout=30", contact.host, str(contact.port)]
    done = subprocess.run(
        command, input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, env=environment(home), cwd=home
    )
    return shells.stable(done.stdout)


def alike(text):
    """Without what differs from cqlsh on purpose: names of the program, advice, nulls in tuples, the wrapping of errors by a driver."""
    text = re.sub(r"^\[[^|]* \| Cassandra", "[shell | Cassandra", text, flags=re.M)
    text = re.sub(r"(Improper \w+ command\.).*", r"\1", text)
    text = re.sub(r"Unavailable 1000 Unavailable exception", "NoHostAvailable: (cannot)", text)
    return text.replace("None)", "null)").splitlines()


# cqlsh takes the width of an empty list within a map for 0, and the column beside it is moved by two in one row
TOO_NARROW = [
    ("| m                    | s ", "| m                      | s "),
    ("-+----------------------+------------+-", "-+------------------------+------------+-"),
    ("|                 null |       null |", "|                   null |       null |"),
]


@pytest.mark.parametrize("name", ["types", "describe"])
def test_prints_what_cqlsh_prints(contact, home, name):
    script = shells.SCRIPTS / f"{name}.cql"
    expected = script.with_suffix(".txt").read_text(encoding="utf-8")
    for narrow, wide in TOO_NARROW:
        expected = expected.replace(narrow, wide)
    assert alike(both(contact, home, script.read_text(encoding="utf-8"))) == alike(expected)


def test_commands_of_cqlsh(contact, home):
    script = (shells.SCRIPTS / "session.cql").read_text()
    expected = (shells.SCRIPTS / "session.txt").read_text()
    # the texts of HELP are our own
    script = re.sub(r"^HELP (PAGING|COPY);$", "--", script, flags=re.M)
    expected = re.sub(r"\n        PAGING \[cqlsh\].*?(?=<stdin>:19:)", "", expected, flags=re.S)
    assert alike(both(contact, home, script)) == alike(expected)


def test_exit_codes(shell, contact, home, tmp_path):
    assert shell("", "-e", "SELECT key FROM system.local").returncode == 0
    done = shell("", "-e", "SELECT nothing FROM system.local")
    assert done.returncode == 2 and "Undefined column name nothing" in done.stderr
    done = shell("SELECT key FROM system.local;\nSELECT key FROM")
    assert done.returncode == 2 and "Incomplete statement at end of file" in done.stderr and "local" in done.stdout
    file = tmp_path / "script.cql"
    file.write_text("SELECT nothing FROM system.local;\nSELECT key\nFROM system.local;\n")
    done = shell("", "-f", str(file))
    assert done.returncode == 2 and f"{file}:2:InvalidRequest" in done.stderr and "(1 rows)" in done.stdout
    assert shell("", "-f", str(tmp_path / "none")).returncode == 1
    assert shell("", "--nothing").returncode == 2
    done = shell("", "127.0.0.1", "1", "-e", "SELECT 1", address=False)
    assert done.returncode == 1 and "nothing listens there" in done.stderr
    done = shell("", "-e", "SHOW HOST", address=False, CQLSH_HOST=contact.host, CQLSH_PORT=str(contact.port))
    assert done.returncode == 0 and f"at {contact.host}:{contact.port}" in done.stdout
    for version in ("3", "4", "5"):
        assert f"Native protocol v{version}" in shell("", "--protocol-version", version, "-e", "SHOW VERSION").stdout


@pytest.fixture(scope="module")
def table(session, keyspace):
    session.execute(f"CREATE TABLE {keyspace}.people (id int PRIMARY KEY, name text, tags set<text>, born timestamp, size double)")
    session.execute(f"INSERT INTO {keyspace}.people (id, name, tags, born, size) VALUES (1, 'a, \"b\"', {{'x', 'it''s'}}, 86400000, 1.5)")
    session.execute(f"INSERT INTO {keyspace}.people (id, name) VALUES (2, '')")
    return f"{keyspace}.people"


def test_json_and_csv(shell, table):
    out = shell("", "--format", "json", "-e", f"SELECT id, name, tags, size FROM {table}").stdout
    rows = sorted((json.loads(line) for line in out.splitlines()), key=lambda row: row["id"])
    assert rows[0] == {"id": 1, "name": 'a, "b"', "tags": ["it's", "x"], "size": 1.5} and rows[1] == {"id": 2, "name": "", "tags": None, "size": None}
    out = shell("", "--format", "csv", "-e", f"SELECT id, name, size FROM {table}").stdout
    assert sorted(csv.reader(io.StringIO(out))) == [["1", 'a, "b"', "1.5"], ["2", "", ""], ["id", "name", "size"]]


def test_trace_capture_and_source(shell, table, tmp_path):
    captured, script = tmp_path / "captured", tmp_path / "inner.cql"
    script.write_text(f"SELECT id FROM {table} WHERE id = 1;")
    done = shell(f"CAPTURE '{captured}';\nSOURCE '{script}';\nCAPTURE OFF\nTRACING ON\nSELECT id FROM {table} WHERE id = 2;\nTRACING OFF\n")
    assert done.returncode == 0, done.stderr
    assert "(1 rows)" in captured.read_text()
    number = re.search(r"Tracing session: ([0-9a-f-]{36})", done.stdout).group(1)
    assert "Request complete" in done.stdout and "Request complete" in shell(f"SHOW SESSION {number}\n").stdout


def test_explanations_are_trees(shell, table, is_helenus):
    if is_helenus:
        out = shell("", "-e", f"EXPLAIN SELECT * FROM {table} WHERE id = 1").stdout
        assert re.search(rf"^├─ access {table}$", out, re.M) and re.search(r"^(├|└)─ partition 1$", out, re.M), out
        assert re.search(r"^.  ├─ memtable|^.  └─ memtable", out, re.M), out


def test_descriptions_are_whole_whatever_the_size_of_pages(shell, session, keyspace):
    session.execute(f"CREATE TABLE {keyspace}.described (k int PRIMARY KEY)")
    done = shell(f"PAGING 1;\nDESCRIBE KEYSPACE {keyspace};\n\\d\n")
    assert done.returncode == 0, done.stderr
    assert f"CREATE KEYSPACE {keyspace}" in done.stdout and f"CREATE TABLE {keyspace}.described" in done.stdout, done.stdout
    assert "system_schema" in done.stdout and "system_traces" in done.stdout, done.stdout


def cqlsh(contact, home, statement):
    code, out = shells.run(contact.host, contact.port, statement + ";\n", home)
    assert code == 0, out
    return out


def everything(session, keyspace, name):
    """A table of every type that cqlsh imports: of durations it makes texts, which its driver refuses."""
    session.execute(
        f"CREATE TABLE {keyspace}.{name} (k int, c text, a blob, b boolean, d date, e decimal, g inet, l list<text>, m map<text, int>,"
        " n timestamp, o timeuuid, s set<int>, t frozen<tuple<int, text>>, u time, v varint, w vector<float, 2>, x double, PRIMARY KEY (k, c))"
    )
    return f"{keyspace}.{name}"


def test_copy_is_exchanged_with_cqlsh(shell, contact, home, session, keyspace, rows, tmp_path):
    first, second, third = (everything(session, keyspace, name) for name in ("first", "second", "third"))
    session.execute(
        f"INSERT INTO {first} (k, c, a, b, d, e, g, l, m, n, o, s, t, u, v, w, x) VALUES (1, 'it''s, \"x\"', 0x00ff, true, '2024-02-29', 1.10,"
        " '2001:db8::1', ['a, b', 'c'], {'k': 1}, '2024-02-29 12:34:56.789+0000', 50554d6e-29bb-11e5-b345-feff819cdc9f, {2, 1}, (1, 'one'), '01:02:03.000000004',"
        " 12345678901234567890, [1.5, -2], 0.25)"
    )
    session.execute(f"INSERT INTO {first} (k, c) VALUES (2, 'nulls')")
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    done = shell(f"COPY {first} TO '{ours}' WITH HEADER = true;")
    assert done.returncode == 0 and "2 rows exported to 1 files" in done.stdout, done.stderr
    cqlsh(contact, home, f"COPY {first} TO '{theirs}' WITH HEADER = true AND NUMPROCESSES = 1")
    assert sorted(ours.read_bytes().split(b"\r\n")) == sorted(theirs.read_bytes().split(b"\r\n"))
    assert "2 rows imported from 1 files" in cqlsh(contact, home, f"COPY {second} FROM '{ours}' WITH HEADER = true AND NUMPROCESSES = 1")
    done = shell(f"COPY {third} FROM '{theirs}' WITH HEADER = true;")
    assert done.returncode == 0 and "2 rows imported from 1 files" in done.stdout, done.stderr
    everything_of = lambda table: sorted(map(repr, rows(f"SELECT * FROM {table}")))
    assert everything_of(first) == everything_of(second) == everything_of(third)


def test_copy_of_many_rows_and_errors(shell, session, keyspace, rows, tmp_path):
    table = f"{keyspace}.many"
    session.execute(f"CREATE TABLE {table} (k int, c int, v text, PRIMARY KEY (k, c))")
    file, back, errors = tmp_path / "many.csv", tmp_path / "back.csv", tmp_path / "errors"
    lines = [f"{i % 300},{i},line {i}" for i in range(ROWS)]
    file.write_text("\n".join([*lines, "x,1,no number", "1,2", ",1,no key"]) + "\n")
    done = shell(f"COPY {table} FROM '{file}' WITH ERRFILE = '{errors}' AND CHUNKSIZE = 500;")
    assert done.returncode == 2 and f"{ROWS} rows imported from 1 files" in done.stdout, done.stdout + done.stderr
    assert sorted(errors.read_bytes().decode().split("\r\n")) == ["", ",1,no key", "1,2", "x,1,no number"]
    assert rows(f"SELECT count(*) FROM {table}") == [(ROWS,)]
    done = shell(f"COPY {table} (k, c, v) TO '{back}' WITH PAGESIZE = 70 AND MAXOUTPUTSIZE = 2000;")
    assert "exported to 2 files" in done.stdout, done.stdout + done.stderr
    written = back.read_text() + (tmp_path / "back.csv.1").read_text()
    assert sorted(written.split()) == sorted("\n".join(lines).split())
    done = shell(f"COPY {keyspace}.many FROM STDIN WITH TTL = 1000;\n7,100000,typed\n\\.\nSELECT ttl(v) FROM {table} WHERE k = 7 AND c = 100000;\n")
    assert "1 rows imported" in done.stdout and re.search(r"^ +(1000|99\d)$", done.stdout, re.M), done.stdout
    done = shell(f"COPY {table} TO STDOUT WITH BEGINTOKEN = '9223372036854775806';")
    assert done.stdout == "" and done.returncode == 0
    done = shell(f"COPY {table} TO 'x' WITH NOTHING = 1;")
    assert "Unrecognized COPY TO options: nothing" in done.stderr and done.returncode == 2


def test_copy_of_counters(shell, session, keyspace, rows, tmp_path):
    table, file = f"{keyspace}.counted", tmp_path / "counted.csv"
    session.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, c counter)")
    file.write_text("1,5\n2,7\n")
    done = shell(f"COPY {table} FROM '{file}';")
    assert "2 rows imported" in done.stdout, done.stderr
    assert sorted(rows(f"SELECT k, c FROM {table}")) == [(1, 5), (2, 7)]


class Terminal:
    """The shell at a terminal of its own."""

    def __init__(self, contact, home, columns="80"):
        self.main, side = pty.openpty()
        command = [helenus.binary(), "shell", contact.host, str(contact.port)]
        variables = environment(home, TERM="xterm", COLUMNS=columns)
        self.process = subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=variables, close_fds=True, start_new_session=True)
        os.close(side)
        self.seen = ""

    def until(self, text, seconds=60):
        limit = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.main], [], [], max(0, limit - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(self.main, 65536).decode(errors="replace"))
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, text):
        os.write(self.main, text.encode())

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)


def test_at_a_terminal(contact, home, table, keyspace):
    terminal = Terminal(contact, home, columns="40")
    terminal.until("cql> ")
    terminal.type(f"USE {keyspace};\r")
    terminal.until(f"cql:{keyspace}> ")
    # completion from the schema, a statement over two lines, its time
    terminal.type("sel\t * FROM peo\t\rWHERE id = 1;\r")
    terminal.until("select * FROM people")
    # wider than the terminal: one row below the other
    terminal.until("@ Row 1")
    terminal.until("(1 rows)")
    assert " ms" in terminal.until("> ")
    # Ctrl-C gives the line up
    terminal.type("SELECT nonsense\x03")
    terminal.until("> ")
    terminal.type("SELECT id FROM people WHERE id = 2;\r")
    terminal.until("  2\r\n")
    # between two prompts the terminal itself takes Ctrl-D
    terminal.until("> ")
    terminal.type("\x04")
    assert terminal.process.wait(30) == 0
    terminal.close()
    history = (home / ".cassandra" / "helenus_history").read_text()
    assert "WHERE id = 2;" in history


def test_ctrl_c_ends_what_was_typed_and_not_the_shell(contact, home, session, keyspace, tmp_path):
    table = f"{keyspace}.long"
    session.execute(f"CREATE TABLE {table} (k int, c int, PRIMARY KEY (k, c))")
    for c in range(3):
        session.execute(f"INSERT INTO {table} (k, c) VALUES (1, {c})")
    script = tmp_path / "script.cql"
    script.write_text(f"SELECT c FROM {table} WHERE k = 1;\n" * 50_000 + "SELECT key FROM system.local;\n")
    terminal = Terminal(contact, home)
    terminal.until("cql> ")
    # a file, before any other wait of the shell; the terminal is not the one that controls the process
    terminal.type(f"SOURCE '{script}';\r")
    terminal.until("(3 rows)")
    terminal.process.send_signal(signal.SIGINT)
    seen = terminal.until("cql> ")
    assert "Cancelled" in seen and "(1 rows)" not in seen, seen[-2000:]
    # the rest of a result
    terminal.type("PAGING 1;\r")
    terminal.until("Page size: 1")
    terminal.until("cql> ")
    terminal.type(f"SELECT c FROM {table} WHERE k = 1;\r")
    terminal.until("---MORE---")
    terminal.type("\x03")
    terminal.until("(1 rows)")
    terminal.until("cql> ")
    terminal.type("\x04")
    assert terminal.process.wait(30) == 0
    terminal.close()


def test_login(guarded, home, tmp_path):
    def run(script, *flags, **more):
        command = [helenus.binary(), "shell", *flags, guarded.host, str(guarded.port)]
        return subprocess.run(command, input=script, capture_output=True, text=True, timeout=SECONDS, env=environment(home, **more))

    done = run("SELECT key FROM system.local;")
    assert done.returncode == 1 and "wants a login" in done.stderr
    done = run("SELECT key FROM system.local;", "-u", "cassandra", "-p", "wrong")
    assert done.returncode == 1 and "AuthenticationFailed" in done.stderr
    done = run("LOGIN cassandra 'cassandra';\nSELECT key FROM system.local;\nLOGIN cassandra 'wrong';\n", "-u", "cassandra", "-p", "cassandra")
    assert done.returncode == 2 and "(1 rows)" in done.stdout and "AuthenticationFailed" in done.stderr
    credentials = tmp_path / "credentials"
    credentials.write_text("[plain_text_auth]\nusername = cassandra\npassword = cassandra\n")
    credentials.chmod(0o600)
    done = run("SELECT key FROM system.local;", "--credentials", str(credentials))
    assert done.returncode == 0 and "(1 rows)" in done.stdout, done.stderr


def test_tls(tmp_path):
    made = tmp_path / "node.pem"
    key, certificate = tmp_path / "key", tmp_path / "crt"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=node", "-days", "30"]
    subprocess.run(["openssl", *words, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    made.write_text(key.read_text() + certificate.read_text())
    asked = {"enabled": True, "ssl_context_factory": {"class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory"}, "keystore": str(made)}
    server = helenus.Server(tmp_path / "data", settings=["client_encryption_options=" + json.dumps(asked)]).start()

    def run(*flags, **more):
        command = [helenus.binary(), "shell", *flags, "-e", "SELECT key FROM system.local", server.host, str(server.port)]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment(tmp_path, **more))

    assert "(1 rows)" in run("--ssl", SSL_VALIDATE="false").stdout
    done = run("--ssl", SSL_CERTFILE=str(certificate))
    assert "(1 rows)" in done.stdout, done.stderr
    done = run("--ssl")
    assert done.returncode == 1 and "SSL_CERTFILE" in done.stderr
    done = run("--connect-timeout=5")
    assert done.returncode == 1 and "--ssl" in done.stderr
    assert server.stop() == 0
