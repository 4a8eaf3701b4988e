"""A keyspace of varied tables and content: every type, order and kind of deletion, in several flushed layers."""

import random

KEYSPACE = "varied"

SCHEMA = [
    f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
    f"CREATE TYPE {KEYSPACE}.place (street text, number int)",
    f"CREATE TYPE {KEYSPACE}.person (name text, home frozen<place>, tags frozen<set<text>>)",
    f"CREATE TABLE {KEYSPACE}.scalars (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, g double, h duration, i float,"
    " j inet, l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, r uuid, t varint)",
    f"CREATE TABLE {KEYSPACE}.collections (k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, fl frozen<list<int>>,"
    " fm frozen<map<text, frozen<set<int>>>>, t tuple<int, text>, p place, q frozen<person>, v vector<float, 3>, vt vector<text, 2>)",
    f"CREATE TABLE {KEYSPACE}.orders (k int, a int, b text, c bigint, v text, s int static, PRIMARY KEY (k, a, b, c))"
    " WITH CLUSTERING ORDER BY (a DESC, b ASC, c DESC)",
    f"CREATE TABLE {KEYSPACE}.deleted (k int, a int, b int, v int, w text, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)",
    f"CREATE TABLE {KEYSPACE}.compound (a text, b int, c uuid, v int, PRIMARY KEY ((a, b), c))",
    f"CREATE TABLE {KEYSPACE}.zstd (k int, c int, v text, PRIMARY KEY (k, c)) WITH compression = {{'class': 'ZstdCompressor', 'chunk_length_in_kb': '64'}}",
    f"CREATE TABLE {KEYSPACE}.plain (k int, c int, v text, PRIMARY KEY (k, c)) WITH compression = {{'enabled': 'false'}}",
    f"CREATE TABLE {KEYSPACE}.snappy (k int, c int, v blob, PRIMARY KEY (k, c)) WITH compression = {{'class': 'SnappyCompressor'}}",
    f"CREATE TABLE {KEYSPACE}.deflate (k int, c int, v blob, PRIMARY KEY (k, c)) WITH compression = {{'class': 'DeflateCompressor', 'chunk_length_in_kb': '4'}}",
    f"CREATE TABLE {KEYSPACE}.expiring (k int, c int, v text, PRIMARY KEY (k, c)) WITH default_time_to_live = 1000000",
    f"CREATE TABLE {KEYSPACE}.wide (k int, c bigint, v text, PRIMARY KEY (k, c))",
    f"CREATE TABLE {KEYSPACE}.many (k bigint PRIMARY KEY, v int)",
    f"CREATE TABLE {KEYSPACE}.statics (k int, c int, s text static, l list<int> static, PRIMARY KEY (k, c))",
    f"CREATE TABLE {KEYSPACE}.counters (k int, c int, n counter, m counter, s counter static, PRIMARY KEY (k, c))",
    f'CREATE TABLE {KEYSPACE}."MixedCase" ("Key" int, "select" int, "white space" text, PRIMARY KEY ("Key", "select"))',
]

SCALARS = [
    "(1, 'x', -1, 0xff00, true, '2024-02-29', -1.50, 1e-300, 1y2mo3d4h, 1.5, '1.2.3.4', -5, 'é', '01:02:03.4', '2024-02-29 01:02:03.456+0000',"
    " 50554d6e-29bb-11e5-b345-feff819cdc9f, -1, 8ac6d1dc-fbeb-41e9-8f0b-362b9e155667, -99999999999999999999)",
    "(2, '', 9223372036854775807, 0x, false, '-5877641-06-23', 1e100, -Infinity, 0s, NaN, '::1', 32767, '', '23:59:59.999999999', -1,"
    " 50554d6e-29bb-11e5-b345-feff819cdc9f, 127, 00000000-0000-0000-0000-000000000000, 0)",
    "(3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)",
]

COLLECTIONS = [
    "INSERT INTO {k}.collections (k, l, s, m) VALUES (1, [1, 2, 3], {{'b', 'a'}}, {{'x': 1, 'y': 2}})",
    "INSERT INTO {k}.collections (k, fl, fm, t, q) VALUES (2, [], {{'a': {{2, 1}}}}, (1, null), {{name: 'n', home: {{street: 's', number: 1}}, tags: {{'t'}}}})",
    "INSERT INTO {k}.collections (k, p, v, vt) VALUES (3, {{street: 'High', number: 7}}, [1, 2.5, -3], ['a', 'longer'])",
    "UPDATE {k}.collections SET l = l + [4], s = s - {{'a'}}, m['z'] = 26 WHERE k = 1",
    "UPDATE {k}.collections SET p.number = 8 WHERE k = 3",
    "DELETE l[0], m['x'] FROM {k}.collections WHERE k = 1",
    "UPDATE {k}.collections SET l = [9], s = {{'only'}} WHERE k = 2",
    "DELETE p FROM {k}.collections WHERE k = 3",
]

DELETIONS = [
    "DELETE FROM {k}.deleted USING TIMESTAMP {ts} WHERE k = {key} AND a = {a}",
    "DELETE FROM {k}.deleted USING TIMESTAMP {ts} WHERE k = {key} AND a = {a} AND b = {b}",
    "DELETE FROM {k}.deleted USING TIMESTAMP {ts} WHERE k = {key} AND a >= {a} AND a < {a2}",
    "DELETE FROM {k}.deleted USING TIMESTAMP {ts} WHERE k = {key} AND a = {a} AND b > {b}",
    "DELETE FROM {k}.deleted USING TIMESTAMP {ts} WHERE k = {key} AND (a, b) > ({a}, {b}) AND (a, b) <= ({a2}, {b})",
    "DELETE v FROM {k}.deleted USING TIMESTAMP {ts} WHERE k = {key} AND a = {a} AND b = {b}",
]

COUNTERS = [
    "UPDATE {k}.counters SET n = n + {by} WHERE k = {key} AND c = {c}",
    "UPDATE {k}.counters SET n = n - {by}, m = m + 1 WHERE k = {key} AND c = {c}",
    "UPDATE {k}.counters SET s = s + {by} WHERE k = {key}",
    "BEGIN COUNTER BATCH UPDATE {k}.counters SET n = n + 1 WHERE k = {key} AND c = {c}; UPDATE {k}.counters SET n = n + {by} WHERE k = 9 AND c = {c} APPLY BATCH",
]

COUNTER_DELETIONS = [
    "DELETE m FROM {k}.counters WHERE k = {key} AND c = {c}",
    "DELETE FROM {k}.counters WHERE k = {key} AND c = {c}",
    "DELETE FROM {k}.counters WHERE k = {key} AND c > {c}",
    "DELETE FROM {k}.counters WHERE k = {key}",
]


def layers(session):
    """Makes the keyspace; after each layer of writes it yields, so that the caller may flush."""
    for statement in SCHEMA:
        session.execute(statement)
    chance = random.Random(1)
    run = lambda statement: session.execute(statement)
    columns = "k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, t"
    prepared = {
        name: session.prepare(f"INSERT INTO {KEYSPACE}.{name} (k, c, v) VALUES (?, ?, ?)") for name in ("zstd", "plain", "snappy", "deflate", "expiring", "wide")
    }
    orders = session.prepare(f"INSERT INTO {KEYSPACE}.orders (k, a, b, c, v, s) VALUES (?, ?, ?, ?, ?, ?)")
    deleted = session.prepare(f"INSERT INTO {KEYSPACE}.deleted (k, a, b, v, w) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?")
    compound = session.prepare(f"INSERT INTO {KEYSPACE}.compound (a, b, c, v) VALUES (?, ?, uuid(), ?)")
    many = session.prepare(f"INSERT INTO {KEYSPACE}.many (k, v) VALUES (?, ?)")
    for layer in range(3):
        for values in SCALARS:
            run(f"INSERT INTO {KEYSPACE}.scalars ({columns}) VALUES {values.replace('(', f'({layer}', 1)}")
        for statement in COLLECTIONS:
            run(statement.format(k=KEYSPACE))
        for _ in range(200):
            session.execute(orders, (chance.randrange(4), chance.randrange(5), chance.choice("abc"), chance.randrange(5), f"v{layer}", layer))
            session.execute(compound, (chance.choice(["", "a", "bb", "long" * 20]), chance.randrange(3), layer))
        for _ in range(150):
            key, a, b, stamp = chance.randrange(3), chance.randrange(12), chance.randrange(5), chance.randrange(1, 1000)
            session.execute(deleted, (key, a, b, stamp, f"w{layer}", stamp))
            stamp = chance.randrange(1, 1000)
            run(chance.choice(DELETIONS).format(k=KEYSPACE, key=key, a=a, a2=a + 3, b=b, ts=stamp))
        for turn in range(120):
            choices = COUNTER_DELETIONS if turn % 20 == 19 else COUNTERS
            run(chance.choice(choices).format(k=KEYSPACE, key=chance.randrange(6), c=chance.randrange(8), by=chance.randrange(1000)))
        if layer == 1:
            run(f"DELETE FROM {KEYSPACE}.deleted USING TIMESTAMP 400 WHERE k = 2")
        for name in ("zstd", "plain", "snappy", "deflate", "expiring"):
            for c in range(300):
                text = f"{name} {c} " + "word " * chance.randrange(40)
                session.execute(prepared[name], (c % 3, c + 100 * layer, text.encode() if name in ("snappy", "deflate") else text))
        for c in range(3000):
            session.execute(prepared["wide"], (1, 3 * c + layer, f"value {c} " + "x" * 60))
        for k in range(1000):
            session.execute(many, (chance.randrange(-(2**63), 2**63), k))
        run(f"INSERT INTO {KEYSPACE}.statics (k, s, l) VALUES ({layer}, 'static {layer}', [1, 2])")
        run(f"INSERT INTO {KEYSPACE}.statics (k, c) VALUES ({layer}, {layer})")
        run(f"UPDATE {KEYSPACE}.statics SET l = l + [3] WHERE k = 0")
        run(f'INSERT INTO {KEYSPACE}."MixedCase" ("Key", "select", "white space") VALUES ({layer}, 1, \'quoted\')')
        yield layer
    run(f"ALTER TABLE {KEYSPACE}.orders DROP v")
    run(f"ALTER TABLE {KEYSPACE}.orders ADD extra list<int>")
    run(f"UPDATE {KEYSPACE}.orders SET extra = [1] WHERE k = 1 AND a = 1 AND b = 'a' AND c = 1")
    run(f"ALTER TYPE {KEYSPACE}.place ADD floor int")
    run(f"UPDATE {KEYSPACE}.collections SET p = {{street: 'New', floor: 3}} WHERE k = 4")
    yield 3
