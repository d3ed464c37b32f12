"""Several keys in one step, seen from connections on different event loops: all of it or nothing of it."""

import time

from gear import *

ROUNDS = 300


@no_config
def test_watched_increments_are_never_lost(daemon):
    """Eight clients count up with WATCH, GET, MULTI, SET, EXEC; what EXEC took is what the counter shows."""
    def count(number):
        client, taken = daemon.connect(), 0
        for _ in range(ROUNDS):
            _, value = client.pipeline(["WATCH", "n"], ["GET", "n"])
            reply = client.pipeline(["MULTI"], ["SET", "n", int(value or 0) + 1], ["EXEC"])[-1]
            assert reply in (["OK"], None), reply
            taken += reply is not None
        return taken
    taken = sum(at_once(8, count))
    assert int(daemon.ask("GET", "n")) == taken > 0


@no_config
def test_incr_from_many_connections_counts_each(daemon):
    def count(number):
        client = daemon.connect()
        for _ in range(10):
            client.pipeline(*[["INCR", "n"]] * ROUNDS)
    at_once(8, count)
    assert int(daemon.ask("GET", "n")) == 8 * 10 * ROUNDS


@no_config
def test_a_transaction_never_sees_half_an_mset(daemon):
    keys = [b"key:%d" % number for number in range(20)]
    stop = time.monotonic() + 1.5

    def work(number):
        client, rounds = daemon.connect(), 0
        while time.monotonic() < stop:
            rounds += 1
            if number < 3:
                assert client.ask("MSET", *[part for key in keys for part in (key, f"{number}:{rounds}")]) == "OK"
                continue
            client.pipeline(["MULTI"], *[["GET", key] for key in keys])
            values = set(client.ask("EXEC"))
            assert len(values) == 1, values
        return rounds
    assert min(at_once(6, work)) > 10


@no_config
def test_renames_neither_double_nor_lose_a_value(daemon):
    client = daemon.connect()
    client.ask("SET", "place:0", "the one")

    def rename(number):
        client, moved = daemon.connect(), 0
        for step in range(ROUNDS):
            moved += client.ask("RENAME", f"place:{(step + number) % 4}", f"place:{(step * 3 + 1) % 4}") == "OK"
        return moved
    assert sum(at_once(6, rename)) > 0
    assert client.ask("EXISTS", *[f"place:{number}" for number in range(4)]) == 1


@no_config
def test_keys_and_scan_beside_writers_that_move_the_tables(daemon):
    """A key that stays is in every KEYS, once, while others come and go by the ten thousand."""
    client = daemon.connect()
    client.pipeline(*[["SET", f"stays:{number}", ""] for number in range(500)])
    stop = time.monotonic() + 1.5

    def work(number):
        client, rounds = daemon.connect(), 0
        while time.monotonic() < stop:
            rounds += 1
            if number < 2:
                names = [f"comes:{number}:{rounds % 10}:{one}" for one in range(500)]
                client.pipeline(*[["SET", name, "v", "PX", 200] for name in names])
                client.ask("DEL", *names[:250])
            elif number == 2:
                found = client.ask("KEYS", "stays:*")
                assert len(found) == len(set(found)) == 500, (len(found), len(set(found)))
            else:
                cursor, found = b"0", set()
                while cursor != b"0" or not found:
                    cursor, some = client.ask("SCAN", cursor, "COUNT", 200, "MATCH", "stays:*")
                    found.update(some)
                assert len(found) == 500
        return rounds
    assert min(at_once(4, work)) > 2
