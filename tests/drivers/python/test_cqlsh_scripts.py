"""The scripts of tests/drivers/python/cqlsh: cqlsh prints the same as it does against Cassandra, recorded beside them."""

import pytest

import shells

SCRIPTS = sorted(shells.SCRIPTS.glob("*.cql"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_same_text(contact, tmp_path, script):
    _, text = shells.run(contact.host, contact.port, script.read_text(encoding="utf-8"), tmp_path)
    assert shells.stable(text).splitlines() == script.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
