"""The gear itself, put to a real redis-server: what the other tests rely on is true."""

import time

from gear import *


def test_replies_arrive_in_order_with_their_types(redis):
    client = redis.connect()
    assert client.pipeline(("SET", "k", b"\0\r\n"), ("GET", "k"), ("GET", "none"), ("INCR", "n"), ("MGET", "k", "none"),
                           ("NOSUCH",))[:5] == ["OK", b"\0\r\n", None, 1, [b"\0\r\n", None]]
    assert client.ask("PING") == "PONG"
    assert client.ask("GET").word == "ERR"


def test_resp3_maps_and_pushes_are_kept_apart(redis):
    client, other = redis.connect(protocol=3), redis.connect()
    assert client.greeting["proto".encode()] == 3
    assert client.ask("CLIENT", "TRACKING", "ON") == "OK"
    assert client.ask("GET", "k") is None
    other.ask("SET", "k", "v")
    assert client.read_push() == [b"invalidate", [b"k"]]


def test_a_held_reply_shows_as_silence_and_comes_later(redis):
    client, other = redis.connect(), redis.connect()
    client.send("BLPOP", "list", "5")
    assert client.silent_for(0.05)
    other.ask("RPUSH", "list", "x")
    value, when = client.read_timed()
    assert value == [b"list", b"x"] and when <= time.monotonic()


def test_a_reply_that_is_late_raises_and_is_not_lost(redis):
    client, other = redis.connect(), redis.connect()
    client.send("BLPOP", "list", "5")
    try:
        client.read(0.05)
        raise AssertionError("a reply came from nowhere")
    except Late:
        pass
    other.ask("RPUSH", "list", "x")
    assert client.read() == [b"list", b"x"]


def test_info_is_a_map_with_numbers(redis):
    assert info(redis)["tcp_port"] == redis.port
    assert info(redis, "server")["redis_version"].startswith("7.")


def test_the_origin_counts_loads_and_how_many_ran_at_once(origin):
    origin.load_seconds = 0.05
    values = at_once(5, lambda number: origin.load("k"))
    assert sorted(values) == [b"k#1", b"k#2", b"k#3", b"k#4", b"k#5"]
    assert origin.count("k") == origin.running_of_key_most == 5
    origin.absent.add("none")
    assert origin.load("none") is None
    origin.broken = True
    try:
        origin.load("k")
        raise AssertionError("a broken origin answered")
    except Broken:
        pass


def test_the_proxy_delays_goes_silent_and_cuts_within_a_frame(redis):
    proxy = Proxy(redis.port)
    redis.ask("SET", "k", "0123456789")
    client = Connection(proxy.port)
    assert client.ask("GET", "k") == b"0123456789"
    proxy.delay_seconds = 0.1
    begin = time.monotonic()
    assert client.ask("PING") == "PONG"
    assert time.monotonic() - begin > 0.19
    proxy.delay_seconds = 0
    proxy.silent = True
    client.send("PING")
    assert client.silent_for(0.1)
    proxy.silent = False
    proxy.cut_after_bytes = 3
    cut = Connection(proxy.port)
    cut.send("GET", "k")
    assert cut.closed_within(2)
    assert bytes(cut.buffer) == b"$10"
    proxy.stop()


def test_a_server_that_is_killed_does_not_answer(redis):
    redis.kill()
    try:
        redis.connect(timeout=1)
        raise AssertionError("a dead server answered")
    except OSError:
        pass
