// Node, Testcontainers: npm install testcontainers cassandra-driver, then node --test. The image is loaded first
// (docker load).
const test = require('node:test');
const assert = require('node:assert');
const { GenericContainer, Wait } = require('testcontainers');
const { Client } = require('cassandra-driver');

test('release', async () => {
  const node = await new GenericContainer('helenus:0.1.0')
    .withExposedPorts(9042)
    .withEnvironment({ MAX_HEAP_SIZE: '256M' })
    .withWaitStrategy(Wait.forLogMessage('Startup complete'))
    .start();
  const contactPoints = [`${node.getHost()}:${node.getMappedPort(9042)}`];
  const client = new Client({ contactPoints, localDataCenter: 'datacenter1' });
  try {
    const rows = await client.execute('SELECT release_version FROM system.local');
    assert.match(rows.first().release_version, /^5\.0/);
  } finally {
    await client.shutdown();
    await node.stop();
  }
});
