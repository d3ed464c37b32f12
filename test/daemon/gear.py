"""Gear for tests of a running daemon: start one on a port and in a folder of its own, talk to it, stop it by its pid.

A test asks for what it needs by the names of its parameters (see run.py) and imports everything else from here:

    from gear import *

    @with_config('gate "k:*" { grace = 0 }')
    def test_second_asker_waits(daemon):
        first, second = daemon.connect(), daemon.connect()
        assert first.ask("GET", "k:1") is None
        second.send("GET", "k:1")
        assert second.silent_for(0.1)
        first.ask("SET", "k:1", "v")
        assert second.read() == b"v"

The environment variable HERDGATE names the program to test (build/herdgate where it is unset), so that one built with a
sanitizer can be put to the same tests; SLOWER (1 where it is unset) multiplies the times that `patient` gives.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from origin import Broken, Origin
from proxy import Proxy
from resp import Closed, Connection, Error, Late, encode

__all__ = ["Broken", "Closed", "Connection", "Error", "Late", "Origin", "Proxy", "Server", "Skip", "ROOT",
           "after", "at_once", "encode", "eventually", "explain", "free_port", "freeze", "herd_counters",
           "in_background", "info", "long", "no_config", "patient", "program", "skip", "start_herdgate",
           "start_redis", "with_arguments", "with_config"]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SANITIZER_WORDS = re.compile(rb"ERROR: (Address|Leak|Memory)Sanitizer|WARNING: ThreadSanitizer|runtime error:"
                             rb"|Assertion `|Assertion failed")


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why and is counted."""


def skip(reason):
    raise Skip(reason)


def freeze(server):
    """SIGSTOP, and all its threads have stopped."""
    server.signal(signal.SIGSTOP)

    def states():
        for thread in os.listdir(f"/proc/{server.pid}/task"):
            with open(f"/proc/{server.pid}/task/{thread}/stat") as stat:
                yield stat.read().rsplit(")", 1)[1].split()[0]
    eventually(lambda: set(states()) == {"T"})


def patient(seconds):
    """A time limit, stretched where the tested program is slow by construction (a sanitizer)."""
    return seconds * float(os.environ.get("SLOWER", "1"))


def program():
    """The path of the program under test; skips the test where there is none."""
    path = os.environ.get("HERDGATE") or os.path.join(ROOT, "build", "herdgate")
    if not os.access(path, os.X_OK):
        skip(f"no program at {path}: make build")
    return path


def free_port():
    """A loopback port that nobody listens on. Drawn at random below the ephemeral range, so that neither an outgoing
    connection nor a test beside this one is likely to take it before the server does."""
    while True:
        port = random.SystemRandom().randrange(10240, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Server:
    """A running server process. Use start_herdgate or start_redis; the runner stops what a test leaves running."""

    def __init__(self, name, arguments, port, folder, environment=None):
        self.name = name
        self.port = port
        self.folder = folder
        self.url = f"redis://127.0.0.1:{port}"
        self.log_path = os.path.join(folder, f"{name}-{port}.log")
        self.may_fail = False
        self.connections = []
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **(environment or {})})
        self.pid = self.process.pid

    def wait_until_it_answers(self, seconds=10):
        end = time.monotonic() + patient(seconds)
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended at once with {self.process.returncode}:\n{self.log()}")
            try:
                with Connection(self.port, timeout=1) as probe:
                    reply = probe.ask("PING")
                    if reply == "PONG" or getattr(reply, "word", "") == "NOAUTH":
                        return self
            except (OSError, Late, Closed):
                pass
            time.sleep(0.005)
        raise AssertionError(f"{self.name} did not answer within {seconds} s:\n{self.log()}")

    def connect(self, **options):
        """A connection to it, closed with the test."""
        connection = Connection(self.port, **options)
        self.connections.append(connection)
        return connection

    def ask(self, *arguments):
        """One command on a connection of its own."""
        with Connection(self.port) as connection:
            return connection.ask(*arguments)

    def log(self):
        with open(self.log_path, "rb") as log:
            return log.read().decode(errors="replace")

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """kill -9, as a test does on purpose."""
        self.may_fail = True
        self.process.kill()
        self.process.wait(10)

    def rss_bytes(self):
        with open(f"/proc/{self.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, seconds=15):
        """Stops it and judges its end: exit code 0 and nothing from a sanitizer in its log."""
        for connection in self.connections:
            connection.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(patient(seconds))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
                raise AssertionError(f"{self.name} did not stop within {seconds} s of SIGTERM:\n{self.log()[-4000:]}")
        with open(self.log_path, "rb") as log:
            text = log.read()
        found = SANITIZER_WORDS.search(text)
        if found:
            report = text[found.start():found.start() + 6000].decode(errors="replace")
            raise AssertionError(f"{self.name} reported:\n{report}")
        if self.process.returncode != 0 and not self.may_fail:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n{self.log()[-4000:]}")


def start_herdgate(folder, config=None, arguments=(), environment=None, wait=True):
    """Starts `herdgate serve` with this configuration text (none where it is None) and waits until it answers."""
    path = program()
    port = free_port()
    command = [path, "serve", "--listen", f"127.0.0.1:{port}"]
    if config is not None:
        config_path = os.path.join(folder, f"herdgate-{port}.conf")
        with open(config_path, "w") as file:
            file.write(config)
        command += ["-c", config_path]
    settings = {"ASAN_OPTIONS": "exitcode=99:detect_leaks=1:detect_stack_use_after_return=1",
                "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=99",
                "TSAN_OPTIONS": "halt_on_error=1:exitcode=99:second_deadlock_stack=1", **(environment or {})}
    server = Server("herdgate", command + list(arguments), port, folder, settings)
    if config is not None:
        server.config_path = config_path
    return server.wait_until_it_answers() if wait else server


def start_redis(folder, arguments=()):
    """Starts a redis-server that keeps nothing on disk, to compare with."""
    path = shutil.which("redis-server") or skip("no redis-server: tool/install-deps.sh check")
    port = free_port()
    command = [path, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
    return Server("redis", command + list(arguments), port, folder).wait_until_it_answers()


# What a test says about itself


def with_config(text):
    """The configuration text of the daemon that the runner starts for this test."""
    def mark(function):
        function.config = text
        return function
    return mark


def with_arguments(*arguments):
    """More arguments for `herdgate serve`."""
    def mark(function):
        function.arguments = arguments
        return function
    return mark


def no_config(function):
    """The daemon is started without a file and without a gate."""
    function.config = None
    return function


def long(function):
    """Runs in `make check-long` only."""
    function.long = True
    return function


# Doing things at the same time


def in_background(function, *arguments):
    """Starts the call in a thread; `.result(seconds)` gives what it returned or raises what it raised."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function, *arguments)
    pool.shutdown(wait=False)
    return future


def at_once(count, function, seconds=60):
    """Calls function(0..count-1) in as many threads, all released at the same instant; returns the results in order."""
    barrier = threading.Barrier(count)

    def run(number):
        barrier.wait(60)
        return function(number)
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(run, number) for number in range(count)]
        return [future.result(patient(seconds)) for future in futures]


def after(seconds, function, *arguments):
    """Calls the function that much later, in the background."""
    def run():
        time.sleep(seconds)
        return function(*arguments)
    return in_background(run)


def eventually(condition, seconds=5.0):
    """Waits until the condition gives something true, and gives that; fails when the time is over."""
    end = time.monotonic() + patient(seconds)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"did not happen within {seconds} s; last seen: {value!r}")
        time.sleep(0.005)


# Reading what the daemon says about itself


def info(where, section=None):
    """INFO as a map of names to int, float or text. `where` is a Server or a Connection."""
    text = where.ask(*(["INFO"] + ([section] if section else [])))
    assert isinstance(text, bytes), text
    result = {}
    for line in text.decode().splitlines():
        name, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            result[name] = _number(value)
    return result


def herd_counters(where):
    """The counters of `# Herdgate` without their prefix: herd_counters(daemon)["led"]."""
    return {name[5:]: value for name, value in info(where).items() if name.startswith("herd_")}


def explain(where, key):
    """HERD EXPLAIN as a map with text keys; bytes become text or numbers."""
    return _as_map(where.ask("HERD", "EXPLAIN", key))


def _as_map(reply):
    if isinstance(reply, Error):
        raise AssertionError(reply.text)
    if isinstance(reply, list):
        reply = dict(zip(reply[0::2], reply[1::2]))
    return {_text(name): _plain(value) for name, value in reply.items()}


def _plain(value):
    if isinstance(value, list) and value and all(isinstance(item, (bytes, str)) for item in value[0::2]) \
            and len(value) % 2 == 0:
        return {_text(name): _plain(item) for name, item in zip(value[0::2], value[1::2])}
    if isinstance(value, dict):
        return _as_map(value)
    if isinstance(value, bytes):
        return _number(_text(value))
    return value


def _text(value):
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def _number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def make_folder():
    """A temporary folder for one test."""
    return tempfile.mkdtemp(prefix="herdgate-test-")
