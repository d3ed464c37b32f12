#!/usr/bin/python3
"""A client that connects anew for every command and closes after it, as some frameworks and many scripts do."""

import redis

from cache_aside import run_threads


class Cache:
    def __init__(self, options):
        self.options = options

    def command(self, *words):
        client = redis.Redis.from_url(self.options.url, socket_timeout=self.options.timeout_ms / 1000 or None)
        try:
            return client.execute_command(*words)
        finally:
            client.connection_pool.disconnect()

    def get(self, key):
        return self.command("GET", key)

    def set(self, key, value, ttl_ms):
        self.command("SET", key, value, "PX", ttl_ms)


if __name__ == "__main__":
    run_threads(__doc__, Cache)
