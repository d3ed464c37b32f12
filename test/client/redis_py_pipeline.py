#!/usr/bin/python3
"""redis-py's pipeline(), which is MULTI ... EXEC unless one asks otherwise: reads and writes go through it."""

import redis

from cache_aside import run_threads

SHARED = []


class Cache:
    def __init__(self, options):
        self.redis = redis.Redis.from_url(options.url, socket_timeout=options.timeout_ms / 1000 or None)

    def get(self, key):
        pipeline = self.redis.pipeline()
        pipeline.get(key)
        pipeline.exists(key)
        return pipeline.execute()[0]

    def set(self, key, value, ttl_ms):
        pipeline = self.redis.pipeline()
        pipeline.set(key, value, px=ttl_ms)
        pipeline.execute()


def make(options):
    if not SHARED:
        SHARED.append(Cache(options))
    return SHARED[0]


if __name__ == "__main__":
    run_threads(__doc__, make)
