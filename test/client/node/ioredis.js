'use strict';
// ioredis: every caller shares one connection. --auto-pipelining gathers the commands of a tick; --timeout-ms is its
// commandTimeout.

const Redis = require('ioredis');
const { run } = require('./cache_aside');

run('ioredis', async (options) => {
  const client = new Redis(options.url, {
    enableAutoPipelining: options.autoPipelining,
    ...(options.timeoutMs ? { commandTimeout: options.timeoutMs } : {}),
  });
  client.on('error', () => {});
  await client.ping();
  return { get: (key) => client.get(key), set: (key, value, ttlMs) => client.set(key, value, 'PX', ttlMs) };
});
