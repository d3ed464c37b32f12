"""MULTI, EXEC, DISCARD and WATCH, compared with redis-server where words matter."""

from gear import *


def both(daemon, redis, *commands):
    """The replies of one connection of each, which must be the same."""
    ours, theirs = daemon.connect().pipeline(*commands), redis.connect().pipeline(*commands)
    assert ours == theirs, [pair for pair in zip(commands, ours, theirs) if pair[1] != pair[2]]
    return ours


def test_what_redis_says_about_transactions(daemon, redis):
    both(daemon, redis, ("EXEC",), ("DISCARD",), ("MULTI",), ("MULTI",), ("WATCH", "k"), ("SET", "k", "1"),
         ("INCR", "k"),
         ("GET", "k"), ("EXEC",), ("MULTI",), ("NOSUCH",), ("SET", "k", "9"), ("EXEC",), ("GET", "k"))
    both(daemon, redis, ("MULTI",), ("SET", "k"), ("EXEC",), ("MULTI",), ("SET", "k", "5"), ("DISCARD",), ("GET", "k"))
    both(daemon, redis, ("MULTI",), ("EXEC",), ("UNWATCH",), ("MULTI",), ("UNWATCH",), ("PING",), ("ECHO", "x"),
         ("EXEC",))


def test_a_command_that_fails_in_exec_does_not_stop_the_others(daemon, redis):
    replies = both(daemon, redis, ("SET", "text", "abc"), ("MULTI",), ("INCR", "text"), ("SET", "k", "v"),
                   ("MGET", "k", "no"),
                   ("EXEC",))
    assert replies[-1][1:] == ["OK", [b"v", None]]


def test_select_inside_a_transaction_counts_for_what_follows(daemon, redis):
    both(daemon, redis, ("MULTI",), ("SET", "k", "0"), ("SELECT", "3"), ("SET", "k", "3"), ("SELECT", "99"),
         ("GET", "k"),
         ("EXEC",), ("GET", "k"), ("SELECT", "0"), ("GET", "k"), ("SELECT", "3"), ("GET", "k"))


def test_a_watched_key_that_changes_refuses_exec_once(daemon):
    watcher, other = daemon.connect(), daemon.connect()
    assert watcher.pipeline(("WATCH", "k"), ("MULTI",), ("SET", "k", "mine")) == ["OK", "OK", "QUEUED"]
    assert other.ask("SET", "k", "theirs") == "OK"
    assert watcher.ask("EXEC") is None
    assert watcher.pipeline(("MULTI",), ("SET", "k", "mine"), ("EXEC",)) == ["OK", "QUEUED", ["OK"]]


def test_nobody_sees_half_a_transaction(daemon):
    names = [f"account:{i}" for i in range(20)]
    daemon.ask("MSET", *[part for name in names for part in (name, "0")])

    def work(number):
        client = daemon.connect()
        for i in range(150):
            if number < 2:
                client.pipeline(("MULTI",), *[("INCR", name) for name in names], ("EXEC",), timeout=30)
            else:
                seen = client.pipeline(("MULTI",), ("MGET", *names), ("EXEC",), timeout=30)[-1][0]
                assert len(set(seen)) == 1, seen

    at_once(4, work)
    assert daemon.ask("MGET", *names) == [b"300"] * 20


def test_a_queue_is_forgotten_with_its_connection_and_bounded(start):
    daemon = start('limits { query_buffer = 1mb value = 256kb }')
    client = daemon.connect()
    client.ask("MULTI")
    replies = [client.ask("SET", "k", b"x" * 200000) for _ in range(6)]
    assert replies[0] == "QUEUED" and replies[-1].text == "ERR transaction is too large (limits: query_buffer)"
    assert client.ask("EXEC").word == "EXECABORT"
    assert client.ask("GET", "k") is None
    client.pipeline(("MULTI",), ("SET", "k", "v"))
    client.close()
    assert daemon.ask("GET", "k") is None


def test_reset_leaves_the_transaction_and_the_database(daemon, redis):
    both(daemon, redis, ("SELECT", "2"), ("SET", "k", "two"), ("MULTI",), ("SET", "k", "v"), ("RESET",), ("EXEC",),
         ("GET", "k"))


def test_quit_inside_a_transaction_closes(daemon):
    client = daemon.connect()
    assert client.pipeline(("MULTI",), ("SET", "k", "v"), ("QUIT",)) == ["OK", "QUEUED", "OK"]
    assert client.closed_within(1)
    assert daemon.ask("EXISTS", "k") == 0
