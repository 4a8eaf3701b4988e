"""Record what a real Cassandra answers to the scripts of tests/answers.

Usage: record_answers.py HOST PORT [--node DIR] [NAME...]

For NAME.cql writes NAME.txt beside it: each statement behind "> ", then its answer as `answers.answer` words it. The test
tests/drivers/python/test_answers.py asks Helenus the same and compares. A script that needs settings ("-- settings:" at its head) is
recorded only where it is named: start the node with them. `--node`: the node's directory, for scripts with `|| flush`.
"""

import argparse
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers" / "python"))

import answers  # noqa: E402
from cassandra.auth import PlainTextAuthProvider  # noqa: E402
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile  # noqa: E402
from cassandra.policies import FallthroughRetryPolicy  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--node")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_intermixed_args()
    host, port, names = given.host, given.port, given.names
    profile = ExecutionProfile(retry_policy=FallthroughRetryPolicy(), request_timeout=30)
    options = {"port": port, "execution_profiles": {EXEC_PROFILE_DEFAULT: profile}}

    def connect(user, password):
        return Cluster([host], auth_provider=PlainTextAuthProvider(user, password), **options).connect()

    def flush():
        oracle = pathlib.Path(__file__).resolve().parent / "cassandra"
        subprocess.run([oracle, "nodetool", given.node, "flush", answers.KEYSPACE], check=True)

    with Cluster([host], auth_provider=PlainTextAuthProvider("cassandra", "cassandra"), **options) as cluster:
        for script in sorted(answers.DIRECTORY.glob("*.cql")):
            settings = answers.directives(script.read_text(encoding="utf-8"), "settings")
            if script.stem not in names and (names or settings):
                continue
            text = "".join(f"> {statement}\n{answer}\n" for statement, answer in answers.run(cluster.connect(), script, connect, flush))
            script.with_suffix(".txt").write_text(text, encoding="utf-8")
            print(script.stem, text.count("\n> ") + 1, "statements,", text.count("\nerror"), "refused")


main()
