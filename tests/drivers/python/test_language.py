"""What the driver reads of views, functions, aggregates and indexes: the objects of its metadata, and the CQL that it makes of them."""

import time

import pytest
from cassandra import FunctionFailure, InvalidRequest

SCHEMA = [
    "CREATE TABLE {k}.t (k int, c int, v int, w text, m map<text, int>, e vector<float, 3>, PRIMARY KEY (k, c))",
    "CREATE MATERIALIZED VIEW {k}.by_v AS SELECT v, k, c, w FROM {k}.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL"
    " PRIMARY KEY ((v, k), c) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'seen'",
    "CREATE INDEX by_m ON {k}.t (entries(m))",
    "CREATE INDEX by_w ON {k}.t (w) USING 'sai' WITH OPTIONS = {{'case_sensitive': 'false'}}",
    "CREATE CUSTOM INDEX by_e ON {k}.t (e) USING 'StorageAttachedIndex' WITH OPTIONS = {{'similarity_function': 'euclidean'}}",
    "CREATE FUNCTION {k}.plus (state int, val int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return val == null ? state : state + val;'",
    "CREATE FUNCTION {k}.plus (state text, val text) RETURNS NULL ON NULL INPUT RETURNS text LANGUAGE java AS $$return state + \"'\" + val;$$",
    "CREATE FUNCTION {k}.shown (val int) RETURNS NULL ON NULL INPUT RETURNS list<text> LANGUAGE java AS 'return null;'",
    "CREATE AGGREGATE {k}.total (int) SFUNC plus STYPE int FINALFUNC shown INITCOND 0",
    "CREATE AGGREGATE {k}.joined (text) SFUNC plus STYPE text INITCOND 'from'",
]
VIEW = (
    "CREATE MATERIALIZED VIEW {k}.by_v AS SELECT v, k, c, w FROM {k}.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL"
    " PRIMARY KEY ((v, k), c) WITH CLUSTERING ORDER BY (c DESC)"
)


def flat(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def known(session, keyspace):
    for statement in SCHEMA:
        session.execute(statement.format(k=keyspace))
    session.cluster.refresh_schema_metadata()
    return session.cluster.metadata.keyspaces[keyspace]


def test_a_view(known, keyspace):
    view = known.tables["t"].views["by_v"]
    assert known.views == {"by_v": view} and view.base_table_name == "t" and not view.include_all_columns
    assert [column.name for column in view.partition_key] == ["v", "k"]
    assert [(column.name, column.is_reversed) for column in view.clustering_key] == [("c", True)]
    assert list(view.columns) == ["v", "k", "c", "w"]
    assert view.where_clause == "v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL" and view.options["comment"] == "seen"
    assert flat(view.as_cql_query()).startswith(VIEW.format(k=keyspace))


def test_indexes(known, keyspace):
    indexes = known.tables["t"].indexes
    assert {name: (index.kind, index.index_options) for name, index in indexes.items()} == {
        "by_m": ("COMPOSITES", {"target": "entries(m)"}),
        "by_w": ("CUSTOM", {"class_name": "sai", "target": "w", "case_sensitive": "false"}),
        "by_e": ("CUSTOM", {"class_name": "StorageAttachedIndex", "target": "e", "similarity_function": "euclidean"}),
    }  # fmt: skip
    assert indexes["by_m"].as_cql_query() == f"CREATE INDEX by_m ON {keyspace}.t (entries(m))"
    assert indexes["by_w"].as_cql_query().startswith(f"CREATE CUSTOM INDEX by_w ON {keyspace}.t (w) USING 'sai' WITH OPTIONS = ")


def test_functions(known, keyspace):
    assert sorted(known.functions) == ["plus(int,int)", "plus(text,text)", "shown(int)"]
    plus, shown = known.functions["plus(int,int)"], known.functions["shown(int)"]
    assert (plus.argument_names, plus.argument_types, plus.return_type) == (["state", "val"], ["int", "int"], "int")
    assert (plus.language, plus.called_on_null_input, shown.called_on_null_input) == ("java", True, False)
    assert plus.body == "return val == null ? state : state + val;" and shown.return_type == "list<text>"
    text = known.functions["plus(text,text)"].as_cql_query()
    assert text == (
        f"CREATE FUNCTION {keyspace}.plus(state text, val text) RETURNS NULL ON NULL INPUT RETURNS text LANGUAGE java AS $$return state + \"'\" + val;$$"
    )


def test_aggregates(known, keyspace):
    assert sorted(known.aggregates) == ["joined(text)", "total(int)"]
    total, joined = known.aggregates["total(int)"], known.aggregates["joined(text)"]
    assert (total.state_func, total.state_type, total.final_func, total.initial_condition) == ("plus", "int", "shown", "0")
    assert (total.argument_types, total.return_type, joined.return_type) == (["int"], "list<text>", "text")
    assert (joined.final_func, joined.initial_condition) == (None, "'from'")
    assert joined.as_cql_query() == f"CREATE AGGREGATE {keyspace}.joined(text) SFUNC plus STYPE text INITCOND 'from'"


def test_what_the_driver_exports_can_be_made_again(known, session, keyspace):
    """The whole keyspace as the driver spells it, under another name."""
    other = f"{keyspace}_again"
    session.execute(f"DROP KEYSPACE IF EXISTS {other}")
    # the driver spells an attached index as a custom one, which both servers take
    exported = known.export_as_string().replace(f"{keyspace}.", f"{other}.").replace(f"KEYSPACE {keyspace} ", f"KEYSPACE {other} ")
    for statement in exported.split(";\n"):
        if statement.strip():
            session.execute(statement)
    session.cluster.refresh_schema_metadata()
    again = session.cluster.metadata.keyspaces[other]
    assert again.export_as_string().replace(other, keyspace) == known.export_as_string()
    session.execute(f"DROP KEYSPACE {other}")


def test_changes_reach_the_driver(known, contact, session, keyspace):
    """The metadata follows changes of functions, aggregates and views without being asked to: that of the driver that sent the statement by its
    answer, that of another one by events."""
    statements = [
        (f"CREATE FUNCTION {keyspace}.late (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'", lambda found: "late(int)" in found.functions),
        (f"CREATE AGGREGATE {keyspace}.later (int) SFUNC plus STYPE int", lambda found: "later(int)" in found.aggregates),
        (f"ALTER MATERIALIZED VIEW {keyspace}.by_v WITH comment = 'changed'", lambda found: found.views["by_v"].options["comment"] == "changed"),
        (f"DROP AGGREGATE {keyspace}.later (int)", lambda found: "later(int)" not in found.aggregates),
        (f"DROP FUNCTION {keyspace}.late", lambda found: "late(int)" not in found.functions),
        (f"DROP INDEX {keyspace}.by_w", lambda found: "by_w" not in found.tables["t"].indexes),
        (f"DROP MATERIALIZED VIEW {keyspace}.by_v", lambda found: "by_v" not in found.views),
    ]  # fmt: skip
    with contact.cluster(schema_event_refresh_window=0) as watcher:
        watcher.connect()
        for statement, seen in statements:
            session.execute(statement)
            for metadata in (session.cluster.metadata, watcher.metadata):
                until = time.monotonic() + 10
                while not seen(metadata.keyspaces[keyspace]) and time.monotonic() < until:
                    time.sleep(0.05)
                assert seen(metadata.keyspaces[keyspace]), statement


def warnings_of(session, statement):
    future = session.execute_async(statement)
    future.result()
    return future.warnings or []


def test_the_warning_about_views_comes_where_the_view_is_there(session, table):
    name = table("k int PRIMARY KEY, v int")
    view = f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name}_v AS SELECT * FROM {name} WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)"
    usage = ["Materialized views are experimental and are not recommended for production use."]
    assert [warnings_of(session, view), warnings_of(session, view)] == [usage, usage]


def test_rows_of_an_empty_value_are_in_a_view(session, table, rows):
    name = table("k int PRIMARY KEY, v text, w int")
    session.execute(f"CREATE MATERIALIZED VIEW {name}_v AS SELECT * FROM {name} WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)")
    for key, value in [(1, ""), (2, ""), (3, "a")]:
        session.execute(f"INSERT INTO {name} (k, v, w) VALUES (%s, %s, 7)", (key, value))
    session.execute(f"UPDATE {name} SET v = 'b' WHERE k = 2")
    assert sorted(rows(f"SELECT v, k, w FROM {name}_v")) == [("", 1, 7), ("a", 3, 7), ("b", 2, 7)]
    session.execute(f"DELETE FROM {name} WHERE k = 1")
    assert sorted(rows(f"SELECT v, k FROM {name}_v")) == [("a", 3), ("b", 2)]


def test_ranges_of_several_columns_and_indexes(session, table, rows):
    name = table("k int, c int, d int, v int, PRIMARY KEY (k, c, d)")
    some = [f"SELECT k FROM {name} WHERE (c, d) >= (1, 2) ALLOW FILTERING", f"SELECT k FROM {name} WHERE token(k) > 1 AND (c, d) >= (1, 2) ALLOW FILTERING"]
    assert [rows(query) for query in some] == [[], []]
    session.execute(f"CREATE INDEX ON {name} (d) USING 'sai'")
    for query in some:
        with pytest.raises(InvalidRequest, match="Multi-column slice restrictions cannot be used for filtering"):
            session.execute(query)
    assert rows(f"SELECT k FROM {name} WHERE k = 1 AND (c, d) >= (1, 2)") == rows(f"SELECT k FROM {name} WHERE (c) >= (1) ALLOW FILTERING") == []


def test_the_nearest_beside_tokens_and_in(session, table, rows):
    name = table("k int, l int, c int, v int, e vector<float, 2>, PRIMARY KEY ((k, l), c)")
    for column in ("e", "v"):
        session.execute(f"CREATE INDEX ON {name} ({column}) USING 'sai'")
    query = f"SELECT k FROM {name} WHERE {{}} ORDER BY e ANN OF [1, 2] LIMIT 3"
    assert rows(query.format("v IN (7)")) == rows(query.format("v IN (7, 8)") + " ALLOW FILTERING") == rows(query.format("token(k, l) > 1")) == []
    with pytest.raises(InvalidRequest, match="use ALLOW FILTERING"):
        session.execute(query.format("v IN (7, 8)"))
    with pytest.raises(InvalidRequest, match="requires all restricted column"):
        session.execute(query.format("token(k, l) > 1 AND k = 1"))


def test_calls_of_constants_fail_without_rows(session, table):
    name = table("k int PRIMARY KEY")
    for selected in ("1 / 0", "k + (1 / 0)", "max(1 / 0)"):
        with pytest.raises(FunctionFailure, match="/ by zero"):
            session.execute(f"SELECT {selected} FROM {name}")
    assert list(session.execute(f"SELECT k / 0 FROM {name}")) == []


def test_static_rows_that_come_again_are_found_by_their_key(session, table, rows):
    name = table("k int, l int, c int, s int static, PRIMARY KEY ((k, l), c)")
    session.execute(f"CREATE INDEX ON {name} (l) USING 'sai'")
    for statement in ("UPDATE {} SET s = null WHERE k = 1 AND l = 1", "UPDATE {} SET s = 4 WHERE k = 1 AND l = 1"):
        session.execute(statement.format(name))
    assert rows(f"SELECT k, s FROM {name} WHERE l = 1") == [(1, 4)]
