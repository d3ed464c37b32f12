"""Gates, the lease: how long a leader may take, who follows one that does not come back, and what its waiters get."""

import time

from gear import *

QUICK = 'gate "k:*" { grace = off  lease_first = 200ms }'


def clients(daemon, count):
    return [daemon.connect() for _ in range(count)]


def lead(daemon, key, name=None):
    client = daemon.connect()
    if name:
        assert client.ask("CLIENT", "SETNAME", name) == "OK"
    assert client.ask("GET", key) is None
    return client


def wait_for(daemon, key, name=None):
    client = daemon.connect()
    if name:
        assert client.ask("CLIENT", "SETNAME", name) == "OK"
    client.send("GET", key)
    assert client.silent_for(0.02)
    return client


def fill_after(daemon, key, seconds):
    """One flight that teaches the gate a fill of that length."""
    leader = lead(daemon, key)
    time.sleep(seconds)
    leader.ask("SET", key, "v")
    leader.close()


def lease_ms(daemon):
    with Connection(daemon.port, protocol=3) as client:
        return client.ask("HERD", "GATES")[0][b"lease_ms"]


def within(seconds, low, high):
    assert low <= seconds <= patient(high), f"{seconds:.3f} s is not from {low} to {high}"


# ---- how long a lease is


@with_config('gate "k:*" { grace = off  lease_first = 700ms  lease = 2s }')
def test_a_lease_is_three_times_the_slowest_recent_fill_within_its_bounds(daemon):
    assert lease_ms(daemon) == 700
    lead(daemon, "k:1")
    eventually(lambda: 600 < explain(daemon, "k:1")["lease_left_ms"] <= 700)
    fill_after(daemon, "k:2", 0.02)
    assert lease_ms(daemon) == 1000, "never under a second once it is measured"
    lead(daemon, "k:3")
    eventually(lambda: 900 < explain(daemon, "k:3")["lease_left_ms"] <= 1000)
    fill_after(daemon, "k:4", 0.5)
    assert 1500 <= lease_ms(daemon) <= patient(1600)
    fill_after(daemon, "k:5", 0.75)
    assert lease_ms(daemon) == 2000, "never above `lease`"


@with_config(QUICK)
def test_a_late_set_counts_as_a_fill_of_that_length_and_a_lapse_does_not(daemon):
    leader = lead(daemon, "k:1")
    time.sleep(0.25)
    assert lease_ms(daemon) == 200 and herd_counters(daemon)["lapsed"] == 1
    time.sleep(0.25)
    leader.ask("SET", "k:1", "v")
    assert 1500 <= lease_ms(daemon) <= patient(1650)
    assert leader.ask("GET", "k:1") == b"v" and leader.ask("TTL", "k:1") == -1


@with_config(QUICK)
def test_a_lapse_hands_over_to_one_and_doubles_the_keys_lease(daemon):
    first = lead(daemon, "k:1")
    begin = time.monotonic()
    second, third, fourth = [wait_for(daemon, "k:1") for _ in range(3)]
    nil, at = second.read_timed()
    assert nil is None
    within(at - begin, 0.15, 0.4)
    assert third.silent_for(0.1) and 200 < explain(daemon, "k:1")["lease_left_ms"] <= 400
    nil, later = third.read_timed()
    assert nil is None
    within(later - at, 0.35, 0.6)
    assert fourth.silent_for(0.05) and 500 < explain(daemon, "k:1")["lease_left_ms"] <= 800
    first.ask("SET", "k:1", "late, and yet it is the value")
    assert fourth.read() == b"late, and yet it is the value"
    counters = herd_counters(daemon)
    assert (counters["lapsed"], counters["handed_over"], counters["loads"], counters["led"]) == (2, 2, 3, 1)
    first.ask("DEL", "k:1")
    lead(daemon, "k:1")
    assert explain(daemon, "k:1")["lease_left_ms"] > 900, "the fill ended the doubling"


# ---- what a waiter gets


@with_config('gate "k:*" { grace = off  wait = 200ms }')
def test_a_waiter_gets_a_named_error_at_its_own_deadline(daemon):
    leader = lead(daemon, "k:1")
    begin = time.monotonic()
    first = daemon.connect().send("GET", "k:1")
    time.sleep(0.1)
    later = time.monotonic()
    second = daemon.connect().send("MGET", "k:1", "free")
    error, at = first.read_timed()
    assert error.word == "HERDWAIT"
    within(at - begin, 0.19, 0.35)
    error, at = second.read_timed()
    assert error.word == "HERDWAIT"
    within(at - later, 0.19, 0.35)
    assert first.ask("PING") == "PONG" and herd_counters(daemon)["timed_out"] == 2
    leader.ask("SET", "k:1", "v")
    assert first.ask("GET", "k:1") == b"v"


@with_config('gate "k:*" { grace = off  wait = 100ms  on_timeout = pass  pass_max = 2 }')
def test_on_timeout_pass_gives_nil_to_the_first_and_errors_to_the_rest(daemon):
    lead(daemon, "k:1")
    waiters = [wait_for(daemon, "k:1") for _ in range(4)]
    replies = [waiter.read() for waiter in waiters]
    assert replies[:2] == [None, None] and [reply.word for reply in replies[2:]] == ["HERDWAIT"] * 2
    late = daemon.connect()
    assert late.ask("GET", "k:1").word == "HERDWAIT", "per lease time, not per asker"
    waiters[0].ask("SET", "k:1", "of one that passed")
    assert late.ask("GET", "k:1") == b"of one that passed"


@with_config('gate "k:*" { grace = off  wait = 300ms }')
def test_the_wait_runs_from_arrival_also_for_one_that_stands_behind_a_hold(daemon):
    lead(daemon, "k:1")
    lead(daemon, "k:2")
    begin = time.monotonic()
    busy = daemon.connect().send("GET", "k:1").send("GET", "k:2")
    assert busy.read().word == "HERDWAIT"
    error, at = busy.read_timed()
    assert error.word == "HERDWAIT"
    within(at - begin, 0.29, 0.45)


@with_config('gate "k:*" { grace = off  wait = 150ms }')
def test_one_member_past_its_time_answers_the_command_and_the_others_flight_goes_on(daemon):
    slow, quick = lead(daemon, "k:1"), lead(daemon, "k:2")
    both = daemon.connect().send("MGET", "k:2", "k:1")
    quick.ask("SET", "k:2", "v")
    assert both.read().word == "HERDWAIT"
    assert both.ask("MGET", "k:2", "free") == [b"v", None] and herd_counters(daemon)["waiters"] == 0
    slow.ask("SET", "k:1", "v")
    assert both.ask("MGET", "k:2", "k:1") == [b"v", b"v"]


# ---- keys that nobody fills


@with_config('gate "k:*" { grace = off  lease_first = 60ms  unfilled_after = 150ms }')
def test_a_key_that_nobody_ever_sets_is_found_out_and_held_no_more(daemon):
    """Leases of 60 and 120 ms lapse: 180 ms in all. Then nobody is held for one lease time, then one ask is a probe."""
    lead(daemon, "k:1")
    waiters = [wait_for(daemon, "k:1") for _ in range(4)]
    begin = time.monotonic()
    times = sorted((waiter.read_timed() for waiter in waiters), key=lambda reply: reply[1])
    assert [reply for reply, _ in times] == [None] * 4
    within(times[-1][1] - begin, 0.0, 0.4)
    seen = explain(daemon, "k:1")
    assert seen["unfilled"] == 1 and seen["unfilled_ms"] <= 120 and "nobody SETs" in seen["advice"]
    asker = daemon.connect()
    assert asker.ask("GET", "k:1") is None and asker.ask("GET", "k:1") is None
    assert herd_counters(daemon)["unfilled"] == 1 and eventually(lambda: "event=unfilled" in daemon.log())
    time.sleep(0.13)
    before = herd_counters(daemon)["led"]
    assert [asker.ask("GET", "k:1") for _ in range(3)] == [None] * 3
    assert herd_counters(daemon)["led"] == before + 1, "one is a probe, the others pass"
    asker.ask("SET", "k:1", "v")
    assert explain(daemon, "k:1")["unfilled"] == 0
    asker.ask("DEL", "k:1")
    lead(daemon, "k:1")
    wait_for(daemon, "k:1")


@with_config('gate "k:*" { grace = off  lease_first = 60ms  unfilled_after = 100ms  wait = 1s }')
def test_a_key_that_was_filled_before_is_never_opened(daemon):
    """Its origin is in trouble: one nil per lease time, the others get what on_timeout says."""
    client = daemon.connect()
    client.ask("SET", "k:1", "v", "PX", 10)
    time.sleep(0.02)
    leaders = [lead(daemon, "k:1")]
    waiters = [wait_for(daemon, "k:1") for _ in range(8)]
    replies = [waiter.read() for waiter in waiters]
    assert replies[:2] == [None, None] and replies[-1].word == "HERDWAIT"
    assert sum(reply is None for reply in replies) <= 4, "60 + 120 + 240 + 480 ms"
    assert explain(daemon, "k:1")["unfilled"] == 0 and leaders
    wait_for(daemon, "k:1")


@with_config('gate "k:*" { grace = off  lease_first = 60ms  unfilled_after = 100ms  wait = 4s }')
def test_while_nothing_of_the_gate_is_filled_any_more_no_key_is_called_unfilled(daemon):
    """A gate that worked and now does not: it is the origin that is in trouble, not the key."""
    daemon.ask("SET", "k:0", "v")
    time.sleep(0.02)
    lead(daemon, "k:1")
    first, second = wait_for(daemon, "k:1"), wait_for(daemon, "k:1")
    assert first.read() is None
    assert second.read() is None
    seen = explain(daemon, "k:1")
    assert seen["unfilled"] == 0 and seen["lapses"] == 2 and seen["leader"] == "client"


# ---- a leader that closes


@with_config('gate "k:*" { grace = off  lease_first = 600ms }')
def test_unmeasured_a_closed_leader_is_followed_at_once_and_once_a_flight(daemon):
    leader = lead(daemon, "k:1")
    second, third = wait_for(daemon, "k:1"), wait_for(daemon, "k:1")
    begin = time.monotonic()
    leader.close()
    nil, at = second.read_timed()
    assert nil is None
    within(at - begin, 0.005, 0.2)
    second.close()
    nil, later = third.read_timed()
    assert nil is None
    within(later - at, 0.5, 0.9)
    counters = herd_counters(daemon)
    assert (counters["closed_leaders"], counters["handed_over"]) == (2, 2)


@with_config('gate "k:*" { grace = off }')
def test_measured_its_lease_ends_at_a_quarter_more_than_the_slowest_fill(daemon):
    fill_after(daemon, "k:0", 0.4)
    begin = time.monotonic()
    leader = lead(daemon, "k:1")
    second = wait_for(daemon, "k:1")
    third = wait_for(daemon, "k:1")
    leader.close()
    nil, at = second.read_timed()
    assert nil is None
    within(at - begin, 0.49, 0.75)
    second.close()
    nil, later = third.read_timed()
    assert nil is None
    within(later - at, 0.98, 1.3)


@with_config('gate "k:*" { grace = off }')
def test_a_leader_that_connects_for_each_command_fills_after_it_closed(daemon):
    """Its SET comes on another connection: within the usual time nobody else was asked to compute."""
    fill_after(daemon, "k:0", 0.3)
    lead(daemon, "k:1").close()
    waiter = wait_for(daemon, "k:1")
    time.sleep(0.2)
    assert daemon.ask("SET", "k:1", "v") == "OK"
    assert waiter.read() == b"v"
    assert herd_counters(daemon)["loads"] == 2


@with_config('gate "k:*" { grace = off  lease_first = 1s }')
def test_another_peers_waiter_is_handed_the_lease_first(daemon):
    leader = lead(daemon, "k:1", "one")
    same, other = wait_for(daemon, "k:1", "one"), wait_for(daemon, "k:1", "two")
    leader.close()
    assert other.read(0.5) is None
    assert same.silent_for(0.05)


@with_config('gate "k:*" { grace = off  lease_first = 300ms }')
def test_a_flight_whose_leader_closed_with_no_waiter_is_kept_and_that_is_its_once(daemon):
    lead(daemon, "k:1").close()
    eventually(lambda: herd_counters(daemon)["closed_leaders"] == 1)
    second = lead(daemon, "k:1")
    waiter = wait_for(daemon, "k:1")
    begin = time.monotonic()
    second.close()
    nil, at = waiter.read_timed()
    assert nil is None
    within(at - begin, 0.15, 0.5)


@with_config('gate "k:*" { grace = off }')
def test_a_waiter_that_has_closed_too_is_not_chosen(daemon):
    leader = lead(daemon, "k:1")
    waiters = [wait_for(daemon, "k:1") for _ in range(4)]
    for client in [leader] + waiters[:3]:
        client.reset()
    assert waiters[3].read(1) is None
    waiters[3].ask("SET", "k:1", "v")
    assert daemon.ask("GET", "k:1") == b"v" and herd_counters(daemon)["leases"] == 0


@with_config('gate "k:*" { grace = 1m }')
def test_over_a_stale_value_a_closed_leader_is_followed_by_the_next_ask(daemon):
    client, other = clients(daemon, 2)
    client.ask("SET", "k:1", "old", "PX", 15)
    eventually(lambda: explain(daemon, "k:1")["state"] == "stale")
    lead(daemon, "k:1").close()
    eventually(lambda: herd_counters(daemon)["closed_leaders"] == 1)
    assert client.ask("GET", "k:1") is None and other.ask("GET", "k:1") == b"old"


# ---- a leader of the client's own time-out


@with_config('gate "k:*" { grace = off  wait = 3s }')
def test_closes_at_the_same_age_teach_a_peers_time_limit(daemon):
    """Three times a client of peer "hasty" hangs up after 200 ms of a flight whose leader lives: from then on its asks
    are answered at 0.8 of that, which is before it gives up. Other peers wait as before."""
    for i in range(3):
        lead(daemon, f"k:{i}", "patient")
        hasty = daemon.connect()
        hasty.ask("CLIENT", "SETNAME", "hasty")
        hasty.send("GET", f"k:{i}")
        assert hasty.silent_for(0.2)
        hasty.close()
        eventually(lambda: herd_counters(daemon)["gave_up"] == i + 1)
    eventually(lambda: daemon.log().count("event=gave_up") == 1)
    hasty, calm = daemon.connect(), daemon.connect()
    hasty.ask("CLIENT", "SETNAME", "hasty")
    begin = time.monotonic()
    hasty.send("GET", "k:2")
    calm.send("GET", "k:2")
    error, at = hasty.read_timed()
    assert error.word == "HERDWAIT"
    within(at - begin, 0.15, 0.3)
    assert calm.silent_for(0.2)


@with_config('gate "k:*" { grace = off  wait = 3s }')
def test_closes_together_with_the_leader_teach_nothing(daemon):
    for i in range(4):
        leader, waiter = lead(daemon, f"k:{i}", "one"), wait_for(daemon, f"k:{i}", "one")
        time.sleep(0.05)
        leader.close()
        waiter.close()
        eventually(lambda: herd_counters(daemon)["closed_leaders"] > i)
    assert "event=gave_up" not in daemon.log()
