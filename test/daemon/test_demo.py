"""herdgate demo: its figures, what it prints where, and that it leaves nothing behind however it ends."""

import json
import os
import pty
import resource
import signal
import subprocess
import time
import xml.dom.minidom

from gear import *

KEYS = ["round", "requests", "ok", "failed", "queries", "longest_queue", "p50_ms", "p99_ms", "max_ms", "total_ms"]
SMALL = ("--requests", "60", "--pool-max", "2", "--acquire-timeout", "300")


def start_demo(folder, *arguments, **options):
    """The demo with a folder for temporary files of its own, which a test can look into."""
    return subprocess.Popen([program(), "demo", *arguments], env={**os.environ, "TMPDIR": folder},
                            stdin=subprocess.DEVNULL, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                                         "text": True, **options})


def run_demo(folder, *arguments, **options):
    """(exit code, standard output, standard error)"""
    with start_demo(folder, *arguments, **options) as demo:
        out, err = demo.communicate(timeout=patient(60))
    return demo.returncode, out, err


def play(folder, *arguments):
    code, out, err = run_demo(folder, "--json", *arguments)
    assert (code, err) == (0, ""), (code, out, err)
    return json.loads(out)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_two_thousand_at_once(folder):
    plain, client, origin = play(folder)
    assert 40 <= plain["queries"] <= 150, plain
    assert plain["queries"] <= plain["ok"] <= 1000, plain  # more only where somebody asked after the first fill
    assert plain["ok"] + plain["failed"] == plain["requests"] == 2000
    assert 1000 <= plain["longest_queue"] <= 1990, plain
    assert 1000 <= plain["total_ms"] <= patient(12170), plain
    for gated in client, origin:
        assert (gated["ok"], gated["failed"], gated["queries"]) == (2000, 0, 1), gated
        assert gated["longest_queue"] == 0
        assert 60 <= gated["total_ms"] <= patient(950), gated
        assert gated["p50_ms"] <= gated["p99_ms"] <= gated["max_ms"] <= gated["total_ms"]
    assert os.listdir(folder) == []


def test_json_is_all_of_standard_output(folder):
    rounds = play(folder, *SMALL)
    assert [entry["round"] for entry in rounds] == ["no gate", "gate, client fills", "gate, origin fills"]
    for entry in rounds:
        assert list(entry) == KEYS
        assert entry["requests"] == 60 == entry["ok"] + entry["failed"]
    assert 1 < rounds[0]["queries"] <= rounds[0]["ok"] and 1 < rounds[0]["longest_queue"] <= 58


def test_without_a_timeout_all_are_served_late(folder):
    plain, client, origin = play(folder, "--requests", "60", "--pool-max", "10", "--acquire-timeout", "0")
    assert (plain["ok"], plain["failed"]) == (60, 0) and 10 < plain["queries"] <= 60
    assert plain["total_ms"] >= 100 * (plain["queries"] // 10)  # turns of a pool of ten
    assert client["queries"] == origin["queries"] == 1


def test_the_table_says_the_same(folder):
    code, out, err = run_demo(folder, "--requests", "1000", "--pool-max", "2", "--acquire-timeout", "200")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("1,000 clients ask for one key")
    assert "a request waits at most 200 ms" in lines[2].lower()
    for name in "gate, client fills", "gate, origin fills":
        line = next(line for line in lines if line.startswith(name))
        assert line[len(name):].split()[:4] == ["1,000", "0", "1", "0"], line
    assert "with one, 1 query answered all 1,000 within" in out
    assert "First failure, no gate: no connection within acquire_timeout (200 ms)." in out
    assert max(map(len, lines[:-2])) <= 100


def test_one_request_needs_no_gate(folder):
    for entry in play(folder, "--requests", "1", "--pool-max", "1"):
        assert (entry["ok"], entry["queries"], entry["longest_queue"]) == (1, 1, 0), entry


def test_the_picture_shows_the_figures(folder):
    path = os.path.join(folder, "demo.svg")
    code, out, err = run_demo(folder, *SMALL, "--json", "--svg", path)
    assert (code, err) == (0, "")
    plain = json.loads(out)[0]
    picture = xml.dom.minidom.parse(path)
    texts = ["".join(part.data for part in text.childNodes) for text in picture.getElementsByTagName("text")]
    assert f"{plain['ok']} answered, {plain['failed']} failed" in texts
    assert texts.count("60 answered") == 2 and texts.count("1") == 2
    assert "prefers-color-scheme: dark" in picture.toxml() and picture.getElementsByTagName("desc")
    code, out, err = run_demo(folder, *SMALL, "--svg", os.path.join(folder, "no", "demo.svg"))
    assert code == 1 and "cannot write" in err and "No such file" in err


def test_wrong_arguments_are_named(folder):
    for arguments, words in [(["--requests", "0"], "--requests '0' is not a number from 1 to 20000"),
                             (["--requests", "20001"], "from 1 to 20000"),
                             (["--requests", "12x"], "--requests '12x'"),
                             (["--pool-max", "-1"], "--pool-max '-1' is not a number from 1 to 1024"),
                             (["--pool-max", ""], "--pool-max ''"),
                             (["--acquire-timeout", "99999999999999999999"], "from 0 to 3600000"),
                             (["--acquire-timeout"], "'--acquire-timeout' wants a value"),
                             (["--quickly"], "there is no option '--quickly'"),
                             (["-q"], "there is no option '-q'"),
                             (["--json", "now"], "unexpected argument 'now'")]:
        code, out, err = run_demo(folder, *arguments)
        assert code == 2 and out == "" and err.startswith("herdgate demo: ") and words in err, (arguments, err)
    code, out, err = run_demo(folder, "--help")
    assert code == 0 and err == "" and all(word in out for word in ("--requests", "--svg", "Exit codes"))


def test_a_bar_on_a_terminal_only(folder):
    ours, its = pty.openpty()
    with start_demo(folder, *SMALL, "--json", stderr=its) as demo:
        os.close(its)
        out, _ = demo.communicate(timeout=patient(60))
    seen = os.read(ours, 65536).decode()
    os.close(ours)
    assert demo.returncode == 0 and len(json.loads(out)) == 3
    assert "[" in seen and "of 60" in seen and seen.endswith("\r"), seen


def test_a_low_limit_of_descriptors_is_named(folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))
        os.setuid(65534)  # who may not raise it again
    os.chmod(folder, 0o777)
    code, out, err = run_demo(folder, "--requests", "1000", preexec_fn=limit if os.geteuid() == 0 else None)
    if os.geteuid() != 0:
        skip("needs root")
    assert code == 1 and out == "" and "ulimit -n" in err and "--requests" in err, err


def test_a_low_soft_limit_is_raised(folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    code, out, err = run_demo(folder, "--json", "--requests", "300", preexec_fn=limit)
    assert code == 0 and json.loads(out)[2]["ok"] == 300, err


def test_interrupted_at_any_moment_it_leaves_nothing(folder):
    for i, seconds in enumerate((0.02, 0.1, 0.4, 0.8, 1.2, 1.6)):
        number = (signal.SIGINT, signal.SIGTERM)[i % 2]
        demo = start_demo(folder, "--requests", "500")
        eventually(lambda: os.listdir(folder) or demo.poll() is not None)
        time.sleep(seconds)
        daemons = children(demo.pid)
        demo.send_signal(number)
        out, err = demo.communicate(timeout=patient(10))
        assert demo.returncode == 128 + number and out == "", (seconds, demo.returncode, out, err)
        assert os.listdir(folder) == [] and not any(map(is_running, daemons)), seconds


def test_the_daemon_dies_with_it(folder):
    demo = start_demo(folder, "--requests", "500")
    daemons = eventually(lambda: children(demo.pid))
    demo.kill()
    demo.communicate(timeout=patient(10))
    eventually(lambda: not any(map(is_running, daemons)))


def test_a_daemon_that_is_killed_is_told(folder):
    for seconds in (0.2, 0.6, 1.0, 1.4):
        demo = start_demo(folder, "--requests", "500")
        daemons = eventually(lambda: children(demo.pid))
        time.sleep(seconds)
        os.kill(daemons[0], signal.SIGKILL)
        out, err = demo.communicate(timeout=patient(20))
        assert demo.returncode == 1 and out == "" and err.startswith("herdgate demo: the daemon"), (seconds, out, err)
        assert os.listdir(folder) == []


CATALOGUE = """
origin "catalogue" {{ type = sqlite  path = "{path}"  pool_max = 2 }}
gate "product:{{id}}" {{
    origin = catalogue
    query = "SELECT :id WHERE herd_cost(20, 5) = 0 AND :id <> 'none'"
}}
"""


def test_a_slow_database_by_hand(start, folder):
    path = os.path.join(folder, "catalogue.db")
    open(path, "w").close()
    daemon = start(CATALOGUE.format(path=path))
    begin = time.monotonic()
    assert daemon.ask("GET", "product:7") == b"7"
    assert time.monotonic() - begin >= 0.025
    assert daemon.ask("GET", "product:none") is None
    told = dict(part.split("=") for part in info(daemon)["herd_origin1"].split(","))
    assert told["name"] == "catalogue"
    assert (told["asked"], told["queries"], told["values"], told["absent"]) == ("2", "2", "1", "1")
    assert int(told["query_time_us"]) >= 50000 and told["running"] == told["queued"] == "0"
