// The Node driver as a client of a ring: what tests/ring/drivers asks for, a line of JSON an answer.
//
//     node ring_client.js ADDRESS PORT
'use strict';

const readline = require('node:readline');
const cassandra = require('cassandra-driver');

const PATIENCE_MS = 60000;
const [address, port] = process.argv.slice(2);
const { TokenAwarePolicy, DCAwareRoundRobinPolicy } = cassandra.policies.loadBalancing;

const client = new cassandra.Client({
  contactPoints: [`${address}:${port}`],
  localDataCenter: 'datacenter1',
  policies: { loadBalancing: new TokenAwarePolicy(new DCAwareRoundRobinPolicy('datacenter1')) },
  socketOptions: { readTimeout: 20000 },
});

const bare = (host) => host.replace(/:\d+$/, '');
const up = () => client.hosts.values().filter((host) => host.isUp()).map((host) => bare(host.address)).sort();
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function coordinator(name, key) {
  const result = await client.execute(`SELECT k FROM ring_${name}.t WHERE k = ?`, [key], { prepare: true });
  return bare(result.info.queriedHost);
}

async function coordinators(name, count) {
  const found = [];
  for (let key = 0; key < count; key++) found.push(await coordinator(name, key));
  return found;
}

async function awaited(host, isUp) {
  const until = Date.now() + PATIENCE_MS;
  while (up().includes(host) !== isUp && Date.now() < until) await pause(50);
  return up().includes(host) === isUp;
}

const verbs = {
  hosts: async () => up(),
  aware: (count) => coordinators('one', Number(count)),
  spread: async (count) => [...new Set(await coordinators('three', Number(count)))].sort(),
  schema: async (name) => {
    const result = await client.execute(`CREATE TABLE ring_three.${name} (k int PRIMARY KEY)`);
    return result.info.isSchemaInAgreement;
  },
  up: (host) => awaited(host, true),
  down: (host) => awaited(host, false),
};

async function main() {
  await client.connect();
  console.log(JSON.stringify('ready'));
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.split(' ');
    let answer;
    try {
      answer = await verbs[verb](...words);
    } catch (error) {
      answer = { error: String(error) };
    }
    console.log(JSON.stringify(answer));
  }
  await client.shutdown();
}

main();
