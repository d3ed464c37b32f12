"""Attempts to break it: what changes under a reply that is held, and what the answer must look like all the same."""

import os
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
