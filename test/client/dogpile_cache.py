#!/usr/bin/python3
"""The real dogpile.cache with its Redis backend. It takes a lock of its own in the process and looks again under it, so
that only several processes make a herd. --distributed-lock has it keep that lock in Redis."""

from urllib.parse import urlparse

from dogpile.cache import make_region

from cache_aside import run_threads

SHARED = []


class Cache:
    def __init__(self, options):
        where = urlparse(options.url)
        self.seconds = max(1, options.ttl_ms // 1000)
        self.region = make_region().configure("dogpile.cache.redis", arguments={
            "host": where.hostname, "port": where.port, "redis_expiration_time": self.seconds,
            "distributed_lock": options.distributed_lock, "lock_timeout": 30,
            "thread_local_lock": False, "socket_timeout": options.timeout_ms / 1000 or None,
            "connection_kwargs": {"client_name": options.client_name} if options.client_name else {}})

    def ask(self, key, load):
        return self.region.get_or_create(key, load, should_cache_fn=lambda value: value is not None)

    def get(self, key):
        return self.region.get(key) or None


def make(options):
    if not SHARED:
        SHARED.append(Cache(options))
    return SHARED[0]


if __name__ == "__main__":
    def more(parser):
        parser.add_argument("--distributed-lock", action="store_true")
        parser.add_argument("--client-name", default="", help="CLIENT SETNAME")
    run_threads(__doc__, make, more)
