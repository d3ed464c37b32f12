#!/usr/bin/python3
"""Finds and runs the tests of a running daemon: every function test_* of every file test_*.py in the folders given.

    test/daemon/run.py [--filter WORD] [--long | --only-long] [--seconds N] [--jobs N] [--list] FOLDER|FILE...

Each test gets what its parameters name: `daemon` (a herdgate with the text of @with_config), `start` (a function that
starts more of them: start(config=None, arguments=())), `redis` (a redis-server), `origin` (a counting database),
`proxy` (a proxy before `daemon`), `folder` (a temporary folder). All of it is its own and is stopped after it. Two
files run side by side at most, the tests of one file one after the other. Prints a line for each test, then the reasons
of skips and failures, then one line `N passed, N failed`, and exits 0 only if none failed. With --seconds the order is
drawn anew each time, so that runs that end early look at different tests; what was not begun is told and not counted.

Scenes with real clients and real time can be late on a busy machine. So what has failed beside others is put to one
more run, alone; it passes if it passes then, and the first failure is told all the same. A server that ended badly (a
crash, a sanitizer's report) has no second run.
"""

import argparse
import importlib.util
import inspect
import os
import random
import shutil
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import gear  # noqa: E402

PRINTING = threading.Lock()


class Outcome:
    """What came of one test: `verdict` is ok, skip or FAILED; `text` says why."""

    def __init__(self, name, verdict, seconds, text="", crashed=False):
        self.name, self.verdict, self.seconds, self.text, self.crashed = name, verdict, seconds, text, crashed


class Bench:
    """Makes what one test asks for by its parameters, and clears it away."""

    def __init__(self, function):
        self.function = function
        self.folder = gear.make_folder()
        self.servers = []
        self.proxies = []

    def start(self, config=None, arguments=(), **options):
        server = gear.start_herdgate(self.folder, config, arguments, **options)
        self.servers.append(server)
        return server

    def make(self, name, made):
        if name == "daemon":
            return self.start(getattr(self.function, "config", 'gate "*" { }'), getattr(self.function, "arguments", ()))
        if name == "start":
            return self.start
        if name == "redis":
            self.servers.append(gear.start_redis(self.folder))
            return self.servers[-1]
        if name == "origin":
            return gear.Origin()
        if name == "proxy":
            self.proxies.append(gear.Proxy(made["daemon"].port))
            return self.proxies[-1]
        if name == "folder":
            return self.folder
        raise AssertionError(f"no such gear: {name}")

    def run(self):
        made = {}
        for name in inspect.signature(self.function).parameters:
            made[name] = self.make(name, made)
        self.function(**made)

    def clear(self):
        """Stops everything; raises what the first server that ended badly has to say."""
        faults = []
        for thing in self.proxies + self.servers:
            try:
                thing.stop()
            except AssertionError as fault:
                faults.append(fault)
        shutil.rmtree(self.folder, ignore_errors=True)
        if faults:
            raise faults[0]


def run_test(name, function):
    begin = time.monotonic()
    bench = Bench(function)
    verdict, text, crashed = "ok", "", False
    try:
        bench.run()
    except gear.Skip as reason:
        verdict, text = "skip", str(reason)
    except Exception:
        verdict, text = "FAILED", traceback.format_exc()
        text += "".join(f"--- log of {server.name}\n{server.log()[-3000:]}" for server in bench.servers)
    try:
        bench.clear()
    except Exception as fault:
        verdict, text, crashed = "FAILED", text + f"{fault}\n", True
    return Outcome(name, verdict, time.monotonic() - begin, text, crashed)


def load_file(path):
    """The tests of a file, in the order in which they stand there."""
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.append(folder)
    name = os.path.splitext(os.path.relpath(os.path.abspath(path), gear.ROOT))[0].replace(os.sep, ".")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [function for key, function in vars(module).items()
             if key.startswith("test_") and callable(function) and function.__module__ == name]
    return [(f"{os.path.basename(path)[:-3]}.{function.__name__}", function) for function in tests]


def wanted(options, name, function):
    is_long = getattr(function, "long", False)
    return options.filter in name and (is_long if options.only_long else options.long or not is_long)


def find_files(places):
    for place in places:
        if os.path.isfile(place):
            yield place
        else:
            for name in sorted(os.listdir(place)):
                if name.startswith("test_") and name.endswith(".py"):
                    yield os.path.join(place, name)


def run_tests(tests, end, outcomes):
    for name, function in tests:
        if time.monotonic() > end:
            return
        outcome = run_test(name, function)
        with PRINTING:
            outcomes.append(outcome)
            print(f"{outcome.verdict:6} {outcome.name} ({outcome.seconds:.1f} s)", flush=True)


def run_again(outcomes, functions):
    """One more run, alone, of what failed beside others."""
    for place, first in enumerate(outcomes):
        if first.verdict != "FAILED" or first.crashed:
            continue
        second = run_test(first.name, functions[first.name])
        print(f"{second.verdict:6} {first.name} (again, alone: {second.seconds:.1f} s)", flush=True)
        if second.verdict == "ok":
            print(f"\n=== {first.name}, beside others\n{first.text}")
        outcomes[place] = second


def tell(outcomes, fault_count):
    for outcome in outcomes:
        if outcome.verdict == "skip":
            print(f"skipped {outcome.name}: {outcome.text}")
    for outcome in outcomes:
        if outcome.verdict == "FAILED":
            print(f"\n=== {outcome.name}\n{outcome.text}")
    count = {verdict: sum(outcome.verdict == verdict for outcome in outcomes) for verdict in ("ok", "FAILED", "skip")}
    failed = count["FAILED"] + fault_count
    print(f"{count['ok']} passed, {failed} failed" + (f", {count['skip']} skipped" if count["skip"] else ""))
    return failed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", default=[os.path.dirname(os.path.abspath(__file__))])
    parser.add_argument("--filter", default="", help="only tests whose name contains this word")
    parser.add_argument("--long", action="store_true", help="also those marked @long")
    parser.add_argument("--only-long", action="store_true", help="only those marked @long")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no test later than this")
    parser.add_argument("--jobs", type=int, default=2, help="files run side by side")
    parser.add_argument("--list", action="store_true", help="only print the names")
    options = parser.parse_args()
    files, faults = [], 0
    for path in find_files(options.places):
        try:
            tests = load_file(path)
        except Exception:
            traceback.print_exc()
            faults += 1
            continue
        files.append([(name, function) for name, function in tests if wanted(options, name, function)])
    if options.list:
        for tests in files:
            for name, _ in tests:
                print(name)
        return 0
    end = time.monotonic() + options.seconds
    if options.seconds < 1e9:
        random.shuffle(files)
        for tests in files:
            random.shuffle(tests)
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(run_tests, tests, end, outcomes) for tests in files if tests]:
            future.result()
    run_again(outcomes, {name: function for tests in files for name, function in tests})
    left = sum(len(tests) for tests in files) - len(outcomes)
    if left:
        print(f"{left} tests were not begun: the {options.seconds:.0f} s given to this run were over")
    return 0 if tell(outcomes, faults) else 1


if __name__ == "__main__":
    sys.exit(main())
