"""INFO, CONFIG, COMMAND, and the handshakes of client programs."""

import time

from gear import *


def test_info_has_redis_sections_and_names_that_clients_read(daemon, redis):
    def titles(server):
        return [line for line in server.ask("INFO").decode().splitlines() if line.startswith("#")]
    assert titles(daemon) == titles(redis) + ["# Herdgate"]
    ours, theirs = info(daemon), info(redis)
    for name in ("redis_version", "redis_mode", "role", "loading", "connected_slaves", "cluster_enabled", "arch_bits",
                 "master_failover_state", "aof_enabled", "async_loading"):
        assert ours[name] == theirs[name], name
    assert ours["tcp_port"] == daemon.port and "herdgate_version" in ours
    assert daemon.ask("INFO", "replication").decode().startswith("# Replication\r\nrole:master\r\n")
    assert daemon.ask("INFO", "nosuch") == redis.ask("INFO", "nosuch") == b""


def test_info_counts_and_resetstat_begins_anew(daemon):
    client = daemon.connect()
    client.pipeline(("SET", "k", "v"), ("GET", "k"), ("GET", "none"), ("NOSUCH",), ("SELECT", "99"), ("AUTH", "x", "y"))
    seen = info(daemon)
    assert seen["total_commands_processed"] >= 6 and seen["total_error_replies"] == 3
    assert seen["errorstat_ERR"] == "count=2" and seen["errorstat_WRONGPASS"] == "count=1"
    assert seen["keyspace_hits"] == 1 and seen["keyspace_misses"] == 1 and seen["db0"].startswith("keys=1,expires=0")
    assert client.ask("CONFIG", "RESETSTAT") == "OK"
    seen = info(client)
    assert seen["total_error_replies"] == 0 and "errorstat_ERR" not in seen and seen["keyspace_hits"] == 0
    assert seen["total_commands_processed"] <= 2
    eventually(lambda: info(client)["connected_clients"] == 1)


def test_errors_inside_exec_are_counted(daemon):
    client = daemon.connect()
    client.pipeline(("SET", "k", "text"), ("MULTI",), ("INCR", "k"), ("INCR", "k"), ("EXEC",))
    assert info(daemon)["errorstat_ERR"] == "count=2"


def test_config_get_answers_what_clients_ask(daemon, redis):
    ours, theirs = daemon.connect(), redis.connect()
    for name in ("save", "appendonly", "databases", "timeout", "hz", "appendfsync", "cluster-enabled",
                 "notify-keyspace-events"):
        assert ours.ask("CONFIG", "GET", name) == theirs.ask("CONFIG", "GET", name), name
    names = ours.ask("CONFIG", "GET", "max*")[0::2]
    assert {b"maxmemory", b"maxmemory-policy", b"maxclients"} <= set(names)
    assert ours.ask("CONFIG", "GET", "nosuch") == []
    assert ours.ask("CONFIG", "GET", "TIMEOUT", "port")[1::2] == [b"0", b"%d" % daemon.port]
    assert daemon.connect(protocol=3).ask("CONFIG", "GET", "save") == {b"save": b""}


def test_config_set_in_redis_words(daemon, redis):
    ours, theirs = daemon.connect(), redis.connect()
    for command in (("CONFIG", "SET", "nosuch", "1"), ("CONFIG", "SET", "databases", "3"),
                    ("CONFIG", "SET", "timeout", "x"),
                    ("CONFIG", "SET", "maxmemory", "x"), ("CONFIG", "SET", "timeout", "-1"),
                    ("CONFIG", "SET", "timeout"),
                    ("CONFIG", "SET", "timeout", "1", "timeout", "2"), ("CONFIG", "SET", "maxclients", "0"),
                    ("CONFIG", "SET", "timeout", "30", "maxmemory", "100mb"), ("CONFIG", "GET", "maxmemory"),
                    ("CONFIG", "SET", "timeout", "60", "maxmemory", "x"), ("CONFIG", "GET", "timeout"),
                    ("CONFIG", "SET", "timeout", "0"), ("CONFIG", "GET", "timeout"), ("CONFIG", "REWRITE"),
                    ("CONFIG", "GET")):
        assert ours.ask(*command) == theirs.ask(*command), command
    assert info(daemon)["maxmemory"] == 100 << 20


def test_maxmemory_is_live(daemon):
    client = daemon.connect()
    for i in range(3000):
        client.send("SET", f"k{i}", b"x" * 2000)
    assert [client.read() for _ in range(3000)] == ["OK"] * 3000
    assert client.ask("CONFIG", "SET", "maxmemory", "2mb") == "OK"
    eventually(lambda: info(daemon)["used_memory"] <= 2 << 20)
    assert info(daemon)["evicted_keys"] > 0


def test_command_tells_arity_flags_and_keys(daemon, redis):
    ours, theirs = daemon.connect(), redis.connect()
    count = ours.ask("COMMAND", "COUNT")
    assert count == len(ours.ask("COMMAND")) == len(ours.ask("COMMAND", "LIST")) and count > 50
    for name in ("get", "set", "mset", "del", "mget", "rename", "expire", "incr", "ping", "multi", "exec", "watch"):
        mine, other = ours.ask("COMMAND", "INFO", name)[0], theirs.ask("COMMAND", "INFO", name)[0]
        assert [mine[0], mine[1], mine[3:6]] == [other[0], other[1], other[3:6]], name
    assert ours.ask("COMMAND", "INFO", "nosuch") == [None]
    assert ours.ask("COMMAND", "DOCS") == []
    for command in (("COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"), ("COMMAND", "GETKEYS", "GET", "x"),
                    ("COMMAND", "GETKEYS", "PING", "x"), ("COMMAND", "GETKEYS", "NOSUCH", "x"), ("COMMAND", "GETKEYS")):
        assert ours.ask(*command) == theirs.ask(*command), command


def test_time_flush_and_function_flush(daemon, redis):
    seconds, micros = daemon.ask("TIME")
    assert abs(int(seconds) + int(micros) / 1e6 - time.time()) < 2
    client = daemon.connect()
    client.pipeline(("SET", "a", "1"), ("SELECT", "1"), ("SET", "b", "1"))
    replies = client.pipeline(("DBSIZE",), ("FLUSHDB",), ("DBSIZE",), ("SELECT", "0"), ("DBSIZE",))
    assert replies == [1, "OK", 0, "OK", 1]
    assert client.pipeline(("FLUSHALL", "SYNC"), ("DBSIZE",), ("FLUSHALL", "x")) == ["OK", 0, Error("ERR syntax error")]
    for command in (("FUNCTION", "FLUSH"), ("FUNCTION", "FLUSH", "ASYNC"), ("FUNCTION", "FLUSH", "x"),
                    ("FUNCTION", "x"),
                    ("FUNCTION",), ("FLUSHDB", "ASYNC"), ("FLUSHDB", "x"), ("TIME", "x")):
        assert daemon.ask(*command) == redis.ask(*command), command
