#!/usr/bin/python3
"""redis-py with a BlockingConnectionPool: fewer connections (--pool, 8) than threads, so that waiting GETs may take all
of them and the leader finds none for its SET."""

import redis

from cache_aside import run_threads

SHARED = []


class Cache:
    def __init__(self, options):
        pool = redis.BlockingConnectionPool.from_url(options.url, max_connections=options.pool or 8, timeout=20,
                                                     socket_timeout=options.timeout_ms / 1000 or None)
        self.redis = redis.Redis(connection_pool=pool)

    def get(self, key):
        return self.redis.get(key)

    def set(self, key, value, ttl_ms):
        self.redis.set(key, value, px=ttl_ms)


def make(options):
    if not SHARED:
        SHARED.append(Cache(options))
    return SHARED[0]


if __name__ == "__main__":
    run_threads(__doc__, make)
