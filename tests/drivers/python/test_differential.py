"""Random statements and what Cassandra answered to them, recorded by tests/oracle/differential: the same here."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "oracle" / "differential"))

import compare  # noqa: E402
import recorded  # noqa: E402
import run  # noqa: E402
from wire import Peer  # noqa: E402


@pytest.mark.parametrize("path", recorded.files(), ids=lambda path: path.stem)
def test_recorded(contact, path):
    peer = Peer("Helenus", contact.host, contact.port)
    run.create([peer], recorded.KEYSPACE)
    different = []
    for step, expected in recorded.read(path):
        [answers] = run.perform([peer], step)
        found = compare.difference(expected, answers, step)
        if found:
            different.append(f"{step['text']}\n  {found}\n  Cassandra {expected}\n  here      {answers}")
    peer.close()
    assert not different, f"{len(different)} differ\n" + "\n".join(different[:5])
