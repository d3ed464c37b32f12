"""Gates with an origin: the daemon itself runs the query, once; and what comes of a database in trouble."""

import json
import os
import signal
import time

from catalogue import Catalogue, origin_counters
from gear import *


def clients(daemon, count):
    return [daemon.connect() for _ in range(count)]


def queries(daemon):
    return origin_counters(daemon)["queries"]


def stale(daemon, key):
    eventually(lambda: explain(daemon, key)["state"] == "stale")


def within(seconds, low, high):
    assert low <= seconds <= patient(high), f"{seconds:.3f} s is not from {low} to {high}"


# ---- what a load gives


def test_a_cold_herd_is_one_query(start, folder):
    shop = Catalogue(folder, [("1", "chair", 100)])
    daemon = start(shop.config())
    askers = clients(daemon, 20)
    for asker in askers:
        asker.send("GET", "product:1")
    assert [asker.read() for asker in askers] == [b"chair"] * 20
    counters = herd_counters(daemon)
    assert queries(daemon) == counters["loads"] == counters["fills"] == 1
    assert (counters["led"], counters["waited"], counters["loads_avoided"]) == (1, 19, 19)
    assert 54 <= askers[0].ask("TTL", "product:1") <= 60, "the gate's ttl, less up to 10 % of jitter"
    assert askers[0].ask("GET", "product:1") == b"chair" and queries(daemon) == 1


def test_lives_are_spread_by_the_jitter_and_never_longer_than_asked(start, folder):
    shop = Catalogue(folder, [(str(i), "x", 0) for i in range(300)])
    daemon = start(shop.config("ttl = 100s  jitter = 50%"))
    client = daemon.connect()
    client.ask("MGET", *[f"product:{i}" for i in range(300)])
    lives = [client.ask("TTL", f"product:{i}") for i in range(300)]
    assert 48 <= min(lives) and max(lives) <= 100
    shares = [sum(low <= life < low + 10 for life in lives) for low in range(50, 100, 10)]
    assert min(shares) > 25, shares


def test_json_is_the_row_and_json_rows_are_all_of_them(start, folder):
    shop = Catalogue(folder, [("1", 'a "chair"', 0), ("2", None, 1.5)])
    daemon = start(shop.config("result = json", pattern="row:{id}", query="SELECT * FROM product WHERE id = :id")
                   + 'gate "rows:{least}" { origin = catalogue  result = json_rows  query = "SELECT id, name FROM '
                     'product WHERE id >= :least ORDER BY id" }')
    client = daemon.connect()
    assert json.loads(client.ask("GET", "row:1")) == {"id": "1", "name": 'a "chair"', "cost": 0.0}
    assert json.loads(client.ask("GET", "row:2")) == {"id": "2", "name": None, "cost": 1.5}
    assert client.ask("GET", "row:3") is None
    assert json.loads(client.ask("GET", "rows:1")) == [{"id": "1", "name": 'a "chair"'}, {"id": "2", "name": None}]
    assert client.ask("GET", "rows:9") == b"[]"


def test_captures_are_bound_and_never_part_of_the_sql(start, folder):
    shop = Catalogue(folder, [("1", "chair", 0), ("' OR '1'='1", "quoted", 0), ("%", "percent", 0),
                              ("ü", "umlaut", 0)])
    daemon = start(shop.config())
    client = daemon.connect()
    for bad in ("0' OR '1'='1", "1; DROP TABLE product", "1' UNION SELECT 'x", "1--", "1/*", '1"', "_", "1\x00", "\x00",
                ":id", "?1", "NULL", "1 OR 1=1", b"\xff\xfe", "x" * 10000):
        assert client.ask("GET", b"product:" + (bad if isinstance(bad, bytes) else bad.encode())) is None, bad
    assert client.ask("MGET", "product:' OR '1'='1", "product:%", "product:ü", "product:1") == [
        b"quoted", b"percent", "umlaut".encode(), b"chair"]
    assert client.ask("GET", "product:") is None and client.ask("GET", "product:a:b") is None, "of no gate"
    assert shop.db.execute("SELECT count(*) FROM product").fetchone() == (4,)


def test_several_captures_each_have_their_place(start, folder):
    shop = Catalogue(folder, [("a-b", "first", 0), ("b-a", "second", 0)])
    daemon = start(shop.config(pattern="{two}/*/{one}",
                               query="SELECT name FROM product WHERE id = :one || '-' || :two"))
    assert daemon.ask("GET", "b/any:thing/a") == b"first" and daemon.ask("GET", "a//b") == b"second"


def test_a_missing_row_is_remembered_for_absent_ttl(start, folder):
    shop = Catalogue(folder, [("2", "", 0), ("3", None, 0)])
    daemon = start(shop.config("absent_ttl = 150ms"))
    asker, other = clients(daemon, 2)
    keys = ("product:1", "product:2", "product:3", "product:1")
    assert asker.ask("MGET", *keys) == [None, b"", None, None]
    before = queries(daemon)
    assert before == 3
    for _ in range(20):
        assert asker.ask("MGET", *keys) == [None, b"", None, None] and other.ask("GET", "product:1") is None
    assert queries(daemon) == before
    assert asker.ask("EXISTS", "product:1") == 0 and explain(daemon, "product:1")["absence"] == 1
    shop.put(("1", "new", 0))
    begin = time.monotonic()
    assert eventually(lambda: asker.ask("GET", "product:1")) == b"new"
    within(time.monotonic() - begin, 0, 0.3)


def test_absent_ttl_off_shares_absence_and_remembers_nothing(start, folder):
    shop = Catalogue(folder)
    daemon = start(shop.config("absent_ttl = off", query="SELECT name FROM product WHERE herd_cost(60, 0) = 0 AND "
                                                         "id = :id"))
    askers = clients(daemon, 5)
    for asker in askers:
        asker.send("GET", "product:1")
    assert [asker.read() for asker in askers] == [None] * 5 and queries(daemon) == 1
    assert askers[0].ask("GET", "product:1") is None and queries(daemon) == 2


def test_in_multi_an_absent_key_is_nil_and_starts_no_load(start, folder):
    shop = Catalogue(folder, [("1", "chair", 0)])
    daemon = start(shop.config("ttl = 30ms  jitter = off"))
    client = daemon.connect()
    assert client.pipeline(("MULTI",), ("GET", "product:1"), ("EXEC",))[2] == [None] and queries(daemon) == 0
    assert client.ask("GET", "product:1") == b"chair"
    stale(daemon, "product:1")
    shop.put(("1", "stool", 0))
    assert client.pipeline(("MULTI",), ("GET", "product:1"), ("EXEC",))[2] == [b"chair"], "and refreshes it"
    eventually(lambda: queries(daemon) == 2)


# ---- who waits, and for how long


def test_over_a_stale_value_nobody_waits_and_one_query_refreshes(start, folder):
    shop = Catalogue(folder, [("1", "old", 0)])
    daemon = start(shop.config("ttl = 100ms  jitter = off"))
    askers = clients(daemon, 8)
    assert askers[0].ask("GET", "product:1") == b"old"
    shop.put(("1", "new", 150))
    stale(daemon, "product:1")
    begin = time.monotonic()
    assert [asker.ask("GET", "product:1") for asker in askers] == [b"old"] * 8
    within(time.monotonic() - begin, 0, 0.12)
    eventually(lambda: askers[0].ask("GET", "product:1") == b"new")
    assert queries(daemon) == 2 and 0 < askers[0].ask("PTTL", "product:1") <= 100


def test_a_waiter_past_its_time_gets_an_error_and_the_load_goes_on(start, folder):
    shop = Catalogue(folder, [("1", "chair", 300)])
    daemon = start(shop.config("wait = 100ms"))
    asker, other = clients(daemon, 2)
    begin = time.monotonic()
    assert asker.ask("GET", "product:1").word == "HERDWAIT"
    within(time.monotonic() - begin, 0.09, 0.25)
    other.send("GET", "product:1")
    assert other.read().word == "HERDWAIT"
    eventually(lambda: explain(daemon, "product:1")["state"] == "fresh")
    assert asker.ask("GET", "product:1") == b"chair" and queries(daemon) == 1


def test_a_load_is_finished_though_all_who_asked_hang_up(start, folder):
    """Callers that give up after 100 ms, again and again, of a load of 500 ms: one load, and then a hit."""
    shop = Catalogue(folder, [("1", "chair", 500)])
    daemon = start(shop.config())
    begin = time.monotonic()
    while time.monotonic() < begin + 0.45:
        with Connection(daemon.port) as hasty:
            hasty.send("GET", "product:1")
            time.sleep(0.1)
    assert daemon.ask("GET", "product:1") == b"chair" and queries(daemon) == 1


def test_load_timeout_cuts_a_query_off(start, folder):
    shop = Catalogue(folder, [("1", "chair", 60000), ("2", "table", 0)])
    daemon = start(shop.config("load_timeout = 200ms", "pool_max = 1"))
    asker, other = clients(daemon, 2)
    begin = time.monotonic()
    error = asker.ask("GET", "product:1")
    assert error.word == "HERDFAIL" and "load_timeout" in error.text, error
    within(time.monotonic() - begin, 0.19, 0.4)
    assert other.ask("GET", "product:2") == b"table", "its connection is free again"
    counters = herd_counters(daemon)
    assert (counters["load_errors"], counters["load_timeouts"]) == (1, 1), counters


def test_200_cold_keys_at_once_stay_within_the_pool(start, folder):
    shop = Catalogue(folder, [(str(i), f"p{i}", 10) for i in range(200)])
    daemon = start(shop.config(origin="pool_max = 4  acquire_timeout = 20s"))
    askers = clients(daemon, 10)
    for turn in range(20):
        for number, asker in enumerate(askers):
            asker.send("GET", f"product:{turn * 10 + number}")
    for turn in range(20):
        for number, asker in enumerate(askers):
            assert asker.read() == f"p{turn * 10 + number}".encode()
    seen = origin_counters(daemon)
    assert seen["queries"] == seen["values"] == 200 and seen["running_max"] == 4 and seen["connections"] <= 4
    assert seen["queued"] == seen["running"] == 0 < seen["queued_max"]


def test_a_full_pool_refuses_by_name_what_it_cannot_serve_in_time(start, folder):
    shop = Catalogue(folder, [(str(i), "x", 400) for i in range(4)])
    daemon = start(shop.config("error_backoff = off", "pool_max = 1  acquire_timeout = 100ms  queue_max = 1"))
    first, second, third = clients(daemon, 3)
    begin = time.monotonic()
    first.send("GET", "product:0")
    eventually(lambda: origin_counters(daemon)["running"] == 1)
    second.send("GET", "product:1")
    eventually(lambda: origin_counters(daemon)["queued"] == 1)
    full = third.ask("GET", "product:2")
    assert full.word == "HERDFAIL" and full.text.startswith("HERDFAIL origin catalogue: ") and "queue" in full.text
    late = second.read()
    assert late.word == "HERDFAIL" and "acquire_timeout" in late.text
    within(time.monotonic() - begin, 0.09, 0.39)
    assert first.read() == b"x" and second.ask("GET", "product:1") == b"x"
    assert origin_counters(daemon)["busy"] == 2


def test_a_slow_load_of_one_key_slows_no_other(start, folder):
    shop = Catalogue(folder, [("slow", "x", 500), ("warm", "w", 0), ("cold", "c", 0)])
    daemon = start(shop.config())
    asker, other = clients(daemon, 2)
    assert other.ask("GET", "product:warm") == b"w"
    asker.send("GET", "product:slow")
    eventually(lambda: origin_counters(daemon)["running"] == 1)
    begin = time.monotonic()
    assert other.ask("GET", "product:cold") == b"c"
    for _ in range(200):
        assert other.ask("GET", "product:warm") == b"w"
    within(time.monotonic() - begin, 0, 0.35)
    assert asker.read() == b"x"


# ---- errors


def test_a_missing_file_is_said_and_used_once_it_is_there(start, folder):
    path = os.path.join(folder, "catalogue.db")
    daemon = start(f'origin "catalogue" {{ type = sqlite  path = "{path}" }}\n'
                   'gate "product:{id}" { origin = catalogue  query = "SELECT name FROM product WHERE id = :id" '
                   'error_backoff = 50ms }')
    eventually(lambda: "event=origin_unusable" in daemon.log() and "catalogue.db" in daemon.log())
    client = daemon.connect()
    error = client.ask("GET", "product:1")
    assert error.word == "HERDFAIL" and error.text.startswith("HERDFAIL origin catalogue: "), error
    assert client.ask("GET", "free") is None
    Catalogue(folder, [("1", "chair", 0)])
    assert eventually(lambda: client.ask("GET", "product:1") == b"chair")
    assert "event=load_failed" in daemon.log()


def test_a_missing_table_and_two_columns_are_errors_that_name_the_cause(start, folder):
    shop = Catalogue(folder, [("1", "chair", 0)])
    daemon = start(shop.config(pattern="none:{id}", query="SELECT x FROM nosuch WHERE id = :id")
                   + 'gate "two:{id}" { origin = catalogue  query = "SELECT id, name FROM product WHERE id = :id" }')
    client = daemon.connect()
    error = client.ask("GET", "none:1")
    assert error.text.startswith("HERDFAIL origin catalogue: ") and "nosuch" in error.text, error
    error = client.ask("GET", "two:1")
    assert error.text.startswith("HERDFAIL origin catalogue: ") and "column" in error.text, error
    assert client.ask("MGET", "free", "two:1").word == "HERDFAIL" and client.ask("PING") == "PONG"
    assert explain(daemon, "two:1")["last_error"].startswith("origin catalogue: ")


def test_an_error_is_shared_then_backed_off_for_longer_and_longer(start, folder):
    shop = Catalogue(folder)
    daemon = start(shop.config("error_backoff = 100ms  error_backoff_max = 250ms",
                               query="SELECT name FROM nosuch WHERE id = :id AND herd_cost(50, 0) = 0"))
    askers = clients(daemon, 6)
    for asker in askers:
        asker.send("GET", "product:1")
    texts = {asker.read().text for asker in askers}
    assert len([text for text in texts if "asked again in" not in text]) == 1 and origin_counters(daemon)["asked"] == 1
    begin, spans = time.monotonic(), []
    while len(spans) < 3:
        before = origin_counters(daemon)["asked"]
        error = askers[0].ask("GET", "product:1")
        assert error.word == "HERDFAIL"
        if origin_counters(daemon)["asked"] > before:
            spans.append(time.monotonic() - begin)
            begin = time.monotonic()
        time.sleep(0.005)
    for span, least in zip(spans, (0.1, 0.2, 0.25)):
        within(span, least - 0.03, least + 0.15)


def test_an_error_is_forgotten_with_the_first_load_that_works(start, folder):
    shop = Catalogue(folder, [("1", "chair", 0)])
    shop.hide(True)
    daemon = start(shop.config("error_backoff = 50ms"))
    client = daemon.connect()
    assert client.ask("GET", "product:1").word == "HERDFAIL"
    shop.hide(False)
    eventually(lambda: client.ask("GET", "product:1") == b"chair")
    seen = explain(daemon, "product:1")
    assert seen["failures"] == 0 and seen["last_error"] == ""


def test_a_stale_value_is_served_instead_of_an_error_while_its_grace_lasts(start, folder):
    """20 ms of life, 600 ms of grace, a database that fails at once: all get the old value, and the attempts follow the
    back-off, not the asks."""
    shop = Catalogue(folder, [("1", "old", 0)])
    daemon = start(shop.config("ttl = 20ms  jitter = off  grace = 600ms  error_backoff = 100ms"))
    client = daemon.connect()
    assert client.ask("GET", "product:1") == b"old"
    shop.hide(True)
    stale(daemon, "product:1")
    asked, end = 0, time.monotonic() + 0.4
    while time.monotonic() < end:
        assert client.ask("GET", "product:1") == b"old"
        asked += 1
    assert asked > 100 and 2 <= origin_counters(daemon)["errors"] <= 4 and herd_counters(daemon)["load_errors"] <= 4
    eventually(lambda: explain(daemon, "product:1")["state"] == "absent")
    assert client.ask("GET", "product:1").word == "HERDFAIL"
    shop.hide(False)
    shop.put(("1", "new", 0))
    eventually(lambda: client.ask("GET", "product:1") == b"new")


def test_after_a_flush_there_is_no_stale_value_to_hide_an_error(start, folder):
    shop = Catalogue(folder, [("1", "old", 0)])
    daemon = start(shop.config("ttl = 20ms  jitter = off"))
    client = daemon.connect()
    assert client.ask("GET", "product:1") == b"old"
    stale(daemon, "product:1")
    shop.hide(True)
    client.ask("FLUSHALL")
    assert client.ask("GET", "product:1").word == "HERDFAIL"


# ---- refreshes before expiry


def test_the_last_part_of_a_life_refreshes_once_and_everybody_has_the_live_value(start, folder):
    shop = Catalogue(folder, [("1", "old", 100)])
    daemon = start(shop.config("ttl = 600ms  jitter = off  early = 'last 50%'".replace("'", '"')))
    askers = clients(daemon, 6)
    assert askers[0].ask("GET", "product:1") == b"old"
    shop.put(("1", "new", 100))
    time.sleep(0.2)
    assert askers[0].ask("GET", "product:1") == b"old" and queries(daemon) == 1, "not yet"
    time.sleep(0.15)
    begin = time.monotonic()
    assert [asker.ask("GET", "product:1") for asker in askers] == [b"old"] * 6
    within(time.monotonic() - begin, 0, 0.09)
    eventually(lambda: askers[0].ask("GET", "product:1") == b"new")
    counters = herd_counters(daemon)
    assert queries(daemon) == 2 and (counters["early"], counters["led"]) == (1, 2)
    assert counters["stale"] == counters["waited"] == 0 and 400 < askers[0].ask("PTTL", "product:1") <= 600


def test_xfetch_refreshes_sooner_what_is_dear(start, folder):
    """beta 100 makes it all but sure in the last half of the life; beta 0 turns it off."""
    shop = Catalogue(folder, [("1", "x", 20)])
    daemon = start(shop.config("ttl = 400ms  jitter = off  beta = 100") + 'gate "other:{id}" { origin = catalogue  '
                   'query = "SELECT name FROM product WHERE id = :id AND herd_cost(cost, 0) = 0"  ttl = 400ms  '
                   'jitter = off  beta = 0 }')
    client = daemon.connect()
    assert client.ask("MGET", "product:1", "other:1") == [b"x", b"x"]
    time.sleep(0.22)
    for _ in range(20):
        assert client.ask("MGET", "product:1", "other:1") == [b"x", b"x"]
        time.sleep(0.003)
    counters = herd_counters(daemon)
    assert counters["early"] >= 1 and counters["stale"] == 0
    assert client.ask("PTTL", "product:1") > client.ask("PTTL", "other:1") + 100
    assert queries(daemon) == 2 + counters["early"]


# ---- writes, invalidations and limits in mid-load


def loading(daemon, key="product:1"):
    """An asker that waits for a query that runs and has read its row."""
    before = queries(daemon)
    asker = daemon.connect().send("GET", key)
    eventually(lambda: queries(daemon) == before + 1)
    time.sleep(0.05)
    return asker


def test_a_set_in_mid_load_answers_the_waiters_and_outlives_the_load(start, folder):
    shop = Catalogue(folder, [("1", "of the row", 400)])
    daemon = start(shop.config())
    asker = loading(daemon)
    assert daemon.ask("SET", "product:1", "of the client", "EX", 30) == "OK"
    assert asker.read(0.3) == b"of the client"
    eventually(lambda: herd_counters(daemon)["fenced"] == 1)
    assert asker.ask("GET", "product:1") == b"of the client" and 29 <= asker.ask("TTL", "product:1") <= 30


def test_a_del_in_mid_load_keeps_the_old_row_from_being_stored(start, folder):
    """Those who asked before it may have the old value; who asks after it starts a newer load."""
    shop = Catalogue(folder, [("1", "v1", 250)])
    daemon = start(shop.config())
    before = loading(daemon)
    shop.put(("1", "v2", 20))
    assert daemon.ask("DEL", "product:1") == 0
    after_it = daemon.connect()
    assert after_it.ask("GET", "product:1") == b"v2"
    assert before.read() == b"v1"
    assert [client.ask("GET", "product:1") for client in (before, after_it)] == [b"v2"] * 2 and queries(daemon) == 2


def test_a_flush_in_mid_load_of_many_keys_stores_none_of_them(start, folder):
    shop = Catalogue(folder, [(str(i), "v1", 400) for i in range(10)])
    daemon = start(shop.config())
    keys = [f"product:{i}" for i in range(10)]
    askers = [daemon.connect().send("GET", key) for key in keys]
    eventually(lambda: queries(daemon) == 10)
    time.sleep(0.1)
    shop.put(*[(str(i), "v2", 0) for i in range(10)])
    assert daemon.ask("FLUSHALL") == "OK"
    late = daemon.connect()
    assert late.ask("MGET", *keys) == [b"v2"] * 10
    assert [asker.read() for asker in askers] == [b"v1"] * 10, "they asked before it"
    assert late.ask("MGET", *keys) == [b"v2"] * 10 and queries(daemon) == 20


def test_a_load_overtaken_while_it_waits_for_a_connection_is_left_out(start, folder):
    """The look again: nobody wants it any more when its turn comes, so no query is run."""
    shop = Catalogue(folder, [("slow", "x", 200), ("1", "v", 0)])
    daemon = start(shop.config(origin="pool_max = 1"))
    slow = loading(daemon, "product:slow")
    asker = daemon.connect().send("GET", "product:1")
    eventually(lambda: origin_counters(daemon)["queued"] == 1)
    daemon.ask("SET", "product:1", "of the client")
    assert asker.read() == b"of the client" and slow.read() == b"x"
    eventually(lambda: origin_counters(daemon)["skipped"] == 1)
    counters = herd_counters(daemon)
    assert queries(daemon) == 1 and counters["load_errors"] == 0 and counters["fenced"] == 0


def test_a_purge_refreshes_in_the_background(start, folder):
    shop = Catalogue(folder, [("1", "old", 0)])
    daemon = start(shop.config())
    client = daemon.connect()
    client.ask("GET", "product:1")
    shop.put(("1", "new", 50))
    assert client.ask("HERD", "PURGE", "product:1") == 1
    assert client.ask("GET", "product:1") == b"old"
    eventually(lambda: client.ask("GET", "product:1") == b"new")
    assert queries(daemon) == 2


def test_a_value_too_large_for_the_store_still_reaches_the_waiters(start, folder):
    shop = Catalogue(folder, [("1", "x" * 2_000_000, 80), ("2", "x" * 4_000_000, 0)])
    daemon = start(shop.config(more="limits { value = 3mb } store memory { max_bytes = 1mb }"))
    one, two = clients(daemon, 2)
    one.send("GET", "product:1")
    two.send("GET", "product:1")
    assert one.read() == two.read() == b"x" * 2_000_000 and queries(daemon) == 1
    assert explain(daemon, "product:1")["state"] == "absent"
    eventually(lambda: "event=store_refused" in daemon.log())
    assert one.ask("GET", "product:1") == b"x" * 2_000_000 and queries(daemon) == 2
    error = one.ask("GET", "product:2")
    assert error.word == "HERDFAIL" and "catalogue" in error.text and one.ask("PING") == "PONG"


def test_a_token_may_fill_what_an_origin_fills_too(start, folder):
    shop = Catalogue(folder, [("1", "of the row", 0)])
    daemon = start(shop.config())
    client, other = clients(daemon, 2)
    token = client.ask("HERD", "LEASE", "product:1")[2]
    other.send("GET", "product:1")
    assert other.silent_for(0.05) and queries(daemon) == 0
    assert client.ask("HERD", "FILL", "product:1", token, "by token") == 1 and other.read() == b"by token"
    token = client.ask("HERD", "LEASE", "product:2")[2]
    other.send("GET", "product:2")
    assert token and other.silent_for(0.03)
    client.close()
    assert other.read(2) is None and queries(daemon) == 1, "the origin takes over, and has no such row"


def test_sigterm_waits_for_loads_that_somebody_waits_for(start, folder):
    shop = Catalogue(folder, [("1", "chair", 300)])
    daemon = start(shop.config())
    asker = loading(daemon)
    daemon.signal(signal.SIGTERM)
    assert asker.read() == b"chair" and asker.closed_within(2)
    assert daemon.process.wait(patient(3)) == 0


def test_sigterm_with_loads_longer_than_the_drain_ends_all_the_same(start, folder):
    shop = Catalogue(folder, [("1", "chair", 60000)])
    daemon = start(shop.config(more="drain = 200ms"))
    loading(daemon)
    begin = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.process.wait(patient(5)) == 0
    within(time.monotonic() - begin, 0.15, 1.5)
