"""Gates, switched: observing, the live switch, reloads under load; and early refreshes of what clients fill."""

import signal
import time

from catalogue import Catalogue, origin_counters
from gear import *


def clients(daemon, count):
    return [daemon.connect() for _ in range(count)]


def pairs_of(line):
    return dict(part.split("=", 1) for part in line.split(","))


def reload(daemon, text):
    """The configuration file becomes this text, and the daemon is told."""
    with open(daemon.config_path, "w") as file:
        file.write(text)
    daemon.signal(signal.SIGHUP)


def rewrite(daemon, text):
    """The same, and it is in force."""
    before = daemon.log().count("event=reload file=")
    reload(daemon, text)
    eventually(lambda: daemon.log().count("event=reload file=") > before)


# ---- observe


@no_config
def test_without_a_gate_everything_is_observed_and_answered_as_plain_redis(daemon):
    first, second = clients(daemon, 2)
    assert first.ask("GET", "product:1") is None and second.ask("GET", "product:1") is None
    assert second.ask("MGET", "product:1", "user:9") == [None, None]
    first.ask("SET", "product:1", "v", "PX", 30)
    assert second.ask("GET", "product:1") == b"v"
    time.sleep(0.04)
    assert second.ask("GET", "product:1") is None, "no grace"
    counters = herd_counters(daemon)
    assert (counters["led"], counters["passed"], counters["would_wait"], counters["fresh"]) == (3, 2, 2, 1)
    assert counters["asks"] == 6 and counters["waited"] == 0 == counters["leases"] - 2
    prefixes = [pairs_of(counters[name]) for name in sorted(counters) if name.startswith("prefix")]
    assert [(one["prefix"], one["misses"], one["saved"]) for one in prefixes] == [("product:", "4", "2"),
                                                                                  ("user:", "1", "0")]
    [gate] = first.ask("HERD", "GATES")
    assert gate[gate.index(b"advice") + 1].startswith(b"holding would have saved loads")
    assert first.ask("CONFIG", "RESETSTAT") == "OK"
    counters = herd_counters(daemon)
    assert counters["asks"] == 0 and not [name for name in counters if name.startswith("prefix")]


@with_config('gate "k:*" { mode = observe  lease_first = 100ms }')
def test_what_would_be_held_ends_with_the_fill_or_the_lease(daemon):
    first, second = clients(daemon, 2)
    first.ask("GET", "k:1")
    second.ask("GET", "k:1")
    first.ask("SET", "k:1", "v")
    first.ask("DEL", "k:1")
    second.ask("GET", "k:1")
    assert herd_counters(daemon)["would_wait"] == 1
    time.sleep(0.11)
    first.ask("GET", "k:1")
    first.ask("GET", "k:1")
    counters = herd_counters(daemon)
    assert (counters["led"], counters["would_wait"]) == (3, 2)


@with_config('gate "k:*" { mode = observe }')
def test_a_prefix_goes_up_to_the_first_colon(daemon):
    client = daemon.connect()
    for i in range(70):
        client.ask("GET", f"k:{i}:x")
    lines = [pairs_of(value) for name, value in herd_counters(daemon).items() if name.startswith("prefix")]
    assert [(line["prefix"], line["pattern"], line["misses"]) for line in lines] == [("k:", "k:*", "70")]


@with_config('gate "k:*" { mode = observe } gate "a\nherd_asks:*" { mode = observe }')
def test_observed_flights_are_not_shown_as_leases_and_names_stay_within_their_lines(daemon):
    client = daemon.connect()
    client.ask("GET", "k:1")
    client.ask("GET", "a\nherd_asks:1")
    assert explain(daemon, "k:1")["leader"] == "none" and client.ask("HERD", "FLIGHTS") == []
    text = client.ask("INFO", "herdgate").decode()
    assert text.count("\n") == text.count("\r\n") and text.count("a?herd_asks:") == 3
    assert herd_counters(daemon)["asks"] == 2


@no_config
def test_prefixes_beyond_64_are_others(daemon):
    client = daemon.connect()
    for i in range(70):
        client.ask("GET", f"p{i}:1")
    counters = herd_counters(daemon)
    lines = [pairs_of(counters[name]) for name in counters if name.startswith("prefix")]
    assert len(lines) == 64 and sum(int(line["misses"]) for line in lines) == 70
    assert lines[-1]["prefix"] == "(others)"


# ---- the live switch


@with_config('gate "k:*" { grace = off }')
def test_switching_off_releases_those_who_wait_and_on_holds_again(daemon):
    leader, waiter, admin = clients(daemon, 3)
    for mode in ("observe", "OFF"):
        assert leader.ask("GET", "k:1") is None
        waiter.send("GET", "k:1").send("GET", "k:1").send("PING")
        assert waiter.silent_for(0.03)
        assert admin.ask("HERD", "GATE", "k:*", mode) == "OK"
        assert [waiter.read(1) for _ in range(3)] == [None, None, "PONG"]
        assert waiter.ask("GET", "k:1") is None and daemon.ask("HERD", "FLIGHTS") == []
        assert leader.ask("SET", "k:1", "v", "EX", 60) == "OK" and waiter.ask("GET", "k:1") == b"v"
        assert waiter.ask("TTL", "k:1") == 60
        assert admin.ask("HERD", "GATE", "k:*", "hold") == "OK"
        leader.ask("DEL", "k:1")
    assert leader.ask("GET", "k:1") is None
    waiter.send("GET", "k:1")
    assert waiter.silent_for(0.03)
    leader.ask("SET", "k:1", "v")
    assert waiter.read() == b"v"
    assert daemon.log().count("event=gate_switched") == 4


@with_config('gate "k:*" { mode = observe  grace = 1m }')
def test_an_observing_gate_that_is_switched_to_hold_holds_from_the_next_ask(daemon):
    first, second = clients(daemon, 2)
    first.ask("SET", "k:1", "v", "PX", 20)
    first.ask("GET", "k:2")
    assert daemon.ask("HERD", "GATE", "k:*", "hold") == "OK"
    assert first.ask("GET", "k:2") is None
    second.send("GET", "k:2")
    assert second.silent_for(0.03)
    first.ask("SET", "k:2", "v")
    assert second.read() == b"v"


@with_config('gate "k:*" { }')
def test_the_switch_names_what_it_does_not_know(daemon):
    client = daemon.connect()
    assert client.ask("HERD", "GATE", "k:", "off").text.startswith("ERR no such gate")
    assert client.ask("HERD", "GATE", "k:*", "open") == Error("ERR mode must be hold, observe or off")
    assert explain(daemon, "k:1")["mode"] == "hold"


@with_config('gate "k:*" { grace = off }')
def test_a_reload_takes_the_switch_back(daemon):
    client, other = clients(daemon, 2)
    client.ask("HERD", "GATE", "k:*", "off")
    assert explain(daemon, "k:1")["mode"] == "off"
    rewrite(daemon, 'gate "k:*" { grace = off  wait = 4s }')
    assert explain(daemon, "k:1")["mode"] == "hold"
    client.ask("GET", "k:1")
    other.send("GET", "k:1")
    assert other.silent_for(0.03)


def test_switching_a_gate_with_an_origin_releases_its_waiters_and_its_load_stores_nothing(start, folder):
    shop = Catalogue(folder, [("1", "of the row", 150)])
    daemon = start(shop.config())
    asker = daemon.connect().send("GET", "product:1")
    eventually(lambda: origin_counters(daemon)["running"] == 1)
    assert daemon.ask("HERD", "GATE", "product:{id}", "off") == "OK"
    assert asker.read(1) is None
    assert asker.ask("SET", "product:1", "plain") == "OK"
    eventually(lambda: origin_counters(daemon)["running"] == 0)
    assert asker.ask("GET", "product:1") == b"plain" and asker.ask("GET", "product:2") is None
    assert daemon.ask("HERD", "GATE", "product:{id}", "hold") == "OK"
    asker.ask("DEL", "product:1")
    assert asker.ask("GET", "product:1") == b"of the row"


# ---- reloads


@with_config('gate "a:*" { grace = off } gate "b:*" { grace = off }')
def test_a_reload_releases_what_no_gate_covers_any_more_and_leaves_the_rest(daemon):
    leader, gone, moved, stays = clients(daemon, 4)
    for key in ("a:1", "b:1", "b:x"):
        assert leader.ask("GET", key) is None
    for client, key in ((gone, "a:1"), (moved, "b:x"), (stays, "b:1")):
        client.send("GET", key)
        assert client.silent_for(0.02)
    rewrite(daemon, 'gate "b:x" { mode = off } gate "b:*" { grace = off }')
    assert gone.read(1) is None and moved.read(1) is None
    assert stays.silent_for(0.05)
    leader.ask("SET", "a:1", "v")
    leader.ask("SET", "b:1", "v")
    assert gone.ask("GET", "a:1") == b"v" and stays.read() == b"v"
    assert gone.ask("GET", "a:2") is None and moved.ask("GET", "a:2") is None


@with_config('gate "k:*" { grace = off  wait = 5s }')
def test_a_reload_changes_policies_and_keeps_what_was_learnt(daemon):
    leader, waiter = clients(daemon, 2)
    leader.ask("GET", "k:1")
    time.sleep(0.5)
    leader.ask("SET", "k:1", "v")
    leader.ask("GET", "k:2")
    rewrite(daemon, 'gate "new:*" { } gate "k:*" { grace = 1m  wait = 100ms }')
    begin = time.monotonic()
    assert waiter.ask("GET", "k:2").word == "HERDWAIT"
    assert time.monotonic() - begin < patient(0.4)
    new, known = waiter.ask("HERD", "GATES")
    assert new[new.index(b"lease_ms") + 1] == 3000 and known[known.index(b"lease_ms") + 1] >= 1500
    assert known[known.index(b"asks") + 1] == 3


@with_config('limits { waiters = 10 } gate "k:*" { grace = off }')
def test_a_reload_that_shrinks_limits_drops_nobody_who_waits(daemon):
    leader, first, second, third = clients(daemon, 4)
    leader.ask("GET", "k:1")
    for waiter in (first, second):
        waiter.send("GET", "k:1")
        assert waiter.silent_for(0.02)
    rewrite(daemon, 'limits { waiters = 1  waiters_per_client = 1 } gate "k:*" { grace = off }')
    refusal = third.ask("GET", "k:1")
    assert refusal.word == "HERDFULL" and "(waiters)" in refusal.text
    assert first.silent_for(0.02)
    first.send("GET", "k:2")
    leader.ask("SET", "k:1", "v")
    assert first.read() == second.read() == b"v" and "waiters_per_client" in first.read().text
    rewrite(daemon, 'limits { waiters = 1  flights = 1 } gate "k:*" { grace = off }')
    assert leader.ask("GET", "k:3") is None
    refusal = third.ask("GET", "k:4")
    assert refusal.word == "HERDFULL" and "(flights)" in refusal.text


@with_config('gate "%sx" { mode = off } gate "%sy" { grace = off }' % ("k" * 70, "k" * 70))
def test_gates_whose_long_names_begin_alike_are_not_confused(daemon):
    first, second = clients(daemon, 2)
    first.ask("GET", "k" * 70 + "x")
    first.ask("GET", "k" * 70 + "y")
    second.send("GET", "k" * 70 + "y")
    assert second.silent_for(0.03)
    first.ask("SET", "k" * 70 + "y", "v")
    assert second.read() == b"v" and second.ask("GET", "k" * 70 + "x") is None


def test_a_reload_gives_a_gate_another_query_and_another_database(start, folder):
    shop = Catalogue(folder, [("1", "chair", 150), ("2", "table", 0)])
    daemon = start(shop.config("ttl = 1h"))
    asker = daemon.connect().send("GET", "product:1")
    eventually(lambda: origin_counters(daemon)["running"] == 1)
    rewrite(daemon, shop.config("ttl = 1h", query="SELECT 'a ' || name FROM product WHERE id = :id"))
    assert asker.read() == b"chair", "a load under way keeps its query"
    assert asker.ask("GET", "product:2") == b"a table"
    rewrite(daemon, 'gate "product:{id}" { grace = off }')
    assert asker.ask("GET", "product:2") == b"a table" and asker.ask("GET", "product:3") is None
    asker.ask("SET", "product:3", "of a client")
    rewrite(daemon, shop.config())
    assert asker.ask("GET", "product:3") == b"of a client" and asker.ask("GET", "product:4") is None
    assert "origin1" in herd_counters(daemon)


def test_a_file_with_a_bad_query_changes_nothing(start, folder):
    shop = Catalogue(folder, [("1", "chair", 0)])
    daemon = start(shop.config())
    reload(daemon, shop.config(query="DELETE FROM product WHERE id = :id"))
    eventually(lambda: "event=reload refused=yes" in daemon.log())
    assert daemon.ask("GET", "product:1") == b"chair"


def test_a_database_that_is_locked_while_the_file_is_read_holds_nobody_up(start, folder):
    """Whether it can be used is asked beside the loops: at the start, and at a reload."""
    shop = Catalogue(folder, [("1", "chair", 0)])
    shop.db.execute("PRAGMA journal_mode = DELETE")
    shop.db.execute("BEGIN EXCLUSIVE")
    begin = time.monotonic()
    daemon = start(shop.config(origin="busy_timeout = 1s"))
    askers = clients(daemon, 4)
    reload(daemon, shop.config(origin="busy_timeout = 1s") + 'gate "x:*" { }')
    while time.monotonic() < begin + 0.8:
        asked = time.monotonic()
        assert [asker.ask("PING") for asker in askers] == ["PONG"] * 4
        assert time.monotonic() - asked < patient(0.3)
        time.sleep(0.01)
    eventually(lambda: "event=origin_unusable" in daemon.log())
    shop.db.execute("COMMIT")
    eventually(lambda: askers[0].ask("GET", "product:1") == b"chair")


def test_reloads_that_add_and_remove_gates_and_origins_under_load(start, folder):
    """For a second and a half, clients ask for keys of clients and of an origin while gates and origins come and go:
    no answer is another key's, nobody is stuck, and at the end everything is as the last file says."""
    shop = Catalogue(folder, [(str(i), f"row {i}", i % 3) for i in range(40)])
    always = 'gate "c:*" { grace = off  wait = 2s }\n'
    configs = [shop.config() + always, always, shop.config("ttl = 20ms", pattern="product:{id}") + always,
               shop.config("mode = observe") + 'gate "c:1*" { mode = off }\n' + always]
    daemon = start(configs[0])
    end = time.monotonic() + 1.5

    def ask(number):
        client = Connection(daemon.port)
        turn = number
        while time.monotonic() < end:
            turn += 7
            if number == 0:
                reload(daemon, configs[turn % len(configs)])
                time.sleep(0.01)
            row = turn % 40
            assert client.ask("GET", f"product:{row}") in (None, b"row %d" % row)
            key = f"c:{turn % 20}"
            value = client.ask("GET", key)
            assert value in (None, key.encode()) or value.word == "HERDWAIT"
            if value is None:
                client.ask("SET", key, key, "PX", 15)
        client.close()
    at_once(6, ask)
    reload(daemon, shop.config("ttl = 1h") + 'gate "last:*" { }\n' + always)
    client = daemon.connect()
    eventually(lambda: explain(daemon, "last:1")["gate"] == "last:*")
    client.ask("FLUSHALL")
    assert client.ask("MGET", *[f"product:{i}" for i in range(40)]) == [b"row %d" % i for i in range(40)]
    eventually(lambda: herd_counters(daemon)["waiters"] == 0)


# ---- early refreshes of what clients fill


def fill(client, key, seconds, *life):
    assert client.ask("GET", key) is None
    time.sleep(seconds)
    assert client.ask("SET", key, "old", *life) == "OK"


@with_config('gate "k:*" { grace = 1m  early = "last 50%" }')
def test_the_first_ask_in_the_window_leads_and_the_others_have_the_live_value(daemon):
    leader, *others = clients(daemon, 4)
    fill(leader, "k:1", 0.02, "PX", 400)
    assert leader.ask("GET", "k:1") == b"old"
    time.sleep(0.22)
    assert leader.ask("GET", "k:1") is None
    assert [other.ask("GET", "k:1") for other in others] == [b"old"] * 3
    leader.ask("SET", "k:1", "new", "PX", 400)
    assert [other.ask("GET", "k:1") for other in others] == [b"new"] * 3
    counters = herd_counters(daemon)
    assert (counters["early"], counters["led"], counters["stale"]) == (1, 2, 0)


@with_config('gate "k:*" { grace = off  early = xfetch  beta = 100 }')
def test_xfetch_acts_only_on_keys_whose_last_value_ended_a_flight(daemon):
    client = daemon.connect()
    fill(client, "k:1", 0.02, "PX", 300)
    client.ask("SET", "k:2", "old", "PX", 300)
    time.sleep(0.2)
    seen = [client.ask("MGET", "k:1", "k:2") for _ in range(5)]
    assert all(reply[1] == b"old" for reply in seen)
    assert [None, b"old"] in seen, "0.1 s before its end, of a scale of 2 s"
    assert herd_counters(daemon)["early"] == 1
    assert client.pipeline(("MULTI",), ("GET", "k:1"), ("EXEC",))[2] == [b"old"], "never drawn in a transaction"


@with_config('gate "k:*" { grace = off  early = "last 50%" }')
def test_a_get_behind_a_hold_leaves_the_early_refresh_to_others(daemon):
    witness, busy = clients(daemon, 2)
    fill(witness, "k:1", 0.01, "PX", 300)
    witness.ask("GET", "k:2")
    time.sleep(0.2)
    busy.send("GET", "k:2").send("GET", "k:1")
    assert busy.silent_for(0.03)
    witness.ask("SET", "k:2", "v")
    assert busy.read() == b"v" and busy.read() == b"old"
    assert witness.ask("GET", "k:1") is None


@with_config('gate "k:*" { grace = 1m }')
def test_early_is_off_by_default_for_clients(daemon):
    client = daemon.connect()
    fill(client, "k:1", 0.05, "PX", 150)
    end = time.monotonic() + 0.14
    while time.monotonic() < end - 0.02:
        assert client.ask("GET", "k:1") == b"old"
    assert herd_counters(daemon)["early"] == 0
