"""Gates, the blocked leader: holding that keeps the leader from its own fill fails open, once, and is remembered."""

import os
import time

from gear import *

GATE = 'gate "k:*" { grace = off  blocked_after = 150ms }'


def named(daemon, name):
    client = daemon.connect()
    assert client.ask("CLIENT", "SETNAME", name) == "OK"
    return client


def pool(daemon, count, name="pool"):
    return [named(daemon, name) for _ in range(count)]


def within(seconds, low, high):
    assert low <= seconds <= patient(high), f"{seconds:.3f} s is not from {low} to {high}"


def multiplex(client):
    """Makes sure that the daemon has seen a command arrive behind an outstanding reply."""
    client.send_raw(encode("PING") * 2)
    assert [client.read(), client.read()] == ["PONG"] * 2


# ---- one connection for all callers


@with_config(GATE)
def test_a_multiplexed_leader_behind_its_own_hold_is_released_once(daemon):
    """Callers of one connection: one leads k:1, one is held for k:2 that another program leads, and so the reply that
    the leader's next command waits for would never come."""
    witness, shared = named(daemon, "witness"), named(daemon, "shared")
    assert witness.ask("GET", "k:2") is None
    begin = time.monotonic()
    assert shared.ask("GET", "k:1") is None
    shared.send("GET", "k:2").send("GET", "other")
    nil, at = shared.read_timed()
    assert nil is None and shared.read() is None
    within(at - begin, 0.14, 0.4)
    assert shared.ask("SET", "k:1", "v") == "OK"
    assert herd_counters(daemon)["released_blocked"] == 1
    log = eventually(lambda: "event=released_blocked" in daemon.log() and daemon.log())
    assert log.count("event=released_blocked") == 1 and "cure=" in log and "name=shared" in log
    seen = explain(shared, "k:2")
    assert seen["not_held_connection"] == 1 and "blocked" in seen["advice"]
    assert explain(witness, "k:2")["not_held_connection"] == 0


@with_config(GATE)
def test_from_then_on_it_is_not_held_but_leads_as_always(daemon):
    witness, shared, third = named(daemon, "witness"), named(daemon, "shared"), named(daemon, "third")
    witness.ask("GET", "k:2")
    shared.ask("GET", "k:1")
    shared.send("GET", "k:2").send("PING")
    assert shared.read() is None and shared.read() == "PONG"
    begin = time.monotonic()
    assert shared.ask("GET", "k:2") is None, "where it would wait it gets nil, at once"
    within(time.monotonic() - begin, 0, 0.1)
    assert shared.ask("GET", "k:3") is None
    third.send("GET", "k:3")
    assert third.silent_for(0.05), "it leads, and others are held by its lease"
    shared.ask("SET", "k:3", "v", "PX", 20)
    assert third.read() == b"v"
    counters = herd_counters(daemon)
    assert counters["passed"] == 1 and counters["released_blocked"] == 1
    eventually(lambda: daemon.log().count("event=released_blocked") == 1)


@with_config('gate "k:*" { grace = 1m  blocked_after = 150ms }')
def test_exempt_it_leads_over_a_stale_value_too_and_gets_it_where_another_leads(daemon):
    witness, shared = named(daemon, "witness"), named(daemon, "shared")
    for key in ("k:3", "k:4"):
        witness.ask("SET", key, "old", "PX", 15)
    witness.ask("GET", "k:2")
    shared.ask("GET", "k:1")
    shared.send("GET", "k:2").send("PING")
    assert shared.read() is None and shared.read() == "PONG"
    assert shared.ask("GET", "k:3") is None and witness.ask("GET", "k:3") == b"old"
    assert witness.ask("GET", "k:4") is None and shared.ask("GET", "k:4") == b"old"


@with_config(GATE)
def test_a_program_that_reads_on_the_connection_it_computes_for(daemon):
    """The loader itself asks, on the same connection, for a key that somebody else computes."""
    witness, shared = named(daemon, "witness"), named(daemon, "shared")
    witness.ask("GET", "k:part")
    multiplex(shared)
    begin = time.monotonic()
    assert shared.ask("GET", "k:whole") is None
    assert shared.ask("GET", "k:part") is None, "released, and computed by the loader itself"
    within(time.monotonic() - begin, 0.14, 0.4)
    shared.ask("SET", "k:whole", "v")
    assert witness.ask("GET", "k:whole") == b"v"


@with_config(GATE)
def test_an_asker_that_is_not_multiplexed_and_has_other_connections_is_held(daemon):
    leader, asker = pool(daemon, 2)
    assert leader.ask("GET", "k:1") is None
    asker.send("GET", "k:1")
    assert asker.silent_for(0.4)
    leader.ask("SET", "k:1", "v")
    assert asker.read() == b"v" and herd_counters(daemon)["released_blocked"] == 0


@with_config(GATE)
def test_a_fill_past_held_replies_proves_the_connection(daemon):
    """Its SET comes by another way although it has a held reply: so holding it does no harm, and goes on."""
    witness = named(daemon, "witness")
    shared, _ = pool(daemon, 2)
    witness.ask("GET", "k:2")
    shared.ask("GET", "k:1")
    shared.send("GET", "k:2").send("PING")
    assert shared.silent_for(0.03)
    witness.ask("SET", "k:1", "v")
    witness.ask("SET", "k:2", "v")
    assert shared.read() == b"v" and shared.read() == "PONG"
    witness.ask("GET", "k:4")
    shared.ask("GET", "k:3")
    shared.send("GET", "k:4").send("PING")
    assert shared.silent_for(0.4), "proved: no release after blocked_after"
    witness.ask("SET", "k:4", "v")
    assert shared.read() == b"v" and herd_counters(daemon)["released_blocked"] == 0


@with_config('gate "a:*" { grace = off  blocked_after = 150ms } gate "b:*" { grace = off  blocked_after = 150ms }')
def test_proof_and_exemption_are_per_gate(daemon):
    witness, shared = named(daemon, "witness"), named(daemon, "shared")
    witness.ask("MGET", "a:2", "b:2", "b:3")
    shared.ask("GET", "a:1")
    shared.send("GET", "a:2").send("PING")
    assert shared.read() is None and shared.read() == "PONG"
    assert shared.ask("GET", "a:2") is None and shared.ask("SET", "a:1", "v") == "OK"
    shared.send("GET", "b:2")
    assert shared.silent_for(0.05)
    witness.ask("SET", "b:2", "v")
    assert shared.read() == b"v"


@with_config('gate "k:*" { grace = off  blocked_after = 100ms }')
def test_blocked_after_grows_with_the_slowest_fill(daemon):
    """1.5 x 400 ms."""
    witness, shared = named(daemon, "witness"), named(daemon, "shared")
    witness.ask("GET", "k:0")
    time.sleep(0.4)
    witness.ask("SET", "k:0", "v")
    witness.ask("GET", "k:2")
    begin = time.monotonic()
    shared.ask("GET", "k:1")
    shared.send("GET", "k:2").send("PING")
    nil, at = shared.read_timed()
    assert nil is None
    within(at - begin, 0.59, 0.9)


@with_config(GATE)
def test_past_blocked_after_a_hold_that_blocks_is_not_begun(daemon):
    """The lease is overdue already when its connection gets a held reply: it is released at once."""
    witness, shared = named(daemon, "witness"), named(daemon, "shared")
    witness.ask("GET", "k:2")
    multiplex(shared)
    shared.ask("GET", "k:1")
    time.sleep(0.2)
    begin = time.monotonic()
    assert shared.ask("GET", "k:2") is None
    within(time.monotonic() - begin, 0, 0.1)


@with_config(GATE)
def test_everything_held_on_the_connection_is_released_also_what_was_parked(daemon):
    witness, shared = named(daemon, "witness"), named(daemon, "shared")
    witness.ask("MGET", "k:2", "k:3")
    shared.ask("GET", "k:1")
    shared.send("GET", "k:2").send("GET", "k:5").send("GET", "k:3").send("MGET", "k:2", "k:6").send("PING")
    assert [shared.read(2) for _ in range(3)] == [None] * 3
    assert shared.read(2) == [None, None] and shared.read() == "PONG"
    assert shared.ask("SET", "k:5", "v") == "OK" and witness.ask("GET", "k:5") == b"v"


# ---- a pool


@with_config(GATE)
def test_a_pool_whose_every_connection_is_held_is_released(daemon):
    """Two connections; both leaders of their program come back to ask for what another program computes."""
    witness = named(daemon, "witness")
    first, second = pool(daemon, 2)
    witness.ask("GET", "k:2")
    begin = time.monotonic()
    assert first.ask("GET", "k:1") is None
    second.send("GET", "k:2")
    assert second.silent_for(0.05)
    first.send("GET", "k:2")
    replies = [first.read_timed(), second.read_timed()]
    assert [reply for reply, _ in replies] == [None, None]
    within(max(at for _, at in replies) - begin, 0.14, 0.4)
    assert first.ask("SET", "k:1", "v") == "OK"
    seen = explain(second, "k:2")
    assert (seen["not_held_peer"], seen["not_held_connection"]) == (1, 0)
    assert second.ask("GET", "k:2") is None
    late = named(daemon, "pool")
    assert late.ask("GET", "k:2") is None, "the peer is known, also by a new connection"
    other = named(daemon, "another").send("GET", "k:2")
    assert other.silent_for(0.05)
    assert herd_counters(daemon)["released_blocked"] == 2
    eventually(lambda: daemon.log().count("event=released_blocked") == 1)


@with_config(GATE)
def test_a_leaders_own_waiters_block_it_when_the_pool_has_no_connection_left(daemon):
    first, second, third = pool(daemon, 3)
    assert first.ask("GET", "k:1") is None
    for client in (second, third, first):
        client.send("GET", "k:1")
    begin = time.monotonic()
    assert [client.read(2) for client in (first, second, third)] == [None] * 3
    within(time.monotonic() - begin, 0.05, 0.4)


@with_config(GATE)
def test_a_connection_of_the_pool_that_is_free_keeps_all_held(daemon):
    first, second, third = pool(daemon, 3)
    assert first.ask("GET", "k:1") is None
    first.send("GET", "k:1")
    second.send("GET", "k:1")
    assert first.silent_for(0.4) and second.silent_for(0.01)
    third.ask("SET", "k:1", "v")
    assert first.read() == b"v" and second.read() == b"v"


@with_config(GATE)
def test_a_fill_while_all_others_are_held_proves_the_pool(daemon):
    first, second, third = pool(daemon, 3)
    assert first.ask("GET", "k:1") is None
    first.send("GET", "k:1")
    second.send("GET", "k:1")
    assert first.silent_for(0.03) and second.silent_for(0.01)
    third.ask("SET", "k:1", "v")
    assert first.read() == second.read() == b"v"
    witness = named(daemon, "witness")
    witness.ask("GET", "k:3")
    assert first.ask("GET", "k:2") is None
    for client in (first, second, third):
        client.send("GET", "k:3")
    assert first.silent_for(0.4) and second.silent_for(0.01)
    witness.ask("SET", "k:3", "v")
    assert [client.read() for client in (first, second, third)] == [b"v"] * 3


@with_config(GATE)
def test_an_unrelated_client_at_the_same_address_has_no_part_in_it(daemon):
    """Peers are told apart by name; one without a name is a peer too."""
    nameless, leader = daemon.connect(), named(daemon, "one")
    assert leader.ask("GET", "k:1") is None
    nameless.send("GET", "k:1")
    assert nameless.silent_for(0.4)
    leader.ask("SET", "k:1", "v")
    assert nameless.read() == b"v"


def test_on_a_unix_socket_the_process_is_the_peer(start, folder):
    """Both connections are of this process, and both are held: that is the whole peer."""
    path = os.path.join(folder, "gate.sock")
    daemon = start(GATE, ("--listen", f"unix:{path}"))
    witness = named(daemon, "witness")
    witness.ask("GET", "k:2")
    first, second = Connection(path), Connection(path)
    assert first.ask("GET", "k:1") is None
    first.send("GET", "k:2")
    second.send("GET", "k:2")
    assert first.read(2) is None and second.read(2) is None
    eventually(lambda: f'peer="unix:{os.getpid()} ' in daemon.log())
    first.close()
    second.close()


# ---- programs with a lock of their own


@with_config('gate "k:*" { grace = off  own_lock = yes }')
def test_own_lock_lets_the_leaders_peer_look_again(daemon):
    """The program looks, takes its own lock, and looks again: the second look must not be held by the first's lease."""
    leader, same = pool(daemon, 2)
    other = named(daemon, "other")
    assert leader.ask("GET", "k:1") is None and leader.ask("GET", "k:1") is None and same.ask("GET", "k:1") is None
    other.send("GET", "k:1")
    assert other.silent_for(0.05)
    leader.ask("SET", "k:1", "v")
    assert other.read() == b"v"
    counters = herd_counters(daemon)
    assert (counters["led"], counters["passed"], counters["waited"]) == (1, 2, 1)


@with_config('gate "k:*" { grace = 1m  own_lock = yes }')
def test_own_lock_also_over_a_stale_value(daemon):
    leader, same = pool(daemon, 2)
    other = named(daemon, "other")
    other.ask("SET", "k:1", "old", "PX", 15)
    eventually(lambda: explain(daemon, "k:1")["state"] == "stale")
    assert leader.ask("GET", "k:1") is None and leader.ask("GET", "k:1") is None and same.ask("GET", "k:1") is None
    assert other.ask("GET", "k:1") == b"old"


@with_config('gate "k:*" { grace = off  lease_first = 100ms  blocked_after = 10s }')
def test_own_lock_is_proposed_where_a_leader_waits_for_itself(daemon):
    leader, free = pool(daemon, 2)
    assert leader.ask("GET", "k:1") is None
    assert leader.ask("GET", "k:1") is None, "handed to itself when the lease lapsed"
    eventually(lambda: daemon.log().count("event=looks_again") == 1 and "own_lock = yes" in daemon.log())
    with Connection(daemon.port, protocol=3) as client:
        assert b"own_lock" in client.ask("HERD", "GATES")[0][b"advice"]
    assert free.ask("PING") == "PONG"
