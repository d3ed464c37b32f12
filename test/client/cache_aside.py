"""The plain cache-aside program, without the client: GET; nil: load, SET; and what came of it, counted.

Every program of this folder takes the parameters below and prints one JSON object at its end. None knows herdgate: each
is what people write against Redis. A program in Python gives `run_threads` a function that makes a cache for an asker,
an object with `get(key)`, `set(key, value, ttl_ms)`, or with an `ask(key, load)` that does all of it.

A value is `KEY|N|PID`, N being the load's number in its process, so that an answer that belongs to another key shows.

The JSON object:
  asks ok errors words   asks begun, answered with a value, failed, and the failures' first words with their numbers
  stuck                  asks that had no end when the program's time was over
  loads loads_of spans   loads begun, by key, and [key, begin, end] of each, in milliseconds of the Unix epoch
  p50_ms max_ms          how long the asks took that did not load
  order                  answers whose value belongs to another key
  other                  asks, p50_ms, max_ms, wrong of the unrelated key of --other
"""

import argparse
import collections
import json
import os
import signal
import sys
import threading
import time


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add("--url", required=True, help="redis://host:port")
    add("--keys", default="k", help="comma-separated; askers take them in turn")
    add("--askers", type=int, default=50)
    add("--rounds", type=int, default=1, help="asks of each asker; 0: until --for-ms")
    add("--every-ms", type=float, default=0, help="pause of an asker between two asks")
    add("--for-ms", type=float, default=0, help="no ask is begun after that")
    add("--limit-ms", type=float, default=30000, help="the program ends then, whatever is under way")
    add("--wait-for-start", action="store_true", help="print `ready`, read the Unix time in ms of the begin from stdin")
    add("--load-ms", type=float, default=50)
    add("--slow-after-ms", type=float, default=0, help="from then on a load takes --slow-load-ms")
    add("--slow-load-ms", type=float, default=0)
    add("--ttl-ms", type=int, default=10000)
    add("--no-set", action="store_true", help="a load finds nothing and stores nothing")
    add("--die-in-load", action="store_true", help="kill -9 oneself in the middle of the first load")
    add("--load-reads", default="", help="a key that every load reads in its middle, through the same client")
    add("--other", default="", help="an unrelated key, asked every 20 ms through the same client")
    add("--timeout-ms", type=float, default=0, help="the client's own time-out for a command; 0: its default")
    add("--pool", type=int, default=0, help="connections at most, where the client has such a limit")
    return parser


class Tally:
    """Counts what happens. Thread-safe. All times in milliseconds."""

    def __init__(self, options, client):
        self.options = options
        self.client = client
        self.lock = threading.Lock()
        self.asks = self.ok = self.errors = self.order = self.nils = 0
        self.words = collections.Counter()
        self.loads_of = collections.Counter()
        self.spans = []
        self.waits = []
        self.other_waits = []
        self.other_wrong = 0
        self.begin = time.monotonic()

    def start(self):
        """Waits for the common start and sets the clock of the run to zero."""
        if self.options.wait_for_start:
            print("ready", flush=True)
            time.sleep(max(0, float(sys.stdin.readline()) / 1000 - time.time()))
        self.begin = time.monotonic()

    def elapsed_ms(self):
        return (time.monotonic() - self.begin) * 1000

    def over(self):
        return bool(self.options.for_ms) and self.elapsed_ms() > self.options.for_ms

    def load_ms(self):
        slow = self.options.slow_after_ms
        return self.options.slow_load_ms if slow and self.elapsed_ms() > slow else self.options.load_ms

    def begin_load(self, key):
        """The number and the span of a load that begins; the span's end is filled in by end_load."""
        with self.lock:
            self.loads_of[key] += 1
            span = [key, time.time() * 1000, None]
            self.spans.append(span)
            return sum(self.loads_of.values()), span

    def end_load(self, span):
        span[2] = time.time() * 1000

    def value(self, key, number):
        return f"{key}|{number}|{os.getpid()}"

    def answered(self, key, value, wait_ms, loaded):
        with self.lock:
            self.ok += 1
            if value is None:
                self.nils += 1
            elif text(value).split("|")[0] != key:
                self.order += 1
            if not loaded:
                self.waits.append(wait_ms)

    def failed(self, fault):
        with self.lock:
            self.errors += 1
            said = str(fault).split(" ")[0] if str(fault).startswith("HERD") else type(fault).__name__
            self.words[said] += 1

    def other(self, key, value, wait_ms):
        with self.lock:
            self.other_waits.append(wait_ms)
            if value is not None and text(value).split("|")[0] != key:
                self.other_wrong += 1

    def tell(self):
        """Prints the JSON object and ends the program, also while threads hang."""
        with self.lock:
            result = {
                "client": self.client, "asks": self.asks, "ok": self.ok, "errors": self.errors, "words": self.words,
                "stuck": self.asks - self.ok - self.errors, "nils": self.nils, "loads": sum(self.loads_of.values()),
                "loads_of": self.loads_of, "spans": self.spans, **spread(self.waits), "order": self.order,
                "other": {"asks": len(self.other_waits), **spread(self.other_waits), "wrong": self.other_wrong},
            }
        print(json.dumps(result), flush=True)
        os._exit(0)


def text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def spread(waits):
    waits = sorted(waits)
    return {"p50_ms": round(waits[len(waits) // 2], 2) if waits else 0, "max_ms": round(waits[-1], 2) if waits else 0}


def load(tally, cache, key):
    """The slow query of the story. Gives the value, or None where there is no such row."""
    options = tally.options
    number, span = tally.begin_load(key)
    seconds = tally.load_ms() / 1000
    time.sleep(seconds / 2)
    if options.die_in_load:
        os.kill(os.getpid(), signal.SIGKILL)
    if options.load_reads:
        cache.get(options.load_reads)
    time.sleep(seconds / 2)
    tally.end_load(span)
    return None if options.no_set else tally.value(key, number)


def ask(tally, cache, key):
    """Cache-aside, as everybody writes it."""
    begin = time.monotonic()
    loaded = False

    def load_once():
        nonlocal loaded
        loaded = True
        return load(tally, cache, key)
    with tally.lock:
        tally.asks += 1
    try:
        if hasattr(cache, "ask"):
            value = cache.ask(key, load_once)
        else:
            value = cache.get(key)
            if value is None:
                value = load_once()
                if value is not None:
                    cache.set(key, value, tally.options.ttl_ms)
        tally.answered(key, value, (time.monotonic() - begin) * 1000, loaded)
    except Exception as fault:
        tally.failed(fault)


def run_threads(description, make_cache, more_arguments=None):
    """The whole program for a client that blocks: one thread for each asker. `make_cache(options)` is called once for
    each asker, in its thread's name; it may return one shared object."""
    parser = arguments(description)
    if more_arguments:
        more_arguments(parser)
    options = parser.parse_args()
    tally = Tally(options, os.path.basename(sys.argv[0]).rsplit(".", 1)[0])
    keys = options.keys.split(",")
    caches = [make_cache(options) for _ in range(options.askers)]
    barrier = threading.Barrier(options.askers + 1)

    def asker(number):
        barrier.wait()
        if options.every_ms:
            time.sleep(options.every_ms / 1000 * number / options.askers)
        done = 0
        while not tally.over() and (not options.rounds or done < options.rounds):
            ask(tally, caches[number], keys[(number + done) % len(keys)])
            done += 1
            if options.every_ms:
                time.sleep(options.every_ms / 1000)

    def other():
        while True:
            begin = time.monotonic()
            try:
                value = caches[0].get(options.other)
                tally.other(options.other, value, (time.monotonic() - begin) * 1000)
            except Exception as fault:
                tally.failed(fault)
                tally.asks += 1
            time.sleep(0.02)
    threads = [threading.Thread(target=asker, args=(number,), daemon=True) for number in range(options.askers)]
    for thread in threads:
        thread.start()
    tally.start()
    if options.other:
        threading.Thread(target=other, daemon=True).start()
    barrier.wait()
    for thread in threads:
        thread.join(max(0, (options.limit_ms - tally.elapsed_ms()) / 1000))
    tally.tell()
