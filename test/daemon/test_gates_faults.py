"""Gates and faults whose victim is a client, the daemon or the machine: who holds a lease dies, stops, goes silent; the
daemon stops, stalls, is killed; and what must never be seen by anybody: another key's value, or an older one."""

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time

from catalogue import Catalogue, origin_counters
from gear import *

COLD = 'gate "k:*" { grace = off }'


def within(seconds, low, high):
    assert low <= seconds <= patient(high), f"{seconds:.3f} s is not from {low} to {high}"


def lead(daemon, key="k:1"):
    client = daemon.connect()
    assert client.ask("GET", key) is None
    return client


def allow_descriptors(count):
    """Raises this process's own limit, or skips."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        skip(f"only {hard} descriptors are allowed here")
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


# ---- who holds the lease


@with_config('gate "k:*" { grace = off  wait = 20s }')
def test_a_leader_killed_with_500_waiters_is_followed_by_exactly_one(daemon):
    """Unmeasured, so at once. 2 loads in all, and 499 get the value."""
    allow_descriptors(2000)
    program = subprocess.Popen([sys.executable, "-c", f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
from resp import Connection
client = Connection({daemon.port})
assert client.ask("GET", "k:1") is None
print("leads", flush=True)
client.read(60)"""], stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"leads\n"
    waiters = [daemon.connect().send("GET", "k:1") for _ in range(500)]
    eventually(lambda: herd_counters(daemon)["waiters"] == 500)
    begin = time.monotonic()
    program.kill()
    program.wait(5)
    follower = eventually(lambda: [waiter for waiter in waiters if not waiter.silent_for(0)])
    within(time.monotonic() - begin, 0, 0.5)
    assert len(follower) == 1 and follower[0].read() is None
    assert herd_counters(daemon)["waiters"] == 499
    begin = time.monotonic()
    follower[0].ask("SET", "k:1", "v")
    assert all(waiter.read() == b"v" for waiter in waiters if waiter is not follower[0])
    within(time.monotonic() - begin, 0, 1)
    counters = herd_counters(daemon)
    assert (counters["loads"], counters["handed_over"], counters["closed_leaders"]) == (2, 1, 1)


@with_config('gate "k:*" { grace = off  lease_first = 150ms  lease = 1s }')
def test_a_holder_that_is_stopped_past_its_lease_and_resumes(daemon):
    """With a token its fill is refused and it is told so. A plain SET is late, and the key has a value of after it."""
    program = subprocess.Popen([sys.executable, "-c", f"""
import sys, time; sys.path.insert(0, {os.path.dirname(__file__)!r})
from resp import Connection
client = Connection({daemon.port})
assert client.ask("GET", "k:plain") is None
token = client.ask("HERD", "LEASE", "k:token")[2]
print("leads", flush=True)
sys.stdin.readline()
print(client.ask("HERD", "FILL", "k:token", token, "late"), client.ask("SET", "k:plain", "late"), flush=True)"""],
                               stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert program.stdout.readline() == b"leads\n"
    os.kill(program.pid, signal.SIGSTOP)
    program.stdin.write(b"go on\n")
    program.stdin.flush()
    plain = daemon.connect().send("GET", "k:plain")
    assert plain.read(2) is None, "handed over"
    plain.ask("SET", "k:plain", "of the second")
    second = daemon.connect()
    token = second.ask("HERD", "LEASE", "k:token", "WAIT", 3000)[2]
    assert second.ask("HERD", "FILL", "k:token", token, "of the second") == 1
    os.kill(program.pid, signal.SIGCONT)
    assert program.communicate(timeout=patient(10))[0] == b"0 OK\n"
    assert second.ask("GET", "k:token") == b"of the second"
    assert second.ask("GET", "k:plain") == b"late", "no invalidation came between: it is the origin's value too"


@with_config('gate "k:*" { grace = off  lease_first = 150ms }')
def test_a_holder_that_went_silent_is_no_leader_for_long(daemon, proxy):
    """The nil never reaches it, and the daemon does not notice: half-open. Its lease ends all the same."""
    silent, waiter = Connection(proxy.port), daemon.connect()
    proxy.silent = False
    assert silent.ask("PING") == "PONG"
    proxy.drop_replies = True
    silent.send("GET", "k:1")
    eventually(lambda: herd_counters(daemon)["leases"] == 1)
    begin = time.monotonic()
    waiter.send("GET", "k:1")
    nil, at = waiter.read_timed()
    assert nil is None
    within(at - begin, 0.1, 0.4)
    silent.close()


@with_config(COLD)
def test_a_fill_whose_reply_was_lost_is_refused_the_second_time(daemon, proxy):
    client = Connection(proxy.port)
    token = client.ask("HERD", "LEASE", "k:1")[2]
    proxy.drop_replies = True
    client.send("HERD", "FILL", "k:1", token, "v")
    eventually(lambda: explain(daemon, "k:1")["state"] == "fresh")
    again = daemon.connect()
    assert again.ask("HERD", "FILL", "k:1", token, "v again") == 0 and again.ask("GET", "k:1") == b"v"
    client.close()


@with_config('gate "k:*" { grace = off  wait = 10s }')
def test_waiters_that_are_reset_at_any_moment_leave_nothing(daemon):
    """MGET of 50 cold keys, and the socket is reset at random moments, while others fill these keys."""
    witness = daemon.connect()
    draw = random.Random(1)
    for turn in range(120):
        client = Connection(daemon.port)
        client.send("MGET", *[f"k:{turn}:{i}" for i in range(50)]).send("GET", f"k:{turn}:0").send("PING")
        waiter = Connection(daemon.port).send("MGET", *[f"k:{turn}:{draw.randrange(50)}" for _ in range(9)])
        if draw.random() < 0.5:
            time.sleep(draw.random() * 0.004)
        client.reset()
        if draw.random() < 0.5:
            witness.ask("SET", f"k:{turn}:{draw.randrange(50)}", "v")
        waiter.reset()
    assert witness.ask("PING") == "PONG"
    eventually(lambda: herd_counters(daemon)["waiters"] == 0)
    eventually(lambda: info(witness)["connected_clients"] == 1)
    assert info(witness)["output_bytes"] == 0


@with_config(COLD)
def test_a_slow_reader_among_the_waiters_slows_nobody(daemon):
    value = b"x" * 8_000_000
    leader = lead(daemon)
    slow = daemon.connect(receive_buffer=2048).send("GET", "k:1").send("PING")
    quick = [daemon.connect().send("GET", "k:1") for _ in range(3)]
    eventually(lambda: herd_counters(daemon)["waiters"] == 4)
    begin = time.monotonic()
    leader.ask("SET", "k:1", value)
    assert all(client.read() == value for client in quick)
    assert quick[0].ask("PING") == "PONG"
    within(time.monotonic() - begin, 0, 1.5)
    assert slow.read(30) == value and slow.read() == "PONG"


@with_config('limits { output = 4mb  value = 1mb } gate "k:*" { grace = off }')
def test_one_that_reads_nothing_while_replies_gather_behind_a_hold_is_dropped_alone(daemon):
    leader = lead(daemon)
    daemon.ask("SET", "big", b"x" * 1_000_000)
    greedy, other = daemon.connect(receive_buffer=2048), daemon.connect()
    greedy.send_raw(encode("GET", "k:1") + encode("GET", "big") * 20)
    other.send("GET", "k:1")
    eventually(lambda: info(leader)["limit_output_dropped"] == 1 or herd_counters(leader)["released_bytes"] == 1)
    leader.ask("SET", "k:1", "v")
    assert other.read() == b"v" and other.ask("PING") == "PONG"


@with_config('gate "k:*" { grace = off  wait = 20s }')
def test_a_hundred_thousand_commands_behind_a_hold_keep_their_order(daemon):
    leader, busy, other = lead(daemon), daemon.connect(), daemon.connect()
    count, done, slowest = 100_000, threading.Event(), [0.0]

    def watch():
        while not done.is_set():
            begin = time.monotonic()
            assert other.ask("PING") == "PONG"
            slowest[0] = max(slowest[0], time.monotonic() - begin)
            time.sleep(0.001)
    watching = in_background(watch)
    busy.send("GET", "k:1")
    busy.send_raw(b"".join(encode("ECHO", i) for i in range(count)))
    eventually(lambda: info(leader)["total_commands_processed"] > count, 20)
    assert busy.silent_for(0.02)
    leader.ask("SET", "k:1", "v")
    assert busy.read() == b"v"
    for i in range(count):
        assert busy.read(20) == b"%d" % i
    done.set()
    watching.result(5)
    within(slowest[0], 0, 0.5)


# ---- the daemon and the machine


@with_config('gate "k:*" { grace = off  lease = 1s  wait = 5s }')
def test_after_a_suspension_longer_than_its_lease_a_token_is_void(daemon):
    """The fill stands in the socket's buffer when the daemon goes on: yet the lease was over before it was read."""
    client, plain, waiter = daemon.connect(), lead(daemon, "k:2"), daemon.connect()
    token = client.ask("HERD", "LEASE", "k:1")[2]
    waiter.send("GET", "k:2")
    assert waiter.silent_for(0.03)
    freeze(daemon)
    client.send("HERD", "FILL", "k:1", token, "late")
    time.sleep(1.1)
    plain.send("SET", "k:2", "late, but nobody else's")
    daemon.signal(signal.SIGCONT)
    assert client.read() == 0 and client.ask("EXISTS", "k:1") == 0
    assert plain.read() == "OK"
    assert waiter.read() in (None, b"late, but nobody else's")
    assert daemon.ask("GET", "k:2") == b"late, but nobody else's"


@with_config('gate "k:*" { grace = off  lease_first = 1500ms  wait = 300ms }')
def test_a_stall_ends_no_lease_before_its_time_and_late_timers_run_in_order(daemon):
    """Stopped for 0.5 s: the waiter's time is over (it is told late), the leader's is not."""
    begin = time.monotonic()
    leader, waiter = lead(daemon), daemon.connect()
    waiter.send("GET", "k:1")
    assert waiter.silent_for(0.03)
    freeze(daemon)
    time.sleep(0.5)
    daemon.signal(signal.SIGCONT)
    assert waiter.read().word == "HERDWAIT"
    seen = explain(daemon, "k:1")
    assert seen["leader"] == "client" and seen["lapses"] == 0
    within(1.5 - seen["lease_left_ms"] / 1000, 0.5, time.monotonic() - begin + 0.05)
    leader.ask("SET", "k:1", "v")
    assert waiter.ask("GET", "k:1") == b"v"


@with_config('gate "k:*" { grace = off  lease_first = 200ms  wait = 600ms }')
def test_a_stall_longer_than_everything_answers_everybody_at_once(daemon):
    """One waiter is given the lease that lapsed, the others are told that their time is over."""
    lead(daemon)
    waiters = [daemon.connect().send("GET", "k:1") for _ in range(10)]
    eventually(lambda: herd_counters(daemon)["waiters"] == 10)
    freeze(daemon)
    time.sleep(0.8)
    daemon.signal(signal.SIGCONT)
    begin = time.monotonic()
    replies = [waiter.read() for waiter in waiters]
    within(time.monotonic() - begin, 0, 0.4)
    assert 1 <= replies.count(None) <= 2 and all(reply is None or reply.word == "HERDWAIT" for reply in replies)


def test_after_kill_and_restart_no_lease_is_left_and_every_key_is_led_at_once(start):
    first = start(COLD)
    leader = first.connect()
    assert leader.ask("MGET", *[f"k:{i}" for i in range(100)]) == [None] * 100
    first.kill()
    second = start(COLD)
    client = second.connect()
    begin = time.monotonic()
    assert client.ask("MGET", *[f"k:{i}" for i in range(100)]) == [None] * 100
    within(time.monotonic() - begin, 0, 0.5)
    assert leader.closed_within(1)


def test_one_load_for_a_herd_whatever_made_the_key_cold(start, folder):
    """Never seen, expired, evicted, after DEL, after a flush, after a restart."""
    shop = Catalogue(folder, [("1", "chair", 60)])
    config = shop.config("ttl = 400ms  jitter = off  grace = off", more="store memory { max_bytes = 1mb }")
    daemon = start(config)
    askers = [daemon.connect() for _ in range(30)]

    def herd():
        before = origin_counters(daemon)["queries"]
        for asker in askers:
            asker.send("GET", "product:1")
        assert [asker.read() for asker in askers] == [b"chair"] * 30
        return origin_counters(daemon)["queries"] - before
    assert herd() == 1
    eventually(lambda: explain(daemon, "product:1")["state"] == "absent")
    assert herd() == 1
    for i in range(200):
        askers[0].ask("SET", f"filler:{i}", b"x" * 20000)
    eventually(lambda: explain(daemon, "product:1")["state"] == "absent")
    assert herd() == 1
    askers[0].ask("DEL", "product:1")
    assert herd() == 1
    askers[0].ask("FLUSHALL")
    assert herd() == 1
    daemon.kill()
    daemon = start(config)
    askers = [daemon.connect() for _ in range(30)]
    assert herd() == 1


# ---- what nobody may ever see


@with_config('gate "k:*" { grace = off  wait = 10s }')
def test_whatever_is_cancelled_a_value_belongs_to_its_key(daemon):
    """Clients that hang up at random, multiplex, and fill; each value is its key's name."""
    def work(number):
        draw = random.Random(number)
        client = Connection(daemon.port, timeout=20)
        for _ in range(250):
            keys = [f"k:{draw.randrange(25)}" for _ in range(draw.choice([1, 1, 1, 3]))]
            for key in keys:
                client.send("GET", key)
            if draw.random() < 0.1:
                client.reset()
                client = Connection(daemon.port, timeout=20)
                continue
            for key in keys:
                value = client.read()
                assert value in (None, key.encode()), (key, value)
                if value is None:
                    with Connection(daemon.port) as filler:
                        assert filler.ask("SET", key, key, "PX", draw.randrange(1, 30)) == "OK"
        client.close()
    at_once(8, work)
    eventually(lambda: herd_counters(daemon)["waiters"] == 0)


def no_read_is_older_than_an_acknowledged_invalidation(daemon, load, write, seconds=1.5):
    """`load(key)` reads the database, `write(key, version)` changes it. Versions rise; who asks after a DEL was
    answered never sees one of before it."""
    keys = [f"k:{i}" for i in range(3)]
    floor = {key: 0 for key in keys}
    end = time.monotonic() + seconds
    count = [0]

    def writer(key):
        client = Connection(daemon.port)
        version = 0
        while time.monotonic() < end:
            version += 1
            write(key, version)
            client.ask("DEL", key)
            floor[key] = version
            time.sleep(0.004)

    def reader(number):
        draw = random.Random(number)
        client = Connection(daemon.port)
        while time.monotonic() < end:
            key = draw.choice(keys)
            least = floor[key]
            value = client.ask("GET", key)
            if value is None and load is not None:
                client.ask("SET", key, load(key))
                continue
            assert value is not None and int(value) >= least, f"{key}: {value} was read after {least} was acknowledged"
            count[0] += 1
    at_once(7, lambda number: writer(keys[number]) if number < 3 else reader(number))
    assert count[0] > 100


@with_config('gate "k:*" { grace = 1m  late_set = drop  lease_first = 5s }')
def test_filled_by_clients_with_late_set_drop_no_read_is_older_than_an_invalidation(daemon):
    database = {}

    def load(key):
        version = database.get(key, 0)
        time.sleep(random.random() * 0.003)
        return version
    no_read_is_older_than_an_acknowledged_invalidation(daemon, load, database.__setitem__)


def test_filled_by_an_origin_no_read_is_older_than_an_invalidation(start, folder):
    shop = Catalogue(folder, [(str(i), 0, 2) for i in range(3)])
    shop.db.execute("PRAGMA synchronous = OFF")
    daemon = start(shop.config("grace = 1m", pattern="k:{id}"))
    lock = threading.Lock()

    def write(key, version):
        with lock:
            shop.put((key[2:], version, 2))
    no_read_is_older_than_an_acknowledged_invalidation(daemon, None, write)


# ---- many


def one_key_cold_for(daemon, count):
    """Connects so many, who all ask; fills; returns (seconds from the fill to each reply in order, bytes a waiter)."""
    before = daemon.rss_bytes()
    leader = lead(daemon)
    waiters = [Connection(daemon.port, timeout=60).send("GET", "k:1") for _ in range(count)]
    eventually(lambda: herd_counters(leader)["waiters"] == count, 60)
    each = (daemon.rss_bytes() - before) / count
    begin = time.monotonic()
    leader.ask("SET", "k:1", "v")
    took = []
    for waiter in waiters:
        value, at = waiter.read_timed()
        assert value == b"v"
        took.append(at - begin)
        waiter.close()
    counters = herd_counters(daemon)
    assert (counters["loads"], counters["waited"], counters["herd_max"]) == (1, count, count)
    return sorted(took), each


@with_config('gate "k:*" { grace = off  lease_first = 60s  lease = 60s  wait = 60s }')
def test_1000_cold_clients_of_one_key_are_one_load(daemon):
    allow_descriptors(2500)
    took, each = one_key_cold_for(daemon, 1000)
    within(took[-1], 0, 1)
    assert each < patient(16384), each


@long
@with_config('limits { clients = 12000 } gate "k:*" { grace = off  lease_first = 60s  lease = 60s  wait = 60s }')
def test_10000_cold_clients_of_one_key_are_one_load(daemon):
    allow_descriptors(11000)
    took, each = one_key_cold_for(daemon, 10000)
    within(took[-1], 0, 5)
    assert each < patient(16384), each


@long
@with_config('gate "k:*" { grace = off  wait = 10s }')
def test_no_memory_is_left_by_keys_that_nobody_ever_fills(daemon):
    """Distinct cold keys, asked once each and never set: nothing is kept of them when their leases are over."""
    client = daemon.connect()

    def ask(first):
        for begin in range(first, first + 40000, 500):
            client.pipeline(*[("GET", f"k:{i}") for i in range(begin, begin + 500)], timeout=60)
    sizes = []
    for first in (0, 40000, 80000):
        ask(first)
        eventually(lambda: herd_counters(daemon)["keys_known"] == 0, 90)
        sizes.append(daemon.rss_bytes())
    # The allocator may still spread in the second round; what leaks would grow in each.
    assert sizes[2] - sizes[1] < 12 << 20, sizes
