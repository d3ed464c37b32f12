#!/usr/bin/python3
"""redis-py with its default pool: no limit, the connection given back last is taken first, none held while loading."""

import redis

from cache_aside import run_threads

SHARED = []


class Cache:
    def __init__(self, options):
        self.redis = redis.Redis.from_url(options.url, socket_timeout=options.timeout_ms / 1000 or None)

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
