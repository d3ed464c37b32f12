"""Log lines are logfmt whatever comes from outside: one event is one line, and no value breaks out of its quotes."""

import re

from gear import *

LINE = re.compile(r'\w+=("[^"]*"|[^"\s]+)( \w+=("[^"]*"|[^"\s]+))*')


def odd_lines(daemon):
    """Lines of the log that are not logfmt; those of --check and of warnings before the start are prose."""
    return [line for line in daemon.log().splitlines() if line.startswith("time=") and not LINE.fullmatch(line)]


def test_causes_with_quotes_stay_within_their_value(start, folder):
    daemon = start(f"""
        origin "shop" {{ type = sqlite  path = "{folder}/not there.db" }}
        gate "product:{{id}}" {{ origin = "shop"  query = "SELECT name FROM product WHERE id = :id" }}""")
    client = daemon.connect()
    assert client.ask("GET", "product:1").word == "HERDFAIL"
    eventually(lambda: "load_failed" in daemon.log(), 2)
    assert odd_lines(daemon) == []


@with_config('gate "k:*" { grace = 0  lease_first = 100ms }')
def test_a_key_cannot_write_fields_of_its_own(daemon):
    client, waiter = daemon.connect(), daemon.connect()
    key = b'k:" level=error event="forged\r\n'
    assert client.ask("GET", key) is None
    waiter.send("GET", key)
    assert waiter.read() is None
    eventually(lambda: "event=lapsed" in daemon.log(), 2)
    assert odd_lines(daemon) == [] and "event=\"forged" not in daemon.log()
