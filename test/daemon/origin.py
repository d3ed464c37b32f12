"""A stand-in for the database: it counts, and it can be slow, broken, or have no such row.

Thread-safe. What it counts is the truth that a test compares a cache with: loads per key, and how many ran at once.
"""

import threading
import time


class Broken(Exception):
    """What a load raises while the origin is told to fail."""


class Origin:
    """`load_seconds` is how long one load takes. Each load of a key gives the next version: b"key#1", b"key#2", ..."""

    def __init__(self, load_seconds=0.05):
        self.lock = threading.Lock()
        self.load_seconds = load_seconds
        self.loads = {}
        self.spans = []
        self.running = 0
        self.running_most = 0
        self.running_of_key = {}
        self.running_of_key_most = 0
        self.absent = set()
        self.broken = False
        self.gate = None

    def load(self, key):
        """One query: takes its time, then gives the value, None for no such row, or raises Broken."""
        begin = time.monotonic()
        with self.lock:
            version = self.loads.get(key, 0) + 1
            self.loads[key] = version
            self.running += 1
            self.running_most = max(self.running_most, self.running)
            alike = self.running_of_key.get(key, 0) + 1
            self.running_of_key[key] = alike
            self.running_of_key_most = max(self.running_of_key_most, alike)
            gate = self.gate
            seconds = self.load_seconds
        try:
            if gate is not None:
                gate.wait(60)
            time.sleep(seconds)
            if self.broken:
                raise Broken("the origin is broken")
            return None if key in self.absent else f"{key}#{version}".encode()
        finally:
            with self.lock:
                self.running -= 1
                self.running_of_key[key] -= 1
                self.spans.append((key, begin, time.monotonic()))

    def hold(self):
        """From now on loads hang until `release`."""
        self.gate = threading.Event()

    def release(self):
        """Lets the hanging loads, and all later ones, go on."""
        gate, self.gate = self.gate, None
        if gate is not None:
            gate.set()

    def count(self, key=None):
        """Loads begun of one key, or of all."""
        with self.lock:
            return sum(self.loads.values()) if key is None else self.loads.get(key, 0)
