"""cqlsh as a child process, shared by the tests and by tests/oracle/record_cqlsh.py."""

import os
import pathlib
import re
import subprocess
import sys

CQLSH = pathlib.Path(sys.executable).with_name("cqlsh")
SCRIPTS = pathlib.Path(__file__).with_name("cqlsh")
SECONDS = 180


def run(host, port, script, home, flags=()):
    """Exit code and everything that a script prints, standard output and errors in the order in which they come."""
    command = [str(CQLSH), "--no-color", "--request-timeout=30", "--connect-timeout=30", *flags, host, str(port)]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", "TZ": "UTC"}
    done = subprocess.run(command, input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, env=environment)
    return done.returncode, done.stdout


def stable(text):
    """Without what differs between two runs: times, addresses, warnings of cqlsh itself, the words of errors."""
    lines = []
    for line in text.splitlines():
        if line.startswith(("WARNING: cqlsh was built", "Warnings :")) or "warn(" in line or "DeprecationWarning" in line:
            continue
        line = re.sub(r"(<stdin>:\d+:)?(\w+): Error from server: code=(\w+) \[([^]]*)\] message=.*", r"\1\2 \3 \4", line)
        line = re.sub(r"(SyntaxException): .*", r"\1", line)
        line = re.sub(r"\('Unable to .*", "(cannot)", line)
        line = re.sub(r"^\[cqlsh .*? \| Cassandra ([\d.]+)", r"[cqlsh | Cassandra \1", line)
        lines.append(re.sub(r"127\.0\.\d+\.\d+", "ADDRESS", line).rstrip())
    return "\n".join(lines) + "\n"
