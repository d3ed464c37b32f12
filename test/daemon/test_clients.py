"""CLIENT over several event loops, and HELLO."""

from gear import *


def listed(connection):
    """CLIENT LIST as a map of name to fields."""
    lines = connection.ask("CLIENT", "LIST").decode().splitlines()
    fields = [dict(part.split("=", 1) for part in line.split(" ")) for line in lines]
    return {each["name"]: each for each in fields}


@with_arguments("--threads", "3")
def test_list_shows_clients_of_all_loops_with_redis_fields(daemon, redis):
    clients = [daemon.connect() for _ in range(9)]
    for number, client in enumerate(clients):
        assert client.ask("CLIENT", "SETNAME", f"c{number}") == "OK"
    clients[3].pipeline(("SELECT", "5"), ("MULTI",), ("PING",))
    seen = listed(clients[0])
    assert {f"c{number}" for number in range(9)} <= set(seen)
    assert seen["c3"]["db"] == "5" and seen["c3"]["multi"] == "1" and seen["c0"]["multi"] == "-1"
    assert seen["c3"]["addr"] == "127.0.0.1:%d" % clients[3].socket.getsockname()[1]
    theirs = redis.connect()
    theirs.ask("CLIENT", "SETNAME", "x")
    assert set(listed(theirs)["x"]) <= set(seen["c0"])
    assert len({each["id"] for each in seen.values()}) == len(seen)


@with_arguments("--threads", "2")
def test_kill_closes_the_right_ones_wherever_they_live(daemon):
    killer, victims = daemon.connect(), [daemon.connect() for _ in range(6)]
    ids = [victim.ask("CLIENT", "ID") for victim in victims]
    assert killer.ask("CLIENT", "KILL", "ID", ids[0]) == 1
    assert victims[0].closed_within(2)
    port = victims[1].socket.getsockname()[1]
    assert killer.ask("CLIENT", "KILL", f"127.0.0.1:{port}") == "OK"
    assert victims[1].closed_within(2)
    assert killer.ask("CLIENT", "KILL", "ID", ids[0]) == 0
    assert killer.ask("CLIENT", "KILL", f"127.0.0.1:{port}").text == "ERR No such client"
    assert [victim.ask("PING") for victim in victims[2:]] == ["PONG"] * 4
    assert killer.ask("CLIENT", "KILL", "TYPE", "normal") == 4
    assert all(victim.closed_within(2) for victim in victims[2:])
    assert killer.ask("PING") == "PONG"
    assert killer.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no") == 1
    assert killer.closed_within(2)


@with_arguments("--threads", "2")
def test_kill_list_and_leaving_at_the_same_time(daemon):
    def work(number):
        for _ in range(40):
            try:
                client = daemon.connect()
                client.pipeline(("CLIENT", "SETNAME", f"n{number}"), ("CLIENT", "LIST"))
                if number == 0:
                    client.ask("CLIENT", "KILL", "TYPE", "normal")
                client.close()
            except (Closed, OSError):
                pass
    at_once(6, work)
    eventually(lambda: info(daemon)["connected_clients"] == 1)


def test_names_and_errors_as_redis(daemon, redis):
    ours, theirs = daemon.connect(), redis.connect()
    for command in (("CLIENT", "GETNAME"), ("CLIENT", "SETNAME", "a b"), ("CLIENT", "SETNAME", "a\n"),
                    ("CLIENT", "SETNAME", "x"),
                    ("CLIENT", "GETNAME"), ("CLIENT", "SETNAME", ""), ("CLIENT", "GETNAME"), ("CLIENT", "KILL"),
                    ("CLIENT",),
                    ("CLIENT", "KILL", "ID", "0"), ("CLIENT", "KILL", "ID", "x"), ("CLIENT", "KILL", "ID", "1", "ADDR"),
                    ("CLIENT", "KILL", "FOO", "1"), ("CLIENT", "KILL", "USER", "nobody"),
                    ("CLIENT", "KILL", "TYPE", "x"),
                    ("CLIENT", "LIST", "TYPE", "x"), ("CLIENT", "LIST", "ID", "x"), ("CLIENT", "LIST", "x"),
                    ("CLIENT", "LIST", "TYPE", "replica"), ("CLIENT", "ID", "x"), ("HELLO", "1"), ("HELLO", "x"),
                    ("HELLO", "2", "AUTH", "default"), ("HELLO", "3", "SETNAME", "a b"), ("HELLO", "2", "SETNAME", "y"),
                    ("CLIENT", "GETNAME")):
        mine, other = ours.ask(*command), theirs.ask(*command)
        if command[0] == "HELLO" and isinstance(mine, list):
            mine[7] = other[7]
        assert mine == other, command


def test_hello_3_gives_maps_and_nulls_of_resp3(daemon, redis):
    ours, theirs = daemon.connect(protocol=3), redis.connect(protocol=3)
    assert {**ours.greeting, b"id": 0} == {**theirs.greeting, b"id": 0}
    for command in (("GET", "none"), ("MGET", "none"), ("CONFIG", "GET", "save"), ("HELLO", "2")):
        mine, other = ours.ask(*command), theirs.ask(*command)
        assert type(mine) is type(other), command
    assert ours.ask("GET", "none") is None


def test_setinfo_is_kept_and_shown(daemon):
    client = daemon.connect()
    assert client.ask("CLIENT", "SETINFO", "LIB-NAME", "lib") == "OK"
    assert client.ask("CLIENT", "SETINFO", "lib-ver", "1.2") == "OK"
    assert b" lib-name=lib lib-ver=1.2" in client.ask("CLIENT", "INFO")
    assert client.ask("CLIENT", "SETINFO", "FOO", "x").text == "ERR Unrecognized option 'FOO'"
    assert client.ask("CLIENT", "SETINFO", "LIB-NAME", "a b").word == "ERR"
