"""String and key commands, MULTI and WATCH: the same replies and errors as redis-server, byte for byte.

DIFFERENTIAL_SEED chooses other random cases (the one used is printed), DIFFERENTIAL_SECONDS how long each test makes
some.
"""

import os
import random
import time

from differential import INT64_MAX, Raw, alike, compare
from gear import *

SECONDS = float(os.environ.get("DIFFERENTIAL_SECONDS", "8"))
OBSERVE = 'gate "*" { mode = observe  grace = 5m }'


def compare_random(servers, seconds):
    seed = os.environ.get("DIFFERENTIAL_SEED") or str(random.SystemRandom().randrange(1 << 30))
    begin = time.monotonic()
    commands = compare(seed, [server.port for server in servers], seconds)
    print(f"       {commands} commands from seed {seed} in {time.monotonic() - begin:.0f} s")
    assert commands > 100 * seconds / patient(1), "hardly anything was compared"


@no_config
def test_random_commands_without_a_gate(daemon, redis):
    compare_random([redis, daemon], SECONDS)


@with_config(OBSERVE)
def test_random_commands_with_a_gate_that_observes(daemon, redis):
    compare_random([redis, daemon], SECONDS)


@long
@with_config(OBSERVE)
def test_many_random_commands(daemon, redis):
    compare_random([redis, daemon], 120)


# Each error text, word for word. A line: commands that prepare, the command, its reply.

NOT_INTEGER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error"
OVERFLOW = "ERR increment or decrement would overflow"
CONFLICT = "ERR NX and XX, GT or LT options at the same time are not compatible"

ERRORS = [
    ([], ["SET", "k"], "ERR wrong number of arguments for 'set' command"),
    ([], ["set", "k", "v", "foo"], SYNTAX),
    ([], ["SET", "k", "v", "NX", "XX"], SYNTAX),
    ([], ["SET", "k", "v", "EX"], SYNTAX),
    ([], ["SET", "k", "v", "EX", "1", "PX", "1"], SYNTAX),
    ([], ["SET", "k", "v", "EX", "1", "KEEPTTL"], SYNTAX),
    ([], ["SET", "k", "v", "KEEPTTL", "PXAT", "1"], SYNTAX),
    ([], ["SET", "k", "v", "PERSIST"], SYNTAX),
    ([], ["SET", "k", "v", "EX", "x"], NOT_INTEGER),
    ([], ["SET", "k", "v", "EX", "0"], "ERR invalid expire time in 'set' command"),
    ([], ["SET", "k", "v", "PX", "-1"], "ERR invalid expire time in 'set' command"),
    ([], ["SET", "k", "v", "EXAT", "0"], "ERR invalid expire time in 'set' command"),
    ([], ["SET", "k", "v", "PXAT", "-5"], "ERR invalid expire time in 'set' command"),
    ([], ["SETEX", "k", "0", "v"], "ERR invalid expire time in 'setex' command"),
    ([], ["SETEX", "k", "x", "v"], NOT_INTEGER),
    ([], ["PSETEX", "k", "0", "v"], "ERR invalid expire time in 'psetex' command"),
    ([], ["SETNX", "k"], "ERR wrong number of arguments for 'setnx' command"),
    ([["SET", "k", "v"]], ["GETEX", "k", "EX", "0"], "ERR invalid expire time in 'getex' command"),
    ([["SET", "k", "v"]], ["GETEX", "k", "KEEPTTL"], SYNTAX),
    ([["SET", "k", "v"]], ["GETEX", "k", "PERSIST", "EX", "1"], SYNTAX),
    ([["SET", "k", "v"]], ["GETEX", "k", "NX"], SYNTAX),
    ([], ["GETEX", "none", "EX", "x"], None),
    ([], ["MSET", "a", "1", "b"], "ERR wrong number of arguments for 'mset' command"),
    ([], ["MSETNX", "a", "1", "b"], "ERR wrong number of arguments for 'msetnx' command"),
    ([["SET", "k", "v"]], ["INCR", "k"], NOT_INTEGER),
    ([["SET", "k", " 1"]], ["INCR", "k"], NOT_INTEGER),
    ([["SET", "k", "1"]], ["INCRBY", "k", "x"], NOT_INTEGER),
    ([["SET", "k", str(INT64_MAX)]], ["INCR", "k"], OVERFLOW),
    ([["SET", "k", str(-INT64_MAX - 1)]], ["DECR", "k"], OVERFLOW),
    ([["SET", "k", "1"]], ["INCRBY", "k", str(INT64_MAX)], OVERFLOW),
    ([["SET", "k", "-2"]], ["INCRBY", "k", str(-INT64_MAX)], OVERFLOW),
    ([["SET", "k", "1"]], ["DECRBY", "k", str(-INT64_MAX - 1)], "ERR decrement would overflow"),
    ([], ["RENAME", "none", "k"], "ERR no such key"),
    ([], ["RENAME", "none", "none"], "ERR no such key"),
    ([["SET", "k", "v"]], ["COPY", "k", "k"], "ERR source and destination objects are the same"),
    ([["SET", "k", "v"]], ["COPY", "k", "j", "DB", "x"], NOT_INTEGER),
    ([["SET", "k", "v"]], ["COPY", "k", "j", "DB", "16"], "ERR DB index is out of range"),
    ([["SET", "k", "v"]], ["COPY", "k", "j", "DB", "-1"], "ERR DB index is out of range"),
    ([["SET", "k", "v"]], ["COPY", "k", "j", "DB", "99999999999"],
     "ERR value is out of range, value must between -2147483648 and 2147483647"),
    ([["SET", "k", "v"]], ["COPY", "k", "j", "DB"], SYNTAX),
    ([["SET", "k", "v"]], ["COPY", "k", "j", "FOO"], SYNTAX),
    ([["SET", "k", "v"]], ["EXPIRE", "k", "x"], NOT_INTEGER),
    ([["SET", "k", "v"]], ["EXPIRE", "k", "10", "foo"], "ERR Unsupported option foo"),
    ([["SET", "k", "v"]], ["EXPIRE", "k", "10", "f\r\no"], "ERR Unsupported option f  o"),
    ([["SET", "k", "v"]], ["EXPIRE", "k", "10", "NX", "GT"], CONFLICT),
    ([["SET", "k", "v"]], ["PEXPIRE", "k", "10", "xx", "nx"], CONFLICT),
    ([["SET", "k", "v"]], ["EXPIRE", "k", "10", "GT", "LT"],
     "ERR GT and LT options at the same time are not compatible"),
    ([["SET", "k", "v"]], ["EXPIRE", "k", str(INT64_MAX)], "ERR invalid expire time in 'expire' command"),
    ([["SET", "k", "v"]], ["PEXPIRE", "k", str(INT64_MAX)], "ERR invalid expire time in 'pexpire' command"),
    ([["SET", "k", "v"]], ["EXPIREAT", "k", str(INT64_MAX)], "ERR invalid expire time in 'expireat' command"),
    ([], ["SCAN", "x"], "ERR invalid cursor"),
    ([], ["SCAN", "99999999999999999999"], "ERR invalid cursor"),
    ([], ["SCAN", "0", "COUNT", "0"], SYNTAX),
    ([], ["SCAN", "0", "COUNT", "x"], NOT_INTEGER),
    ([], ["SCAN", "0", "MATCH"], SYNTAX),
    ([], ["SCAN", "0", "FOO", "1"], SYNTAX),
    ([], ["KEYS"], "ERR wrong number of arguments for 'keys' command"),
    ([], ["EXEC"], "ERR EXEC without MULTI"),
    ([], ["DISCARD"], "ERR DISCARD without MULTI"),
]


@no_config
def test_each_error_says_what_redis_says(daemon, redis):
    for server in (redis, daemon):
        client = server.connect()
        for before, command, text in ERRORS:
            client.ask("FLUSHALL")
            for preparing in before:
                assert client.ask(*preparing) == "OK"
            got = client.ask(*command)
            wanted = None if text is None else Error(text)
            assert got == wanted, f"{server.name}: {command} gave {got!r}, not {wanted!r}"


# Times to live at the edges of arithmetic: the same verdict through every entry point, never OK and gone.

def edges():
    now_ms = int(time.time() * 1000)
    numbers = {0, -1, -1000, 1000}
    for power in range(13, 20):
        numbers |= {10**power, -10**power}
    for bound in (INT64_MAX, INT64_MAX // 1000, 2**31, 2**32, 2**53, INT64_MAX // 1000**2):
        numbers |= {bound - 1, bound, bound + 1, -bound, -bound - 1, -bound - 2}
    for offset in (-10**7, 10**7):
        numbers |= {INT64_MAX - now_ms + offset, INT64_MAX // 1000 - now_ms // 1000 + offset}
    return sorted(numbers)


def entry_points(number):
    number = str(number)
    for word in ("EX", "PX", "EXAT", "PXAT"):
        yield ["SET", "k", "v", word, number]
        yield ["GETEX", "k", word, number]
    yield ["SETEX", "k", number, "v"]
    yield ["PSETEX", "k", number, "v"]
    for name in ("EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"):
        yield [name, "k", number]


@no_config
def test_odd_times_to_live_give_the_same_verdict_everywhere(daemon, redis):
    clients = [Raw(server.port) for server in (redis, daemon)]
    for number in edges():
        for command in entry_points(number):
            told = []
            for client in clients:
                told.append(client.pipeline(["SET", "k", "old"], command, ["EXISTS", "k"], ["TTL", "k"], ["PTTL", "k"],
                                            ["EXPIRETIME", "k"], ["PEXPIRETIME", "k"]))
            names = [b"SET", command[0].encode(), b"EXISTS", b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME"]
            for name, one, two in zip(names, *told):
                assert alike([name], one, two, []), f"{command}: {name} gave {one} on redis, {two} here"
            refused, there = told[1][1][0].startswith(b"-"), told[1][2][0] == b":1"
            assert there or not refused, f"{command} was refused and took the old value"
            assert there or number <= 0 or "AT" in "".join(command[:4]), f"{command} was OK and the key is gone"
    for client in clients:
        client.close()


@no_config
def test_an_absolute_time_comes_back_exactly(daemon):
    client = daemon.connect()
    for ms in (4102444800000, 4102444800001, 4102444800499, 4102444800500, 4102444800999, 9 * 10**15, 10**16 + 7,
               10**18 + 1, INT64_MAX):
        assert client.pipeline(["SET", "k", "v"], ["PEXPIREAT", "k", ms], ["PEXPIRETIME", "k"]) == ["OK", 1, ms]
        assert client.pipeline(["SET", "k", "v", "PXAT", ms], ["PEXPIRETIME", "k"]) == ["OK", ms]
        for keeping in (["APPEND", "k", "x"], ["SET", "k", "w", "KEEPTTL"], ["RENAME", "k", "j"], ["COPY", "j", "k"]):
            client.ask(*keeping)
        assert client.ask("PEXPIRETIME", "k") == ms
    assert client.pipeline(["SET", "k", "v", "EXAT", 4102444800], ["EXPIRETIME", "k"]) == ["OK", 4102444800]


def test_a_stale_value_does_not_exist_for_commands(start):
    """Past its soft expiry, inside the grace, under a gate that holds."""
    daemon = start('gate "*" { grace = 10m }')
    client = daemon.connect()
    cases = [(["TTL", "k"], -2), (["EXISTS", "k"], 0), (["STRLEN", "k"], 0), (["TYPE", "k"], "none"),
             (["DEL", "k"], 0), (["EXPIRE", "k", "10"], 0), (["PERSIST", "k"], 0), (["GETDEL", "k"], None),
             (["GETEX", "k", "EX", "9"], None), (["GETSET", "k", "w"], None), (["KEYS", "*"], []),
             (["SCAN", "0", "COUNT", "1000000"], [b"0", []]), (["RANDOMKEY"], None), (["SETNX", "k", "w"], 1),
             (["SET", "k", "w", "XX"], None), (["SET", "k", "w", "NX"], "OK"), (["INCR", "k"], 1),
             (["APPEND", "k", "w"], 1), (["COPY", "k", "j"], 0), (["RENAME", "k", "j"], Error("ERR no such key")),
             (["MSETNX", "k", "1", "j", "2"], 1)]
    for command, wanted in cases:
        assert client.pipeline(["FLUSHALL"], ["SET", "k", "5", "PX", "5"]) == ["OK", "OK"]
        time.sleep(0.015)
        got = client.ask(*command)
        assert got == wanted, f"{command} gave {got!r}, not {wanted!r}"


@no_config
def test_hits_and_misses_are_counted_as_redis_counts_them(daemon, redis):
    commands = ["GET k", "GET none", "MGET k none k", "STRLEN k", "STRLEN none", "EXISTS k none", "TOUCH k none",
                "TYPE k", "TYPE none", "TTL k", "PTTL none", "EXPIRETIME k", "SET k v GET", "SET none v XX GET",
                "SET k v", "GETSET k v", "GETDEL none", "GETEX k", "GETEX none", "COPY k j", "COPY none j",
                "RENAME none j", "INCR n", "SETNX k v", "APPEND k v", "EXPIRE k 100", "PERSIST k", "DEL none", "KEYS *",
                "SCAN 0", "RANDOMKEY", "MSET k 1", "MSETNX k 1"]

    def counted(server, before, command):
        client = server.connect()
        client.pipeline(["FLUSHALL"], ["SET", "k", "v"])
        old = info(client, "stats")
        client.pipeline(*before, command.split(), *([["EXEC"]] if before else []))
        new = info(client, "stats")
        return [new[name] - old[name] for name in ("keyspace_hits", "keyspace_misses")]
    for before in ([], [["MULTI"]]):
        for command in commands:
            there, here = counted(redis, before, command), counted(daemon, before, command)
            assert here == there, f"{command}: hits, misses {here}, on redis {there}"


# WATCH

def broken(server, before, between, database="0"):
    """Does EXEC refuse, where k was watched after `before` and another connection sends `between`?"""
    first, second = server.connect(), server.connect()
    first.ask("FLUSHALL")
    for command in before:
        first.ask(*command)
    assert first.pipeline(["WATCH", "k"], ["MULTI"], ["SET", "seen", "1"])[-1] == "QUEUED"
    second.ask("SELECT", database)
    for command in between:
        time.sleep(command) if isinstance(command, float) else second.ask(*command)
    return first.ask("EXEC") is None


@no_config
def test_watch_sees_every_change_and_nothing_else(daemon, redis):
    there = [["SET", "k", "1"]]
    timed = [["SET", "k", "1", "EX", "100"]]
    short = [["SET", "k", "1", "PX", "20"]]
    expired = [["SET", "k", "1", "PX", "1"], ["SET", "j", "1"]]
    cases = [(there, [["SET", "k", "1"]], True), (there, [["GET", "k"], ["TTL", "k"]], False),
             (there, [["SET", "k", "2", "NX"], ["SETNX", "k", "2"]], False), (there, [["DEL", "k"]], True),
             ([], [["DEL", "k"]], False), ([], [["SET", "k", "1"]], True),
             ([], [["SET", "k", "1"], ["DEL", "k"]], True),
             (there, [["EXPIRE", "k", "100"]], True), (there, [["PERSIST", "k"]], False),
             (timed, [["PERSIST", "k"]], True), (timed, [["GETEX", "k"]], False),
             (timed, [["GETEX", "k", "PERSIST"]], True), (there, [["GETEX", "k", "PERSIST"]], False),
             (there, [["EXPIRE", "k", "0"]], True), (there, [["INCR", "k"]], True),
             (there, [["APPEND", "k", ""]], True),
             (there, [["RENAME", "k", "j"]], True), ([], [["SET", "j", "1"], ["RENAME", "j", "k"]], True),
             (there, [["RENAME", "k", "k"]], False), (there, [["COPY", "k", "j"]], False),
             ([], [["SET", "j", "1"], ["COPY", "j", "k"]], True), (there, [["MSET", "j", "1", "k", "2"]], True),
             (there, [["MSETNX", "j", "1", "k", "2"]], False), (there, [["GETDEL", "k"]], True),
             (there, [["FLUSHALL"]], True), ([], [["FLUSHALL"]], False), (there, [["FLUSHDB"]], True),
             ([], [["SET", "k", "1", "EXAT", "1"]], True), (short, [0.05], True), (short, [0.05, ["FLUSHALL"]], True),
             (short, [["SET", "k", "2"]], True)]
    for server in (redis, daemon):
        for before, between, wanted in cases:
            assert broken(server, before, between) == wanted, f"{server.name}: {before} {between}, wanted {wanted}"
        assert not broken(server, there, [["SET", "k", "1"], ["FLUSHDB"]], "1"), "another database is another key"
        client = server.connect()
        client.pipeline(["FLUSHALL"], *expired)
        time.sleep(0.01)
        assert client.pipeline(["WATCH", "k"], ["DEL", "k"], ["GET", "k"], ["MULTI"], ["EXEC"])[-1] == []


@no_config
def test_watch_is_forgotten_with_unwatch_exec_discard_and_the_connection(daemon, redis):
    for server in (redis, daemon):
        first, second = server.connect(), server.connect()
        for ending in ([["UNWATCH"]], [["MULTI"], ["EXEC"]], [["MULTI"], ["DISCARD"]]):
            first.pipeline(["WATCH", "k"], *ending)
            second.ask("SET", "k", "1")
            assert first.pipeline(["MULTI"], ["GET", "k"], ["EXEC"])[-1] == [b"1"]
        gone = server.connect()
        gone.ask("WATCH", "k")
        gone.close()
        assert second.ask("SET", "k", "2") == "OK"
        assert first.pipeline(["WATCH", "k"], ["SET", "k", "3"], ["MULTI"], ["EXEC"])[-1] is None


# Sizes

@with_config('gate "*" { mode = observe }\nlimits { key = 100b  value = 64kb }')
def test_a_limit_is_named_and_nothing_changes(daemon):
    client = daemon.connect()
    long_key, key = "k" * 101, "k" * 100
    key_error = Error("ERR key is longer than the limit of 100b (limits: key)")
    assert client.pipeline(["SET", "a", "1"], ["SET", key, "v" * 65536]) == ["OK", "OK"]
    for command in (["SET", long_key, "1"], ["SETNX", long_key, "1"], ["SETEX", long_key, "9", "1"],
                    ["GETSET", long_key, "1"], ["INCR", long_key], ["APPEND", long_key, "1"],
                    ["MSET", "b", "1", long_key, "2"], ["MSETNX", "b", "1", long_key, "2"],
                    ["COPY", "a", long_key], ["RENAME", "a", long_key], ["SET", long_key, "1", "GET"]):
        assert client.ask(*command) == key_error, command
    assert client.ask("EXISTS", "a", "b", key) == 2
    assert client.ask("APPEND", key, "") == 65536
    assert client.ask("APPEND", key, "v") == Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
    assert client.ask("STRLEN", key) == 65536


@with_config('gate "*" { mode = observe }\nstore memory { max_bytes = 2mb }')
def test_a_value_that_finds_no_room_changes_nothing(daemon):
    client, large = daemon.connect(), "v" * 3000000
    no_room = Error("OOM command not allowed when used memory > 'maxmemory'.")
    assert client.pipeline(["SET", "a", "1"], ["SET", "b", "2"]) == ["OK", "OK"]
    for command in (["SET", "a", large], ["SET", "a", large, "GET"], ["GETSET", "a", large], ["APPEND", "a", large],
                    ["MSET", "a", "3", "c", "4", "d", large], ["MSETNX", "c", "4", "d", large],
                    ["SETEX", "a", "9", large]):
        assert client.ask(*command) == no_room, command[0]
        assert client.ask("MGET", "a", "b", "c", "d") == [b"1", b"2", None, None]


@no_config
def test_a_name_that_comes_twice_in_mset_has_its_last_value(daemon):
    client = daemon.connect()
    for count in (2, 8, 100, 5000):
        pairs = [part for number in range(count) for part in (f"k:{number % (count // 2)}", number)]
        for command in ("MSET", "MSETNX"):
            assert client.pipeline(["FLUSHALL"], [command] + pairs)[1] in ("OK", 1)
            values = client.ask("MGET", *[f"k:{number}" for number in range(count // 2)])
            assert values == [b"%d" % (number + count // 2) for number in range(count // 2)]


@no_config
def test_large_values_move_and_grow_whole(daemon):
    client = daemon.connect()
    for size in (4095, 4096, 4097, 70000, 1 << 20):
        value = os.urandom(size)
        assert client.pipeline(["SET", "k", value], ["GET", "k"]) == ["OK", value]
        assert client.pipeline(["APPEND", "k", b"tail"], ["GET", "k"]) == [size + 4, value + b"tail"]
        assert client.pipeline(["SET", "k", value, "GET"], ["COPY", "k", "j", "REPLACE"], ["RENAME", "k", "l"],
                               ["MGET", "j", "k", "l"]) == [value + b"tail", 1, "OK", [value, None, value]]
        assert client.pipeline(["GETSET", "l", "x"], ["GETDEL", "j"], ["GETEX", "l", "EX", "9"]) == [value, value, b"x"]


@no_config
def test_scan_gives_everything_that_stays_once_at_least(daemon):
    client, other = daemon.connect(), daemon.connect()
    names = {b"k:%d" % number for number in range(20000)}
    client.pipeline(*[["SET", name, ""] for name in names])
    cursor, seen, rounds = b"0", set(), 0
    while rounds == 0 or cursor != b"0":
        cursor, found = client.ask("SCAN", cursor, "COUNT", "500", "MATCH", "k:*")
        seen.update(found)
        other.pipeline(*[["SET", b"more:%d:%d" % (rounds, number), ""] for number in range(200)])
        rounds += 1
        assert rounds < 10000
    assert seen == names
    assert set(client.ask("KEYS", "k:*")) == names
