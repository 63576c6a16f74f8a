// A client with memjs.
'use strict';

const readline = require('node:readline');
const { createHash } = require('node:crypto');
const { setTimeout: after } = require('node:timers/promises');
const memjs = require('memjs');

// Rendezvous hashing: a new slot takes 1/n of the keys of each other slot. By default, memjs uses modulo hashing.
function slotOf(servers, key) {
  const scores = servers.map((server) => createHash('sha256').update(`${server} ${key}`).digest('hex'));
  return scores.indexOf(scores.reduce((most, score) => (score > most ? score : most)));
}

const servers = process.env.MEMCACHED_SERVERS.split(',');
const client = memjs.Client.create(servers.join(','), {
  timeout: 0.5, // seconds
  conntimeout: 0.5,
  retries: 1, // one attempt
  failover: false, // a failed slot keeps its keys
  keepAlive: true,
  logger: { log() {} }, // memjs logs each failed request
});
client.getServer = (key) => slotOf(servers, key);

// memjs 1.3.2 may never answer a request whose connection closes.
function limited(request) {
  const timeout = after(600, undefined, { ref: false }).then(() => { throw new Error('no response'); });
  return Promise.race([request, timeout]);
}

// Sends the requests; prints how many succeeded and failed, and the seconds of the slowest one.
async function report(name, count, request) {
  let succeeded = 0;
  let failed = 0;
  let slowest = 0;
  for (let number = 0; number < count; number += 1) {
    const started = performance.now();
    try {
      succeeded += (await request(`memjs-${number}`)) ? 1 : 0;
    } catch {
      failed += 1;
    }
    slowest = Math.max(slowest, (performance.now() - started) / 1000);
  }
  console.log(`${name} ${succeeded} errors ${failed} slowest ${slowest.toFixed(3)}`);
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, count] = line.split(' ');
    if (command === 'set') {
      await report('stored', Number(count), (key) => limited(client.set(key, key, {})));
    } else {
      await report('hits', Number(count), async (key) => String((await limited(client.get(key))).value) === key);
    }
  }
  client.close();
}

main();
