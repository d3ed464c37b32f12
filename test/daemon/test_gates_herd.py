"""HERD: what each subcommand answers, byte for byte in RESP2 and RESP3; tokens, and what makes one worthless."""

import time

from gear import *

GATE = 'gate "k:*" { grace = 1m  lease_first = 300ms  ttl = 90s }'
ARITY = "ERR wrong number of arguments for 'herd|{}' command"
GARBAGE = ["", "-", "x", "0-0", "0000000000000000-0", "ffffffffffffffff-ffffffffffffffff", "1-1", "-1", "1-", "A-1",
           "11111111111111111-1", "0" * 200, b"\x00-\x00", "1-1-1", " 1-1"]


def clients(daemon, count, **options):
    return [daemon.connect(**options) for _ in range(count)]


def lease(client, key, *more):
    """[verdict, value, token, milliseconds]"""
    reply = client.ask("HERD", "LEASE", key, *more)
    assert isinstance(reply, list) and len(reply) == 4, reply
    return reply


def token_of(client, key="k:1"):
    verdict, _, token, _ = lease(client, key)
    assert verdict == b"LEAD"
    return token


# ---- LEASE


@with_config(GATE)
def test_lease_says_who_leads_and_what_there_is(daemon):
    one, two = clients(daemon, 2)
    verdict, value, token, left = lease(one, "k:1")
    assert (verdict, value, left) == (b"LEAD", None, 10000), "a token's lease is `lease`, not the learnt one"
    boot, dash, serial = token.partition(b"-")
    assert len(boot) == 16 and dash == b"-" and int(boot, 16) and int(serial, 16)
    verdict, value, none, left = lease(two, "k:1")
    assert (verdict, value, none) == (b"WAIT", None, None) and 9000 < left <= 10000
    assert one.ask("HERD", "FILL", "k:1", token, "v") == 1
    assert lease(two, "k:1") == [b"FRESH", b"v", None, 0]


@with_config(GATE)
def test_lease_over_a_stale_value_brings_it_along(daemon):
    one, two = clients(daemon, 2)
    one.ask("SET", "k:1", "old", "PX", 15)
    eventually(lambda: explain(daemon, "k:1")["state"] == "stale")
    verdict, value, token, _ = lease(one, "k:1")
    assert (verdict, value) == (b"LEAD", b"old") and token
    assert lease(two, "k:1")[:3] == [b"STALE", b"old", None]
    assert two.ask("GET", "k:1") == b"old"


@with_config(GATE)
def test_lease_is_never_held_without_wait_and_with_it_until_the_fill_or_its_time(daemon):
    one, two, three = clients(daemon, 3)
    token = token_of(one)
    begin = time.monotonic()
    reply = lease(two, "k:1", "WAIT", 100)
    assert reply[:3] == [b"WAIT", None, None] and 9000 < reply[3] <= 9900
    assert 0.09 < time.monotonic() - begin < patient(0.4)
    two.send("HERD", "LEASE", "k:1", "WAIT", 5000)
    three.send("GET", "k:1")
    assert two.silent_for(0.03) and three.silent_for(0.01)
    one.ask("HERD", "FILL", "k:1", token, "v")
    assert two.read() == [b"FRESH", b"v", None, 0] and three.read() == b"v"


@with_config(GATE)
def test_a_waiter_for_a_lease_is_handed_it_with_a_token_of_its_own(daemon):
    one, two = clients(daemon, 2)
    token = token_of(one)
    two.send("HERD", "LEASE", "k:1", "WAIT", 5000)
    assert two.silent_for(0.03)
    one.close()
    verdict, value, second, left = two.read(2)
    assert (verdict, value) == (b"LEAD", None) and second not in (None, token) and 9900 < left <= 10000
    assert two.ask("HERD", "FILL", "k:1", second, "v") == 1


@with_config(GATE)
def test_lease_behind_a_held_get_waits_for_its_turn(daemon):
    one, two = clients(daemon, 2)
    one.ask("GET", "k:1")
    two.send("GET", "k:1").send("HERD", "LEASE", "k:2")
    assert two.silent_for(0.03)
    assert one.ask("GET", "k:2") is None, "no token was granted that could not be sent"
    one.ask("SET", "k:1", "v")
    assert two.read() == b"v" and two.read()[0] == b"WAIT"


@with_config(GATE)
def test_clients_that_know_leases_and_those_that_do_not_share_flights(daemon):
    plain, knowing, third = clients(daemon, 3)
    assert plain.ask("GET", "k:1") is None
    assert lease(knowing, "k:1")[0] == b"WAIT"
    plain.ask("SET", "k:1", "v")
    assert lease(knowing, "k:1")[1] == b"v"
    token = token_of(knowing, "k:2")
    third.send("GET", "k:2")
    assert third.silent_for(0.03)
    plain.ask("SET", "k:2", "by SET")
    assert third.read() == b"by SET"
    assert knowing.ask("HERD", "FILL", "k:2", token, "by token") == 0 and plain.ask("GET", "k:2") == b"by SET"


# ---- FILL, ABSENT, NOSTORE, FAIL


@with_config(GATE)
def test_a_fill_lives_for_the_gates_ttl_or_for_px(daemon):
    client = daemon.connect()
    assert client.ask("HERD", "FILL", "k:1", token_of(client), "v") == 1 and client.ask("TTL", "k:1") == 90
    assert client.ask("HERD", "FILL", "k:2", token_of(client, "k:2"), "v", "PX", 5000) == 1
    assert 4900 < client.ask("PTTL", "k:2") <= 5000 and explain(daemon, "k:2")["grace_ends_ms"] > 60000
    assert client.ask("HERD", "FILL", "k:3", token_of(client, "k:3"), b"") == 1 and client.ask("GET", "k:3") == b""


@with_config('gate "k:*" { grace = 1m  absent_ttl = 200ms }')
def test_absent_is_remembered_for_absent_ttl_or_px_and_is_no_value(daemon):
    one, two = clients(daemon, 2)
    token = token_of(one)
    two.send("MGET", "k:1", "k:1")
    assert two.silent_for(0.03)
    assert one.ask("HERD", "ABSENT", "k:1", token) == 1
    assert two.read() == [None, None]
    assert two.ask("GET", "k:1") is None and lease(two, "k:1") == [b"FRESH", None, None, 0]
    assert one.ask("EXISTS", "k:1") == 0 and one.ask("TTL", "k:1") == -2 and one.ask("SETNX", "k:9", "x") == 1
    seen = explain(daemon, "k:1")
    assert seen["absence"] == 1 and seen["fresh_ms"] == seen["grace_ends_ms"] <= 200
    time.sleep(0.21)
    assert lease(two, "k:1")[0] == b"LEAD"
    assert one.ask("HERD", "ABSENT", "k:2", token_of(one, "k:2"), "PX", 60000) == 1
    assert 59000 < explain(daemon, "k:2")["fresh_ms"] <= 60000
    assert one.ask("SET", "k:2", "now there is one") == "OK" and two.ask("GET", "k:2") == b"now there is one"


@with_config(GATE)
def test_nostore_lets_everybody_go_on_side_by_side(daemon):
    one, two, three = clients(daemon, 3)
    token = token_of(one)
    two.send("GET", "k:1")
    three.send("HERD", "LEASE", "k:1", "WAIT", 5000)
    assert two.silent_for(0.03) and three.silent_for(0.01)
    assert one.ask("HERD", "NOSTORE", "k:1", token) == 1
    assert two.read() is None and three.read() == [b"PASS", None, None, 0]
    assert [client.ask("GET", "k:1") for client in (one, two)] == [None, None], "later askers pass too"
    assert explain(daemon, "k:1")["uncacheable_ms"] > 9000
    one.ask("SET", "k:1", "v")
    assert two.ask("GET", "k:1") == b"v" and explain(daemon, "k:1")["uncacheable_ms"] == 0


@with_config('gate "k:*" { grace = 1m  error_backoff = 150ms  error_backoff_max = 400ms }')
def test_a_failure_is_shared_then_backed_off_for_longer_each_time(daemon):
    one, two = clients(daemon, 2)
    token = token_of(one)
    two.send("GET", "k:1")
    assert two.silent_for(0.03)
    assert one.ask("HERD", "FAIL", "k:1", token, "the shop\r\nis closed") == 1
    assert two.read() == Error("HERDFAIL the shop??is closed")
    again = two.ask("GET", "k:1")
    assert again.text.startswith("HERDFAIL the shop??is closed (asked again in ") and again.text.endswith(" ms)")
    assert one.ask("HERD", "LEASE", "k:1").word == "HERDFAIL"
    seen = explain(daemon, "k:1")
    assert seen["failures"] == 1 and 0 < seen["backoff_ms"] <= 150 and seen["last_error"] == "the shop??is closed"
    time.sleep(0.16)
    for least, most in ((151, 300), (301, 400), (301, 400)):
        assert one.ask("HERD", "FAIL", "k:1", token_of(one)) == 1
        left = explain(daemon, "k:1")["backoff_ms"]
        assert least - 60 < left <= most
        time.sleep(left / 1000 + 0.02)
    assert "reported a failure" in explain(daemon, "k:1")["last_error"]
    token = token_of(one)
    assert one.ask("HERD", "FILL", "k:1", token, "v") == 1
    assert two.ask("GET", "k:1") == b"v" and explain(daemon, "k:1")["failures"] == 0


@with_config('gate "k:*" { grace = off  error_backoff = 10s }')
def test_an_error_is_that_of_its_key(daemon):
    """Many keys fail at the same time, each in its own words; nobody is told another's."""
    def work(number):
        client, waiter = Connection(daemon.port), Connection(daemon.port)
        for i in range(60):
            key = f"k:{number}:{i}"
            token = client.ask("HERD", "LEASE", key)[2]
            waiter.send("GET", key)
            while explain(client, key)["waiters"] == 0:
                time.sleep(0.0005)
            assert client.ask("HERD", "FAIL", key, token, "cause of " + key) == 1
            assert waiter.read() == Error("HERDFAIL cause of " + key)
            if i > 0:
                before = f"k:{number}:{i - 1}"
                assert client.ask("MGET", before, key).text.startswith(f"HERDFAIL cause of {before} (asked")
        client.close()
        waiter.close()
    at_once(4, work)


@with_config('gate "k:*" { grace = 1m  error_backoff = 300ms }')
def test_a_stale_value_is_served_instead_of_an_error(daemon):
    one, two = clients(daemon, 2)
    one.ask("SET", "k:1", "old", "PX", 15)
    eventually(lambda: explain(daemon, "k:1")["state"] == "stale")
    assert one.ask("HERD", "FAIL", "k:1", token_of(one)) == 1
    assert [client.ask("GET", "k:1") for client in (one, two)] == [b"old", b"old"]
    assert lease(one, "k:1")[:2] == [b"STALE", b"old"]
    time.sleep(0.32)
    assert one.ask("GET", "k:1") is None and two.ask("GET", "k:1") == b"old"


# ---- RENEW


@with_config('gate "k:*" { lease = 1s  lease_first = 1s }')
def test_renew_keeps_a_lease_and_tells_what_is_left(daemon):
    one, two = clients(daemon, 2)
    token = token_of(one)
    time.sleep(0.5)
    assert 300 < explain(daemon, "k:1")["lease_left_ms"] <= 500
    assert 990 <= one.ask("HERD", "RENEW", "k:1", token) <= 1000
    time.sleep(0.7)
    assert lease(two, "k:1")[0] == b"WAIT"
    assert one.ask("HERD", "FILL", "k:1", token, "v") == 1
    assert one.ask("HERD", "RENEW", "k:1", token) == 0


# ---- what makes a token worthless


@with_config('gate "k:*" { lease = 1s }')
def test_a_token_is_worthless_after_a_lapse(daemon):
    one, two = clients(daemon, 2)
    token = token_of(one)
    two.send("HERD", "LEASE", "k:1", "WAIT", 5000)
    verdict, _, second, _ = two.read(3)
    assert verdict == b"LEAD"
    assert one.ask("HERD", "FILL", "k:1", token, "late") == 0 and one.ask("HERD", "RENEW", "k:1", token) == 0
    assert one.ask("HERD", "FAIL", "k:1", token) == one.ask("HERD", "NOSTORE", "k:1", token) == 0
    assert one.ask("HERD", "ABSENT", "k:1", token) == 0
    assert two.ask("HERD", "FILL", "k:1", second, "v") == 1 and one.ask("GET", "k:1") == b"v"
    assert herd_counters(daemon)["fenced"] == 4


@with_config(GATE)
def test_a_token_is_worthless_after_its_use_an_invalidation_a_flush_and_its_connections_end(daemon):
    one, two = clients(daemon, 2)
    spent = token_of(one)
    assert one.ask("HERD", "FILL", "k:1", spent, "v") == 1 and one.ask("HERD", "FILL", "k:1", spent, "w") == 0
    for number, command in enumerate([("DEL", "k:a"), ("FLUSHALL",), ("EXPIRE", "k:a", 0), ("HERD", "PURGE", "k:a")]):
        two.ask("SET", "k:a", "old", "PX", 10)
        eventually(lambda: explain(daemon, "k:a")["state"] == "stale")
        token = token_of(one, "k:a")
        if command[0] == "EXPIRE":
            two.ask("SET", "k:a", "fresh")
        two.ask(*command)
        assert one.ask("HERD", "FILL", "k:a", token, "late") == 0, command
        assert two.ask("DEL", "k:a") == 0
    token = token_of(one, "k:2")
    one.close()
    eventually(lambda: herd_counters(daemon)["leases"] == 0)
    assert two.ask("HERD", "FILL", "k:2", token, "late") == 0


def test_a_token_of_before_a_restart_is_worthless_and_none_repeats(start):
    seen = set()
    for _ in range(3):
        daemon = start(GATE)
        client = daemon.connect()
        tokens = [token_of(client, f"k:{i}") for i in range(5)]
        for old in seen:
            assert client.ask("HERD", "FILL", "k:0", old, "of before") == 0
        assert not seen & set(tokens) and len({token.split(b"-")[0] for token in tokens}) == 1
        seen |= set(tokens)
        daemon.kill()


@with_config(GATE)
def test_garbage_and_other_keys_tokens_are_fenced_and_harm_nothing(daemon):
    one, two = clients(daemon, 2)
    token, other = token_of(one), token_of(one, "k:2")
    for bad in GARBAGE + [other, token.upper() + b"0", b" " + token, token + b" "]:
        assert two.ask("HERD", "FILL", "k:1", bad, "x") == 0, bad
        assert two.ask("HERD", "ABSENT", "k:1", bad) == two.ask("HERD", "NOSTORE", "k:1", bad) == 0
        assert two.ask("HERD", "FAIL", "k:1", bad, "x") == two.ask("HERD", "RENEW", "k:1", bad) == 0
    assert two.ask("SELECT", 1) == "OK"
    assert two.ask("HERD", "FILL", "k:1", token, "x") == 0, "a database is a name space"
    assert one.ask("HERD", "FILL", "k:1", token, "v") == 1 and one.ask("GET", "k:1") == b"v"


# ---- PURGE


@with_config(GATE)
def test_purge_makes_stale_and_says_how_many_were_fresh(daemon):
    one, two = clients(daemon, 2)
    one.ask("MSET", "k:1", "v1", "k:2", "v2", "free", "x")
    assert one.ask("HERD", "PURGE", "k:1", "k:2", "k:3") == 2 and one.ask("HERD", "PURGE", "k:1") == 0
    assert one.ask("GET", "k:1") is None and two.ask("GET", "k:1") == b"v1", "one refresh, no herd"
    one.ask("SET", "k:1", "w1")
    assert two.ask("GET", "k:1") == b"w1"
    assert one.ask("HERD", "PURGE", "free") == 1 and one.ask("GET", "free") is None


# ---- what operators look at


EXPLAIN = ["gate", "mode", "filled_by", "state", "absence", "fresh_ms", "grace_ends_ms", "cost_us", "leader",
           "leader_client", "lease_left_ms", "running_ms", "waiters", "lapses", "failures", "filled_before", "unfilled",
           "unfilled_ms", "fenced_ms", "backoff_ms", "uncacheable_ms", "not_held_connection", "not_held_peer",
           "last_error", "advice"]
GATES = ["gate", "mode", "filled_by", "asks", "fresh", "stale", "led", "waited", "passed", "refused", "would_wait",
         "fill_p50_ms", "fill_p99_ms", "filled_percent", "lease_ms", "advice"]
FLIGHTS = ["key", "db", "gate", "leader", "running_ms", "lease_left_ms", "waiters", "overtaken"]
RECENT = ["key", "gate", "outcome", "cost_us", "herd", "leases", "ended_ms_ago"]


def both(daemon, *command):
    """The reply's maps: from RESP2's flat arrays, and from RESP3. They must be the same but for times."""
    two, three = daemon.connect(), daemon.connect(protocol=3)
    flat, maps = two.ask(*command), three.ask(*command)
    if isinstance(maps, dict):
        flat, maps = [flat], [maps]
    pairs = [dict(zip(one[0::2], one[1::2])) for one in flat]
    for one, other in zip(pairs, maps, strict=True):
        assert list(one) == list(other), command
    return [{name.decode(): value for name, value in one.items()} for one in maps]


@with_config(GATE)
def test_explain_tells_of_a_key_in_both_protocols(daemon):
    leader = daemon.connect()
    leader.ask("SELECT", 1)
    leader.ask("SELECT", 0)
    leader.ask("GET", "k:1")
    waiter = daemon.connect().send("GET", "k:1")
    assert waiter.silent_for(0.03)
    [seen] = both(daemon, "HERD", "EXPLAIN", "k:1")
    assert list(seen) == EXPLAIN
    assert (seen["gate"], seen["mode"], seen["filled_by"], seen["state"]) == (b"k:*", b"hold", b"client", b"absent")
    assert seen["leader"] == b"client" and seen["waiters"] == 1 and 0 < seen["lease_left_ms"] <= 300
    assert seen["filled_before"] == 0 and seen["cost_us"] == 0
    leader.ask("SET", "k:1", "v", "EX", 60)
    [seen] = both(daemon, "HERD", "EXPLAIN", "k:1")
    assert seen["state"] == b"fresh" and seen["leader"] == b"none" and seen["filled_before"] == 1
    assert seen["cost_us"] > 20000 and 59000 < seen["fresh_ms"] <= 60000 < seen["grace_ends_ms"] <= 120000
    [seen] = both(daemon, "HERD", "EXPLAIN", "free")
    assert (seen["gate"], seen["mode"], seen["filled_by"]) == (b"", b"off", b"") and b"no gate" in seen["advice"]


@with_config('gate "a:*" { } gate "b:{id}" { mode = observe } gate "c:*" { mode = off }')
def test_gates_tells_of_each_gate_in_the_order_of_the_file(daemon):
    client = daemon.connect()
    client.ask("GET", "a:1")
    time.sleep(0.02)
    client.ask("SET", "a:1", "v")
    client.ask("GET", "a:1")
    client.ask("GET", "b:1")
    first, second, third = both(daemon, "HERD", "GATES")
    assert list(first) == GATES
    assert [gate["gate"] for gate in (first, second, third)] == [b"a:*", b"b:{id}", b"c:*"]
    assert [gate["mode"] for gate in (first, second, third)] == [b"hold", b"observe", b"off"]
    assert (first["asks"], first["fresh"], first["led"], first["filled_percent"]) == (2, 1, 1, 100)
    assert 20 <= first["fill_p50_ms"] <= 70 and first["lease_ms"] == 1000 and second["lease_ms"] == 3000
    assert second["asks"] == 1 and third["asks"] == 0


@with_config(GATE)
def test_flights_and_recent_tell_of_what_is_and_was_computed(daemon):
    leader = daemon.connect()
    assert both(daemon, "HERD", "FLIGHTS") == [] == both(daemon, "HERD", "RECENT")
    leader.ask("GET", "k:1")
    token = token_of(leader, "k:\x00bin")
    waiter = daemon.connect().send("GET", "k:1")
    assert waiter.silent_for(0.03)
    first, second = both(daemon, "HERD", "FLIGHTS")
    assert list(first) == FLIGHTS
    assert (first["key"], first["db"], first["gate"], first["leader"], first["waiters"]) == (b"k:1", 0, b"k:*",
                                                                                            b"client", 1)
    assert (second["key"], second["leader"], second["overtaken"]) == (b"k:?bin", b"token", 0)
    leader.ask("SET", "k:1", "v")
    leader.ask("HERD", "FAIL", "k:\x00bin", token)
    last, before = both(daemon, "HERD", "RECENT")
    assert list(last) == RECENT
    assert (last["key"], last["outcome"], last["herd"]) == (b"k:?bin", b"fail", 0)
    assert (before["key"], before["outcome"], before["herd"], before["leases"]) == (b"k:1", b"fill", 1, 1)
    assert before["cost_us"] > 20000 and before["ended_ms_ago"] >= 0 and both(daemon, "HERD", "FLIGHTS") == []


@with_config(GATE)
def test_help_names_every_subcommand(daemon):
    lines = daemon.ask("HERD", "HELP")
    assert lines[0].startswith("HERD <subcommand>")
    for word in ("LEASE", "FILL", "ABSENT", "NOSTORE", "FAIL", "RENEW", "PURGE", "EXPLAIN", "GATES", "GATE", "FLIGHTS",
                 "RECENT", "HELP"):
        assert any(line.split(" ")[0] == word for line in lines), word


# ---- what is refused


@with_config(GATE)
def test_wrong_arguments_get_redis_words_and_change_nothing(daemon):
    client = daemon.connect()
    token = token_of(client)
    for name, *arguments in [("lease",), ("lease", "a", "WAIT", 1, 2), ("fill", "a", "b"), ("fill", *"abcdef", "g"),
                             ("absent", "a"), ("nostore", "a"), ("nostore", "a", "b", "c"), ("fail", "a"),
                             ("fail", *"abcd"), ("renew", "a"), ("renew", "a", "b", "c"), ("purge",), ("explain",),
                             ("explain", "a", "b"), ("gates", "a"), ("gate", "a"), ("gate", *"abc")]:
        assert client.ask("HERD", name.upper(), *arguments) == Error(ARITY.format(name)), (name, arguments)
    assert client.ask("HERD") == Error("ERR wrong number of arguments for 'herd' command")
    assert client.ask("HERD", "NOSUCH") == Error("ERR unknown subcommand 'NOSUCH'. Try HERD HELP.")
    for command in [("LEASE", "k:1", "WAIT"), ("LEASE", "k:1", "PX", 5), ("FILL", "k:1", token, "v", "PX"),
                    ("FILL", "k:1", token, "v", "EX", 5), ("ABSENT", "k:1", token, "PX")]:
        assert client.ask("HERD", *command) == Error("ERR syntax error"), command
    for number in ("x", "", "1.5", "99999999999999999999"):
        assert client.ask("HERD", "FILL", "k:1", token, "v", "PX", number) == Error(
            "ERR value is not an integer or out of range")
    for number in (0, -1, 9223372036854775807):
        assert client.ask("HERD", "FILL", "k:1", token, "v", "PX", number).text.startswith("ERR PX must be from 1 to ")
    assert client.ask("HERD", "LEASE", "k:1", "WAIT", -1).text.startswith("ERR WAIT must be from 0 to ")
    assert client.ask("HERD", "FILL", "k:1", token, "v") == 1


@with_config('limits { key = 50b  value = 1kb } gate "k:*" { }')
def test_keys_without_a_gate_and_what_is_too_large(daemon):
    client = daemon.connect()
    assert client.ask("HERD", "LEASE", "free").text.startswith("ERR no gate holds this key")
    assert client.ask("HERD", "FILL", "free", "1-1", "v") == 0 and client.ask("EXISTS", "free") == 0
    assert client.ask("HERD", "LEASE", "k:" + "x" * 60).text.startswith("ERR key is longer than the limit")
    assert client.ask("PING") == "PONG"


@with_config(GATE)
def test_herd_is_refused_in_a_transaction_and_before_a_password(daemon, start):
    client = daemon.connect()
    client.ask("MULTI")
    assert client.ask("HERD", "LEASE", "k:1").word == "ERR" and client.ask("EXEC").word == "EXECABORT"
    locked = start('password = "secret"  gate "k:*" { }').connect()
    assert locked.ask("HERD", "GATES").word == "NOAUTH"
    assert locked.ask("AUTH", "secret") == "OK" and len(locked.ask("HERD", "GATES")) == 1
