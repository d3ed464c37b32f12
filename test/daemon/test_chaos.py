"""Many clients that do everything at once, badly: pipelines, transactions, kills, resets, slow readers, reloads.
Whatever happens, each connection gets its replies in order, a value belongs to its key, and in the end nothing is left
over."""

import random
import signal
import time

from gear import *

CONFIG = '''threads = 3 drain = 2s
limits { value = 1mb output = 2mb query_buffer = 2mb held_bytes_max = 64kb }
gate "a:*" { wait = 300ms lease_first = 200ms lease = 1s blocked_after = 100ms grace = %ds on_timeout = pass }
gate "b:*" { wait = 200ms grace = off hol_max = 50ms }
gate "c:*" { mode = observe }'''


def draw_command(dice):
    """A command, and a check of its reply where one can be known."""
    def key():
        return f"{dice.choice('abcd')}:{dice.randrange(12)}"

    def holds(name):
        return lambda reply: reply in (None, "QUEUED") or isinstance(reply, Error) or reply.startswith(name.encode())
    name = key()
    value = name + dice.choice(["", "x" * 300, "y" * 20000])
    word = dice.choice(["GET"] * 6 + ["SET"] * 3 + ["MGET", "DEL", "MULTI", "EXEC", "WATCH", "NAME", "KILL", "HERD",
                                                    "ECHO", "RARE"])
    if word == "GET":
        return ("GET", name), holds(name)
    if word == "SET":
        return ("SET", name, value) + dice.choice([(), ("PX", dice.randrange(1, 400))]), None
    if word == "MGET":
        return ("MGET", *[key() for _ in range(dice.randrange(1, 6))]), None
    if word == "ECHO":
        text = str(dice.random())
        return ("ECHO", text), lambda reply: reply in (text.encode(), "QUEUED")
    if word == "NAME":
        return ("CLIENT", "SETNAME", dice.choice("pqrs")), None
    if word == "KILL":
        return ("CLIENT", "KILL", "ID", dice.randrange(1, 3000)), None
    if word == "HERD":
        return ("HERD", dice.choice(["EXPLAIN", "LEASE", "PURGE"]), name), None
    if word == "RARE":
        return dice.choice([("FLUSHALL",), ("CLIENT", "LIST"), ("INFO",), ("SELECT", dice.randrange(3)), ("RESET",),
                            ("NOSUCH",),
                            ("PEXPIRE", name, dice.randrange(300)), ("HERD", "FLIGHTS"), ("HERD", "GATES")]), None
    return (word, name) if word in ("DEL", "WATCH") else (word,), None


def behave(connection, dice):
    """Some pipelines on one connection, with an end of some kind."""
    for _ in range(dice.randrange(1, 25)):
        commands = [draw_command(dice) for _ in range(dice.choice([1, 1, 1, 2, 5, 40]))]
        connection.send_raw(b"".join(encode(*command) for command, _ in commands))
        if dice.random() < 0.1:
            break
        for command, check in commands:
            reply = connection.read(patient(20))
            assert check is None or check(reply), (command, reply)
        if dice.random() < 0.02:
            connection.send_raw(dice.choice([b"*2\r\n$3\r\nGE", b"*x\r\n"]))
            break
    if dice.random() < 0.5:
        connection.reset()
    else:
        connection.close()


def run_chaos(start, seconds):
    daemon = start(CONFIG % 1)
    end = time.monotonic() + seconds
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"       chaos of seed {seed}")

    def client(number):
        dice, done = random.Random(seed + number), 0
        while time.monotonic() < end:
            try:
                behave(Connection(daemon.port, receive_buffer=dice.choice([None, 2048])), dice)
                done += 1
            except (Closed, OSError):
                pass
        return done

    def reloader(number):
        while time.monotonic() < end:
            time.sleep(0.5)
            with open(daemon.config_path, "w") as file:
                file.write(CONFIG % random.randrange(1, 4))
            daemon.signal(signal.SIGHUP)
        return 1
    done = at_once(16, lambda number: client(number) if number else reloader(number), seconds + 60)
    assert all(done), done
    with daemon.connect() as last:
        eventually(lambda: info(last)["connected_clients"] == 1)
        seen = info(last)
        assert seen["blocked_clients"] == seen["output_bytes"] == seen["query_bytes"] == 0, seen


def test_chaos_leaves_nothing_behind(start):
    run_chaos(start, 4)


@long
def test_long_chaos_leaves_nothing_behind(start):
    run_chaos(start, 60)
