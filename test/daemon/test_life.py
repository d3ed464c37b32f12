"""From start to stop: sockets, signals, reload, logs."""

import os
import signal
import socket
import subprocess
import time

from gear import *


def run_serve(*arguments, seconds=10):
    """A `herdgate serve` that is expected to end by itself."""
    return subprocess.run([program(), "serve", *arguments], capture_output=True, text=True, timeout=patient(seconds))


def test_without_arguments_the_first_line_says_how_to_hold(start):
    daemon = start(None)
    first = eventually(lambda: daemon.log().splitlines())[0]
    assert "event=start" in first and "mode=observe" in first and "--gate" in first


@with_config('gate "k:*" { wait = 7s on_timeout = error }')
def test_with_a_gate_the_first_line_says_what_a_waiter_gets(daemon):
    first = eventually(lambda: daemon.log().splitlines())[0]
    assert "event=start" in first and "waiter_after_ms=7000" in first and "HERDWAIT" in first


def test_a_second_daemon_on_the_port_is_refused_with_a_clear_line(daemon):
    second = run_serve("--listen", f"127.0.0.1:{daemon.port}")
    assert second.returncode == 1
    assert "event=cannot_listen" in second.stderr and "Address already in use" in second.stderr
    assert daemon.ask("PING") == "PONG"


def test_a_live_unix_socket_is_not_taken_and_a_dead_one_is(start, folder):
    path = os.path.join(folder, "herdgate.sock")
    first = start(None, ("--listen", f"unix:{path}"))
    assert Connection(path).ask("PING") == "PONG"
    second = run_serve("--listen", f"unix:{path}")
    assert second.returncode == 1 and "Address already in use" in second.stderr
    assert Connection(path).ask("PING") == "PONG"
    first.kill()
    assert os.path.exists(path)
    third = start(None, ("--listen", f"unix:{path}"))
    assert Connection(path).ask("CLIENT", "LIST").startswith(b"id=")
    third.stop()
    assert not os.path.exists(path)


def test_a_file_that_is_no_socket_is_left_alone(folder):
    path = os.path.join(folder, "precious")
    with open(path, "w") as file:
        file.write("data")
    ended = run_serve("--listen", f"unix:{path}")
    assert ended.returncode == 1 and open(path).read() == "data"


def test_unix_socket_clients_have_address_and_share_the_keys(start, folder):
    path = os.path.join(folder, "herdgate.sock")
    daemon = start('threads = 2', ("--listen", f"unix:{path}"))
    clients = [Connection(path) for _ in range(4)]
    assert [client.ask("SET", f"k{i}", str(i)) for i, client in enumerate(clients)] == ["OK"] * 4
    assert daemon.ask("MGET", "k0", "k1", "k2", "k3") == [b"0", b"1", b"2", b"3"]
    assert f"addr={path}:0 laddr={path}:0 ".encode() in clients[0].ask("CLIENT", "INFO")
    for client in clients:
        client.close()


def test_sigterm_with_nobody_waiting_ends_at_once(daemon):
    client = daemon.connect()
    assert client.ask("SET", "k", "v") == "OK"
    start = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.process.wait(patient(5)) == 0
    assert time.monotonic() - start < patient(1)
    assert client.closed_within(1)


def test_sigterm_waits_for_a_flight_that_somebody_waits_for(daemon):
    leader, waiter = daemon.connect(), daemon.connect()
    assert leader.ask("GET", "k") is None
    waiter.send("GET", "k")
    assert waiter.silent_for(0.1)
    daemon.signal(signal.SIGTERM)
    time.sleep(0.3)
    try:
        Connection(daemon.port, timeout=1).ask("PING")
        raise AssertionError("still accepts")
    except (OSError, Closed):
        pass
    assert daemon.process.poll() is None
    assert leader.ask("SET", "k", "v") == "OK"
    assert waiter.read() == b"v"
    assert daemon.process.wait(patient(5)) == 0


@with_config('drain = 1s gate "*" { }')
def test_sigterm_waits_no_longer_than_the_drain_time(daemon):
    leader, waiter = daemon.connect(), daemon.connect()
    leader.ask("GET", "k")
    waiter.send("GET", "k")
    assert waiter.silent_for(0.1)
    start = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.process.wait(patient(5)) == 0
    assert 0.8 < time.monotonic() - start < patient(2)


def test_a_second_sigterm_ends_at_once(daemon):
    leader, waiter = daemon.connect(), daemon.connect()
    leader.ask("GET", "k")
    waiter.send("GET", "k")
    assert waiter.silent_for(0.1)
    daemon.signal(signal.SIGTERM)
    time.sleep(0.2)
    assert daemon.process.poll() is None
    daemon.signal(signal.SIGTERM)
    assert daemon.process.wait(patient(2)) == 0


def rewrite(daemon, text):
    with open(daemon.config_path, "w") as file:
        file.write(text)
    daemon.signal(signal.SIGHUP)


@with_config('gate "a:*" { }')
def test_sighup_reads_the_gates_again(daemon):
    first, second = daemon.connect(), daemon.connect()
    assert first.ask("GET", "b:1") is None and second.ask("GET", "b:1") is None
    rewrite(daemon, 'gate "b:*" { }')
    eventually(lambda: "event=reload file=" in daemon.log())
    assert first.ask("GET", "b:2") is None
    second.send("GET", "b:2")
    assert second.silent_for(0.2)
    first.ask("SET", "b:2", "v")
    assert second.read() == b"v"
    assert first.ask("GET", "a:1") is None and second.ask("GET", "a:1") is None


@with_config('gate "a:*" { }')
def test_a_bad_file_changes_nothing_and_the_log_names_the_line(daemon):
    first, second = daemon.connect(), daemon.connect()
    rewrite(daemon, 'gate "b:*" { }\n\ngate "c:*" { lease = 0 }')
    eventually(lambda: "event=reload refused=yes" in daemon.log())
    assert "line=3" in daemon.log()
    assert first.ask("GET", "a:1") is None
    second.send("GET", "a:1")
    assert second.silent_for(0.2)
    first.ask("SET", "a:1", "v")
    assert second.read() == b"v"


@with_config('limits { clients = 100 } gate "a:*" { }')
def test_a_reload_that_shrinks_a_limit_drops_nobody(daemon):
    clients = [daemon.connect() for _ in range(5)]
    assert [client.ask("PING") for client in clients] == ["PONG"] * 5
    rewrite(daemon, 'limits { clients = 2 } gate "a:*" { }')
    eventually(lambda: "event=reload file=" in daemon.log())
    assert [client.ask("PING") for client in clients] == ["PONG"] * 5
    late = daemon.connect()
    assert late.closed_within(2) and b"max number of clients" in bytes(late.buffer)


def test_many_reloads_while_clients_ask(start):
    daemon = start('threads = 2 gate "a:*" { }')

    def work(number):
        client = daemon.connect()
        for i in range(300):
            if number == 0 and i % 5 == 0:
                rewrite(daemon, f'threads = 2 gate "a:*" {{ grace = {i + 1}s }} gate "b{i}:*" {{ }}')
            client.ask("SET", f"a:{number}", str(i))
            assert client.ask("GET", f"a:{number}") == b"%d" % i
    at_once(4, work)
    assert daemon.ask("PING") == "PONG"


def test_check_prints_what_would_run_or_the_faults(folder):
    good = run_serve("--gate", "product:*", "--check")
    assert good.returncode == 0 and 'gate "product:*"' in good.stdout
    path = os.path.join(folder, "bad.conf")
    with open(path, "w") as file:
        file.write('gate "a" { }\nnosuch = 1\n')
    bad = run_serve("-c", path, "--check")
    assert bad.returncode == 1 and f"{path}:2" in bad.stderr
    assert run_serve("-c", path).returncode == 1
    with open(path, "w") as file:
        file.write('origin "x" { type = sqlite path = "x.db" }\n'
                   'gate "a:{id}" { origin = x query = "DELETE FROM t WHERE id = :id" }\n')
    bad = run_serve("-c", path, "--check")
    assert bad.returncode == 1 and f"{path}:2" in bad.stderr and "only a query that reads" in bad.stderr
    assert run_serve("--nosuch").returncode == 2 and run_serve("extra").returncode == 2


def test_help_and_version_of_each_subcommand():
    def run(*arguments):
        return subprocess.run([program(), *arguments], capture_output=True, text=True, timeout=10)
    assert "serve" in run("help").stdout and run("--help").returncode == 0
    assert "--gate" in run("serve", "--help").stdout and "--gate" in run("help", "serve").stdout
    assert run("version").stdout.startswith("herdgate ") and run("version", "--help").returncode == 0
    assert run("nosuch").returncode == 2 and run().returncode == 2


def test_a_log_that_nobody_reads_stops_nobody(folder):
    port = free_port()
    reading, writing = os.pipe()
    os.set_blocking(writing, True)
    process = subprocess.Popen([program(), "serve", "--listen", f"127.0.0.1:{port}"], stderr=writing, cwd=folder)
    try:
        def answers():
            try:
                return Connection(port).ask("PING") == "PONG"
            except OSError:
                return False
        eventually(answers, 10)
        fill = b"x" * 4096
        os.set_blocking(writing, False)
        try:
            while True:
                os.write(writing, fill)
        except BlockingIOError:
            os.set_blocking(writing, True)
        client = Connection(port)
        for i in range(40):
            Connection(port).send_raw(b"*x\r\n").closed_within(2)
            client.ask("AUTH", "nobody", "wrong")
            assert client.ask("PING") == "PONG"
        process.terminate()
        assert process.wait(patient(5)) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reading)
        os.close(writing)


def test_a_log_on_a_full_disk_stops_nobody(folder):
    port = free_port()
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen([program(), "serve", "--listen", f"127.0.0.1:{port}"], stderr=full, cwd=folder)
    try:
        def answers():
            try:
                return Connection(port).ask("PING") == "PONG"
            except OSError:
                return False
        eventually(answers, 10)
        process.terminate()
        assert process.wait(patient(5)) == 0
    finally:
        process.kill()
        process.wait()


def test_an_event_that_comes_in_heaps_is_logged_a_few_times(daemon):
    client = daemon.connect()
    for _ in range(200):
        client.ask("AUTH", "nobody", "wrong")
    assert 1 <= daemon.log().count("event=auth_refused") <= 10


def test_bytes_from_outside_cannot_forge_log_lines(daemon):
    daemon.connect().send_raw(b"*1\r\n\x1b[31m\nlevel=error event=forged\r\n").closed_within(2)
    assert daemon.ask("PING") == "PONG"
    assert not any(line.startswith("level=") for line in daemon.log().splitlines())
    assert "\x1b" not in daemon.log()


def test_stopped_and_continued_nothing_is_lost(daemon):
    client = daemon.connect()
    client.ask("SET", "k", "v", "EX", "100")
    freeze(daemon)
    client.send("GET", "k")
    assert client.silent_for(0.3)
    daemon.signal(signal.SIGCONT)
    assert client.read() == b"v"


def test_connections_are_spread_over_the_loops(start):
    daemon = start('threads = 2')
    clients = [daemon.connect() for _ in range(8)]
    for client in clients:
        client.ask("PING")

    def work(client):
        for _ in range(2000):
            client.ask("PING")
    before = threads_cpu(daemon.pid)
    at_once(8, lambda number: work(clients[number]))
    used = sorted(after - before.get(thread, 0) for thread, after in threads_cpu(daemon.pid).items())
    assert used[-2] > 0.25 * used[-1], used


def threads_cpu(pid):
    seen = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        seen[thread] = int(fields[11]) + int(fields[12])
    return seen


def test_keepalive_is_on(daemon):
    client = daemon.connect()
    client.ask("PING")
    port = client.socket.getsockname()[1]
    shown = subprocess.run(["ss", "-tnoH", "sport", "=", f":{daemon.port}", "and", "dport", "=", f":{port}"],
                           capture_output=True, text=True)
    if shown.returncode != 0 or not shown.stdout:
        skip("no ss here")
    assert "timer:(keepalive" in shown.stdout
    assert socket.SO_KEEPALIVE
