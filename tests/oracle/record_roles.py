"""Record what a real Cassandra answers to the scripts of tests/answers/roles.

Usage: record_roles.py HOST PORT [NAME...]

The node must have been started with the settings of `role_answers.SETTINGS`:

    tests/oracle/cassandra start DIR IP PORT $(python -c 'import role_answers; print(*role_answers.SETTINGS)')

For NAME.cql writes NAME.txt beside it: each statement behind "USER> ", then its answer. The test
tests/drivers/python/test_role_answers.py asks Helenus the same and compares.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers" / "python"))

import role_answers  # noqa: E402


def main():
    host, port, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    for script in sorted(role_answers.DIRECTORY.glob("*.cql")):
        if names and script.stem not in names:
            continue
        with role_answers.Users(host, port) as users:
            recorded = list(role_answers.run(users, script))
        text = "".join(f"{user}> {statement}\n{answer}\n" for user, statement, answer in recorded)
        script.with_suffix(".txt").write_text(text, encoding="utf-8")
        refused = sum(answer.startswith("error") for _, _, answer in recorded)
        print(script.stem, len(recorded), "statements,", refused, "refused")


main()
