"""Record what cqlsh prints for the scripts of tests/drivers/python/cqlsh against a real Cassandra.

Usage: record_cqlsh.py HOST PORT [NAME...]

For NAME.cql writes NAME.txt beside it. tests/drivers/python/test_cqlsh_scripts.py runs the same against Helenus.
"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers" / "python"))

import shells  # noqa: E402


def main():
    host, port, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    for script in sorted(shells.SCRIPTS.glob("*.cql")):
        if names and script.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as home:
            _, text = shells.run(host, port, script.read_text(encoding="utf-8"), home)
        script.with_suffix(".txt").write_text(shells.stable(text), encoding="utf-8")
        print(script.stem, text.count("\n"), "lines")


main()
