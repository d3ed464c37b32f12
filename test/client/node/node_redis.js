'use strict';
// node-redis: every caller shares one connection, and the commands of a tick leave in one write. --timeout-ms is its
// socketTimeout, --pool makes a pool of so many connections.

const { createClient, createClientPool } = require('redis');
const { run } = require('./cache_aside');

run('node_redis', async (options) => {
  const settings = { url: options.url, socket: options.timeoutMs ? { socketTimeout: options.timeoutMs } : {} };
  const client = options.pool ? createClientPool(settings, { minimum: 1, maximum: options.pool })
    : createClient(settings);
  client.on('error', () => {});
  await client.connect();
  await client.ping();
  return {
    get: async (key) => (await client.get(key)) ?? null,
    set: (key, value, ttlMs) => client.set(key, value, { expiration: { type: 'PX', value: ttlMs } }),
  };
});
