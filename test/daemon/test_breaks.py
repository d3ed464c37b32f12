"""Attempts to break it: what changes under a reply that is held, and what the answer must look like all the same."""

import resource
import signal
import time

from gear import *


def lead(daemon, key="k:1"):
    client = daemon.connect()
    assert client.ask("GET", key) is None
    return client


def raw_replies(connection, length):
    """Exactly so many bytes, as they came."""
    data = b""
    connection.socket.settimeout(patient(5))
    while len(data) < length:
        chunk = connection.socket.recv(length - len(data))
        assert chunk, data
        data += chunk
    return data


# ---- the protocol of a reply is that of its command, not of what came later


@with_config('gate "k:*" { grace = off  wait = 300ms  on_timeout = pass }')
def test_a_held_nil_is_written_in_the_protocol_in_which_it_was_asked(daemon):
    leader = lead(daemon)
    up = daemon.connect()
    up.send_raw(encode("GET", "k:1") + encode("HELLO", "3") + encode("GET", "plain"))
    assert raw_replies(up, 7) == b"$-1\r\n%7"
    down = daemon.connect(protocol=3)
    down.send_raw(encode("GET", "k:2") + encode("GET", "k:2"))  # leads, and is held behind itself
    assert raw_replies(down, 3) == b"_\r\n"
    down.send_raw(encode("RESET"))
    assert raw_replies(down, 3 + 8) == b"_\r\n+RESET\r\n"
    leader.close()


@with_config('gate "k:*" { grace = off  wait = 5s }')
def test_a_lease_waited_for_is_written_in_the_protocol_in_which_it_was_asked(daemon):
    leader = daemon.connect()
    token = leader.ask("HERD", "LEASE", "k:1")[2]
    waiter = daemon.connect()
    waiter.send_raw(encode("HERD", "LEASE", "k:1", "WAIT", "5000") + encode("HELLO", "3"))
    assert waiter.silent_for(0.1)
    assert leader.ask("HERD", "FILL", "k:1", token, "v") == 1
    assert raw_replies(waiter, 4 + 11 + 7 + 5) == b"*4\r\n$5\r\nFRESH\r\n$1\r\nv\r\n$-1\r\n"


# ---- gates that change under what is parked


@with_config('gate "k:*" { grace = off  wait = 5s }')
def test_what_was_parked_while_its_gate_went_is_answered_as_plain_redis(daemon):
    """Parked asks are looked up when the hold before them ends. By then no gate covers them: none of them may lead or
    wait in what no write would end."""
    first, second = lead(daemon, "k:a"), lead(daemon, "k:b")
    one, two = daemon.connect(), daemon.connect()
    for client, held in ((one, "k:a"), (two, "k:b")):
        client.send("GET", held).send("GET", "k:parked")
        assert client.silent_for(0.05)
    with open(daemon.config_path, "w") as file:
        file.write('gate "other:*" { grace = off }')
    daemon.signal(signal.SIGHUP)
    began = time.monotonic()
    for client in (one, two):
        assert [client.read(), client.read()] == [None, None]
    assert time.monotonic() - began < patient(2)
    assert daemon.ask("HERD", "FLIGHTS") == []
    first.close()
    second.close()


# ---- the end


@with_config('threads = 1  drain = 10s  gate "k:*" { grace = off  wait = 60s  lease = 30s  lease_first = 30s }')
def test_sigterm_lets_every_answer_leave(daemon):
    """More waiters than are answered in one round of a loop."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < 4000:
        if 0 <= hard < 4000:
            skip(f"only {hard} descriptors are allowed here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (4000, hard))
    leader, waiters = lead(daemon), [daemon.connect() for _ in range(2000)]
    for waiter in waiters:
        waiter.send("GET", "k:1")
    eventually(lambda: explain(leader, "k:1")["waiters"] == len(waiters), 20)
    daemon.signal(signal.SIGTERM)
    eventually(lambda: "draining" in daemon.log())
    leader.send("SET", "k:1", "v")
    assert [waiter.read() for waiter in waiters] == [b"v"] * len(waiters)
    assert daemon.process.wait(patient(5)) == 0


@with_config('drain = 10s  gate "k:*" { grace = off  wait = 60s  lease = 30s  lease_first = 30s }')
def test_sigterm_lets_a_large_answer_leave_as_long_as_it_is_read(daemon):
    leader, reader, sleeper = lead(daemon), daemon.connect(), daemon.connect(receive_buffer=4096)
    for waiter in (reader, sleeper):
        waiter.send("GET", "k:1")
    eventually(lambda: explain(leader, "k:1")["waiters"] == 2)
    daemon.signal(signal.SIGTERM)
    eventually(lambda: "draining" in daemon.log())
    value = b"x" * (16 << 20)
    leader.send("SET", "k:1", value)
    assert reader.read() == value
    assert daemon.process.wait(patient(5)) == 0, "who does not read is not waited for"
