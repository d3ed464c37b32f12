"""Gates, the asks: who is given nil, who is held, who has the old value at once, and in which order replies come."""

import time

from gear import *

COLD = 'gate "k:*" { grace = off }'
GRACE = 'gate "k:*" { grace = 1m }'


def make_stale(daemon, key="k:1", value="old"):
    """Leaves a value that nobody has computed for a gate: past its life, inside its grace."""
    assert daemon.ask("SET", key, value, "PX", 20) == "OK"
    eventually(lambda: explain(daemon, key)["state"] == "stale")


def clients(daemon, count, **options):
    return [daemon.connect(**options) for _ in range(count)]


def held(*connections, seconds=0.04):
    return all(connection.silent_for(seconds) for connection in connections)


# ---- one key, nobody has it


@with_config(COLD)
def test_the_first_asker_gets_nil_and_the_others_are_held_until_the_fill(daemon):
    leader, *waiters = clients(daemon, 4)
    assert leader.ask("GET", "k:1") is None
    for waiter in waiters:
        waiter.send("GET", "k:1")
    assert held(*waiters)
    assert leader.ask("SET", "k:1", "v", "EX", 60) == "OK"
    assert [waiter.read() for waiter in waiters] == [b"v"] * 3
    counters = herd_counters(daemon)
    assert (counters["led"], counters["waited"], counters["fills"], counters["herd_max"]) == (1, 3, 1, 3)


@with_config(COLD)
def test_resp3_waiters_get_resp3_and_an_empty_value_is_a_value(daemon):
    leader, other = clients(daemon, 2, protocol=3)
    leader.send_raw(encode("GET", "k:1"))
    assert leader.read() is None
    other.send("GET", "k:1")
    assert held(other)
    daemon.ask("SET", "k:1", b"")
    assert other.read() == b""
    assert leader.ask("GET", "k:1") == b""


@with_config(COLD)
def test_binary_keys_and_values_reach_the_waiters_byte_for_byte(daemon):
    leader, other = clients(daemon, 2)
    key, value = b"k:\x00\r\n\xff *$", bytes(range(256)) * 3000
    assert leader.ask("GET", key) is None
    other.send("GET", key)
    assert held(other)
    leader.ask("SET", key, value)
    assert other.read() == value


@with_config(COLD)
def test_each_database_has_flights_of_its_own(daemon):
    zero, one, other = clients(daemon, 3)
    assert one.ask("SELECT", 1) == "OK" == other.ask("SELECT", 1)
    assert zero.ask("GET", "k:1") is None and one.ask("GET", "k:1") is None
    other.send("GET", "k:1")
    zero.ask("SET", "k:1", "of zero")
    assert held(other)
    one.ask("SET", "k:1", "of one")
    assert other.read() == b"of one"


@with_config(COLD)
def test_keys_of_no_gate_are_plain_redis(daemon):
    first, second = clients(daemon, 2)
    assert first.ask("GET", "free") is None and second.ask("GET", "free") is None
    assert second.ask("MGET", "free", "other") == [None, None]
    assert herd_counters(daemon)["asks"] == 0


@with_config(COLD)
def test_one_that_hangs_up_while_held_harms_nobody(daemon):
    leader, going, reset, staying = clients(daemon, 4)
    leader.ask("GET", "k:1")
    for waiter in (going, reset, staying):
        waiter.send("GET", "k:1")
    assert held(going, reset, staying)
    going.close()
    reset.reset()
    eventually(lambda: herd_counters(daemon)["waiters"] == 1)
    leader.ask("SET", "k:1", "v")
    assert staying.read() == b"v"
    assert herd_counters(daemon)["gave_up"] == 2


# ---- a stale value


@with_config(GRACE)
def test_over_a_stale_value_one_computes_and_nobody_waits(daemon):
    leader, *others = clients(daemon, 4)
    make_stale(daemon)
    assert leader.ask("GET", "k:1") is None
    assert [other.ask("GET", "k:1") for other in others] == [b"old"] * 3
    assert others[0].ask("MGET", "k:1", "k:1") == [b"old", b"old"]
    leader.ask("SET", "k:1", "new", "EX", 60)
    assert [other.ask("GET", "k:1") for other in others] == [b"new"] * 3
    counters = herd_counters(daemon)
    assert (counters["led"], counters["stale"], counters["waited"]) == (1, 5, 0)


@with_config(COLD)
def test_without_a_grace_expiry_is_absence(daemon):
    leader, other = clients(daemon, 2)
    leader.ask("SET", "k:1", "old", "PX", 20)
    time.sleep(0.03)
    assert leader.ask("GET", "k:1") is None
    other.send("GET", "k:1")
    assert held(other)
    leader.ask("SET", "k:1", "new")
    assert other.read() == b"new"


@with_config('gate "k:*" { grace = 300ms }')
def test_a_soft_life_ends_in_a_hard_one(daemon):
    """SET PX 100 with a grace of 300 ms: fresh for 100 ms, stale until 400 ms, then gone."""
    leader, other, third = clients(daemon, 3)
    begin = time.monotonic()
    leader.ask("SET", "k:1", "v", "PX", 100)
    seen = explain(daemon, "k:1")
    assert seen["state"] == "fresh" and 0 < seen["fresh_ms"] <= 100 and 300 < seen["grace_ends_ms"] <= 400
    assert 0 < leader.ask("PTTL", "k:1") <= 100
    eventually(lambda: explain(daemon, "k:1")["state"] == "stale")
    assert time.monotonic() - begin >= 0.1
    assert leader.ask("GET", "k:1") is None and other.ask("GET", "k:1") == b"v"
    eventually(lambda: explain(daemon, "k:1")["state"] == "absent")
    assert time.monotonic() - begin >= 0.4
    third.send("GET", "k:1")
    assert held(third)
    leader.ask("SET", "k:1", "w")
    assert third.read() == b"w"


@with_config(GRACE)
def test_to_every_other_command_a_stale_value_does_not_exist(daemon):
    client = daemon.connect()
    for key in ("k:1", "k:2", "k:3"):
        make_stale(daemon, key)
    assert [client.ask(word, "k:1") for word in ("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME")] == [-2] * 4
    assert client.ask("EXISTS", "k:1", "k:1") == 0 and client.ask("TYPE", "k:1") == "none"
    assert client.ask("TOUCH", "k:1") == 0 and client.ask("STRLEN", "k:1") == 0
    assert client.ask("EXPIRE", "k:1", 100) == 0 and client.ask("PERSIST", "k:1") == 0
    assert client.ask("GETEX", "k:1", "EX", 100) is None and client.ask("GETDEL", "k:2") is None
    assert client.ask("COPY", "k:1", "k:copy") == 0
    assert client.ask("RENAME", "k:1", "k:moved") == Error("ERR no such key")
    assert client.ask("KEYS", "*") == [] and client.ask("RANDOMKEY") is None
    assert client.ask("SCAN", 0, "COUNT", 1000) == [b"0", []]
    assert client.ask("SET", "k:3", "x", "XX") is None
    assert client.ask("DBSIZE") == 3, "but it is stored, as Redis counts what has expired and is not yet removed"


@with_config(GRACE)
def test_writes_begin_anew_over_a_stale_value(daemon):
    client = daemon.connect()
    for key in ("k:nx", "k:setnx", "k:append", "k:getset", "k:get", "k:many"):
        make_stale(daemon, key)
    make_stale(daemon, "k:incr", "41")
    assert client.ask("SET", "k:nx", "x", "NX") == "OK" and client.ask("SETNX", "k:setnx", "x") == 1
    assert client.ask("INCR", "k:incr") == 1 and client.ask("APPEND", "k:append", "x") == 1
    assert client.ask("GETSET", "k:getset", "x") is None and client.ask("SET", "k:get", "x", "GET") is None
    assert client.ask("MSETNX", "k:many", "x", "k:other", "y") == 1
    assert client.ask("MGET", "k:nx", "k:setnx", "k:incr", "k:append") == [b"x", b"x", b"1", b"x"]


# ---- MULTI and WATCH


@with_config(COLD)
def test_in_multi_an_absent_key_is_nil_without_a_lease(daemon):
    client, other = clients(daemon, 2)
    assert client.pipeline(("MULTI",), ("GET", "k:1"), ("MGET", "k:1", "k:2"), ("EXEC",))[3] == [None, [None, None]]
    assert herd_counters(daemon)["leases"] == 0
    assert other.ask("GET", "k:1") is None
    assert client.pipeline(("MULTI",), ("GET", "k:1"), ("EXEC",))[2] == [None]
    other.ask("SET", "k:1", "v")
    assert client.pipeline(("MULTI",), ("GET", "k:1"), ("EXEC",))[2] == [b"v"]


@with_config(GRACE)
def test_in_multi_over_a_stale_value_it_leads_if_nobody_does(daemon):
    client, other = clients(daemon, 2)
    make_stale(daemon)
    assert client.pipeline(("MULTI",), ("GET", "k:1"), ("EXEC",))[2] == [None]
    assert other.ask("GET", "k:1") == b"old"
    assert other.pipeline(("MULTI",), ("GET", "k:1"), ("MGET", "k:1"), ("EXEC",))[3] == [b"old", [b"old"]]
    client.ask("SET", "k:1", "new")
    assert other.ask("GET", "k:1") == b"new"
    assert herd_counters(daemon)["led"] == 1


@with_config(GRACE)
def test_a_connection_that_watches_gets_plain_answers(daemon):
    watcher, leader, other = clients(daemon, 3)
    make_stale(daemon)
    assert watcher.ask("WATCH", "k:0") == "OK"
    assert watcher.ask("GET", "k:1") is None and watcher.ask("MGET", "k:1", "k:2") == [None, None]
    assert herd_counters(daemon)["leases"] == 0
    assert leader.ask("GET", "k:1") is None and leader.ask("GET", "k:2") is None
    assert watcher.ask("GET", "k:2") is None
    assert watcher.ask("UNWATCH") == "OK"
    assert watcher.ask("GET", "k:1") == b"old"
    watcher.send("GET", "k:2")
    assert held(watcher)
    leader.ask("SET", "k:2", "v")
    assert watcher.read() == b"v"


# ---- several keys in one command


@with_config(COLD)
def test_mget_leads_all_that_are_cold_and_once_for_a_key_that_comes_twice(daemon):
    client, other = clients(daemon, 2)
    assert client.ask("MGET", "k:1", "k:1", "free", "k:2") == [None] * 4
    counters = herd_counters(daemon)
    assert (counters["led"], counters["passed"], counters["leases"]) == (2, 1, 2)
    other.send("MGET", "k:2", "k:1", "k:2")
    assert held(other)
    client.ask("SET", "k:1", "one")
    assert held(other)
    client.ask("SET", "k:2", "two")
    assert other.read() == [b"two", b"one", b"two"]


@with_config(COLD)
def test_a_member_beside_a_held_one_takes_no_lease(daemon):
    leader, both, third = clients(daemon, 3)
    assert leader.ask("GET", "k:1") is None
    both.send("MGET", "k:1", "k:2", "free")
    assert held(both)
    assert third.ask("GET", "k:2") is None, "k:2 is free to be led"
    leader.ask("SET", "k:1", "one")
    assert held(both), "and was looked up again: now it is led by another"
    third.ask("SET", "k:2", "two")
    assert both.read() == [b"one", b"two", None]


@with_config(COLD)
def test_a_parked_member_that_nobody_led_leads_when_its_turn_comes(daemon):
    leader, both, third = clients(daemon, 3)
    assert leader.ask("GET", "k:1") is None
    both.send("MGET", "k:1", "k:2")
    assert held(both)
    leader.ask("SET", "k:1", "one")
    assert both.read() == [b"one", None]
    third.send("GET", "k:2")
    assert held(third)
    both.ask("SET", "k:2", "two")
    assert third.read() == b"two"
    assert herd_counters(daemon)["led"] == 2


@with_config(COLD)
def test_a_parked_member_finds_what_was_filled_meanwhile(daemon):
    leader, both = clients(daemon, 2)
    leader.ask("GET", "k:1")
    both.send("MGET", "k:2", "k:1")
    assert held(both)
    daemon.ask("SET", "k:2", "two")
    leader.ask("SET", "k:1", "one")
    assert both.read() == [b"two", b"one"]
    counters = herd_counters(daemon)
    assert (counters["led"], counters["waited"], counters["fresh"]) == (1, 1, 1)


@with_config(COLD)
def test_a_get_behind_a_held_reply_takes_no_lease(daemon):
    leader, busy, third = clients(daemon, 3)
    leader.ask("GET", "k:1")
    busy.send("GET", "k:1").send("GET", "k:2").send("GET", "k:3")
    assert held(busy)
    assert third.ask("GET", "k:2") is None
    leader.ask("SET", "k:1", "one")
    assert busy.read() == b"one"
    assert held(busy)
    third.ask("SET", "k:2", "two")
    assert busy.read() == b"two" and busy.read() is None
    busy.ask("SET", "k:3", "three")
    assert third.ask("GET", "k:3") == b"three"


@with_config(COLD)
def test_fresh_and_stale_values_behind_a_hold_are_known_at_once_and_wait_for_their_turn(daemon):
    leader, busy = clients(daemon, 2)
    daemon.ask("SET", "k:2", "v2")
    leader.ask("GET", "k:1")
    busy.send("GET", "k:1").send("GET", "k:2").send("MGET", "k:2", "free")
    assert held(busy)
    leader.ask("SET", "k:1", "v1")
    assert [busy.read() for _ in range(3)] == [b"v1", b"v2", [b"v2", None]]


# ---- the order of replies


@with_config(COLD)
def test_what_comes_behind_a_hold_is_executed_at_once_and_answered_in_order(daemon):
    leader, busy, witness = clients(daemon, 3)
    leader.ask("GET", "k:1")
    busy.send_raw(encode("GET", "k:1") + encode("PING") + encode("SET", "free", "1") + encode("INCR", "free")
                  + encode("NOSUCH") + encode("GET") + encode("GET", "free") + b"PING inline\r\n"
                  + encode("ECHO", b"x" * 100000))
    assert held(busy)
    assert witness.ask("GET", "free") == b"2"
    busy.send("DEL", "free")
    eventually(lambda: witness.ask("GET", "free") is None)
    assert held(busy)
    leader.ask("SET", "k:1", "v")
    assert [busy.read() for _ in range(4)] == [b"v", "PONG", "OK", 2]
    assert busy.read().text.startswith("ERR unknown command 'NOSUCH'")
    assert busy.read() == Error("ERR wrong number of arguments for 'get' command")
    assert [busy.read() for _ in range(4)] == [b"2", b"inline", b"x" * 100000, 1]


@with_config(COLD)
def test_a_pipeline_of_one_connection_is_answered_in_order(daemon):
    client = daemon.connect()
    replies = client.pipeline(("SET", "k:1", 1), ("GET", "k:1"), ("SET", "k:1", 2), ("GET", "k:1"), ("DEL", "k:1"),
                              ("GET", "k:1"))
    assert replies == ["OK", b"1", "OK", b"2", 1, None]


@with_config(COLD)
def test_a_transaction_behind_a_hold_runs_and_its_replies_keep_their_place(daemon):
    leader, busy, witness = clients(daemon, 3)
    leader.ask("GET", "k:1")
    busy.send_raw(b"".join(encode(*command) for command in
                           [("GET", "k:1"), ("MULTI",), ("SET", "free", 1), ("GET", "k:1"), ("EXEC",), ("PING",)]))
    assert held(busy)
    assert witness.ask("GET", "free") == b"1"
    leader.ask("SET", "k:1", "v")
    assert [busy.read() for _ in range(6)] == [b"v", "OK", "QUEUED", "QUEUED", ["OK", None], "PONG"]


@with_config(COLD)
def test_several_holds_on_one_connection_end_in_the_order_of_the_commands(daemon):
    leader, busy, third = clients(daemon, 3)
    for key in ("k:1", "k:2", "k:3"):
        leader.ask("GET", key)
    busy.send("GET", "k:1").send("GET", "k:2").send("PING").send("GET", "k:3")
    assert held(busy)
    for key in ("k:3", "k:2"):
        third.ask("SET", key, key)
    assert held(busy)
    third.ask("SET", "k:1", "k:1")
    assert [busy.read() for _ in range(4)] == [b"k:1", b"k:2", "PONG", b"k:3"]


@with_config('threads = 1 gate "k:*" { grace = off }')
def test_a_connection_closed_by_quit_behind_a_hold_gets_its_replies_first(daemon):
    leader, busy = clients(daemon, 2)
    leader.ask("GET", "k:1")
    busy.send("GET", "k:1").send("PING").send("QUIT")
    assert held(busy)
    leader.ask("SET", "k:1", "v")
    assert [busy.read() for _ in range(3)] == [b"v", "PONG", "OK"]
    assert busy.closed_within(2)


# ---- limits of a hold


@with_config('limits { held_bytes_max = 100kb } gate "k:*" { grace = off }')
def test_too_many_bytes_behind_a_hold_end_it_with_nil(daemon):
    leader, busy = clients(daemon, 2)
    daemon.ask("SET", "big", b"x" * 60000)
    leader.ask("GET", "k:1")
    busy.send("GET", "k:1").send("GET", "big")
    assert held(busy)
    busy.send("GET", "big")
    assert busy.read() is None
    assert busy.read() == busy.read() == b"x" * 60000
    assert busy.ask("PING") == "PONG"
    counters = herd_counters(daemon)
    assert counters["released_bytes"] == 1 and counters["waiters"] == 0


@with_config('limits { held_bytes_max = 100kb } gate "k:*" { grace = off }')
def test_only_the_first_hold_ends_where_that_is_enough(daemon):
    leader, busy = clients(daemon, 2)
    daemon.ask("SET", "big", b"x" * 60000)
    leader.ask("GET", "k:1")
    leader.ask("GET", "k:2")
    busy.send("GET", "k:1").send("GET", "big").send("GET", "k:2").send("GET", "big")
    assert busy.read() is None and busy.read() == b"x" * 60000
    assert held(busy)
    leader.ask("SET", "k:2", "two")
    assert busy.read() == b"two" and busy.read() == b"x" * 60000


@with_config('gate "k:*" { grace = off  hol_max = 150ms }')
def test_hol_max_ends_a_hold_that_delays_a_ready_reply(daemon):
    leader, busy, alone = clients(daemon, 3)
    leader.ask("GET", "k:1")
    busy.send("GET", "k:1")
    alone.send("GET", "k:1")
    assert held(busy, alone, seconds=0.1)
    begin = time.monotonic()
    busy.send("PING")
    value, at = busy.read_timed()
    assert value is None and 0.12 < at - begin < patient(0.6)
    assert busy.read() == "PONG"
    assert held(alone, seconds=0.2), "a hold with nothing behind it delays nobody"
    assert herd_counters(daemon)["released_hol"] == 1
    leader.ask("SET", "k:1", "v")
    assert alone.read() == b"v"


@with_config('limits { waiters_per_client = 2 } gate "k:*" { grace = off }')
def test_one_connection_may_have_only_so_many_held_asks(daemon):
    leader, busy = clients(daemon, 2)
    for key in ("k:1", "k:2", "k:3"):
        leader.ask("GET", key)
    busy.send("GET", "k:1").send("GET", "k:2").send("GET", "k:3").send("PING")
    assert held(busy)
    for key in ("k:1", "k:2"):
        leader.ask("SET", key, key)
    assert [busy.read(), busy.read()] == [b"k:1", b"k:2"]
    refusal = busy.read()
    assert refusal.word == "HERDFULL" and "waiters_per_client" in refusal.text
    assert busy.read() == "PONG"
    counters = herd_counters(daemon)
    assert (counters["led"], counters["refused"], counters["asks"]) == (3, 1, 6)


def refused_when_full(daemon, name):
    leader, first, late = clients(daemon, 3)
    leader.ask("GET", "k:1")
    first.send("GET", "k:1")
    assert held(first)
    begin = time.monotonic()
    refusal = late.ask("GET", "k:1")
    assert refusal.word == "HERDFULL" and f"({name})" in refusal.text
    assert time.monotonic() - begin < patient(1)
    assert late.ask("PING") == "PONG" and herd_counters(daemon)["refused"] == 1
    leader.ask("SET", "k:1", "v")
    assert first.read() == b"v" and late.ask("GET", "k:1") == b"v"


@with_config('gate "k:*" { grace = off  max_waiters = 1 }')
def test_a_key_may_have_only_so_many_waiters(daemon):
    refused_when_full(daemon, "max_waiters")


@with_config('limits { waiters = 1 } gate "k:*" { grace = off }')
def test_all_keys_together_may_have_only_so_many_waiters(daemon):
    refused_when_full(daemon, "waiters")


@with_config('limits { flights = 2 } gate "k:*" { }')
def test_only_so_many_keys_may_be_computed_at_once_and_stale_values_need_none(daemon):
    client, other = clients(daemon, 2)
    make_stale(daemon, "k:old")
    assert client.ask("MGET", "k:1", "k:2") == [None, None]
    refusal = other.ask("GET", "k:3")
    assert refusal.word == "HERDFULL" and "(flights)" in refusal.text
    assert other.ask("GET", "k:old") == b"old"
    client.ask("SET", "k:1", "v")
    assert other.ask("GET", "k:3") is None


@with_config(COLD)
def test_subscribe_is_unknown_and_the_connection_lives_on(daemon):
    client = daemon.connect()
    assert client.ask("SUBSCRIBE", "channel").text.startswith("ERR unknown command 'SUBSCRIBE'")
    assert client.ask("MONITOR").text.startswith("ERR unknown command 'MONITOR'")
    assert client.ask("PING") == "PONG"
