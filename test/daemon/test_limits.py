"""Every limit is reached once: it is named and counted, and nobody else notices."""

import os
import resource
import socket
import struct
import time

from gear import *


def only_client(daemon):
    """A connection, once the daemon has seen the end of those before it."""
    only = daemon.connect()
    eventually(lambda: info(only)["connected_clients"] == 1)
    return only


@with_config('limits { clients = 4 }')
def test_one_client_too_many_is_told_and_turned_away(daemon):
    clients = [only_client(daemon)] + [daemon.connect() for _ in range(3)]
    assert [client.ask("PING") for client in clients] == ["PONG"] * 4
    late = daemon.connect()
    assert late.closed_within(2) and bytes(late.buffer) == b"-ERR max number of clients reached\r\n"
    assert info(clients[0])["rejected_connections"] == 1
    clients.pop().close()
    eventually(lambda: info(clients[0])["connected_clients"] == 3)
    assert daemon.connect().ask("PING") == "PONG"


@with_config('limits { clients_per_peer = 2 }')
def test_one_peer_cannot_take_all_connections(daemon):
    clients = [only_client(daemon), daemon.connect()]
    assert [client.ask("PING") for client in clients] == ["PONG"] * 2
    late = daemon.connect()
    assert late.closed_within(2) and bytes(late.buffer) == b"-ERR max number of clients of one peer reached\r\n"
    clients.pop().close()
    eventually(lambda: info(clients[0])["connected_clients"] == 1)
    assert daemon.connect().ask("PING") == "PONG"


@with_config('limits { key = 100b value = 1kb }')
def test_a_small_limit_is_named_and_the_connection_lives_on(daemon):
    client = daemon.connect()
    assert client.ask("SET", "k", b"x" * 1025).word == "ERR" and client.ask("SET", "k" * 101, "v").word == "ERR"
    assert client.ask("SET", "k" * 100, b"x" * 1024) == "OK"
    assert info(daemon)["limit_writes_refused"] == 2


@with_config('limits { key = 100b value = 1kb }')
def test_values_that_are_too_large_are_refused_before_they_are_sent(daemon):
    witness, client = daemon.connect(), daemon.connect()
    client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n")
    assert client.closed_within(2) and bytes(client.buffer).startswith(b"-ERR Protocol error: invalid bulk length")
    before = daemon.rss_bytes()
    for _ in range(20):
        daemon.connect().send_raw(b"*1000000\r\n$3\r\nGET\r\n$100\r\n")
    assert witness.ask("PING") == "PONG"
    assert daemon.rss_bytes() - before < 8 << 20


@with_config('limits { value = 64mb query_buffer = 128mb }')
def test_announcing_much_costs_nothing(daemon):
    before = daemon.rss_bytes()
    clients = [daemon.connect().send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000000\r\nx") for _ in range(20)]
    assert daemon.ask("PING") == "PONG"
    assert info(daemon)["query_bytes"] < 1 << 20
    assert daemon.rss_bytes() - before < 16 << 20
    for client in clients:
        client.close()
    eventually(lambda: info(daemon)["query_bytes"] == 0)


@with_config('limits { value = 1mb query_buffer = 2mb query_buffer_total = 4mb }')
def test_requests_under_way_have_a_total(daemon):
    clients = [daemon.connect() for _ in range(8)]
    refused = 0
    for client in clients:
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n")
        try:
            for _ in range(15):
                client.send_raw(b"x" * 65536)
                time.sleep(0.002)
        except OSError:
            pass
    for client in clients:
        refused += client.closed_within(0.2)
        assert not client.buffer or b"query_buffer_total" in bytes(client.buffer)
    assert 0 < refused < 8
    seen = info(daemon)
    assert seen["query_bytes"] < 8 << 20 and seen["limit_query_dropped"] == refused
    assert daemon.ask("SET", "k", "v") == "OK"


@with_config('limits { value = 1mb output = 4mb }')
def test_a_slow_reader_is_dropped_and_nobody_else(daemon):
    daemon.ask("SET", "big", b"x" * 1_000_000)
    reader, slow = daemon.connect(), daemon.connect(receive_buffer=2048)
    before = daemon.rss_bytes()
    slow.send_raw(encode("GET", "big") * 200)
    eventually(lambda: info(daemon)["output_bytes"] > 1_000_000)
    for _ in range(30):
        assert reader.ask("GET", "big") == b"x" * 1_000_000
    assert daemon.rss_bytes() - before < 24 << 20
    eventually(lambda: info(daemon)["evicted_clients"] == 1, 15)
    assert info(daemon)["limit_output_dropped"] == 1 and info(daemon)["output_bytes"] == 0
    assert "event=client_dropped cause=output" in daemon.log()
    assert reader.ask("PING") == "PONG"


@with_config('limits { value = 1mb output = 4mb }')
def test_a_reader_that_reads_gets_more_than_its_limit_in_one_pipeline(daemon):
    daemon.ask("SET", "big", b"x" * 1_000_000)
    client = daemon.connect()
    client.send_raw(encode("GET", "big") * 50 + encode("PING"))
    assert all(client.read(30) == b"x" * 1_000_000 for _ in range(50)) and client.read() == "PONG"


@with_config('limits { value = 1mb output = 4mb }')
def test_one_reply_above_the_limit_closes_its_connection_only(daemon):
    daemon.ask("SET", "big", b"x" * 1_000_000)
    witness, client = daemon.connect(), daemon.connect(receive_buffer=2048)
    client.send("MGET", *["big"] * 20)
    eventually(lambda: info(witness)["limit_output_dropped"] == 1)


@with_config('limits { value = 1mb output = 16mb output_total = 20mb }')
def test_all_output_together_has_a_limit_and_the_worst_go_first(daemon):
    daemon.ask("SET", "big", b"x" * 1_000_000)
    small = daemon.connect(receive_buffer=2048)
    greedy = [daemon.connect(receive_buffer=2048).send_raw(encode("GET", "big") * 7) for _ in range(6)]
    eventually(lambda: info(daemon)["limit_output_dropped"] > 0, 15)
    assert small.ask("PING") == "PONG"
    eventually(lambda: info(daemon)["output_bytes"] <= 20 << 20)
    for client in greedy:
        client.reset()
    eventually(lambda: info(daemon)["output_bytes"] == 0)


def test_no_descriptor_left_pauses_accepting_and_those_inside_go_on(start):
    daemon = start('threads = 1')
    witness = daemon.connect()
    assert witness.ask("PING") == "PONG"
    held = len(os.listdir(f"/proc/{daemon.pid}/fd"))
    _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (held + 3, hard))
    clients = [daemon.connect() for _ in range(8)]
    turned = [client for client in clients if client.closed_within(0.2)]
    assert turned and bytes(turned[0].buffer) == b"-ERR max number of clients reached\r\n"
    before = daemon.cpu_seconds()
    time.sleep(1)
    assert daemon.cpu_seconds() - before < 0.3
    assert witness.ask("PING") == "PONG" and info(witness)["limit_accept_pauses"] > 0
    for client in clients:
        client.close()
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (hard, hard))
    eventually(lambda: info(witness)["connected_clients"] == 1)
    assert daemon.connect().ask("PING") == "PONG"


def test_the_descriptor_limit_is_raised_to_the_clients(start):
    daemon = start('limits { clients = 1500 }')
    soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    assert soft >= min(1500 + 64, hard)


@with_config('idle_timeout = 1s')
def test_idle_connections_are_closed_and_busy_ones_are_not(daemon):
    idle, busy = daemon.connect(), daemon.connect()
    assert idle.ask("PING") == "PONG"
    for _ in range(25):
        assert busy.ask("PING") == "PONG"
        time.sleep(0.1)
    assert idle.closed_within(2)
    assert busy.ask("PING") == "PONG" and info(busy)["limit_idle_dropped"] == 1


@with_config('gate "*" { wait = 60s lease_first = 60s lease = 60s } idle_timeout = 1s')
def test_a_held_connection_is_not_idle(daemon):
    leader, waiter = daemon.connect(), daemon.connect()
    assert leader.ask("GET", "k") is None
    waiter.send("GET", "k")
    for _ in range(5):
        assert waiter.silent_for(0.5)
        assert leader.ask("PING") == "PONG"
    daemon.ask("SET", "k", "v")
    assert waiter.read() == b"v"


@long
def test_a_request_that_is_never_finished_is_given_up(daemon):
    slow = daemon.connect()
    for byte in b"*2\r\n$3\r\nGET\r\n$60\r\n" + b"x" * 60:
        try:
            slow.send_raw(bytes([byte]))
        except OSError:
            break
        time.sleep(1)
    assert slow.closed_within(2)
    assert info(daemon)["limit_query_dropped"] == 1


def test_clients_that_come_and_go_leave_nothing(daemon):
    witness = daemon.connect()

    def work(number):
        for i in range(200):
            client = Connection(daemon.port)
            client.send_raw(encode("GET", "k") * 3 + b"*2\r\n$3\r\nGE")
            if i % 2:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
    at_once(4, work)
    eventually(lambda: info(witness)["connected_clients"] == 1)
    seen = info(witness)
    assert seen["query_bytes"] == 0 and seen["output_bytes"] == 0
    assert len(os.listdir(f"/proc/{daemon.pid}/fd")) < 40
