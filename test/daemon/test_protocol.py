"""Requests as they come off the wire: in pieces, in heaps, and wrong. What a client may send, and what it then gets."""

import socket
import time

from gear import *

WRONG = [b"*abc\r\n", b"*1\r\n:1\r\n", b"*1\r\n$-5\r\n", b"*1\r\n$abc\r\n", b"*2147483648\r\n",
         b"*1\r\n$99999999999\r\n",
         b"*1\r\nGET\r\n", b"SET \"open\r\n", b"*-\r\n", b"*1\r\n$\r\n", b"\"a\"b\r\n"]


def everything(connection, seconds=2.0):
    """All bytes until the server hangs up."""
    assert connection.closed_within(seconds), "still open"
    return bytes(connection.buffer)


def test_malformed_requests_get_redis_words_and_only_their_connection_closes(daemon, redis):
    witness = daemon.connect()
    for wrong in WRONG:
        ours, theirs = daemon.connect().send_raw(wrong), redis.connect().send_raw(wrong)
        assert everything(ours) == everything(theirs), wrong
        assert witness.ask("PING") == "PONG"
    assert info(daemon)["limit_protocol_errors"] == len(WRONG)


def test_what_came_before_a_malformed_request_is_answered_first(daemon):
    client = daemon.connect().send_raw(b"PING\r\n*1\r\n$4\r\nPING\r\n*x\r\nPING\r\n")
    assert everything(client) == b"+PONG\r\n+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n"


def test_inline_commands_and_empty_lines_are_understood_as_in_redis(daemon, redis):
    lines = b"SET k 'a b'\r\n\r\nGET k\nECHO \"\\x41\\n\"\r\n*0\r\nPING\r\n"
    ours, theirs = daemon.connect().send_raw(lines), redis.connect().send_raw(lines)
    assert [ours.read() for _ in range(4)] == [theirs.read() for _ in range(4)] == ["OK", b"a b", b"A\n", "PONG"]


def test_a_request_that_comes_byte_by_byte_is_one_request(daemon):
    client = daemon.connect()
    for byte in encode("SET", "k", b"\0\r\n$1*") + encode("GET", "k"):
        client.send_raw(bytes([byte]))
    assert [client.read(), client.read()] == ["OK", b"\0\r\n$1*"]


def test_pipelines_cut_anywhere_answer_in_order(daemon):
    commands = [("SET", f"k{i}", "v" * (i % 40)) for i in range(40)] + [("GET", f"k{i}") for i in range(40)]
    stream = b"".join(encode(*command) for command in commands)
    expected = ["OK"] * 40 + [b"v" * (i % 40) for i in range(40)]
    for size in (1, 7, 64, 1000):
        client = daemon.connect()
        for start in range(0, len(stream), size):
            client.send_raw(stream[start:start + size])
        assert [client.read() for _ in commands] == expected, size


@with_arguments("--threads", "1")
def test_a_pipeline_of_100000_keeps_order_and_others_get_their_turn(daemon):
    heavy, light = daemon.connect(), daemon.connect()
    stream = b"".join(encode("ECHO", i) for i in range(100000))
    sending = in_background(heavy.send_raw, stream)
    slowest = 0
    reading = in_background(lambda: [heavy.read(60) for _ in range(100000)])
    while not reading.done():
        start = time.monotonic()
        assert light.ask("PING") == "PONG"
        slowest = max(slowest, time.monotonic() - start)
    sending.result(patient(60))
    assert reading.result(1) == [b"%d" % i for i in range(100000)]
    assert slowest < patient(0.5), slowest


def test_large_values_go_in_and_out_whole(daemon):
    client, value = daemon.connect(), bytes(range(256)) * 40000
    assert client.ask("SET", "big", value, timeout=30) == "OK"
    assert client.ask("GET", "big", timeout=30) == value
    assert client.pipeline(("GET", "big"), ("PING",), ("GET", "big"), timeout=30) == [value, "PONG", value]
    eventually(lambda: info(daemon)["query_bytes"] == 0 and info(daemon)["output_bytes"] == 0)


def test_many_arguments_are_read_and_answered(daemon):
    client = daemon.connect()
    names = [f"k{i}" for i in range(50000)]
    assert client.ask("MSET", *[part for name in names for part in (name, name)], timeout=30) == "OK"
    assert client.ask("MGET", *names, timeout=30) == [name.encode() for name in names]


def test_quit_answers_and_closes_and_what_follows_is_not_run(daemon):
    client = daemon.connect().send_raw(encode("SET", "k", "v") + encode("QUIT") + encode("DEL", "k"))
    assert everything(client) == b"+OK\r\n+OK\r\n"
    assert daemon.ask("GET", "k") == b"v"


def test_replies_behind_a_held_one_keep_their_order_and_quit_waits_for_it(daemon):
    leader, client = daemon.connect(), daemon.connect()
    assert leader.ask("GET", "k") is None
    client.send_raw(encode("GET", "k") + encode("ECHO", "a") + encode("INCR", "n") + encode("NOSUCH") + encode("QUIT"))
    assert client.silent_for(0.2)
    assert daemon.ask("GET", "n") == b"1"
    leader.ask("SET", "k", "v")
    assert [client.read() for _ in range(3)] == [b"v", b"a", 1]
    assert client.read().word == "ERR" and client.read() == "OK" and client.closed_within(1)


def test_a_malformed_request_behind_a_held_reply_is_answered_after_it(daemon):
    leader, client = daemon.connect(), daemon.connect()
    assert leader.ask("GET", "k") is None
    client.send_raw(encode("GET", "k") + b"*x\r\n")
    assert client.silent_for(0.2)
    leader.ask("SET", "k", "v")
    assert everything(client) == b"$1\r\nv\r\n-ERR Protocol error: invalid multibulk length\r\n"


def test_a_client_that_shuts_its_side_down_still_gets_its_answers(daemon):
    daemon.ask("SET", "big", b"x" * 3_000_000)
    client = daemon.connect(receive_buffer=4096).send_raw(encode("GET", "big") * 3 + encode("PING"))
    client.socket.shutdown(socket.SHUT_WR)
    assert [client.read(30) for _ in range(3)] == [b"x" * 3_000_000] * 3
    assert client.read(30) == "PONG"


def test_unknown_commands_and_wrong_arity_leave_the_connection_in_step(daemon, redis):
    commands = [("PING",), ("NOSUCH", "a" * 200, "b"), ("GET",), ("SET", "k"), ("NOSUCH\r\n", "x\r\ny"),
                ("CLIENT", "NOSUCH"),
                ("GET", "a", "b"), ("", "x"), ("COMMAND", "NOSUCH"), ("CONFIG", "NOSUCH", "x"), ("FUNCTION", "NOSUCH"),
                ("NOSUCH",) + ("arg",) * 100, ("x" * 300,), ("ECHO", "last")]
    assert daemon.connect().pipeline(*commands) == redis.connect().pipeline(*commands)
