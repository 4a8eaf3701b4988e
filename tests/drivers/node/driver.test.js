// The Node.js driver 4.x with its defaults against a running server (HELENUS_TEST_HOST, HELENUS_TEST_PORT).
'use strict';

const { test, before, after } = require('node:test');
const assert = require('node:assert/strict');
const { Client, types, errors } = require('cassandra-driver');

const HOST = process.env.HELENUS_TEST_HOST || '127.0.0.1';
const PORT = Number(process.env.HELENUS_TEST_PORT || 9042);
const options = (more) => ({
  contactPoints: [`${HOST}:${PORT}`],
  localDataCenter: 'datacenter1',
  socketOptions: { readTimeout: 20000, connectTimeout: 20000 },
  ...more,
});

const client = new Client(options());
const prepared = { prepare: true };

before(async () => {
  await client.connect();
  await client.execute('DROP KEYSPACE IF EXISTS node_tests');
  await client.execute("CREATE KEYSPACE node_tests WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
});

after(async () => {
  await client.execute('DROP KEYSPACE node_tests');
  await client.shutdown();
});

test('schema and metadata', async () => {
  await client.execute('CREATE TYPE node_tests.place (name text, number int)');
  await client.execute(
    'CREATE TABLE node_tests.whole (a int, b text, c timeuuid, s text static, p frozen<place>, PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC)');
  const table = await client.metadata.getTable('node_tests', 'whole');
  assert.deepEqual(table.partitionKeys.map((column) => column.name), ['a', 'b']);
  assert.deepEqual(table.clusteringKeys.map((column) => column.name), ['c']);
  assert.deepEqual(table.clusteringOrder, ['DESC']);
  assert.equal(table.columns.length, 5);
  const place = await client.metadata.getUdt('node_tests', 'place');
  assert.deepEqual(place.fields.map((field) => field.name), ['name', 'number']);
  assert.equal(client.hosts.length, 1);
});

test('prepared statements and types', async () => {
  await client.execute(
    'CREATE TABLE node_tests.types (k int PRIMARY KEY, a text, b bigint, c blob, d list<int>, e map<text, int>, f set<text>, g timestamp, h uuid, i tuple<int, text>, j double, l decimal, m varint, n inet)');
  const id = types.Uuid.random();
  const when = new Date(1700000000123);
  const values = [1, 'text', types.Long.MIN_VALUE, Buffer.from([0, 255]), [3, 1], { x: 1 }, ['a', 'b'], when, id,
    new types.Tuple(7, 'seven'), 0.5, types.BigDecimal.fromString('1.50'), types.Integer.fromString('1000000000000000000000'), types.InetAddress.fromString('::1')];
  await client.execute(
    'INSERT INTO node_tests.types (k, a, b, c, d, e, f, g, h, i, j, l, m, n) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)', values, prepared);
  const row = (await client.execute('SELECT * FROM node_tests.types WHERE k = ?', [1], prepared)).first();
  assert.equal(row.a, 'text');
  assert.ok(row.b.equals(types.Long.MIN_VALUE));
  assert.deepEqual(row.c, Buffer.from([0, 255]));
  assert.deepEqual(row.d, [3, 1]);
  assert.deepEqual(row.e, { x: 1 });
  assert.deepEqual(row.f, ['a', 'b']);
  assert.equal(row.g.getTime(), when.getTime());
  assert.ok(row.h.equals(id));
  assert.equal(row.i.get(1), 'seven');
  assert.equal(row.l.toString(), '1.50');
  assert.equal(row.m.toString(), '1000000000000000000000');
  assert.equal(row.n.toString(), '::1');

  await client.execute('INSERT INTO node_tests.types (k, a, b) VALUES (:k, :a, :b)', { k: 1, b: null, a: types.unset }, prepared);
  const changed = (await client.execute('SELECT a, b FROM node_tests.types WHERE k = 1')).first();
  assert.equal(changed.a, 'text');
  assert.equal(changed.b, null);
});

test('pages', async () => {
  await client.execute('CREATE TABLE node_tests.pages (k int, c int, PRIMARY KEY (k, c))');
  await Promise.all(Array.from({ length: 300 }, (_, c) => client.execute('INSERT INTO node_tests.pages (k, c) VALUES (1, ?)', [c], prepared)));
  for (const order of ['ASC', 'DESC']) {
    const seen = [];
    const query = `SELECT c FROM node_tests.pages WHERE k = ? ORDER BY c ${order}`;
    for await (const row of await client.execute(query, [1], { prepare: true, fetchSize: 17 })) {
      seen.push(row.c);
    }
    const want = Array.from({ length: 300 }, (_, c) => c);
    assert.deepEqual(seen, order === 'ASC' ? want : want.reverse());
  }
  const query = 'SELECT c FROM node_tests.pages WHERE k = 1';
  const first = await client.execute(query, [], { fetchSize: 100 });
  assert.equal(first.rows.length, 100);
  const second = await client.execute(query, [], { fetchSize: 100, pageState: first.pageState });
  assert.equal(second.rows[0].c, 100);
});

test('batches', async () => {
  await client.execute('CREATE TABLE node_tests.batches (k int, c int, v text, PRIMARY KEY (k, c))');
  for (const logged of [true, false]) {
    const k = logged ? 1 : 2;
    const query = 'INSERT INTO node_tests.batches (k, c, v) VALUES (?, ?, ?)';
    const batch = Array.from({ length: 40 }, (_, c) => ({ query, params: [k, c, `v${c}`] }));
    await client.batch(batch, { prepare: true, logged });
    const result = await client.execute('SELECT c FROM node_tests.batches WHERE k = ?', [k], prepared);
    assert.equal(result.rowLength, 40);
  }
});

test('events reach another client', async () => {
  const watcher = new Client(options({ refreshSchemaDelay: 10, isMetadataSyncEnabled: true }));
  await watcher.connect();
  try {
    await watcher.metadata.refreshKeyspace('node_tests');
    await client.execute('CREATE KEYSPACE IF NOT EXISTS node_eventful WITH replication = {\'class\': \'SimpleStrategy\', \'replication_factor\': 1}');
    let seen = false;
    for (let tries = 0; tries < 200 && !seen; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      seen = watcher.metadata.keyspaces.node_eventful !== undefined;
    }
    await client.execute('DROP KEYSPACE node_eventful');
    assert.ok(seen);
  } finally {
    await watcher.shutdown();
  }
});

test('a statement prepared before its table was dropped and made again', async () => {
  await client.execute('CREATE TABLE node_tests.again (k int PRIMARY KEY)');
  const insert = (k) => client.execute('INSERT INTO node_tests.again (k) VALUES (?)', [k], prepared);
  await insert(1);
  await client.execute('DROP TABLE node_tests.again');
  await client.execute('CREATE TABLE node_tests.again (k int PRIMARY KEY)');
  await insert(2);
  assert.deepEqual((await client.execute('SELECT k FROM node_tests.again')).rows.map((row) => row.k), [2]);
});

test('protocol versions', async () => {
  for (const maxVersion of [3, 4]) {
    const old = new Client(options({ protocolOptions: { maxVersion } }));
    await old.connect();
    assert.equal((await old.execute('SELECT key FROM system.local')).first().key, 'local');
    await old.shutdown();
  }
});

test('errors', async () => {
  const code = async (query) => {
    try {
      await client.execute(query);
    } catch (error) {
      assert.ok(error instanceof errors.ResponseError);
      return error.code;
    }
    return null;
  };
  assert.equal(await code('SELEC'), types.responseErrorCodes.syntaxError);
  assert.equal(await code('SELECT nosuch FROM system.local'), types.responseErrorCodes.invalid);
  assert.equal(
    await code("CREATE KEYSPACE node_tests WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"),
    types.responseErrorCodes.alreadyExists);
});
