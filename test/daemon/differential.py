"""Random commands put to two servers at the same time; what they answer is compared byte for byte.

A case is a list of steps for two connections, made from a seed. Steps are sent in pipelines, to each server the same
ones; FLUSHALL and new connections stand before each case. What cannot be equal is compared by its kind: KEYS, SCAN and
RANDOMKEY by what they found, times by nearness. A case that differs is shrunk: steps are dropped as long as it still
differs.

    test/daemon/differential.py --seed N --case N PORT PORT     replays one case against two running servers
"""

import argparse
import random
import time

from resp import Closed, Connection, Late, encode

KEYS = [b"a", b"b", b"c", b"k:1", b"k:2", b"", b"\0\r\n\xff", b"long:" + b"x" * 200]
LARGE = b"0123456789abcdef" * 400
VALUES = [b"", b"0", b"1", b"-1", b"10", b"v", b"hello", b"01", b" 1", b"1 ", b"+1", b"1.0", b"-0", b"\0\xff\r\n",
          b"9223372036854775807", b"9223372036854775806", b"-9223372036854775808", b"9223372036854775808", LARGE]
STEPS = [b"1", b"0", b"-1", b"5", b"-5", b"9223372036854775807", b"-9223372036854775808", b"-9223372036854775807",
         b"9223372036854775808", b"x", b"", b"1.5", b" 1"]
# Lives long enough that none ends within a case, as milliseconds neither, and far enough from each other that the
# moment of sending decides no comparison: GT and LT use the second list.
LIVES = [b"100000", b"300000", b"1000000000", b"1000000000000", b"10000000000000"]
OTHER_LIVES = [b"200000", b"2000000000", b"3000000000000"]
PATTERNS = [b"*", b"**", b"a", b"k:*", b"k:?", b"[ab]", b"[^a]", b"[a-c]", b"?", b"", b"*1", b"\\a", b"[b", b"*\xff"]
GOODS = {b"TTL": 1, b"PTTL": 2000, b"EXPIRETIME": 1, b"PEXPIRETIME": 2000}
INT64_MAX = 2**63 - 1
ONCE_MAX = 3  # cases that differ once and not again, in one run


def odd_lives(now_s):
    """Numbers where arithmetic on times breaks; none within seconds of a boundary that depends on the clock."""
    edges = [0, -1, -100, INT64_MAX, INT64_MAX - 1, INT64_MAX + 1, -INT64_MAX, -INT64_MAX - 1, -INT64_MAX - 2,
             INT64_MAX // 1000, INT64_MAX // 1000 + 1, -(INT64_MAX // 1000), -(INT64_MAX // 1000) - 1,
             INT64_MAX - now_s * 1000 - 10**7, INT64_MAX - now_s * 1000 + 10**7, INT64_MAX // 1000 - now_s - 10**4,
             INT64_MAX // 1000 - now_s + 10**4]
    edges += [10**power for power in range(13, 20)] + [10**power + 1 for power in range(15, 19)]
    return [str(edge).encode() for edge in edges]


class Maker:
    """Makes the steps of one case. A step is (connection number, arguments) or a pause in seconds."""

    def __init__(self, dice):
        self.dice = dice
        self.now_s = int(time.time())
        self.in_multi = [False, False]
        self.makers = [(maker, weight) for name, (maker, weight) in TABLE.items()]
        self.weights = [weight for _, weight in self.makers]

    def key(self):
        return self.dice.choice(KEYS[:5] if self.dice.random() < 0.8 else KEYS)

    def value(self):
        return self.dice.choice(VALUES)

    def keys(self):
        return [self.key() for _ in range(self.dice.choice([1, 1, 2, 3, 5]))]

    def life(self, lives=LIVES):
        if self.dice.random() < 0.15:
            return self.dice.choice([b"x", b"", b"1.5", b" 10", b"+10", b"0x10"] + odd_lives(self.now_s))
        return self.dice.choice(lives)

    def unix(self, in_ms):
        """An absolute time: long past, or well ahead."""
        if self.dice.random() < 0.15:
            return self.dice.choice(odd_lives(self.now_s))
        seconds = self.now_s + self.dice.choice([-10**9, -5000, 5000, 7777, 10**6, 10**9])
        return str(seconds * 1000 + self.dice.choice([0, 1, 499, 500, 501, 999]) if in_ms else seconds).encode()

    def time_option(self):
        word = self.dice.choice([b"EX", b"PX", b"EXAT", b"PXAT"])
        return [word, self.unix(word == b"PXAT") if word.endswith(b"AT") else self.life()]

    def set_options(self, words):
        options = []
        for _ in range(self.dice.choice([0, 1, 1, 1, 2, 2, 3])):
            word = self.dice.choice(words)
            options += self.time_option() if word == b"TIME" else [word]
        return options

    def expire_options(self):
        count = self.dice.choice([0, 0, 1, 1, 1, 2])
        return [self.dice.choice([b"NX", b"XX", b"GT", b"LT", b"LT", b"GT", b"ZZ"]) for _ in range(count)]

    def expire(self, name):
        options = self.expire_options()
        if name.endswith(b"AT"):
            return [name, self.key(), self.unix(name.startswith(b"P"))] + options
        return [name, self.key(), self.life(OTHER_LIVES if options else LIVES)] + options

    def scan(self):
        arguments = [b"SCAN", self.dice.choice([b"0"] * 8 + [b"x", b"", b"-", b"1x", b" 0", b"99999999999999999999"])]
        arguments += [b"COUNT", b"1000000"]
        for _ in range(self.dice.choice([0, 1, 1, 2])):
            arguments += self.dice.choice([[b"MATCH", self.dice.choice(PATTERNS)], [b"TYPE", b"string"],
                                           [b"TYPE", b"list"], [b"TYPE", b"STRING"], [b"COUNT", b"0"],
                                           [b"COUNT", b"x"], [b"MATCH"], [b"FOO", b"1"]])
        return arguments

    def copy(self):
        arguments = [b"COPY", self.key(), self.key()]
        for _ in range(self.dice.choice([0, 1, 1, 2])):
            arguments += self.dice.choice([[b"REPLACE"], [b"DB", b"0"], [b"DB", b"1"], [b"DB", b"16"], [b"DB", b"-1"],
                                           [b"DB", b"x"], [b"DB"], [b"DB", b"99999999999"], [b"FOO"]])
        return arguments

    def disturb(self, arguments):
        """Now and then another case of letters, one argument more or one less."""
        if self.dice.random() < 0.3:
            for i, argument in enumerate(arguments):
                if i == 0 or (argument.isalpha() and argument not in KEYS + VALUES):
                    arguments[i] = bytes(self.dice.choice((chr(c).upper(), chr(c).lower()))[0].encode()[0]
                                         for c in argument)
        chance = self.dice.random()
        if chance < 0.02 and len(arguments) > 1:
            del arguments[self.dice.randrange(1, len(arguments))]
        elif chance < 0.04:
            arguments.insert(self.dice.randrange(1, len(arguments) + 1), self.value())
        return arguments

    def make(self, count):
        steps = []
        connection = 0
        while len(steps) < count:
            if self.dice.random() < 0.2:
                connection = 1 - connection
            if not any(self.in_multi) and self.dice.random() < 0.004:
                steps += self.short_life(connection)
                continue
            maker = self.dice.choices(self.makers, self.weights)[0][0]
            arguments = self.disturb(maker(self))
            name = arguments[0].upper()
            if name == b"MULTI":
                self.in_multi[connection] = True
            elif name in (b"EXEC", b"DISCARD"):
                self.in_multi[connection] = False
            steps.append((connection, arguments))
        return steps

    def short_life(self, connection):
        """A value that has expired when the next command comes."""
        key = self.key()
        ways = [[[b"SET", key, b"v", b"PX", b"3"]], [[b"PSETEX", key, b"3", b"7"]],
                [[b"SET", key, b"v"], [b"PEXPIRE", key, b"3"]]]
        return [(connection, command) for command in self.dice.choice(ways)] + [0.012]


TABLE = {
    "SET": (lambda m: [b"SET", m.key(), m.value()] + m.set_options([b"NX", b"XX", b"GET", b"KEEPTTL", b"TIME", b"TIME",
                                                                    b"PERSIST", b"FOO"]), 14),
    "GET": (lambda m: [b"GET", m.key()], 8),
    "SETNX": (lambda m: [b"SETNX", m.key(), m.value()], 3),
    "SETEX": (lambda m: [b"SETEX", m.key(), m.life(), m.value()], 3),
    "PSETEX": (lambda m: [b"PSETEX", m.key(), m.life(), m.value()], 3),
    "GETSET": (lambda m: [b"GETSET", m.key(), m.value()], 3),
    "GETDEL": (lambda m: [b"GETDEL", m.key()], 2),
    "GETEX": (lambda m: [b"GETEX", m.key()] + m.set_options([b"TIME", b"TIME", b"PERSIST", b"KEEPTTL", b"FOO"]), 6),
    "MGET": (lambda m: [b"MGET"] + m.keys(), 4),
    "MSET": (lambda m: [b"MSET"] + [part for key in m.keys() for part in (key, m.value())], 3),
    "MSETNX": (lambda m: [b"MSETNX"] + [part for key in m.keys() for part in (key, m.value())], 3),
    "STRLEN": (lambda m: [b"STRLEN", m.key()], 3),
    "INCR": (lambda m: [b"INCR", m.key()], 4),
    "DECR": (lambda m: [b"DECR", m.key()], 3),
    "INCRBY": (lambda m: [b"INCRBY", m.key(), m.dice.choice(STEPS)], 3),
    "DECRBY": (lambda m: [b"DECRBY", m.key(), m.dice.choice(STEPS)], 3),
    "APPEND": (lambda m: [b"APPEND", m.key(), m.value()], 4),
    "DEL": (lambda m: [b"DEL"] + m.keys(), 3),
    "UNLINK": (lambda m: [b"UNLINK"] + m.keys(), 2),
    "EXISTS": (lambda m: [b"EXISTS"] + m.keys(), 3),
    "TOUCH": (lambda m: [b"TOUCH"] + m.keys(), 2),
    "TYPE": (lambda m: [b"TYPE", m.key()], 2),
    "EXPIRE": (lambda m: m.expire(b"EXPIRE"), 4),
    "PEXPIRE": (lambda m: m.expire(b"PEXPIRE"), 4),
    "EXPIREAT": (lambda m: m.expire(b"EXPIREAT"), 4),
    "PEXPIREAT": (lambda m: m.expire(b"PEXPIREAT"), 4),
    "TTL": (lambda m: [b"TTL", m.key()], 4),
    "PTTL": (lambda m: [b"PTTL", m.key()], 4),
    "EXPIRETIME": (lambda m: [b"EXPIRETIME", m.key()], 4),
    "PEXPIRETIME": (lambda m: [b"PEXPIRETIME", m.key()], 4),
    "PERSIST": (lambda m: [b"PERSIST", m.key()], 3),
    "KEYS": (lambda m: [b"KEYS", m.dice.choice(PATTERNS)], 2),
    "SCAN": (lambda m: m.scan(), 3),
    "RENAME": (lambda m: [b"RENAME", m.key(), m.key()], 4),
    "COPY": (lambda m: m.copy(), 5),
    "RANDOMKEY": (lambda m: [b"RANDOMKEY"], 1),
    "MULTI": (lambda m: [b"MULTI"], 4),
    "EXEC": (lambda m: [b"EXEC"], 5),
    "DISCARD": (lambda m: [b"DISCARD"], 1),
    "WATCH": (lambda m: [b"WATCH"] + m.keys(), 4),
    "UNWATCH": (lambda m: [b"UNWATCH"], 1),
    "SELECT": (lambda m: [b"SELECT", m.dice.choice([b"0", b"0", b"1", b"16", b"x"])], 2),
    "FLUSHDB": (lambda m: [b"FLUSHDB"], 1),
    "NOSUCH": (lambda m: [m.dice.choice([b"NOSUCH", b"GETT", b"set\0"]), m.value()], 1),
}


class Raw(Connection):
    """A connection whose replies are trees of (head line, children or payload): nothing of the bytes is lost."""

    def _frame(self):
        line = self._line()
        kind = line[:1]
        if kind in b"$=!" and line[1:] != b"-1":
            return line, self._blob(int(line[1:]))
        if kind in b"*~>%|" and line[1:] != b"-1":
            return line, [self._frame() for _ in range(int(line[1:]) * (2 if kind in b"%|" else 1))]
        return line, None


def alike(arguments, one, two, queued):
    """Are two replies to this command the same, as far as they must be? `queued` are the commands of an EXEC."""
    name = arguments[0].upper()
    if one == two:
        return True
    if one[0] != two[0] and not (one[0][:1] == two[0][:1] == b":") and name != b"RANDOMKEY":
        return False
    if name in GOODS:
        return near(one[0], two[0], GOODS[name])
    if name == b"KEYS":
        return isinstance(one[1], list) and sorted(one[1]) == sorted(two[1])
    if name == b"SCAN":
        return isinstance(one[1], list) and one[1][0] == two[1][0] and sorted(one[1][1][1]) == sorted(two[1][1][1])
    if name == b"RANDOMKEY":
        return one[1] is not None and two[1] is not None
    if name == b"EXEC" and isinstance(one[1], list) and len(one[1]) == len(queued):
        return all(alike(command, *pair, []) for command, *pair in zip(queued, one[1], two[1]))
    return False


def near(one, two, good):
    """Times may differ by the moment of sending; what says "none" (-1, -2) may not."""
    if one[:1] != b":" or two[:1] != b":":
        return False
    one, two = int(one[1:]), int(two[1:])
    return one >= 0 and two >= 0 and abs(one - two) <= good


class Side:
    """One of the servers, as a case sees it: two connections of the case's versions of the protocol."""

    def __init__(self, port, protocols):
        self.connections = [Raw(port, timeout=5, protocol=2) for _ in range(2)]
        for connection, protocol in zip(self.connections, protocols):
            connection.ask("FLUSHALL")
            if protocol == 3:
                connection.ask("HELLO", "3")

    def send(self, number, commands):
        self.connections[number].send_raw(b"".join(encode(*command) for command in commands))

    def read(self, number):
        try:
            return self.connections[number].read()
        except (Closed, Late) as fault:
            return f"{type(fault).__name__}: {fault}".encode(), None

    def close(self):
        for connection in self.connections:
            connection.close()


def batches(steps):
    """Neighbouring steps of one connection, as pipelines of at most 12."""
    batch, owner = [], None
    for step in steps:
        if isinstance(step, float):
            if batch:
                yield owner, batch
            batch, owner = [], None
            yield None, step
            continue
        if batch and (step[0] != owner or len(batch) == 12):
            yield owner, batch
            batch = []
        owner = step[0]
        batch.append(step[1])
    if batch:
        yield owner, batch


def run(steps, protocols, ports):
    """Plays a case; returns (step's arguments, reply of the first, reply of the second) where they differ, or None."""
    sides = [Side(port, protocols) for port in ports]
    queued = [[], []]
    try:
        for owner, batch in batches(steps):
            if owner is None:
                time.sleep(batch)
                continue
            for side in sides:
                side.send(owner, batch)
            for arguments in batch:
                one, two = [side.read(owner) for side in sides]
                if not alike(arguments, one, two, queued[owner]):
                    return arguments, one, two
                if one[0] == b"+QUEUED":
                    queued[owner].append(arguments)
                elif arguments[0].upper() in (b"EXEC", b"DISCARD") and not one[0].startswith(b"-ERR wrong number"):
                    queued[owner] = []
    finally:
        for side in sides:
            side.close()
    return None


def make_case(seed, number, count=80):
    dice = random.Random(f"{seed}/{number}")
    protocols = [dice.choice([2, 3]), dice.choice([2, 3])]
    return Maker(dice).make(count), protocols


def shrink(steps, protocols, ports, seconds=10):
    """Drops steps, larger runs first, as long as the case still differs."""
    end = time.monotonic() + seconds
    size = max(1, len(steps) // 2)
    while size:
        at = 0
        while at < len(steps) and time.monotonic() < end:
            fewer = steps[:at] + steps[at + size:]
            if run(fewer, protocols, ports):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def tell(seed, number, steps, protocols, ports, found):
    """A case that differs, shrunk, as a person wants to read it. `found` is what the first run gave."""
    steps = shrink(steps, protocols, ports)
    found = run(steps, protocols, ports) or (["not each time, but once:"] + found[0],) + found[1:]
    lines = [f"protocols {protocols}"]
    lines += [f"pause {step}" if isinstance(step, float)
              else f"{step[0]}> " + " ".join(repr(part)[1:] if len(part) < 60 else f"<{len(part)} bytes>"
                                             for part in step[1]) for step in steps]
    lines += [f"at {str(found[0])[:200]}", f"first  {str(found[1])[:300]}", f"second {str(found[2])[:300]}",
              f"replay: test/daemon/differential.py --seed {seed} --case {number} PORT PORT"]
    return "\n".join(lines)


def compare(seed, ports, seconds):
    """Plays cases for so long; returns how many commands were compared. Raises at the first case that differs.

    Two servers are asked one after the other, and between the two a millisecond may end: EXPIRE k 100 GT right after
    EXPIRE k 100 is then 1 at one of them and 0 at the other. So a case counts that differs when it is played again;
    more than a few that differ once are not the clock's doing, and count too."""
    end = time.monotonic() + seconds
    commands = number = once = 0
    while time.monotonic() < end:
        steps, protocols = make_case(seed, number)
        found = run(steps, protocols, ports)
        if found:
            once += 1
            if once > ONCE_MAX or any(run(steps, protocols, ports) for _ in range(3)):
                raise AssertionError("\n" + tell(seed, number, steps, protocols, ports, found))
        commands += len(steps)
        number += 1
    return commands


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default="1")
    parser.add_argument("--case", type=int)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("ports", type=int, nargs=2)
    options = parser.parse_args()
    if options.case is None:
        print(compare(options.seed, options.ports, options.seconds), "commands, no difference")
        return
    steps, protocols = make_case(options.seed, options.case)
    found = run(steps, protocols, options.ports)
    print(tell(options.seed, options.case, steps, protocols, options.ports, found) if found else "no difference")


if __name__ == "__main__":
    main()
