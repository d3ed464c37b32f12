"""Starts the plain cache-aside programs of this folder, builds those that need it, and reads what they tell.

    herd = start("redis_py_pool", daemon, keys="k:1", askers=200, load_ms=300)
    told = herd.result()
    assert told.loads == 1

A program whose client library is not there skips the test and says what would install it.
"""

import json
import os
import shutil
import subprocess
import threading
import time

from gear import ROOT, patient, skip

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(ROOT, "build", "client")
NODE = os.path.join(ROOT, "build", "client-node")
BUILDING = threading.Lock()

PYTHON = ["redis_py_pool", "redis_py_blocking", "redis_py_pipeline", "redis_py_asyncio", "connect_per_command",
          "redis_cli", "dogpile_cache"]


def command_of(name):
    """(the words that run the program, the environment it needs besides)."""
    if name in PYTHON:
        needed = "dogpile.cache" if name == "dogpile_cache" else "redis"
        require_python(needed)
        return ["/usr/bin/python3", os.path.join(HERE, name + ".py")], {}
    if name in ("ioredis", "node_redis"):
        require_file(os.path.join(NODE, "installed"), "the Node.js clients")
        return ["node", os.path.join(HERE, "node", name + ".js")], {"NODE_PATH": os.path.join(NODE, "node_modules")}
    if name == "phpredis":
        require_program("php")
        return ["php", os.path.join(HERE, "phpredis.php")], {}
    if name == "hiredis_async":
        require_file("/usr/include/hiredis/async.h", "hiredis")
        return [build(name, ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror",
                             os.path.join(HERE, name + ".c"), "-lhiredis", "-luv", "-ljansson", "-lm"])], {}
    if name == "redigo":
        require_program("go")
        require_file("/usr/share/gocode/src/github.com/gomodule/redigo", "redigo")
        return [build(name, ["go", "build", os.path.join(HERE, name + ".go")])], {}
    raise AssertionError(f"no such client: {name}")


def require_program(name):
    shutil.which(name) or skip(f"no {name}: tool/install-deps.sh check")


def require_file(path, what):
    os.path.exists(path) or skip(f"no {what}: tool/install-deps.sh check")


def require_python(module):
    if subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], capture_output=True).returncode != 0:
        skip(f"no {module} for /usr/bin/python3: tool/install-deps.sh check")


def build(name, command):
    """Compiles the program where its source is newer; its path."""
    path = os.path.join(BUILT, name)
    source = [word for word in command if word.startswith(HERE)][0]
    with BUILDING:
        if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(source):
            os.makedirs(BUILT, exist_ok=True)
            position = command.index(source)
            settings = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": os.path.join(BUILT, "go-cache")}
            done = subprocess.run(command[:position] + ["-o", path] + command[position:], capture_output=True,
                                  text=True, env={**os.environ, **settings})
            assert done.returncode == 0, f"{name} does not compile:\n{done.stderr}"
    return path


class Told:
    """What a program told at its end, by name (told.loads, told.max_ms), and what follows from it."""

    def __init__(self, told):
        self.__dict__.update(told)
        self.told = told

    def __repr__(self):
        return json.dumps({name: value for name, value in self.told.items() if name != "spans"})

    def spans_of(self, key=None):
        """[begin, end] of each load in the order of their begins; the end of one that was not seen is far away."""
        return sorted([begin, end if end else begin + 1e9] for of, begin, end in self.spans if key in (None, of))

    def loads_at_once(self, key=None):
        """The most loads that ran at the same time."""
        edges = sorted([(end, -1) for _, end in self.spans_of(key)] + [(begin, 1) for begin, _ in self.spans_of(key)])
        running = most = 0
        for _, step in edges:
            running += step
            most = max(most, running)
        return most


class Herd:
    """A program that runs."""

    def __init__(self, name, server, **options):
        words, environment = command_of(name)
        self.name = name
        self.start_at = None
        for option, value in {"url": server.url, "wait_for_start": True, **options}.items():
            flag = "--" + option.replace("_", "-")
            words += [flag] if value is True else [flag, str(value)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE,
                                        env={**os.environ, **environment})

    def wait_until_ready(self):
        line = self.process.stdout.readline()
        if line.strip() != b"ready":
            err = self.process.communicate()[1].decode(errors="replace")
            raise AssertionError(f"{self.name} did not start, it said {line!r}:\n{err[-3000:]}")

    def begin_at(self, instant):
        """Tells it the Unix time in seconds at which it begins to ask."""
        self.start_at = instant
        self.process.stdin.write(b"%.3f\n" % (instant * 1000))
        self.process.stdin.flush()

    def wait_until(self, ms):
        """Sleeps until so many milliseconds after the herd's begin."""
        time.sleep(max(0, self.start_at + ms / 1000 - time.time()))

    def result(self, seconds=60):
        """What it told; fails when it told nothing."""
        if self.start_at is None:
            begin_together(self)
        try:
            out, err = self.process.communicate(timeout=patient(seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError(f"{self.name} did not end within {seconds} s")
        lines = out.decode(errors="replace").strip().splitlines()
        assert lines, f"{self.name} told nothing ({self.process.returncode}):\n{err.decode(errors='replace')[-3000:]}"
        return Told(json.loads(lines[-1]))

    def killed(self, seconds=30):
        """Waits for a program that ends by killing itself."""
        self.process.communicate(timeout=patient(seconds))
        assert self.process.returncode == -9, f"{self.name} ended with {self.process.returncode}"


def start(name, server, **options):
    """Starts a program; it asks nothing before begin_together, or before its result is asked for."""
    return Herd(name, server, **options)


def begin_together(*herds):
    """Has herds begin in the same instant, those given as (herd, ms) so much later. All are connected by then."""
    pairs = [herd if isinstance(herd, tuple) else (herd, 0) for herd in herds]
    for herd, _ in pairs:
        herd.wait_until_ready()
    now = time.time() + 0.1
    for herd, ms in pairs:
        herd.begin_at(now + ms / 1000)
