// A client with the package memcached, whose ring is built in. It only stores keys.
'use strict';

const readline = require('node:readline');
const { promisify } = require('node:util');
const Memcached = require('memcached');

const client = new Memcached(process.env.MEMCACHED_SERVERS.split(','), { timeout: 20000, retry: 100 });
const store = promisify(client.set.bind(client));

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const count = Number(line.split(' ')[1]);
    let succeeded = 0;
    let failed = 0;
    for (let number = 0; number < count; number += 1) {
      const key = `npm-${number}`;
      try {
        succeeded += (await store(key, key, 0)) ? 1 : 0;
      } catch {
        failed += 1;
      }
    }
    console.log(`stored ${succeeded} errors ${failed} slowest 0`);
  }
  client.end();
}

main();
