"""What Cassandra has and Helenus not yet: refused, with the name of the feature. When one of these comes, its case moves to the
tests of what works."""

import os

import pytest
from cassandra import InvalidRequest

if os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
    pytest.skip("Cassandra has them all", allow_module_level=True)

STATEMENTS = [
    "CREATE TRIGGER x ON {t} USING 'y'",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_refused_by_name(session, table, keyspace, statement):
    name = table("k int PRIMARY KEY, v int, w text")
    with pytest.raises(InvalidRequest, match="not supported (yet|by this version)") as refused:
        session.execute(statement.format(t=name, k=keyspace))
    assert len(str(refused.value)) > 60
