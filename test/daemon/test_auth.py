"""Who may come in: passwords and users."""

from gear import *

USERS = 'password = "secret" user "app" { password = "pa ss" }'


@with_config(USERS)
def test_without_a_password_only_auth_hello_quit_and_reset_answer(daemon, redis):
    client = daemon.connect()
    for command in (("PING",), ("GET", "k"), ("CLIENT", "ID"), ("INFO",), ("MULTI",), ("COMMAND",)):
        assert client.ask(*command).text == "NOAUTH Authentication required.", command
    assert client.ask("NOSUCH").text.startswith("ERR unknown command")
    assert client.ask("HELLO", "3").word == "NOAUTH"
    assert client.ask("RESET") == "RESET"
    assert client.ask("QUIT") == "OK"


@with_config(USERS)
def test_password_and_users_are_checked_in_redis_words(daemon, redis):
    redis.ask("CONFIG", "SET", "requirepass", "secret")
    ours, theirs = daemon.connect(), redis.connect()
    for command in (("AUTH", "wrong"), ("AUTH", "secre"), ("AUTH", "secrett"), ("AUTH", ""),
                    ("AUTH", "nobody", "secret"),
                    ("AUTH", "a", "b", "c"), ("AUTH",), ("HELLO", "3", "AUTH", "default", "wrong"), ("PING",),
                    ("AUTH", "secret"), ("PING",), ("AUTH", "default", "wrong"), ("PING",)):
        assert ours.ask(*command) == theirs.ask(*command), command
    other = daemon.connect()
    assert other.ask("HELLO", "2", "AUTH", "app", "pa ss", "SETNAME", "worker")[:2] == [b"server", b"redis"]
    assert b" user=app " in other.ask("CLIENT", "LIST") and other.ask("CLIENT", "GETNAME") == b"worker"
    assert ours.ask("RESET") == "RESET" and ours.ask("PING").word == "NOAUTH"


@with_config('user "app" { password = "x" }')
def test_users_alone_also_ask_for_a_name(daemon):
    client = daemon.connect()
    assert client.ask("PING").word == "NOAUTH"
    assert client.ask("AUTH", "x").word == "ERR"
    assert client.ask("AUTH", "default", "x").word == "WRONGPASS"
    assert client.ask("AUTH", "app", "x") == "OK" and client.ask("PING") == "PONG"


def test_where_nobody_is_asked_auth_says_so_as_redis_does(daemon, redis):
    for command in (("AUTH", "x"), ("AUTH", "default", "x"), ("AUTH", "other", "x")):
        assert daemon.ask(*command) == redis.ask(*command), command


@with_config(USERS)
def test_before_auth_large_requests_are_refused_as_in_redis(daemon, redis):
    redis.ask("CONFIG", "SET", "requirepass", "secret")
    for wrong in (b"*100\r\n", b"*1\r\n$20000\r\n"):
        ours, theirs = daemon.connect().send_raw(wrong), redis.connect().send_raw(wrong)
        assert ours.closed_within(2) and theirs.closed_within(2)
        assert bytes(ours.buffer) == bytes(theirs.buffer)


@with_config(USERS)
def test_a_failing_auth_in_a_pipeline_is_one_reply(daemon):
    client = daemon.connect()
    replies = client.pipeline(("AUTH", "no"), ("AUTH", "secret"), ("ECHO", "a"), ("AUTH", "no"), ("ECHO", "b"))
    assert [getattr(reply, "word", reply) for reply in replies] == ["WRONGPASS", "OK", b"a", "WRONGPASS", b"b"]
