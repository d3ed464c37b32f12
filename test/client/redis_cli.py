#!/usr/bin/python3
"""A shell script's client: redis-cli, a process for every command."""

import subprocess
from urllib.parse import urlparse

from cache_aside import run_threads


class Cache:
    def __init__(self, options):
        self.port = str(urlparse(options.url).port)

    def command(self, *words):
        done = subprocess.run(["redis-cli", "-p", self.port, *words], capture_output=True, stdin=subprocess.DEVNULL)
        said = done.stdout.rstrip(b"\n")
        if done.returncode != 0 or said.startswith(b"HERD") or said.startswith(b"ERR"):
            raise RuntimeError((said or done.stderr).decode(errors="replace"))
        return said

    def get(self, key):
        return self.command("GET", key) or None

    def set(self, key, value, ttl_ms):
        self.command("SET", key, value, "PX", str(ttl_ms))


if __name__ == "__main__":
    run_threads(__doc__, Cache)
