"""Gates, the fills: which commands end a flight and how long their values live; invalidation, and its fence."""

import time

from gear import *

COLD = 'gate "k:*" { grace = off }'


def lead_and_wait(daemon, key):
    """A leader of `key`, and one that is held for it."""
    leader, waiter = daemon.connect(), daemon.connect()
    assert leader.ask("GET", key) is None
    waiter.send("GET", key)
    assert waiter.silent_for(0.02)
    return leader, waiter


def stored(daemon, key):
    """What is stored, without asking for it."""
    with Connection(daemon.port) as client:
        return client.pipeline(("MULTI",), ("GET", key), ("EXEC",))[2][0]


# ---- commands that leave a string value

FILLS = [
    (("SET", "K", "v"), "OK", b"v"), (("SET", "K", "v", "EX", 60), "OK", b"v"),
    (("SET", "K", "v", "PX", 60000), "OK", b"v"),
    (("SET", "K", "v", "EXAT", 9999999999), "OK", b"v"), (("SET", "K", "v", "PXAT", 9999999999999), "OK", b"v"),
    (("SET", "K", "v", "NX"), "OK", b"v"), (("SET", "K", "v", "KEEPTTL"), "OK", b"v"),
    (("SET", "K", "v", "GET"), None, b"v"),
    (("SET", "K", "v", "NX", "GET", "PX", 60000), None, b"v"), (("SETNX", "K", "v"), 1, b"v"),
    (("SETEX", "K", 60, "v"), "OK", b"v"), (("PSETEX", "K", 60000, "v"), "OK", b"v"),
    (("GETSET", "K", "v"), None, b"v"),
    (("APPEND", "K", "v"), 1, b"v"), (("INCR", "K"), 1, b"1"), (("DECR", "K"), -1, b"-1"),
    (("INCRBY", "K", 5), 5, b"5"),
    (("DECRBY", "K", 5), -5, b"-5"), (("MSET", "other", "x", "K", "v"), "OK", b"v"),
    (("MSETNX", "new:K", "x", "K", "v"), 1, b"v"), (("RENAME", "source", "K"), "OK", b"source"),
    (("COPY", "source", "K"), 1, b"source"), (("COPY", "source", "K", "REPLACE"), 1, b"source"),
]


@with_config(COLD)
def test_every_command_that_leaves_a_string_ends_the_flight_and_answers_as_in_redis(daemon):
    third = daemon.connect()
    for number, (command, reply, value) in enumerate(FILLS):
        key = f"k:{number}"
        leader, waiter = lead_and_wait(daemon, key)
        third.ask("SET", "source", "source")
        words = [str(word).replace("K", key) if word in ("K", "new:K") else word for word in command]
        assert third.ask(*words) == reply
        assert waiter.read() == value, command
        assert leader.ask("GET", key) == value
    counters = herd_counters(daemon)
    assert counters["led"] == counters["waited"] == counters["fills"] == len(FILLS)


@with_config(COLD)
def test_fills_in_a_transaction_end_the_flight_when_it_is_executed(daemon):
    third = daemon.connect()
    for number, (command, reply, value) in enumerate(FILLS):
        key = f"k:{number}"
        _, waiter = lead_and_wait(daemon, key)
        third.ask("SET", "source", "source")
        assert third.pipeline(("MULTI",), [str(word).replace("K", key) if word in ("K", "new:K") else word
                                           for word in command]) == ["OK", "QUEUED"]
        assert waiter.silent_for(0.02)
        assert third.ask("EXEC") == [reply]
        assert waiter.read() == value, command


@with_config(COLD)
def test_commands_that_store_nothing_leave_the_waiters_waiting(daemon):
    third = daemon.connect()
    leader, waiter = lead_and_wait(daemon, "k:1")
    assert third.ask("SET", "k:1", "v", "XX") is None and third.ask("SET", "k:1", "v", "EX", 0).word == "ERR"
    assert third.ask("GETEX", "k:1", "EX", 10) is None and third.ask("EXPIRE", "k:1", 10) == 0
    assert third.pipeline(("MULTI",), ("SET", "k:1", "v"), ("DISCARD",)) == ["OK", "QUEUED", "OK"]
    assert third.ask("MSETNX", "k:1", "v", "taken", "x") == 1, "this one does store"
    assert waiter.read() == b"v"


@with_config(COLD)
def test_the_last_value_of_a_transaction_is_what_stays_and_no_waiter_is_left(daemon):
    third = daemon.connect()
    _, waiter = lead_and_wait(daemon, "k:1")
    third.pipeline(("MULTI",), ("SET", "k:1", "first"), ("SET", "k:1", "second"), ("EXEC",))
    assert waiter.read() in (b"first", b"second")
    assert third.ask("GET", "k:1") == b"second" and herd_counters(daemon)["waiters"] == 0


@with_config(COLD)
def test_a_set_whose_time_is_over_takes_the_key_away_and_one_waiter_leads(daemon):
    _, waiter = lead_and_wait(daemon, "k:1")
    assert daemon.ask("SET", "k:1", "v", "PXAT", 1) == "OK"
    assert waiter.read(1) is None
    third = daemon.connect().send("GET", "k:1")
    assert third.silent_for(0.03)
    waiter.ask("SET", "k:1", "w")
    assert third.read() == b"w"


@with_config('gate "a:*" { grace = off } gate "b:*" { grace = 1m }')
def test_rename_and_copy_take_the_gate_of_the_target(daemon):
    client, other = daemon.connect(), daemon.connect()
    client.ask("SET", "a:1", "v", "PX", 60)
    assert client.ask("RENAME", "a:1", "b:1") == "OK"
    client.ask("SET", "a:2", "v", "PX", 60)
    assert client.ask("COPY", "a:2", "b:2") == 1 and 0 < client.ask("PTTL", "b:2") <= 60
    time.sleep(0.08)
    for key in ("b:1", "b:2"):
        assert client.ask("GET", key) is None and other.ask("GET", key) == b"v", "stale, as the gate b:* has a grace"
    assert client.ask("GET", "a:2") is None
    other.send("GET", "a:2")
    assert other.silent_for(0.03)
    client.ask("SET", "a:2", "w")
    assert other.read() == b"w"


@with_config('gate "k:*" { grace = 5m }')
def test_the_life_a_client_sets_is_soft_and_the_grace_makes_it_hard(daemon):
    client = daemon.connect()
    client.ask("SET", "k:1", "v", "EX", 30)
    seen = explain(daemon, "k:1")
    assert client.ask("TTL", "k:1") == 30
    assert 29000 < seen["fresh_ms"] <= 30000 and 329000 < seen["grace_ends_ms"] <= 330000
    assert client.ask("SET", "k:1", "w", "KEEPTTL") == "OK" and client.ask("TTL", "k:1") == 30
    assert client.ask("EXPIRE", "k:1", 100) == 1 and 399000 < explain(daemon, "k:1")["grace_ends_ms"] <= 400000
    assert client.ask("PERSIST", "k:1") == 1
    seen = explain(daemon, "k:1")
    assert client.ask("TTL", "k:1") == -1 and seen["fresh_ms"] == seen["grace_ends_ms"] == -1
    client.ask("SET", "k:1", "x")
    assert client.ask("TTL", "k:1") == -1


@with_config(COLD)
def test_a_set_with_no_flight_is_a_plain_write(daemon):
    client = daemon.connect()
    assert client.ask("SET", "k:1", "v") == "OK" and client.ask("GET", "k:1") == b"v"
    counters = herd_counters(daemon)
    assert (counters["fills"], counters["led"], counters["fresh"]) == (0, 0, 1)


# ---- invalidation: what becomes of the flight


TAKE_AWAY = [("DEL", "K"), ("UNLINK", "K"), ("FLUSHALL",), ("FLUSHDB",), ("FLUSHALL", "ASYNC")]


@with_config(COLD)
def test_an_invalidation_voids_the_lease_and_one_waiter_is_given_the_new_one(daemon):
    third = daemon.connect()
    for number, command in enumerate(TAKE_AWAY):
        key = f"k:{number}"
        leader, waiter = lead_and_wait(daemon, key)
        second = daemon.connect().send("GET", key)
        assert second.silent_for(0.02)
        assert third.ask(*[key if word == "K" else word for word in command]) in (0, "OK")
        assert waiter.read(1) is None, command
        assert second.silent_for(0.02)
        assert leader.ask("SET", key, "of before") == "OK"
        assert second.silent_for(0.02) and stored(daemon, key) is None, command
        waiter.ask("SET", key, "of after")
        assert second.read() == b"of after" and third.ask("TTL", key) == -1
    assert herd_counters(daemon)["fenced"] == len(TAKE_AWAY)


@with_config('gate "k:*" { grace = 1m }')
def test_expire_zero_and_del_over_a_value_are_invalidations_too(daemon):
    for number, command in enumerate([("EXPIRE", "K", 0), ("PEXPIREAT", "K", 1), ("DEL", "K"), ("GETDEL", "K"),
                                      ("RENAME", "K", "gone"), ("GETEX", "K", "PXAT", 1)]):
        key = f"k:{number}"
        leader, third = daemon.connect(), daemon.connect()
        third.ask("SET", key, "old", "PX", 15)
        eventually(lambda: explain(daemon, key)["state"] == "stale")
        assert leader.ask("GET", key) is None
        third.ask("SET", key, "new")
        assert third.ask(*[key if word == "K" else word for word in command]) not in (0, None), command
        assert explain(daemon, key)["state"] == "absent", command


@with_config('gate "k:*" { grace = 1m }')
def test_to_an_invalidation_a_stale_entry_does_not_exist_and_is_removed(daemon):
    client, other = daemon.connect(), daemon.connect()
    for key in ("k:1", "k:2"):
        client.ask("SET", key, "v", "PX", 15)
    eventually(lambda: explain(daemon, "k:2")["state"] == "stale")
    assert client.ask("DEL", "k:1", "k:2") == 0 and client.ask("DBSIZE") == 0
    assert client.ask("GET", "k:1") is None
    other.send("GET", "k:1")
    assert other.silent_for(0.03)


@with_config(COLD)
def test_flushing_one_database_leaves_the_flights_of_another(daemon):
    leader, waiter = lead_and_wait(daemon, "k:1")
    other = daemon.connect()
    other.pipeline(("SELECT", 1), ("FLUSHDB",))
    assert waiter.silent_for(0.03)
    leader.ask("SET", "k:1", "v")
    assert waiter.read() == b"v"


# ---- the fence


@with_config(COLD)
def test_the_old_leaders_set_is_answered_ok_and_not_stored_once(daemon):
    leader, third = daemon.connect(), daemon.connect()
    assert leader.ask("GET", "k:1") is None
    third.ask("DEL", "k:1")
    assert explain(daemon, "k:1")["fenced_ms"] > 0
    assert leader.ask("SET", "k:1", "of before") == "OK" and stored(daemon, "k:1") is None
    assert explain(daemon, "k:1")["fenced_ms"] == 0, "that closes the window"
    assert leader.ask("SET", "k:1", "a plain write") == "OK" and leader.ask("GET", "k:1") == b"a plain write"
    assert third.ask("TTL", "k:1") == -1


@with_config(COLD)
def test_the_new_leaders_set_is_stored_fresh_and_the_old_ones_is_not(daemon):
    old, new, third = daemon.connect(), daemon.connect(), daemon.connect()
    old.ask("GET", "k:1")
    third.ask("DEL", "k:1")
    assert new.ask("GET", "k:1") is None
    assert new.ask("SET", "k:1", "of after", "EX", 60) == "OK" and new.ask("TTL", "k:1") == 60
    assert old.ask("SET", "k:1", "of before", "EX", 60) == "OK"
    assert third.ask("GET", "k:1") == b"of after" and herd_counters(daemon)["fenced"] == 1


def late_by_another(daemon, reply, value):
    old, other = daemon.connect(), daemon.connect()
    old.ask("GET", "k:1")
    daemon.ask("DEL", "k:1")
    assert other.ask("SET", "k:1", "late", "EX", 60) == reply
    assert stored(daemon, "k:1") == value
    return other


@with_config(COLD)
def test_a_set_of_anybody_else_has_its_life_cut_and_says_so(daemon):
    """Nothing is measured yet, so it lives for a second; and it has no grace."""
    other = late_by_another(daemon, "OK", b"late")
    assert 800 < other.ask("PTTL", "k:1") <= 1000
    seen = explain(daemon, "k:1")
    assert seen["fresh_ms"] == seen["grace_ends_ms"] <= 1000 and herd_counters(daemon)["cut"] == 1
    time.sleep(1.02)
    assert stored(daemon, "k:1") is None and other.ask("GET", "k:1") is None


@with_config(COLD)
def test_the_cut_is_the_usual_time_of_a_fill(daemon):
    leader = daemon.connect()
    for i in range(3):
        leader.ask("GET", f"k:m{i}")
        time.sleep(0.1)
        leader.ask("SET", f"k:m{i}", "v")
    other = late_by_another(daemon, "OK", b"late")
    assert 50 < other.ask("PTTL", "k:1") <= patient(140)


@with_config('gate "k:*" { grace = off  late_set = accept }')
def test_late_set_accept_stores_it_whole(daemon):
    other = late_by_another(daemon, "OK", b"late")
    assert other.ask("TTL", "k:1") == 60 and herd_counters(daemon)["cut"] == 0


@with_config('gate "k:*" { grace = off  late_set = drop }')
def test_late_set_drop_stores_nothing_and_counts_it(daemon):
    late_by_another(daemon, "OK", None)
    assert herd_counters(daemon)["fenced"] == 1


@with_config('gate "k:*" { grace = off  late_set = drop }')
def test_only_plain_writes_are_fenced(daemon):
    """`drop` shows it: what the fence looks at is not stored. The others are, and end with what Redis would say."""
    third = daemon.connect()
    fenced = [("SET", "K", "v"), ("SETEX", "K", 60, "v"), ("PSETEX", "K", 60000, "v"), ("MSET", "x", "y", "K", "v")]
    free = [("SET", "K", "v", "NX"), ("SET", "K", "v", "GET"), ("SET", "K", "v", "KEEPTTL"), ("INCR", "K"),
            ("SETNX", "K", "v"), ("GETSET", "K", "v"), ("APPEND", "K", "v"), ("MSETNX", "fresh", "y", "K", "v")]
    for number, command in enumerate(fenced + free):
        key = f"k:{number}"
        leader = daemon.connect()
        leader.ask("GET", key)
        third.ask("DEL", key)
        third.ask(*[key if word == "K" else word for word in command])
        assert (stored(daemon, key) is None) == (command in fenced), command
    leader.ask("GET", "k:exec")
    third.ask("DEL", "k:exec")
    third.pipeline(("MULTI",), ("SET", "k:exec", "v"), ("EXEC",))
    assert stored(daemon, "k:exec") == b"v"


@with_config('gate "k:*" { grace = off  late_set = drop }')
def test_a_multiplexed_connection_may_be_anybody(daemon):
    """Its nil may have been another caller's, so it is `late_set` that decides about its SET, not the fence."""
    shared, third = daemon.connect(), daemon.connect()
    shared.pipeline(("PING",), ("PING",), ("PING",))
    shared.send_raw(encode("GET", "k:1") + encode("PING"))
    assert [shared.read(), shared.read()] == [None, "PONG"]
    third.ask("DEL", "k:1")
    shared.ask("SET", "k:1", "late")
    assert stored(daemon, "k:1") is None and explain(daemon, "k:1")["fenced_ms"] > 0, "dropped, the window is open"


@with_config(COLD)
def test_who_invalidates_itself_reads_its_own_write(daemon):
    """GET, DEL, SET on one connection: its last nil is a voided one, but the DEL came on it: cut, not fenced."""
    client = daemon.connect()
    client.ask("GET", "k:1")
    client.ask("DEL", "k:1")
    assert client.ask("SET", "k:1", "v") == "OK" and client.ask("GET", "k:1") == b"v"
    assert 0 < client.ask("PTTL", "k:1") <= 1000


@with_config(COLD)
def test_who_has_asked_again_since_is_not_the_old_leader_any_more(daemon):
    old, new, third = daemon.connect(), daemon.connect(), daemon.connect()
    old.ask("GET", "k:1")
    third.ask("DEL", "k:1")
    new.ask("GET", "k:1")
    time.sleep(patient(0.1))
    new.ask("SET", "k:1", "of after")
    assert old.ask("GET", "k:1") == b"of after"
    assert old.ask("SET", "k:1", "anew") == "OK" and third.ask("GET", "k:1") == b"anew"


@with_config('gate "k:*" { grace = off  lease_first = 200ms }')
def test_the_window_ends_with_the_voided_lease(daemon):
    old, third = daemon.connect(), daemon.connect()
    old.ask("GET", "k:1")
    third.ask("DEL", "k:1")
    assert 0 < explain(daemon, "k:1")["fenced_ms"] <= 200
    time.sleep(0.22)
    assert old.ask("SET", "k:1", "v") == "OK" and third.ask("GET", "k:1") == b"v" and third.ask("TTL", "k:1") == -1


@with_config(COLD)
def test_a_key_that_is_written_all_the_time_makes_progress_and_each_writer_reads_its_write(daemon):
    """The cut life is the usual time of a fill; what comes right behind the SET finds it."""
    asker, writer = daemon.connect(), daemon.connect()
    for i in range(300):
        key = f"k:{i % 7}"
        asker.send("GET", key)
        assert writer.pipeline(("DEL", key), ("SET", key, i), ("GET", key))[1:] == ["OK", b"%d" % i]
        asker.read()


@with_config('gate "k:*" { grace = 1m  del = soft }')
def test_a_soft_del_is_a_purge_one_refresh_and_no_herd(daemon):
    leader, *others = [daemon.connect() for _ in range(3)]
    leader.ask("SET", "k:1", "old", "EX", 60)
    assert leader.ask("DEL", "k:1") == 1 and leader.ask("EXISTS", "k:1") == 0
    assert leader.ask("GET", "k:1") is None
    assert [other.ask("GET", "k:1") for other in others] == [b"old"] * 2
    leader.ask("SET", "k:1", "new")
    assert [other.ask("GET", "k:1") for other in others] == [b"new"] * 2
    assert leader.ask("UNLINK", "k:1") == 1 and explain(daemon, "k:1")["state"] == "stale"
    assert leader.ask("FLUSHALL") == "OK" and explain(daemon, "k:1")["state"] == "absent"
    leader.ask("SET", "k:1", "v")
    assert leader.ask("EXPIRE", "k:1", 0) == 1 and explain(daemon, "k:1")["state"] == "absent"


@with_config('gate "k:*" { grace = 1m  del = soft }')
def test_a_soft_del_during_a_load_fences_the_load_that_read_the_old_row(daemon):
    old, new = daemon.connect(), daemon.connect()
    new.ask("SET", "k:1", "v1", "PX", 15)
    eventually(lambda: explain(daemon, "k:1")["state"] == "stale")
    assert old.ask("GET", "k:1") is None
    daemon.ask("DEL", "k:1")
    assert new.ask("GET", "k:1") is None
    new.ask("SET", "k:1", "v3", "EX", 60)
    assert old.ask("SET", "k:1", "v2", "EX", 60) == "OK"
    assert new.ask("GET", "k:1") == b"v3"
