"""The counters: each ask is counted once, each counter means what doc/counters.md says, and none is missing there."""

import os
import random
import re
import time

from catalogue import Catalogue, origin_counters
from gear import *

VERDICTS = ("fresh", "stale", "led", "waited", "passed", "refused")


def clients(daemon, count):
    return [daemon.connect() for _ in range(count)]


def moved(daemon, before):
    """The counters that have changed, and by how much."""
    after = herd_counters(daemon)
    return {name: value - before.get(name, 0) for name, value in after.items()
            if isinstance(value, int) and value != before.get(name, 0)}


def sums_up(counters):
    assert counters["asks"] == sum(counters[name] for name in VERDICTS), counters


def test_every_counter_is_documented_and_every_documented_one_exists(start, folder):
    shop = Catalogue(folder, [("1", "chair", 0)])
    daemon = start(shop.config() + 'gate "seen:*" { mode = observe }')
    daemon.ask("GET", "seen:1")
    text = daemon.ask("INFO", "herdgate").decode()
    assert text.startswith("# Herdgate\r\n")
    names = {re.sub(r"[0-9]+$", "N", line.split(":")[0]) for line in text.splitlines()[1:] if line}
    with open(os.path.join(ROOT, "doc", "counters.md"), encoding="utf-8") as file:
        documented = re.findall(r"^\| `(\w+)` \| (yes|no|is it|part of led) \| \S", file.read(), re.M)
    difference = names ^ set(dict(documented))
    assert len(documented) == len(dict(documented)) and not difference, difference
    assert [name[5:] for name, place in documented if place == "yes"] == list(VERDICTS)


@with_config('gate "k:*" { grace = off }')
def test_a_hundred_clients_one_cold_key_and_then_a_hundred_hits(daemon):
    askers = clients(daemon, 100)
    before = info(daemon)
    for asker in askers:
        asker.send("GET", "k:1")
    leader = eventually(lambda: [asker for asker in askers if not asker.silent_for(0)])[0]
    assert leader.read() is None
    eventually(lambda: herd_counters(daemon)["waiters"] == 99)
    leader.ask("SET", "k:1", "v")
    assert all(asker.read() == b"v" for asker in askers if asker is not leader)
    assert all(asker.ask("GET", "k:1") == b"v" for asker in askers)
    counters = herd_counters(daemon)
    assert [counters[name] for name in VERDICTS] == [100, 0, 1, 99, 0, 0] and counters["asks"] == 200
    assert (counters["loads"], counters["fills"], counters["herd_max"], counters["loads_avoided"]) == (1, 1, 99, 99)
    after = info(daemon)
    assert after["keyspace_hits"] - before["keyspace_hits"] == 199
    assert after["keyspace_misses"] - before["keyspace_misses"] == 1


def test_a_load_that_takes_no_time_is_no_hit(start, folder):
    shop = Catalogue(folder, [(str(i), "x", 0) for i in range(300)])
    daemon = start(shop.config())
    client = daemon.connect()
    for i in range(300):
        assert client.ask("GET", f"product:{i}") == b"x"
    counters = herd_counters(daemon)
    assert [counters[name] for name in VERDICTS] == [0, 0, 300, 0, 0, 0] and counters["loads_avoided"] == 0


def test_after_mixed_traffic_every_ask_was_counted_once(start, folder):
    """Six clients ask for keys of four gates, singly and by many, with expiries, invalidations, transactions and
    missing rows; the daemon has counted as many asks as they made, and each under one verdict."""
    shop = Catalogue(folder, [(str(i), f"row {i}", i % 2) for i in range(0, 30, 2)])
    daemon = start(shop.config("ttl = 30ms  absent_ttl = 20ms") + 'gate "cold:*" { grace = off  wait = 10s }\n'
                   'gate "warm:*" { grace = 50ms  wait = 10s }\ngate "seen:*" { mode = observe }\n')
    asked = []

    def ask(number):
        draw = random.Random(number)
        client = Connection(daemon.port, timeout=30)
        count = 0
        for _ in range(150):
            name = draw.choice(["product", "cold", "warm", "seen", "free"])
            keys = [f"{name}:{draw.randrange(30)}" for _ in range(draw.choice([1, 1, 1, 4]))]
            count += len(keys) * (name != "free")
            if draw.random() < 0.1:
                replies = client.pipeline(("MULTI",), ("MGET", *keys), ("EXEC",))[2][0]
            elif len(keys) == 1:
                replies = [client.ask("GET", keys[0])]
            else:
                replies = client.ask("MGET", *keys)
            for key, reply in zip(keys, replies, strict=True):
                if reply is None and name != "product":
                    client.ask("SET", key, key, "PX", draw.randrange(1, 40))
                if name != "product":
                    assert reply in (None, key.encode())
            if draw.random() < 0.05:
                client.ask("DEL", keys[0])
        client.close()
        asked.append(count)
    at_once(6, ask)
    counters = herd_counters(daemon)
    sums_up(counters)
    assert counters["asks"] == sum(asked) and counters["refused"] == 0
    assert counters["waiters"] == 0 and all(counters[name] > 0 for name in VERDICTS[:-1]), counters
    gates = [dict(part.split("=") for part in counters[f"gate{i}"].split(",")) for i in range(1, 5)]
    assert sum(int(gate["asks"]) for gate in gates) == counters["asks"]
    for name in VERDICTS:
        assert sum(int(gate[name]) for gate in gates) == counters[name], name
    origin = origin_counters(daemon)
    assert origin["asked"] == origin["values"] + origin["absent"] + origin["errors"] + origin["busy"] + origin[
        "skipped"] + origin["canceled"] + origin["running"] + origin["queued"]


@with_config('gate "k:*" { grace = 1m  wait = 60ms  lease_first = 10s  error_backoff = 20ms } '
             'gate "s:*" { mode = observe }')
def test_each_event_moves_its_own_counters_and_no_other(daemon):
    one, two = clients(daemon, 2)

    def step(*names, **expected):
        """What has moved since the last step, but for what tells of now."""
        seen = moved(daemon, step.before)
        for name in ("flights", "leases", "keys_known", "peers", "load_time_us", "waiters"):
            seen.pop(name, None)
        assert seen == {**{name: 1 for name in names}, **expected}, seen
        step.before = herd_counters(daemon)
    step.before = herd_counters(daemon)

    one.ask("GET", "k:1")
    step("asks", "led", "loads")
    two.ask("GET", "k:1")
    step("asks", "waited", "timed_out", "herd_max")
    one.ask("SET", "k:1", "v")
    step("fills")
    two.ask("GET", "k:1")
    step("asks", "fresh")
    two.ask("PEXPIRE", "k:1", 1)
    eventually(lambda: explain(daemon, "k:1")["state"] == "stale")
    one.ask("GET", "k:1")
    two.ask("GET", "k:1")
    step("led", "stale", "loads", "loads_avoided", asks=2)
    two.ask("DEL", "k:1")
    step("invalidations")
    one.ask("SET", "k:1", "late")
    step("fenced")
    one.ask("GET", "k:2")
    two.ask("DEL", "k:2")
    daemon.ask("SET", "k:2", "late")
    step("asks", "led", "loads", "invalidations", "cut")
    one.ask("HERD", "LEASE", "k:3")
    two.ask("HERD", "LEASE", "k:3", "WAIT", 1)
    step("led", "waited", "loads", "timed_out", asks=2)
    two.ask("HERD", "FILL", "k:3", "1-1", "v")
    step("fenced")
    token = one.ask("HERD", "LEASE", "k:4")[2]
    one.ask("HERD", "FAIL", "k:4", token)
    two.ask("GET", "k:4")
    step("led", "loads", "load_errors", "refused", asks=2)
    token = one.ask("HERD", "LEASE", "k:5")[2]
    one.ask("HERD", "ABSENT", "k:5", token)
    two.ask("GET", "k:5")
    step("led", "loads", "fills", "absences", "fresh", asks=2)
    token = one.ask("HERD", "LEASE", "k:6")[2]
    one.ask("HERD", "NOSTORE", "k:6", token)
    two.ask("GET", "k:6")
    step("led", "loads", "nostores", "passed", asks=2)
    one.ask("GET", "s:1")
    two.ask("GET", "s:1")
    step("led", "passed", "would_wait", asks=2)
    one.ask("GET", "k:7")
    one.close()
    eventually(lambda: herd_counters(daemon)["closed_leaders"] >= 1)
    seen = moved(daemon, step.before)
    assert seen["closed_leaders"] == 2, "k:7, and the token for k:3"


@with_config('gate "k:*" { grace = off }')
def test_resetstat_forgets_what_was_counted_and_not_what_is(daemon):
    one, two = clients(daemon, 2)
    one.ask("SET", "k:2", "v")
    one.ask("GET", "k:2")
    one.ask("GET", "k:1")
    two.send("GET", "k:1")
    assert two.silent_for(0.03)
    assert one.ask("CONFIG", "RESETSTAT") == "OK"
    counters = herd_counters(daemon)
    assert counters["asks"] == 0 and counters["loads"] == 0 and counters["herd_max"] == 0
    assert (counters["waiters"], counters["leases"], counters["flights"]) == (1, 1, 1)
    one.ask("SET", "k:1", "v")
    assert two.read() == b"v" and one.ask("GET", "k:2") == b"v"
    counters = herd_counters(daemon)
    sums_up(counters)
    assert (counters["asks"], counters["fresh"], counters["fills"]) == (1, 1, 1)


@with_config('gate "k:*" { grace = off  wait = 300ms }')
def test_a_member_that_another_members_error_answered_is_no_ask(daemon):
    one, two = clients(daemon, 2)
    one.ask("GET", "k:1")
    assert two.ask("MGET", "k:1", "k:2").word == "HERDWAIT"
    counters = herd_counters(daemon)
    sums_up(counters)
    assert (counters["led"], counters["waited"], counters["asks"]) == (1, 1, 2)
    time.sleep(0.01)
    assert two.ask("GET", "k:2") is None
